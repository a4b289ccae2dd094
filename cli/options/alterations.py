"""The edits of `kiebitz whatif`: parsing, lookup in the session, and conversion to splices."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

import click
import msgspec

from kiebitz.cli.options.messages import NoSuchMessageError, leading_number, message_numbered
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import (
    Assignment,
    AssignmentError,
    parse_assignments,
    split_name,
)
from kiebitz.dissectors.editing.item_edits import Splice
from kiebitz.dissectors.editing.message_encoding import edit_message, encode_new
from kiebitz.dissectors.model import OPPOSITE, Direction, Message
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.message_queries import messages
from kiebitz.storage.read.recorded_bytes import RecordedBytes
from kiebitz.storage.read.timeline import Timeline

Verb = Literal["drop", "edit", "insert"]

_FORMS: dict[Verb, str] = {
    "drop": "--drop '#7'",
    "edit": "--edit '#7 FIELD=VALUE'",
    "insert": "--insert '#7 NAME FIELD=VALUE'",
}


class Wish(msgspec.Struct, frozen=True):
    """One edit: drop message `number`, change its fields, or insert a message called `name` after it."""

    verb: Verb
    number: int
    name: str = ""
    assignments: tuple[Assignment, ...] = ()

    @property
    def option(self) -> str:
        """Command-line spelling."""
        return f"--{self.verb} {shlex.quote(f'#{self.number} {self._values}'.strip())}"

    @property
    def title(self) -> str:
        """Description for people."""
        if self.verb == "drop":
            return f"without #{self.number}"
        if self.verb == "edit":
            return f"#{self.number} with {self._values}"
        return f"{self._values} after #{self.number}"

    @property
    def _values(self) -> str:
        return " ".join([self.name, *(assignment.text for assignment in self.assignments)]).strip()


def read_wishes(verb: Verb, given: Sequence[str]) -> list[Wish]:
    """Parse the values of one option. Raises click.UsageError."""
    return [_read(verb, text) for text in given]


def _read(verb: Verb, text: str) -> Wish:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise click.UsageError(f"--{verb}: not UTF-8") from None
    number, rest = leading_number(text)
    if number is None:
        raise click.UsageError(f"--{verb}: {text!r} does not begin with a message number: {_FORMS[verb]}")
    name = ""
    if verb == "insert":
        name, rest = split_name(rest)
    try:
        assignments = tuple(parse_assignments(rest))
    except AssignmentError as error:
        raise click.UsageError(f"--{verb} #{number}: {error}") from error
    if (verb == "drop" and rest) or (verb == "edit" and not rest) or (verb == "insert" and not name):
        raise click.UsageError(f"--{verb} {text!r} is not of the form {_FORMS[verb]}")
    return Wish(verb, number, name, assignments)


def splices_of(timeline: Timeline, wishes: Sequence[Wish]) -> list[Splice]:
    """Return the splices that apply all edits to a session.

    Raises StorageError for unknown messages and for values that do not fit.
    """
    found = _Splices(timeline)
    for wish in wishes:
        try:
            found.add(wish)
        except NoSuchMessageError as error:
            raise StorageError(f"--{wish.verb} {error}") from error
        except AssignmentError as error:
            raise StorageError(f"--{wish.verb} #{wish.number}: {error}") from error
    return [*found.by_message.values()]


def copies(timeline: Timeline, wish: Wish, wishes: Sequence[Wish]) -> list[Message]:
    """Return unedited messages that report the same event as an edited or dropped one.

    For an edit, return only exact copies, to which the same edit can be applied.
    """
    row = message_numbered(timeline, wish.number)
    if wish.verb == "insert" or row.event_id is None:
        return []
    altered = {other.number for other in wishes if other.verb != "insert"}
    return [
        other
        for other in messages(timeline, "m.event_id = ?", [row.event_id])
        if timeline.numbers.number("messages", other.id) not in altered
        and (wish.verb == "drop" or (other.name, other.fields) == (row.name, row.fields))
    ]


class _Splices:
    """Builder of splices, `by_message` id."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._bytes = RecordedBytes(timeline.connection)
        self.by_message: dict[int, Splice] = {}

    def add(self, wish: Wish) -> None:
        """Add the splice of one edit. Raises AssignmentError and NoSuchMessageError."""
        row = message_numbered(self._timeline, wish.number)
        if wish.verb == "insert":
            direction, data = self._new(row, wish)
            behind = row if direction == row.direction else self._under_way(row, direction)
            splice = self._splice(behind)
            added = (*splice.added, (direction, data))
            self.by_message[behind.id] = msgspec.structs.replace(splice, added=added)
            return
        splice = self._splice(row)
        if splice.instead is not None:
            raise AssignmentError(
                "this message is already dropped or edited; put all its values into one --edit"
            )
        instead = b"" if wish.verb == "drop" else self._edited(row, wish)
        self.by_message[row.id] = msgspec.structs.replace(splice, instead=instead)

    def _splice(self, row: Message) -> Splice:
        return self.by_message.get(row.id) or Splice(
            row.stream.id, row.direction, row.offset, row.length, row.ts_ns
        )

    def _dissector(self, row: Message) -> Dissector:
        protocol = row.stream.protocol
        dissector = dissector_of(protocol)
        if dissector is None:
            raise AssignmentError(not_installed(str(protocol)))
        return dissector

    def _edited(self, row: Message, wish: Wish) -> bytes:
        stretches = self._bytes.between(row.stream.id, row.direction, row.offset, row.offset + row.length)
        frame = b"".join(stretch.data for stretch in stretches if stretch.data is not None)
        return edit_message(self._dissector(row), frame, row.direction, wish.assignments)

    def _new(self, row: Message, wish: Wish) -> tuple[Direction, bytes]:
        """Return the direction and bytes of a message to insert on the stream of `row`."""
        directions = (row.direction, OPPOSITE[row.direction])
        return encode_new(self._dissector(row), wish.name, directions, wish.assignments)

    def _under_way(self, row: Message, direction: Direction) -> Message:
        """Return the message after which one in the other direction can be inserted.

        Usually this is `row`, unless a message of the other direction was only partly received by then.
        """
        (come,) = self._timeline.connection.execute(
            "SELECT max(offset + length) FROM chunks WHERE stream_id = ? AND direction = ? AND id <"
            " (SELECT min(id) FROM chunks WHERE stream_id = ? AND direction = ? AND offset + length >= ?)",
            (row.stream.id, direction, row.stream.id, row.direction, row.offset + row.length),
        ).fetchone()
        begun = "m.stream_id = ? AND m.direction = ? AND m.offset < ? AND m.offset + m.length > ?"
        parameters = (row.stream.id, direction, come or 0, come or 0)
        return next(messages(self._timeline, begun, parameters), row)
