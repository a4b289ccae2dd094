"""The types of JSON values that are no objects or lists, and the base of all of them.

`read` checks a decoded value: it returns the value in the specification's form, notes what is unusual, and
raises `Misfit` for the first error. `strict` and `check` describe the values that `read` returns unchanged
and without notes, so that msgspec can validate a whole message while it decodes. Byte tree, edits, invalid
values and Wireshark's dissector derive from the parts of a type.
"""

from __future__ import annotations

import functools
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from kiebitz.dissectors.grammar.field_type import (
    LONG,
    UNKNOWN_WORD,
    FieldType,
    IdentifierKind,
    Mismatch,
    Rename,
    Replace,
    WireType,
    Wrong,
    other_case,
)
from kiebitz.dissectors.grammar.fields import LARGEST, MAX_QUOTED, OF_WHOLE_FIELDS, SMALLEST
from kiebitz.dissectors.grammar.grammar import Path, nearest_word, shortened, to_json
from kiebitz.dissectors.grammar.json.forms import OddWord
from kiebitz.dissectors.grammar.lenient import AS_WRITTEN, Spellings
from kiebitz.dissectors.suggestions import with_suggestion

Check = Callable[[Any], bool]


class Remark(NamedTuple):
    """A harmless but unusual value at `path` as it was sent, or key that is the path's last step."""

    code: str
    text: str
    path: Path
    of_key: bool = False


class Misfit(Mismatch):
    """Raised for an invalid value at `path`, or for an invalid key that is the path's last step.

    The path begins where the `Reading` is when it is raised.
    """

    def __init__(
        self, problem: str, expected: str, code: str = "bad-value", path: Path = (), of_key: bool = False
    ) -> None:
        super().__init__(0, 0, problem, expected, code)
        self.path, self.of_key = path, of_key
        self.valid_fields: dict[str, Any] = {}
        """The message's other fields, which are valid."""

    def below(self, path: Sequence[str | int]) -> Misfit:
        """Prepend the path to the enclosing value to the path."""
        self.path = (*path, *self.path)
        return self


class Reading:
    """The state of reading one message: the current path, and the remarks."""

    __slots__ = ("has_surplus", "path", "remarks")

    def __init__(self) -> None:
        self.remarks: list[Remark] = []
        self.path: list[str | int] = []
        self.has_surplus = False
        """True if an object has an attribute that its type does not have."""

    def note(self, code: str, text: str, *steps: str | int, of_key: bool = False) -> None:
        """Add a remark about the current value or a part of it."""
        self.remarks.append(Remark(code, text, (*self.path, *steps), of_key))

    def note_spelling(self, sent: Any, word: Any, *steps: str) -> None:
        """Add a remark that the specification spells a value, or the key after `steps`, differently."""
        self.note("spelling", f'"{sent}" is "{word}" in the specification', *steps, of_key=bool(steps))


class Part(NamedTuple):
    """A part of a value: its step in the specification's form, and its type."""

    step: str | int
    type: JsonType


_WRONG = (
    Wrong("null", "null in its place", "null"),
    Wrong("unknown", "an unknown word", f'"{UNKNOWN_WORD}"'),
    Wrong("other-type", "a list in its place", "[[]]"),
    Wrong("negative", "a number below zero", "-1"),
    Wrong("too-large", "a number of 32 bits", "4294967295", odd=True),
    Wrong("fraction", "a number with a fraction", "1.5"),
    Wrong("empty", "an empty text", '""', odd=True),
    Wrong("too-long", f"a text of {LONG} characters", f'"{"x" * LONG}"', odd=True),
    Wrong("control", "control characters, escaped", f'"{UNKNOWN_WORD}\\u0000\\u001b[31m"', odd=True),
    Wrong("markup", "markup of other formats", f'"<b>&\\"{UNKNOWN_WORD}\\"</b>"', odd=True),
    Wrong("outside-ascii", "letters of two and four bytes", '"Größe🎲"', odd=True),
)


def quoted(value: Any) -> str:
    """Return a value as it is quoted in a sentence."""
    return shortened(to_json(value), MAX_QUOTED)


class JsonType(FieldType):
    """A type of JSON value; its `decode` and `encode` use JSON text."""

    wrong_texts: Sequence[Wrong] = _WRONG
    more_wrong: Sequence[Wrong] = ()
    """Invalid values that only this type has."""
    kinds: tuple[type, ...] = ()
    """Python types of its values, in which alternatives of one field must differ."""
    is_compact = False
    """True if the byte tree has a valid value as one piece."""

    @abstractmethod
    def read(self, value: Any, reading: Reading) -> Any:
        """Return the value in the specification's form; raise Misfit if it is not valid."""

    def strict(self) -> Any:
        """Return the msgspec type of values that `read` returns unchanged and without notes, None if none."""
        return None

    def check(self) -> Check | None:
        """Return a further condition on values of the strict type, None if there is none."""
        return None

    def part(self, step: str | int) -> Part | None:
        """Return the part for a key as it was sent, or for an index of a list; None if there is none."""
        return None

    def decode(self, text: str) -> Any:
        try:
            return self.read(msgspec.json.decode(text), Reading())
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise Mismatch(0, len(text), str(error), "JSON", "broken-json") from error

    def encode(self, value: Any) -> str:
        return to_json(value)

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield from self.more_wrong

    def identifiers(self) -> Iterator[IdentifierKind]:
        # Without those of parts: probe replaces whole fields, and a list of identical identifiers is no test
        # case.
        if self.identifier is not None:
            yield self.identifier


