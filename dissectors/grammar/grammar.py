"""Grammars as tables: one row per message type, next to the clause of the specification it comes from.

A protocol writes its rows once. From them come decoding, encoding, the printed reference, the names that the
filter language knows, and the generators of valid and of broken messages for the tests. A dialect is one more
row with the same name, never a second grammar.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.grammar.invalid_values import OF_ANY, Wrong
from kiebitz.dissectors.model import Blame, Direction, Group, Severity
from kiebitz.dissectors.suggestions import suggested

UNREADABLE = "unreadable"
"""The name of a message in which no message type could be made out; its diagnostic says why."""

Follows = Literal["before", "after"]
"""From what an event follows that only one player was told: from what was told last, or is told next."""

_MEANT = 40
"""So much of a text (characters) is compared with the words that may have been meant."""

_JSON = msgspec.json.Encoder(order="sorted")


def to_json(value: Any) -> str:
    """Compact JSON text with sorted keys."""
    return _JSON.encode(value).decode()


def shortened(text: str, most: int) -> str:
    """A text of so many characters at the most, with an ellipsis in place of what is left out."""
    return text if len(text) <= most else f"{text[:most]}…"


class Mismatch(Exception):
    """A text is no value of a field type: characters `start` to `end` are wrong."""

    def __init__(self, start: int, end: int, problem: str, expected: str, code: str = "bad-field") -> None:
        super().__init__(problem)
        self.start = start
        self.end = end
        self.problem = problem
        self.expected = expected
        self.code = code


class Handle(msgspec.Struct, frozen=True):
    """A kind of value by which a protocol names something: a token, a player's number, a lobby.

    Another playing of the same game has other such values in the same places. One that is `per_stream` names
    something in one conversation only; one that is `of_player` names a player, one that is `of_server` the
    address of a server, `ip:port`. A number that is `lasting` names the same player in other games, too.
    Values that are `nobody` stand where nothing is named; null does, too.
    """

    title: str
    per_stream: bool = False
    of_player: bool = False
    of_server: bool = False
    lasting: bool = False
    nobody: tuple[Any, ...] = ()

    def renamed(self, value: Any, rename: Rename) -> Any:
        """Another name in place of this one, or the same value if it names nothing."""
        return value if value is None or value in self.nobody else rename(self, value)


class KeysOf(msgspec.Struct, frozen=True):
    """In the place of a handle: only where the value is an object its keys are such handles."""

    handle: Handle


Handles = Mapping[str, Handle | KeysOf]
"""What the values under a key name, at whatever depth: in a list each part does, in an object each key."""


Rename = Callable[[Handle, Any], Any]
"""Gives the value to stand in place of one that names something."""

Replace = Callable[[str], str]
"""Gives the text to stand in place of one that may tell who somebody is."""


class FieldType(ABC):
    """How a field's text and its JSON value belong together."""

    title: str
    """What a person reads in the reference, such as "dice, higher die first"."""

    handle: Handle | None = None
    """What a value names, if it names something that has another name in another playing."""

    is_free_text = False
    """Whether a value is any text that its sender likes, so that it may tell who somebody is."""

    words: tuple[str, ...] = ()
    """The fixed words that a value can be; of a free text, those that say nothing of anybody."""

    wrong_texts: Sequence[Wrong] = OF_ANY
    """What may be put in the place of a value to see what a program makes of it."""

    @abstractmethod
    def decode(self, text: str) -> Any:
        """The JSON value of `text`. Raises Mismatch."""

    @abstractmethod
    def encode(self, value: Any) -> str:
        """The text of a value; `decode` gives the value back."""

    def remark(self, text: str) -> str | None:
        """What is unusual but harmless about a text that decodes, or None."""
        return None

    def renamed(self, value: Any, rename: Rename) -> Any:
        """A value of this type with another name wherever it has one; types with parts look into them."""
        return value if self.handle is None else self.handle.renamed(value, rename)

    def anonymized(self, value: Any, replace: Replace, rename: Rename) -> Any:
        """A value of this type that names nobody: `replace` gives another text for one that is free, and
        `rename` another name. Types with parts that are free texts look into them."""
        if self.is_free_text and isinstance(value, str):
            return value if value in self.words else replace(value)
        return self.renamed(value, rename)

    def all_words(self) -> Iterator[str]:
        """The fixed words of a value, and of what is in it; types with parts look into them."""
        yield from self.words

    def handles(self) -> Iterator[Handle]:
        """What values can name; types with parts say what these do."""
        if self.handle is not None:
            yield self.handle

    def wrong_values(self) -> Iterator[Wrong]:
        """The ways in which a value can be wrong: of `wrong_texts` those that `decode` refuses, and the odd
        ones. Types with parts say how these can be wrong."""
        for wrong in self.wrong_texts:
            if not isinstance(wrong.text, str) or self._refuses(wrong.text):
                yield wrong
            elif wrong.odd:
                yield wrong._replace(allowed=True)

    def _refuses(self, text: str) -> bool:
        try:
            self.decode(text)
        except Mismatch:
            return True
        return False


