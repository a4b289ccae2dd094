"""The process that publishes a recording: its journal, its start, its end, and another one if it dies."""

from __future__ import annotations

import asyncio
import multiprocessing
import secrets
import signal
from contextlib import suppress
from multiprocessing.context import SpawnProcess
from pathlib import Path

import msgspec

from kiebitz.proxy.journal.follower import start_child
from kiebitz.proxy.journal.item_writer import ItemWriter
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.services.publishing.tapping import Tapping
from kiebitz.services.publishing.worker import DAMAGED, KEPT, Note, Task, publish_journal
from kiebitz.services.recording.journal_folder import Spool
from kiebitz.services.standard_streams import tell
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.recording.disk_space import may_wait_beside

_SEGMENT_BYTES = 1 << 20
"""So much is published again, and passed over by collectors, when a tap goes on where another one died."""

_LOOK_EVERY_S = 0.1


class TapProcess:
    """A journal in the folder of `database`, and from `start` on the process that publishes it.

    The journal is written as the recording's own, or with `items`. Raises StorageError.
    """

    def __init__(self, tapping: Tapping, database: str) -> None:
        self._tapping = tapping
        self._process: SpawnProcess | None = None
        self._may_start_again = True
        self._is_over = False
        self._is_full = False
        self._run = secrets.token_hex(8)
        # Not named after the database: the next one in this folder publishes what is left, whatever its is.
        self._beside = Path(database).absolute().parent / f"tap-{tapping.name}"
        note = msgspec.json.encode(Note(str(tapping.place), tapping.name, self._run))
        try:
            self._spool = Spool(self._beside)
        except OSError as error:
            raise StorageError(f"{database}: nothing can be written beside it: {error.strerror}") from error
        try:
            self._spool.note(note)
            self.journal = JournalWriter(
                self._spool.journal,
                on_trouble=self._journal_trouble,
                has_room=lambda: may_wait_beside(database),
                segment_bytes=_SEGMENT_BYTES,
            )
        except BaseException:
            self._spool.discard()
            raise
        self.items = ItemWriter(self.journal)

    def start(self) -> None:
        """Start to publish. Raises OSError."""
        self._connection, theirs = multiprocessing.Pipe()
        task = Task(self._tapping, self._run, self._beside, self._spool.journal, self.journal.identity)
        self._process = start_child(publish_journal, task, theirs)
        theirs.close()

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        """From here on, see to it on this loop that the process runs."""
        self._loop = loop
        self._next = loop.call_later(_LOOK_EVERY_S, self._look_again)

    def leave(self) -> None:
        """Look no more on the loop."""
        self._next.cancel()

    def look(self) -> None:
        """Hand over what is written, and start another process if this one has died."""
        self.journal.flush()
        process = self._process
        if process is None or self._is_over:
            return
        with suppress(EOFError, OSError):
            while self._connection.poll():
                self._connection.recv()
                self._may_start_again = True
        if process.exitcode is not None:
            self._start_again(process.exitcode)

    def finish(self) -> None:
        """Wait until all is published, the journal being closed, or the server is given up for now.

        Ctrl-C puts the rest off, and raises KeyboardInterrupt.
        """
        process = self._process
        if process is None:
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with suppress(OSError):
            self._connection.send(None)
        try:
            process.join()
        except KeyboardInterrupt:
            process.kill()
            process.join()
            self._keep()
            raise
        if process.exitcode not in (0, DAMAGED):
            self._keep()

    def discard(self) -> None:
        """Remove the journal, unless it is kept; it is kept if the process was not finished."""
        if self._process is not None and self._process.exitcode is None:
            self._process.kill()
            self._process.join()
            self._keep()
        self._spool.discard()

    def _look_again(self) -> None:
        self.look()
        self._next = self._loop.call_later(_LOOK_EVERY_S, self._look_again)

    def _start_again(self, status: int) -> None:
        if self._may_start_again and status not in (KEPT, DAMAGED):
            self._may_start_again = False
            tell(
                "kiebitz: the process that publishes has died and is started again; "
                "what is recorded meanwhile waits to be published"
            )
            with suppress(OSError):
                self.start()
                return
        self._is_over = True
        self.journal.abandon()
        tell("kiebitz: the process that publishes has died; what is recorded is published no more")

    def _keep(self) -> None:
        """Leave what is not published for the next tap of this name, if there is anything."""
        if not self.journal.streams:
            return
        folder = self._spool.keep()
        tell(
            f"kiebitz: what is not published yet is kept in {folder}; the next recording in that folder with "
            f"--publish {self._tapping.place} --tap {self._tapping.name} publishes it first"
        )

    def _journal_trouble(self, _: str) -> None:
        if self._is_full == self.journal.is_dropping:
            return
        self._is_full = not self._is_full
        if self._is_full:
            tell(
                f"kiebitz: no more can wait to be published to {self._tapping.place}: "
                "what comes from here on is recorded here, and a gap there"
            )
        else:
            tell("kiebitz: there is room again: from here on all waits to be published")
