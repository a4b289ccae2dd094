"""The JSON types for the types of protocol files."""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.dissectors.grammar.fields import beyond_limits, limits_title
from kiebitz.dissectors.grammar.grammar import Field
from kiebitz.dissectors.grammar.invalid_values import Wrong
from kiebitz.dissectors.grammar.json.containers import JsonList, JsonObject
from kiebitz.dissectors.grammar.json.types import (
    JsonAny,
    JsonBoolean,
    JsonChoice,
    JsonEither,
    JsonNumber,
    JsonText,
    JsonType,
)
from kiebitz.dissectors.protocol_file.patterns import matcher
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    BinaryType,
    BooleanType,
    ChoiceType,
    FieldSpec,
    FieldTypeSpec,
    IdentifierType,
    ListType,
    NumberType,
    ObjectType,
    TextType,
)
from kiebitz.dissectors.protocol_file.text_types import identifier_kind, matches_names, number_of


def json_type(spec: FieldTypeSpec) -> JsonType:
    """Return the field type for a type of a protocol file."""
    match spec:
        case TextType(None, _):
            return JsonText()
        case TextType(str(pattern), _):
            matches = matcher(pattern)
            return JsonText(matches, title=f"text like /{pattern}/", personal=matches_names(matches))
        case NumberType(least, most, whole):
            number = JsonNumber(least, most, whole, title=limits_title(spec))
            number.more_wrong = tuple(
                Wrong(kind, title, str(value)) for kind, title, value in beyond_limits(spec)
            )
            return number
        case BooleanType():
            return JsonBoolean()
        case ChoiceType(values):
            return JsonChoice(values)
        case IdentifierType():
            return _identifier(spec)
        case ListType(item, _, least, most):
            title = "list" if item == AnyType() else ""
            return JsonList(json_type(item), least, most, title=title)
        case ObjectType(fields, _):
            title = f"object: {', '.join(field.name for field in fields)}" if fields else "object"
            return JsonObject(*json_fields(fields), title=title, is_open=True, is_lenient=True)
        case BinaryType(("text" | "bytes"), _):
            return JsonText()
        case BinaryType("bool8", _):
            return JsonBoolean()
        case BinaryType():
            return json_type(number_of(spec))
        case _:
            return JsonAny()


def _identifier(spec: IdentifierType) -> JsonType:
    kind = identifier_kind(spec.kind)
    value = json_type(spec.of)
    if spec.kind != "player" and spec.of == TextType():
        # A free identifier may be a number or a token.
        value = JsonEither(JsonNumber(), JsonText(), noun="a number or a text")
    value.identifier, value.title = kind, kind.title
    value.is_free_text = isinstance(value, JsonText) and kind.of_player
    return value


def json_fields(specs: Sequence[FieldSpec]) -> tuple[Field, ...]:
    """Return the fields of an object."""
    return tuple(
        Field(each.name, json_type(each.type), each.title, generated=each.generated, optional=each.optional)
        for each in specs
    )
