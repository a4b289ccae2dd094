"""The task of a recorder process, and its reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import msgspec

from kiebitz.dissectors.model import Findings, TableInfo
from kiebitz.services.recording.note import Note
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
    """A journal to record, the recording as its note has it, and the display.

    `identity` is that of the journal's folder: no other folder in its place is read. `database` is the path
    of the database, or with limits of the first one; those of the note's sessions, of which the last one is
    resumed, are in `folder`. `view` makes the display, None shows nothing. The databases and the journal
    together take at most `max_size` bytes; None for no limit. `is_left` is True if the journal has no writer
    any more.
    """

    journal: Path
    identity: tuple[int, int]
    database: str
    folder: str
    note: Note
    view: ViewFactory | None = None
    max_size: int | None = None
    is_left: bool = False

    @property
    def sessions(self) -> list[tuple[str, int]]:
        """The sessions, each with its database's path."""
        return [(os.path.join(self.folder, part.database), part.session) for part in self.note.parts]

    @property
    def databases(self) -> list[str]:
        """The paths of the databases of its sessions."""
        return [database for database, _ in self.sessions]

    def with_note(self, **changes: Any) -> Task:
        """Return the task with other values in its note."""
        return msgspec.structs.replace(self, note=msgspec.structs.replace(self.note, **changes))


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