class Field(msgspec.Struct, frozen=True):
    """A field of a message. A *fresh* value is made up by the server and differs in every game played.

    An `optional` field may be left out.
    """

    name: str
    type: FieldType
    gloss: str
    fresh: bool = False
    optional: bool = False


class MessageType(msgspec.Struct, frozen=True, dict=True):
    """A row of a grammar.

    `answers` names the messages that this one replies to; `broadcast` says that the server sends a copy to
    each client; `deviation` tells in a sentence how the row differs from the specification, None if it does
    not, and makes a note once per table. `brief` says in a listing what a message is about, with fields in
    braces; the gloss, where it is None. A `heartbeat` comes when the clock says so and tells nothing.
    """

    name: str
    direction: Direction
    fields: tuple[Field, ...]
    gloss: str
    clause: str
    answers: tuple[str, ...] = ()
    broadcast: bool = False
    deviation: str | None = None
    brief: str | None = None
    heartbeat: bool = False

    @cached_property
    def is_fresh(self) -> bool:
        """Whether no two messages of this type are the same."""
        return any(field.fresh for field in self.fields)


class EventKind(msgspec.Struct, frozen=True):
    """A kind of event: its data fields, a sentence with them in braces, and who could know of it.

    A `secret` event is known only to its actor. The field `ending` may say how a connection ended.

    The messages named in `own` tell it on its actor's own connection; of a kind that `introduces`, the first
    does. One that `restores` shows that the server took the client for an earlier player of that name. A
    player that sees an event was told the parts of the state in `tells` whole: paths with dots, in which
    `{game}` is the event's game and any other name in braces a field of its data, each value of a list.

    Some follow from what was told `before`, or `after`, in the same game: whoever was told that knows it.
    A `spoken` one may have been said to one client alone; `to` in its data names it, if it is known.
    """

    kind: str
    fields: tuple[str, ...]
    sentence: str
    secret: bool = False
    ending: str | None = None
    own: tuple[str, ...] = ()
    introduces: bool = False
    restores: bool = False
    tells: tuple[str, ...] = ()
    follows: Follows | None = None
    spoken: bool = False

    def told_paths(self, game: int | None, data: Mapping[str, Any]) -> Iterator[list[str]]:
        """Yield the paths in `tells` for an event of this game with this data."""
        for pattern in self.tells:
            steps = [_step_values(step, game, data) for step in pattern.split(".")]
            yield from (list(path) for path in product(*steps))


def _step_values(step: str, game: int | None, data: Mapping[str, Any]) -> list[str]:
    """Return what a step of a path in `EventKind.tells` stands for; nothing if that is not known."""
    if not step.startswith("{"):
        return [step]
    name = step.strip("{}")
    value = game if name == "game" else data.get(name)
    values = value if isinstance(value, list) else [value]
    return [str(each) for each in values if each is not None]


OWN_CLAUSE = "{clause}"
"""In the clause of a rule: that of the row whose message breaks it."""


class Rule(msgspec.Struct, frozen=True):
    """A check of a table: what it reports of a message that breaks it.

    `key` is the diagnostic's code; where a code has several rows, a word after a slash tells them apart.
    `message` is the name of the message that breaks it, None if several can. `text`, `expected` and `clause`
    have in braces what the table fills in. `blame` is None if it is the sender's. Where there is no clause,
    `unwritten` says why.
    """

    key: str
    message: str | None
    text: str
    expected: str | None = None
    group: Group = "rule"
    severity: Severity = "error"
    clause: str | None = OWN_CLAUSE
    blame: Blame | None = None
    unwritten: str | None = None

    @property
    def code(self) -> str:
        """The code of its diagnostics."""
        return self.key.partition("/")[0]


class Flaw(msgspec.Struct, frozen=True):
    """Something wrong in a frame; `offset` and `length` are bytes from the start of the frame.

    One that is a `habit` of its sender is told only the first time in a direction of a stream; so where it
    takes work to find its place, `locate` does it, given the frame, when it is told.
    """

    severity: Severity
    group: Group
    code: str
    text: str
    offset: int
    length: int
    expected: str | None = None
    clause: str | None = None
    habit: bool = False
    locate: Callable[[bytes], tuple[int, int]] | None = None

    @property
    def suggestion(self) -> str | None:
        """What was probably meant."""
        return suggested(self.group, self.text)

    def place(self, frame: bytes) -> tuple[int, int]:
        """Offset and length in the frame."""
        return self.locate(frame) if self.locate is not None else (self.offset, self.length)


