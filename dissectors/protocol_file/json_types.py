"""The JSON types for the types of protocol files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.fields import beyond_limits, limits_title
from kiebitz.dissectors.grammar.grammar import Field
from kiebitz.dissectors.grammar.invalid_values import Wrong
from kiebitz.dissectors.grammar.json.containers import JsonBag, JsonList, JsonObject
from kiebitz.dissectors.grammar.json.types import (
    JsonAny,
    JsonBoolean,
    JsonChoice,
    JsonEither,
    JsonNumber,
    JsonText,
    JsonType,
)
from kiebitz.dissectors.grammar.spellings import AS_WRITTEN, Spellings
from kiebitz.dissectors.protocol_file.patterns import matcher
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    BagType,
    BinaryType,
    BooleanType,
    ChoiceType,
    EitherType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    IdentifierType,
    ListType,
    NumberType,
    ObjectType,
    TextType,
)
from kiebitz.dissectors.protocol_file.text_types import identifier_kind, kept, matches_names, number_of


class JsonTypes:
    """The types of one grammar: each type of the file has one, however often it is used.

    Args:
        spellings: Other spellings of words and attributes.
        identifiers: Kinds of identifiers, if those of these names have other properties than in files.
        is_lenient: As in `JsonObject`.
    """

    def __init__(
        self,
        spellings: Spellings = AS_WRITTEN,
        identifiers: Mapping[str, IdentifierKind] = MappingProxyType({}),
        *,
        is_lenient: bool = True,
    ) -> None:
        self._spellings, self._identifiers, self._is_lenient = spellings, identifiers, is_lenient
        self._made: dict[int, tuple[FieldTypeSpec, JsonType]] = {}

    def type(self, spec: FieldTypeSpec) -> JsonType:
        """Return the field type for a type of a protocol file."""
        found = self._made.get(id(spec))
        if found is not None:
            return found[1]
        kind = self._make(spec)
        if spec.title:
            kind.title = spec.title
        if spec.wrong:
            kind.more_wrong = (*kind.more_wrong, *spec.wrong)
        # The type of the file is kept, as another one could get its id.
        self._made[id(spec)] = spec, kind
        return kind

    def _make(self, spec: FieldTypeSpec) -> JsonType:
        match spec:
            case TextType():
                return _text(spec)
            case NumberType(least, most, whole):
                number = JsonNumber(least, most, whole, spec.usual, limits_title(spec))
                # The file of a package has its own.
                beyond = beyond_limits(spec) if self._is_lenient else ()
                number.more_wrong = tuple(Wrong(kind, title, str(value)) for kind, title, value in beyond)
                return number
            case BooleanType():
                return JsonBoolean()
            case ChoiceType():
                return JsonChoice(spec.plain, self._spellings.with_words(spec.spelled), spec.odd)
            case IdentifierType():
                return self._identifier(spec)
            case ListType(item, _, least, most):
                title = "list" if item == AnyType() else ""
                return JsonList(self.type(item), least, most, noun=spec.noun or "values", title=title)
            case ObjectType():
                return self._object(spec)
            case EitherType(options):
                return JsonEither(*map(self.type, options), noun=spec.noun)
            case BagType(names):
                return JsonBag(
                    names,
                    f"numbers of {', '.join(names)}",
                    spec.hidden or None,
                    spec.owes,
                    spec.noun or "things",
                    self._spellings,
                )
            case BinaryType(("text" | "bytes"), _):
                return JsonText()
            case BinaryType("bool8", _):
                return JsonBoolean()
            case BinaryType():
                return self._make(number_of(spec))
            case _:
                return JsonAny()

    def _object(self, spec: ObjectType) -> JsonType:
        fields = self.fields(spec.fields)
        return JsonObject(
            *fields,
            spellings=self._spellings,
            title="" if fields else "object",
            noun=spec.noun or "an object",
            compact=spec.compact,
            sizes=spec.sizes,
            is_open=self._is_lenient or not fields,
            is_lenient=self._is_lenient,
        )

    def fields(self, specs: Sequence[FieldSpec]) -> tuple[Field, ...]:
        """Return the fields of an object."""
        return tuple(
            Field(
                each.name,
                self.type(each.type),
                each.description or each.title,
                generated=each.generated,
                optional=each.optional,
            )
            for each in specs
        )

    def _identifier(self, spec: IdentifierType) -> JsonType:
        kind = self._identifiers.get(spec.kind) or identifier_kind(spec.kind)
        value = self._make(spec.of)
        if spec.kind != "player" and spec.of == TextType():
            # A free identifier may be a number or a token.
            value = JsonEither(JsonNumber(), JsonText(), noun="a number or a text")
        value.identifier, value.title = kind, kind.title
        value.is_free_text = isinstance(value, JsonText) and kind.of_player
        return value


def spellings_of(of: Format) -> Spellings:
    """Return the spellings of words and attributes that readers of a format accept."""
    return Spellings(of.spelled, of.letters)


def productions_of(types: Mapping[str, FieldTypeSpec], make: JsonTypes) -> dict[str, JsonObject]:
    """Return the objects that the reference describes, by name: those that are not compact."""
    return {
        name: kind
        for name, spec in types.items()
        if isinstance(spec, ObjectType) and isinstance(kind := make.type(spec), JsonObject) and kind.fields
        if not spec.compact
    }


def _text(spec: TextType) -> JsonText:
    matches: Callable[[str], bool] | None = None
    title, personal = None, spec.keep is not True
    if spec.pattern is not None:
        matches = matcher(spec.pattern)
        title = f"text like /{spec.pattern}/"
        personal = personal and matches_names(matches)
    words, keeps = kept(spec)
    return JsonText(matches, words, spec.usual, spec.note or None, title, personal, keeps)
