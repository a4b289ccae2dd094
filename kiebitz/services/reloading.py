"""Dissecting a session again whenever its protocol files are saved, for `watch` and `serve`.

A child process dissects into a temporary database, so that the current state stays usable until then.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from multiprocessing.connection import Connection

import msgspec

from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.registry import (
    ProtocolFile,
    add_file,
    dissector_of,
    known_problems,
    protocol_files,
    remove_files,
)
from kiebitz.proxy.journal.follower import start_child, start_resource_tracker
from kiebitz.services.faults import reporting_faults
from kiebitz.services.protocol_files import add_received, load_protocol_files
from kiebitz.services.sessions import is_database, load, session_of, split_number
from kiebitz.storage.database.schema import StorageError

_POLL_S = 0.2
"""Interval in seconds between two looks at the protocol files."""

_KEPT = 3
"""Number of latest dissections that are kept, as readers may still use or open them."""


class Dissected(msgspec.Struct, frozen=True):
    """A session in a temporary database, with the losses of its capture; or the problem as lines."""

    database: str
    session_id: int = 0
    lacks: str | None = None
    problem: tuple[str, ...] = ()


def dissect_into(source: str, database: str) -> Dissected:
    """Dissect a capture, or a session of a database, into a new database. Raises KiebitzError."""
    path, number = split_number(source)
    if not is_database(path):
        # Databases need no capture reader.
        from kiebitz.services.importing.packets import import_capture

        recording, lacks = import_capture(path, database, {}, lambda done, of: None, jobs=1)
        return Dissected(database, recording.recorder.session_id, lacks)
    from kiebitz.storage.derived.derived_session import dissect_again

    connection, _ = load(path)
    with closing(connection):
        timeline, _ = session_of(connection, path, number)
        if timeline.session.ended_ns is None:
            raise StorageError(
                f"{path}:{timeline.session.id} is being recorded: only a finished session is reloaded"
            )
        derived = dissect_again(timeline, lambda done, of: None, database)
        derived.connection.close()
        return Dissected(database, derived.session.id)


class Reloader:
    """A thread that dissects sessions again whenever a protocol file is saved; it ends with `close`.

    Create it before the application that uses it. Raises OSError.

    Args:
        files: The paths of the protocol files.
        sources: The sessions, as given on the command line.
        on_dissected: Called in the thread with the new databases, in the order of `sources`; by then this
            process uses the new protocols.
        on_problem: Called in the thread with the lines of a message; the last good state remains.
    """

    def __init__(
        self,
        files: Sequence[str],
        sources: Sequence[str],
        on_dissected: Callable[[Sequence[Dissected]], None],
        on_problem: Callable[[list[str] | tuple[str, ...]], None],
    ) -> None:
        self._files = files
        self._sources = sources
        self._on_dissected = on_dissected
        self._on_problem = on_problem
        # Within Textual it cannot be started, as stderr has no descriptor there.
        start_resource_tracker()
        self._folder = tempfile.TemporaryDirectory(prefix="kiebitz-")
        self._stopped = threading.Event()
        self._number = 0
        self._made: deque[list[str]] = deque()
        self._state = self._look()
        self._thread = threading.Thread(target=self._run, name="reloader", daemon=True)

    def start(self) -> None:
        """Start watching the files."""
        self._thread.start()

    def close(self) -> None:
        """Stop watching, and remove the databases."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        self._folder.cleanup()

    def _look(self) -> list[tuple[int, int, int] | None]:
        """Return what changes when a file is saved."""
        found: list[tuple[int, int, int] | None] = []
        for path in self._files:
            try:
                status = os.stat(path)
                found.append((status.st_mtime_ns, status.st_size, status.st_ino))
            except OSError:
                found.append(None)
        return found

    def _run(self) -> None:
        while not self._stopped.wait(_POLL_S):
            state = self._look()
            # An editor may replace the file: it is missing for a moment.
            if state != self._state and None not in state:
                self._state = state
                try:
                    self._reload()
                except KiebitzError as error:
                    self._on_problem([str(error), *error.excerpt()])
                except Exception as error:
                    self._on_problem([fault(error)])

    def _reload(self) -> None:
        loaded = load_protocol_files(self._files)
        # This process uses the old ones until the new rows are there.
        named = [file for file in protocol_files() if file.source == "given"]
        others = [file for file in protocol_files() if file.source == "configured"]
        files = (*others, *(one.file for one in loaded))
        self._number += 1
        dissected = []
        for place, source in enumerate(self._sources):
            database = os.path.join(self._folder.name, f"{self._number}-{place}.db")
            found = self._dissect(source, database, files)
            if found is None:
                return
            if found.problem:
                self._on_problem(found.problem)
                return
            dissected.append(found)
        remove_files(file.protocol for file in named)
        for file, dissector in loaded:
            add_file(file, dissector, replaces=True)
        self._on_dissected(dissected)
        self._made.append([one.database for one in dissected])
        if len(self._made) > _KEPT:
            for database in self._made.popleft():
                with suppress(OSError):
                    os.unlink(database)

    def _dissect(self, source: str, database: str, files: tuple[ProtocolFile, ...]) -> Dissected | None:
        """Dissect a session in a child process; return None if this one ends meanwhile."""
        connection, theirs = multiprocessing.Pipe()
        with closing(connection):
            with theirs:
                process = start_child(_dissect, theirs, source, database, files)
            try:
                while not connection.poll(_POLL_S):
                    if self._stopped.is_set():
                        return None
                found: Dissected = connection.recv()
            except EOFError:
                found = Dissected(database, problem=(f"{source} could not be dissected again",))
            finally:
                process.kill()
                process.join()
        return found


@reporting_faults
def _dissect(connection: Connection, source: str, database: str, files: tuple[ProtocolFile, ...]) -> None:
    """Dissect a session into a database; run by `start_child`."""
    try:
        add_received(files)
        if any(dissector_of(file.protocol) is None for file in files):
            raise StorageError(known_problems()[-1])
        found = dissect_into(source, database)
    except KiebitzError as error:
        found = Dissected(database, problem=(str(error), *error.excerpt()))
    with suppress(OSError):
        connection.send(found)