def wrong_inside(part: JsonType, name: str, around: Callable[[Wrong, Any], str]) -> Iterator[Wrong]:
    """Yield the invalid values of a part; `around` returns the text of the whole value with one of them."""
    for wrong in part.wrong_values():
        if wrong.kind not in (*OF_WHOLE_FIELDS, "fraction") and not (
            wrong.kind == "too-large" and wrong.allowed
        ):
            yield wrong.inside(name, functools.partial(around, wrong))


class JsonText(JsonType):
    """A string that a pattern `matches`. Any other than the `usual` one is noted, if there is a `note`.

    A `personal` text is chosen by its sender; the `words`, and those that it `keeps`, are not personal.
    """

    title = "text"
    is_free_text = True
    kinds = (str,)

    def __init__(
        self,
        matches: Check | None = None,
        words: Iterable[str] = (),
        usual: str | None = None,
        note: str | None = None,
        title: str | None = None,
        personal: bool = True,
        keeps: Check | None = None,
    ) -> None:
        self.is_free_text, self.keeps = personal, keeps
        self.matches, self.words, self.usual, self.note = matches, tuple(words), usual, note
        self.title = title or self.title

    def read(self, value: Any, reading: Reading) -> Any:
        if type(value) is not str:
            raise Misfit(f"{quoted(value)} is not a text", self.title)
        if self.matches is not None and not self.matches(value):
            raise Misfit(f"{quoted(value)} has another form", self.title)
        if self.note is not None and value != self.usual:
            reading.note("unusual-value", self.note.format(value=value[:MAX_QUOTED]))
        return value

    def strict(self) -> Any:
        if self.note is None:
            return str
        return None if self.usual is None else Literal[self.usual]

    def check(self) -> Check | None:
        return self.matches

    def wire_type(self) -> WireType:
        limit = {} if self.matches is None else {"limit": "its pattern is not checked"}
        return {"kind": "json_text", **limit}


