"""A recording that was ended before all in its journal was recorded, and carried on later.

Beside the journal it is noted what was to be done with it: so much of its recorder's task as still matters.
"""

from __future__ import annotations

import multiprocessing
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec

from kiebitz.cli.recording.from_journal import Left, Report, Task, record_journal
from kiebitz.cli.recording.rotation import Limits
from kiebitz.cli.recording.spool import Spool
from kiebitz.cli.terminal.console import errors_are_seen, tell
from kiebitz.proxy.processes import start_child
from kiebitz.storage.schema import StorageError

if TYPE_CHECKING:
    from kiebitz.cli.terminal.screen import OnProgress


class _Note(msgspec.Struct):
    """A task without what belongs to the processes that are gone."""

    session: int
    database: str
    databases: tuple[str, ...]
    source: str
    name: str
    limits: Limits | None
    decode_as: tuple[str, ...]
    max_size: int | None


def noted(task: Task) -> bytes:
    """A task whose session has begun, to be carried on from whatever folder."""
    assert task.session is not None
    return msgspec.json.encode(
        _Note(
            task.session,
            os.path.abspath(task.database),
            tuple(map(os.path.abspath, task.databases)),
            task.source,
            task.name,
            task.limits,
            task.decode_as,
            task.max_size,
        )
    )


_FEW = 1000
"""So many messages are recorded before anybody has read that they are left."""


class Remaining:
    """As a context: says what is left to be recorded, if it is much; with a bar on a terminal."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._most = 0
        self._on_progress: OnProgress | None = None

    def __enter__(self) -> Remaining:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._stack.close()

    def show(self, messages: int) -> None:
        """About so many messages are left."""
        if not self._most and messages < _FEW:
            return
        if not self._most:
            tell(f"kiebitz: about {messages:,} messages are left to be recorded; Ctrl-C puts that off")
        self._most = max(self._most, messages, 1)
        if not errors_are_seen():
            return
        if self._on_progress is None:
            # Rich is loaded only where it takes longer.
            from kiebitz.cli.terminal.screen import counting

            self._on_progress = self._stack.enter_context(counting("recording", "messages"))
        self._on_progress(self._most - messages, self._most)


def carry_on(folder: str) -> bool:
    """Record what is in a journal that was kept in `folder`; whether all of it is recorded.

    What is not stays there. Raises StorageError, and KeyboardInterrupt.
    """
    try:
        spool, text = Spool.kept(Path(folder).absolute())
    except FileNotFoundError as error:
        raise StorageError(f"{folder}: this is a folder, and no recording was left in it") from error
    except OSError as error:
        raise StorageError(f"{folder}: it cannot be carried on: {error.strerror}") from error
    is_recorded = False
    try:
        task = _task(spool, text, folder)
        connection, theirs = multiprocessing.Pipe()
        process = start_child(record_journal, task, theirs, False)
        theirs.close()
        try:
            connection.send(None)
            with Remaining() as remaining, suppress(EOFError, OSError):
                while True:
                    report: Report = connection.recv()
                    if isinstance(report, Left):
                        remaining.show(report.messages)
            process.join()
        except KeyboardInterrupt:
            process.kill()
            process.join()
            raise
        finally:
            connection.close()
        is_recorded = process.exitcode == 0
    finally:
        if not is_recorded:
            spool.keep(text)
        spool.discard()
    return is_recorded


def _task(spool: Spool, text: bytes, folder: str) -> Task:
    try:
        note = msgspec.json.decode(text, type=_Note)
        there = os.stat(spool.journal, follow_symlinks=False)
    except (msgspec.DecodeError, OSError) as error:
        raise StorageError(f"{folder}: what was left in it is damaged: {error}") from error
    return Task(
        spool.journal,
        (there.st_dev, there.st_ino),
        note.database,
        note.source,
        note.name,
        note.limits,
        note.decode_as,
        None,
        True,
        note.databases,
        note.session,
        note.max_size,
    )