class Decoded(msgspec.Struct, frozen=True):
    """What a frame says. `row` is None where no message type could be made out.

    `sound` says that the message is one that its row allows: its flaws are notes or warnings, if it has any.
    """

    row: MessageType | None
    fields: dict[str, Any]
    fields_json: str
    sound: bool
    flaws: tuple[Flaw, ...] = ()


class Grammar:
    """The rows, event kinds and rules of one protocol; `foreign` if its messages' names need a gloss.

    `data_handles` says what the values in the data of its events name, and under `actor` who acts;
    `state_handles` the same of its table's state. Where an event has two values that name the same player,
    his number and his name or two of his names, `aliases` leads from the one's key to the newer one's.
    `mixed` are the values, in fields or data, that are a list or an object in one message and not in another
    of the same name: `Spieler.Rohstoffe`, where lists around them add nothing.
    `more_words` are those of its wording that no row has: markup, and other spellings.
    """

    def __init__(
        self,
        protocol: str,
        title: str,
        rows: Iterable[MessageType],
        events: Iterable[EventKind],
        foreign: bool = False,
        data_handles: Handles = MappingProxyType({}),
        state_handles: Handles = MappingProxyType({}),
        aliases: Mapping[str, str] = MappingProxyType({}),
        rules: Iterable[Rule] = (),
        mixed: Collection[str] = (),
        more_words: Iterable[str] = (),
    ) -> None:
        self.foreign = foreign
        self.mixed = frozenset(mixed)
        self.data_handles = data_handles
        self.state_handles = state_handles
        self.aliases = aliases
        self._more_words = tuple(more_words)
        self.protocol = protocol
        self.title = title
        self.rows = tuple(rows)
        self.events: Mapping[str, EventKind] = {event.kind: event for event in events}
        self.rules: Mapping[str, Rule] = {rule.key: rule for rule in rules}
        self._by_name: dict[tuple[Direction, str], tuple[MessageType, ...]] = {}
        for row in self.rows:
            key = (row.direction, row.name)
            self._by_name[key] = (*self._by_name.get(key, ()), row)

    def rows_named(self, direction: Direction, name: str) -> tuple[MessageType, ...]:
        """The rows (dialects) of a message name in one direction; empty if there is none."""
        return self._by_name.get((direction, name), ())

    def row_with(self, name: str, direction: Direction, fields: Collection[str]) -> MessageType:
        """The row of a message that has exactly these fields, but for optional ones. Raises ValueError if
        there is none."""
        for row in self.rows_named(direction, name):
            left_out = {field.name: field for field in row.fields}
            if all(left_out.pop(key, None) for key in fields) and all(f.optional for f in left_out.values()):
                return row
        raise ValueError(f"{direction} {name} has no row with the fields {', '.join(fields) or 'none'}")

    @cached_property
    def words(self) -> frozenset[str]:
        """What is the protocol's own wording: the names of messages and fields, and the words of values."""
        fields = [field for row in self.rows for field in row.fields]
        return frozenset(
            [row.name for row in self.rows]
            + [field.name for field in fields]
            + [word for field in fields for word in field.type.all_words()]
            + [*self._more_words]
        )

    def names(self, direction: Direction) -> list[str]:
        """The message names of a direction in the order of the grammar."""
        return list(dict.fromkeys(row.name for row in self.rows if row.direction == direction))

    def heartbeats_to(self, asked: str, direction: Direction) -> list[str]:
        """The names of the heartbeats of a direction that answer a message of the other one."""
        return [
            row.name
            for row in self.rows
            if row.direction == direction and row.heartbeat and asked in row.answers
        ]

    def nearest(self, name: str, direction: Direction) -> str | None:
        """The known message name that `name` was probably meant to be, or None."""
        return nearest_word(name.strip(), self.names(direction))


def unreadable(*flaws: Flaw) -> Decoded:
    """A frame in which no message type can be made out."""
    return Decoded(None, {}, "{}", False, flaws)


def nearest_word(text: str, words: Iterable[str]) -> str | None:
    """The word that `text` was probably meant to be: the same but for case and blanks, or close to it."""
    folded = {word.casefold(): word for word in words}
    meant = text[:_MEANT].strip().casefold()
    if meant in folded:
        return folded[meant]
    close = get_close_matches(meant, folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def count_of_fields(count: int) -> str:
    """`no field`, `1 field`, `2 fields`."""
    return "no field" if count == 0 else f"{count} field{'s' if count > 1 else ''}"


def sender_of(direction: Direction) -> str:
    """Who sends what goes in a direction, in words."""
    return "a client" if direction == "c2s" else "a server"


def blame_of(direction: Direction) -> Blame:
    """Who sent the bytes of a direction."""
    return "client" if direction == "c2s" else "server"