class JsonNumber(JsonType):
    """A number from `least` to `most`, None for no limit; below `usual` it is noted."""

    def __init__(
        self,
        least: float | None = None,
        most: float | None = None,
        whole: bool = True,
        usual: int | None = None,
        title: str | None = None,
    ) -> None:
        self.least, self.most, self.whole, self.usual = least, most, whole, usual
        self.title = title or ("a whole number" if whole else "a number")
        self.kinds = (int,) if whole else (int, float)
        self._low: float = SMALLEST if least is None else least
        self._high: float = LARGEST if most is None else most

    def read(self, value: Any, reading: Reading) -> Any:
        kind = type(value)
        if kind is not int and (self.whole or kind is not float):
            raise Misfit(f"{quoted(value)} is not a{' whole' * self.whole} number", self.title)
        if not self._low <= value <= self._high and not self._is_large_float(value):
            limits = "out of range"
            if self.least is not None and self.most is not None:
                limits = f"not from {self.least} to {self.most}"
            raise Misfit(f"{quoted(value)} is {limits}", self.title)
        if self.usual is not None and value < self.usual:
            reading.note("unusual-value", f"{value} is below {self.usual}, the least that is specified")
        return value

    def _is_large_float(self, value: float) -> bool:
        """Return True for a number with a fraction that exceeds no limit of its own."""
        return type(value) is float and (self.least if value < self._low else self.most) is None

    def strict(self) -> Any:
        low, high = self.usual if self.usual is not None else self.least, self.most
        least = SMALLEST if low is None else max(-int(-low // 1), SMALLEST)
        most = 2**63 - 1 if high is None else min(int(high // 1), 2**63 - 1)
        whole = Annotated[int, Meta(ge=least, le=most)]
        return whole if self.whole else whole | Annotated[float, Meta(ge=low, le=high)]

    def wire_type(self) -> WireType:
        return {
            "kind": "json_number",
            "whole": self.whole,
            "min": SMALLEST if self.whole and self.least is None else self.least,
            "max": LARGEST if self.whole and self.most is None else self.most,
        }


class JsonBoolean(JsonType):
    """A Boolean."""

    title = "true or false"
    kinds = (bool,)

    def read(self, value: Any, reading: Reading) -> Any:
        if type(value) is not bool:
            raise Misfit(f"{quoted(value)} is neither true nor false", self.title)
        return value

    def strict(self) -> Any:
        return bool

    def wire_type(self) -> WireType:
        return {"kind": "json_boolean"}


class JsonChoice(JsonType):
    """A word of a small set, in any known spelling, or a number; `odd` words are replaced and noted."""

    def __init__(
        self,
        values: Iterable[str | int],
        spellings: Spellings = AS_WRITTEN,
        odd: Mapping[str, OddWord] | None = None,
        title: str | None = None,
    ) -> None:
        self.values = tuple(values)
        self.odd = odd or {}
        self._spelt = spellings.of(value for value in self.values if isinstance(value, str))
        self.words = (*self.odd, *self._spelt)
        self._known: dict[tuple[type, str | int], str | int] = {
            (str, spelt): word for spelt, word in self._spelt.items()
        } | {(int, value): value for value in self.values if isinstance(value, int)}
        shown = ", ".join(map(to_json, self.values))
        self.title = title or (f"one of {shown}" if len(self.values) > 1 else shown)
        self.kinds = tuple({type(value): None for value in (*self.values, *self.odd)})

    def read(self, value: Any, reading: Reading) -> Any:
        kind = type(value)
        if kind is str or kind is int:
            word = self._known.get((kind, value))
            if word is not None:
                if word != value:
                    reading.note_spelling(value, word)
                return word
            if value in self.odd:
                reading.note("unusual-value", self.odd[value].note)
                return self.odd[value].value
        raise Misfit(unknown_word(value, self._spelt), self.title)

    def strict(self) -> Any:
        return Literal[self.values]

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        if self._spelt:
            yield other_case(self.encode)

    def wire_type(self) -> WireType:
        sent = {value: word for (_, value), word in self._known.items()}
        sent |= {word: odd.value for word, odd in self.odd.items()}
        return {
            "kind": "json_choice",
            "values": {
                f"{_wire_kind(value)}:{value}": (_wire_kind(word), str(word)) for value, word in sent.items()
            },
        }


def _wire_kind(value: str | int) -> str:
    return "s" if isinstance(value, str) else "i"


class JsonAny(JsonType):
    """Any value."""

    title = "any value"
    is_free_text = True
    kinds = (dict, list, str, int, float, bool, type(None))

    def read(self, value: Any, reading: Reading) -> Any:
        return value

    def strict(self) -> Any:
        return Any

    def part(self, step: str | int) -> Part:
        return Part(step, self)

    def anonymized(self, value: Any, replace: Replace, rename: Rename) -> Any:
        if isinstance(value, str):
            return replace(value)
        if isinstance(value, list):
            return [self.anonymized(part, replace, rename) for part in value]
        if isinstance(value, dict):
            return {key: self.anonymized(part, replace, rename) for key, part in value.items()}
        return value

    def wire_type(self) -> WireType:
        return {"kind": "json_any"}


class JsonEither(JsonType):
    """A value of one of several types, which differ in the kind of JSON value."""

    def __init__(self, *options: JsonType, noun: str = "", title: str = "") -> None:
        self.options, self.parts, self.noun = options, options, noun
        self.title = title or " or ".join(option.title for option in options)
        self.kinds = tuple(kind for option in options for kind in option.kinds)
        self.is_compact = any(option.is_compact for option in options)
        self.is_free_text = any(option.is_free_text for option in options)

    def option(self, value: Any) -> JsonType | None:
        """Return the type for a value of this kind, None if there is none."""
        kind = type(value)
        return next((option for option in self.options if kind in option.kinds), None)

    def read(self, value: Any, reading: Reading) -> Any:
        option, depth = self.option(value), len(reading.path)
        if option is not None:
            try:
                return option.read(value, reading)
            except Misfit as error:
                is_inside = error.path or len(reading.path) > depth
                if is_inside or not self.noun or error.code != "bad-value":
                    raise
        raise Misfit(f"{quoted(value)} is not {self.noun or self.title}", self.title)

    def strict(self) -> Any:
        strict = [kind for option in self.options if (kind := option.strict()) is not None]
        return functools.reduce(operator.or_, strict) if strict else None

    def check(self) -> Check | None:
        checks = [(option.kinds, check) for option in self.options if (check := option.check()) is not None]
        if not checks:
            return None
        return lambda value: all(check(value) for kinds, check in checks if type(value) in kinds)

    def part(self, step: str | int) -> Part | None:
        return next(filter(None, (option.part(step) for option in self.options)), None)

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> Any:
        option = self.option(value)
        return value if option is None else change(option, value)

    def wire_type(self) -> WireType:
        return {"kind": "json_either", "either": [option.wire_type() for option in self.options]}


def unknown_word(value: Any, words: Mapping[str, str]) -> str:
    """Return the sentence that a word is not known, with a suggestion."""
    near = nearest_word(value, words) if type(value) is str else None
    return with_suggestion(f"{quoted(value)} is not known here", None if near is None else f'"{words[near]}"')
