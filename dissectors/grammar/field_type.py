"""Field types and identifiers: between a field's text and its JSON value; invalid values for `probe`.

A field type lists texts that it may reject (`FieldType.wrong_texts`); those that it does reject are its
invalid values. Field types of plug-ins inherit a default list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

Fields = Mapping[str, Any]
"""The values of a message's fields by name."""

WireType = Mapping[str, Any]
"""A field type or a format as a JSON value: its `kind`, as named in `wireshark/runtime/`, and parameters.

`framing` of a format, if given, describes the framing likewise.
"""

LONG = 5000
"""Length of a text that is too long, in characters."""

UNKNOWN_WORD = "Kiebitz"
"""A word that occurs in no protocol."""

Text = str | Callable[[Any], str]
"""A text to send, or a function that makes it from the field's value."""


class Wrong(NamedTuple):
    """An invalid text for a field, with its `kind` in a word and a title.

    An `odd` text is tested even if the type accepts it; `allowed` is then True, and no violation is expected.
    `part` names the invalid part of a field that has parts.
    """

    kind: str
    title: str
    text: Text
    odd: bool = False
    allowed: bool = False
    part: str = ""

    def of(self, value: Any) -> str:
        """Return the text that replaces a value; raise LookupError or ValueError if there is none."""
        return self.text if isinstance(self.text, str) else self.text(value)

    def inside(self, part: str, text: Callable[[Any], str]) -> Wrong:
        """Return this invalid value for a part of a field; `text` makes the text of the whole field."""
        return self._replace(text=text, part=f"{part}.{self.part}" if self.part else part)


EMPTY = Wrong("empty", "an empty text", "", odd=True)
NEGATIVE = Wrong("negative", "a number below zero", "-1")
TOO_LARGE = Wrong("too-large", "a number of twenty digits", "9" * 20)
FRACTION = Wrong("fraction", "a number with a fraction", "1.5")
UNKNOWN = Wrong("unknown", "an unknown word", UNKNOWN_WORD)
TOO_LONG = Wrong("too-long", f"a text of {LONG} characters", "x" * LONG, odd=True)
CONTROL = Wrong("control", "control characters", f"{UNKNOWN_WORD}\x07\x1b[31m", odd=True)
MARKUP = Wrong("markup", "markup of other formats", f'<b>&"{UNKNOWN_WORD}"</b>', odd=True)
OUTSIDE_ASCII = Wrong("outside-ascii", "letters of two and four bytes", "Größe🎲", odd=True)

OF_ANY = (EMPTY, UNKNOWN, NEGATIVE, TOO_LARGE, FRACTION, TOO_LONG, CONTROL, MARKUP, OUTSIDE_ASCII)
"""Candidates for a type without its own `wrong_texts`."""

OF_NUMBERS = (
    EMPTY,
    UNKNOWN._replace(kind="other-type", title="a word in place of a number"),
    NEGATIVE,
    TOO_LARGE,
    FRACTION,
    TOO_LONG._replace(title=f"a number of {LONG} digits", text="1" * LONG),
)

OF_WORDS = (
    EMPTY,
    UNKNOWN,
    NEGATIVE._replace(kind="other-type", title="a number in place of a word"),
    TOO_LONG,
    CONTROL,
)


def other_case(encode: Callable[[Any], str]) -> Wrong:
    """Return the candidate with upper and lower case swapped."""

    def text(value: Any) -> str:
        written = encode(value)
        if written.swapcase() == written:
            raise ValueError("it has no letters")
        return written.swapcase()

    return Wrong("other-case", "upper and lower case swapped", text)


WHOLE_REST = -1
"""In place of the end of a `Mismatch`: all up to the end of the last token."""


UNWRITABLE = (ValueError, TypeError, AttributeError, LookupError)
"""Exceptions for values that a row cannot have; all but ValueError are for values of the wrong type."""


class Mismatch(Exception):
    """Raised for a text that is not valid for a field type; characters `start` to `end` are wrong.

    Of a value of several tokens, these are characters of the token with the number `token`.
    """

    def __init__(
        self,
        start: int,
        end: int,
        problem: str,
        expected: str,
        code: str = "bad-field",
        token: int = 0,
    ) -> None:
        super().__init__(problem)
        self.start = start
        self.end = end
        self.problem = problem
        self.expected = expected
        self.code = code
        self.token = token

    def moved(self, tokens: int) -> Mismatch:
        """Return the same error for a text with other tokens before it."""
        self.token += tokens
        return self


class IdentifierKind(msgspec.Struct, frozen=True):
    """A kind of identifier, such as a token, a player's number, or a lobby.

    Its values differ in another session of the same game. A `per_stream` identifier is valid on one
    connection
    only. `of_player` identifies a player, `of_server` the address of a server, `ip:port`; a `global_` number
    identifies the same player in other games, too. `null_values`, like null, identify nothing.
    """

    title: str
    per_stream: bool = False
    of_player: bool = False
    of_server: bool = False
    global_: bool = False
    null_values: tuple[Any, ...] = ()

    def renamed(self, value: Any, rename: Rename) -> Any:
        """Return the value that replaces an identifier, or the same value if it identifies nothing."""
        return value if value is None or value in self.null_values else rename(self, value)


