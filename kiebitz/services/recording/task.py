"""The task of a recorder process, and its reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

import msgspec

from kiebitz.dissectors.model import Findings, TableInfo
from kiebitz.dissectors.registry import ProtocolFile
from kiebitz.services.recording.note import Note, Part
from kiebitz.services.recording.rotation import Limits
from kiebitz.services.standard_streams import print_error_line
from kiebitz.storage.recording.recorder import Recorder

GAVE_UP = 3
"""Exit status: another process would fail in the same way."""

FULL = 4
"""Exit status: the maximum size is recorded."""


class View(Protocol):
    """A display of an ongoing recording."""

    def show(self, found: Findings) -> None:
        """Show new findings."""


ViewFactory = Callable[[Recorder, Iterable[TableInfo]], View]
"""Makes the view of a recording with some tables; it is pickled, as the recorder has a process of its own."""


class Task(msgspec.Struct, frozen=True):
    """A journal to record, the database to record it in, and the display.

    `identity` is that of the journal's folder: no other folder in its place is read. With `limits` the
    recording goes into several databases, named after `database`. `sessions` are the existing ones, each with
    its database's path; the last one is resumed. `view` makes the display, None shows nothing. The databases
    and the journal together take at most `max_size` bytes; None for no limit.

    The first session began at `started_ns`. `is_left` is True if the journal has no writer any more, and
    `is_rest` if its sessions cannot be resumed: what they lack is recorded as another one.
    """

    journal: Path
    identity: tuple[int, int]
    database: str
    source: str
    name: str
    limits: Limits | None
    decode_as: tuple[str, ...]
    view: ViewFactory | None
    sessions: tuple[tuple[str, int], ...] = ()
    started_ns: int | None = None
    max_size: int | None = None
    is_anonymized: bool = False
    is_left: bool = False
    is_rest: bool = False
    protocol_files: tuple[ProtocolFile, ...] = ()

    @property
    def databases(self) -> list[str]:
        """The paths of the databases of its sessions."""
        return [database for database, _ in self.sessions]


class Begun(msgspec.Struct, frozen=True):
    """A new session was opened; its first stream is the one after `streams_before`."""

    session: int
    database: str
    streams_before: int


class Continued(msgspec.Struct, frozen=True):
    """The session continues in another database."""

    session: int
    database: str


class Refused(msgspec.Struct, frozen=True):
    """The new session cannot be opened."""

    reason: str


class Committed(msgspec.Struct, frozen=True):
    """A part of the initial backlog is recorded."""


class Backlog(msgspec.Struct, frozen=True):
    """The approximate number of messages left to record after the relay has ended."""

    messages: int


class Sentence(msgspec.Struct, frozen=True):
    """A sentence for the user of the relay."""

    sentence: str


class OutputFailed(msgspec.Struct, frozen=True):
    """A failed write to standard output: the display is incomplete."""


Report = Begun | Continued | Refused | Committed | Backlog | Sentence | OutputFailed
"""A report of the process. The first one of a new session is `Begun` or `Refused`."""


def report(relay: Connection, what: Report) -> None:
    """Send a report if the relay still exists."""
    with suppress(OSError):
        relay.send(what)


def sentence_reporter(relay: Connection | None) -> Callable[[str], None]:
    """Return the function that reports sentences to the relay; without one, they go to stderr."""

    def pass_on(sentence: str) -> None:
        if relay is None:
            # The recording does not end because its terminal is gone.
            with suppress(OSError):
                print_error_line(sentence)
        else:
            report(relay, Sentence(sentence))

    return pass_on


def note_of(task: Task) -> Note:
    """Return the note of a recording with its current sessions."""
    return Note(
        os.path.basename(task.database),
        task.source,
        task.name,
        task.started_ns,
        tuple(Part(os.path.basename(database), number) for database, number in task.sessions),
        task.limits,
        task.decode_as,
        task.is_anonymized,
        task.is_rest,
        task.protocol_files,
    )


def sessions_of(note: Note, folder: str) -> tuple[tuple[str, int], ...]:
    """Return the sessions of a note whose databases are in `folder`, each with its database's path."""
    return tuple((os.path.join(folder, part.database), part.session) for part in note.parts)
