"""The edits of `kiebitz whatif`: parsing, lookup in the session, and conversion to splices."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal

import click
import msgspec

from kiebitz.cli.completion.session import completing_sessions
from kiebitz.cli.options.messages import NoSuchMessageError, leading_number, message_numbered
from kiebitz.cli.terminal.console import Candidate, with_prefix
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import (
    Assignment,
    AssignmentError,
    parse_assignments,
    split_name,
)
from kiebitz.dissectors.editing.field_assignment import Target
from kiebitz.dissectors.editing.item_edits import Splice
from kiebitz.dissectors.editing.message_encoding import edit_message, encode_new, target_of
from kiebitz.dissectors.model import OPPOSITE, Direction, Message
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.services.wording import counted
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.message_queries import messages
from kiebitz.storage.read.recorded_bytes import RecordedBytes
from kiebitz.storage.read.timeline import Timeline

Verb = Literal["drop", "edit", "insert"]

_ONLY = re.compile(r"only(?:\s+|$)")
"""The word that limits an edit to one of several copies."""

_FORMS: dict[Verb, str] = {
    "drop": "--drop '#7'",
    "edit": "--edit '#7 FIELD=VALUE'",
    "insert": "--insert '#7 NAME FIELD=VALUE'",
}


class Wish(msgspec.Struct, frozen=True):
    """One edit: drop message `number`, change its fields, or insert a message called `name` after it.

    Fields are changed in the `copies` of the message, too (message numbers), unless `is_single`.
    """

    verb: Verb
    number: int
    name: str = ""
    assignments: tuple[Assignment, ...] = ()
    is_single: bool = False
    copies: tuple[int, ...] = ()

    @property
    def option(self) -> str:
        """Command-line spelling."""
        only = "only " if self.is_single else ""
        return f"--{self.verb} {shlex.quote(f'#{self.number} {only}{self._values}'.strip())}"

    @property
    def title(self) -> str:
        """Description for people."""
        if self.verb == "drop":
            return f"without #{self.number}"
        if self.verb == "edit":
            copies = f" and {counted(len(self.copies), 'copy', 'copies')}" if self.copies else ""
            return f"#{self.number}{' alone' if self.is_single else copies} with {self._values}"
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
    is_single = False
    if verb == "insert":
        name, rest = split_name(rest)
    elif verb == "edit" and (only := _ONLY.match(rest)):
        is_single, rest = True, rest[only.end() :]
    try:
        assignments = tuple(parse_assignments(rest))
    except AssignmentError as error:
        raise click.UsageError(f"--{verb} #{number}: {error}") from error
    if (verb == "drop" and rest) or (verb == "edit" and not rest) or (verb == "insert" and not name):
        raise click.UsageError(f"--{verb} {text!r} is not of the form {_FORMS[verb]}")
    return Wish(verb, number, name, assignments, is_single)


def complete_edit(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete the word `only` and the fields of a message, with their present values."""
    head = text[: len(text) - len(text.split(" ")[-1])]
    number, rest = leading_number(head)
    if number is None:
        return []
    found: list[tuple[str, str | None]] = [] if rest else [("only ", "not its copies")]
    for timeline in completing_sessions(context):
        with suppress(NoSuchMessageError, AssignmentError):
            row = message_numbered(timeline, number)
            found += [(_target(row).notation((name,)), None) for name in row.fields]
    return with_prefix(text, ((head + word, note) for word, note in found))


def find_copies(timeline: Timeline, wishes: Sequence[Wish]) -> list[Wish]:
    """Return the edits with the copies of their messages that no other edit names.

    A copy reports the same event in a message of the same name, and has the same values in the fields to be
    changed. Raises StorageError for unknown messages and fields.
    """
    named = {wish.number for wish in wishes if wish.verb != "insert"}
    found: list[Wish] = []
    for wish in wishes:
        if wish.verb == "edit" and not wish.is_single:
            with _error_of(wish):
                numbers = tuple(number for number in _copies(timeline, wish) if number not in named)
            found.append(msgspec.structs.replace(wish, copies=numbers))
        else:
            found.append(wish)
    return found


def splices_of(timeline: Timeline, wishes: Sequence[Wish]) -> list[Splice]:
    """Return the splices that apply all edits to a session.

    Raises StorageError for unknown messages and for values that do not fit.
    """
    found = _Splices(timeline)
    for wish in wishes:
        with _error_of(wish):
            found.add(wish)
    return [*found.by_message.values()]


@contextmanager
def _error_of(wish: Wish) -> Iterator[None]:
    """Raise StorageError, with the option, for an error in an edit."""
    try:
        yield
    except NoSuchMessageError as error:
        raise StorageError(f"--{wish.verb} {error}") from error
    except AssignmentError as error:
        raise StorageError(f"--{wish.verb} #{wish.number}: {error}") from error


def reports_of_same_event(timeline: Timeline, row: Message) -> list[Message]:
    """Return the other messages that report the same event."""
    if row.event_id is None:
        return []
    return [*messages(timeline, "m.event_id = ? AND m.id != ?", [row.event_id, row.id])]


def _copies(timeline: Timeline, wish: Wish) -> Iterator[int]:
    """Yield the numbers of the copies to which an edit applies. Raises AssignmentError."""
    row = message_numbered(timeline, wish.number)
    reports = [
        other
        for other in reports_of_same_event(timeline, row)
        if (other.direction, other.name) == (row.direction, row.name)
    ]
    if not reports:
        return
    present = _target(row).present(wish.assignments)
    for other in reports:
        with suppress(AssignmentError):
            if _target(other).present(wish.assignments) == present:
                yield timeline.numbers.number("messages", other.id)


def _target(row: Message) -> Target:
    return target_of(_dissector(row), row.name, row.direction, row.fields)


def _dissector(row: Message) -> Dissector:
    protocol = row.stream.protocol
    dissector = dissector_of(protocol)
    if dissector is None:
        raise AssignmentError(not_installed(str(protocol)))
    return dissector


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
            directions = (row.direction, OPPOSITE[row.direction])
            direction, data = encode_new(_dissector(row), wish.name, directions, wish.assignments)
            behind = row if direction == row.direction else self._under_way(row, direction)
            splice = self._splice(behind)
            added = (*splice.added, (direction, data))
            self.by_message[behind.id] = msgspec.structs.replace(splice, added=added)
            return
        if self._splice(row).instead is not None:
            raise AssignmentError(
                "this message is already dropped or edited; put all its values into one --edit"
            )
        self._replace(row, b"" if wish.verb == "drop" else self._edited(row, wish))
        for number in wish.copies:
            copy = message_numbered(self._timeline, number)
            data, before = self._edited(copy, wish), self._splice(copy).instead
            if before not in (None, data):
                raise AssignmentError(f"another --edit changes its copy #{number} otherwise; name each copy")
            self._replace(copy, data)

    def _replace(self, row: Message, instead: bytes) -> None:
        self.by_message[row.id] = msgspec.structs.replace(self._splice(row), instead=instead)

    def _splice(self, row: Message) -> Splice:
        return self.by_message.get(row.id) or Splice(
            row.stream.id, row.direction, row.offset, row.length, row.ts_ns
        )

    def _edited(self, row: Message, wish: Wish) -> bytes:
        stretches = self._bytes.between(row.stream.id, row.direction, row.offset, row.offset + row.length)
        frame = b"".join(stretch.data for stretch in stretches if stretch.data is not None)
        return edit_message(_dissector(row), frame, row.direction, wish.assignments)

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