class KeysOf(msgspec.Struct, frozen=True):
    """An object whose keys are identifiers; other values are ignored."""

    kind: IdentifierKind


IdentifierKinds = Mapping[str, IdentifierKind | KeysOf]
"""Kinds of identifiers by key, at any depth: of a list each item, of an object each key."""


Rename = Callable[[IdentifierKind, Any], Any]
"""A function that returns the replacement of an identifier."""

Replace = Callable[[str], str]
"""A function that returns the replacement of a text that may be personal."""


class FieldType(ABC):
    """A type of field: the relation between its text and its JSON value."""

    title: str
    """Description in the reference, such as "dice, higher die first"."""

    identifier: IdentifierKind | None = None
    """Kind of identifier that a value is, if it is one."""

    is_free_text = False
    """True if a value is text of its sender's choice, which may be personal."""

    words: tuple[str, ...] = ()
    """Possible values, if they are fixed words; for free text, the words that are not personal."""

    keeps: Callable[[str], bool] | None = None
    """Returns True for free text that is not personal."""

    wrong_texts: Sequence[Wrong] = OF_ANY
    """Candidates for invalid texts; `decode` decides which of them are."""

    occurs_once = False
    """True if no value of a list occurs twice in it."""

    width: tuple[int, int | None] = (1, 1)
    """Least and greatest number of tokens of a message that a value takes; None: all that remain."""

    item: FieldType | None = None
    """Type of the items of a list."""

    members: Mapping[str, FieldType] = MappingProxyType({})
    """Types of the members of an object, by name."""

    others: FieldType | None = None
    """Type of any other members, None if there are none."""

    is_on_lines = False
    """True if a value has lines of its own, after the first line of the message."""

    is_counted = False
    """True if the message shows how many of its tokens a value takes: the value before it, or a last word."""

    parts: Sequence[FieldType] = ()
    """Types of the parts of a value, if it has any; `with_parts` then applies a function to each part."""

    def end_in(self, texts: Sequence[str], at: int, numbers: Mapping[str, int]) -> int:
        """Return the end of the tokens of a value that begins `at` a token; some may be missing.

        `numbers` are the values of the fields beside it that are numbers.
        """
        least, most = self.width
        return at + max(least, min(len(texts) - at, len(texts) if most is None else most))

    @abstractmethod
    def decode(self, text: str) -> Any:
        """Return the JSON value of `text`; raise Mismatch if it is not valid."""

    @abstractmethod
    def encode(self, value: Any) -> str:
        """Return the text of a value, which decodes to it again."""

    def remark(self, text: str) -> str | None:
        """Return what is unusual but harmless about a valid text, or None."""
        return None

    def wire_type(self) -> WireType | None:
        """Return a declarative description of the type, None if there is none."""
        return None

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> Any:
        """Return a value with `change`, called with its type, applied to each of its `parts`."""
        if self.item is not None and isinstance(value, list):
            return [change(self.item, part) for part in value]
        if not self.members or not isinstance(value, dict):
            return value
        kinds = ((name, self.members.get(name, self.others), part) for name, part in value.items())
        return {name: part if kind is None else change(kind, part) for name, kind, part in kinds}

    def renamed(self, value: Any, rename: Rename) -> Any:
        """Return a value with every identifier replaced by `rename`."""
        if self.parts and self.identifier is None:
            return self.with_parts(value, lambda kind, part: kind.renamed(part, rename))
        return value if self.identifier is None else self.identifier.renamed(value, rename)

    def anonymized(self, value: Any, replace: Replace, rename: Rename) -> Any:
        """Return a value with free text replaced by `replace`, and identifiers by `rename`."""
        if self.parts and self.identifier is None:
            return self.with_parts(value, lambda kind, part: kind.anonymized(part, replace, rename))
        if self.is_free_text and isinstance(value, str):
            is_kept = value in self.words or (self.keeps is not None and self.keeps(value))
            return value if is_kept else replace(value)
        return self.renamed(value, rename)

    def all_words(self) -> Iterator[str]:
        """Yield the fixed words of a value and of its parts."""
        yield from self.words
        for part in self.parts:
            yield from part.all_words()

    def identifiers(self) -> Iterator[IdentifierKind]:
        """Yield the kinds of identifiers in a value."""
        if self.identifier is not None:
            yield self.identifier
        for part in self.parts:
            yield from part.identifiers()

    def wrong_values(self) -> Iterator[Wrong]:
        """Yield invalid values: the `wrong_texts` that `decode` rejects, and odd ones that it accepts.

        Types with parts add invalid values of their parts.
        """
        for wrong in self.wrong_texts:
            if not isinstance(wrong.text, str) or not self.accepts(wrong.text):
                yield wrong
            elif wrong.odd:
                yield wrong._replace(allowed=True)

    def accepts(self, text: str) -> bool:
        """Return True if a text is valid."""
        try:
            self.decode(text)
        except Mismatch:
            return False
        return True

    def has(self, value: Any) -> bool:
        """Return True if a value can be one of this type."""
        try:
            return self.accepts(self.encode(value))
        except UNWRITABLE:
            return False
