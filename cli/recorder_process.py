"""The recorder's process of a live session: its journal, its start, and its end.

Whoever forwards writes `RecorderProcess.journal`; the process, which runs `cli.recording`, records it.
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType

from cli.recording import record_journal
from proxy.journal import JournalWriter
from proxy.processes import start_child
from storage.schema import StorageError


class RecorderProcess:
    """A journal beside `database`, and from `start` on the process that records it there.

    `on_trouble` is told in a sentence when the journal cannot be written, and when it can again. With `tell`
    what the process has to say goes there, in `hear` and `finish`; without, to stderr. As a context it ends
    with `discard`. Raises StorageError.
    """

    def __init__(
        self, database: str, *, on_trouble: Callable[[str], None], tell: Callable[[str], None] | None = None
    ) -> None:
        self._database = database
        self._tell = tell
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        try:
            self._file = Path(database).absolute()
            self._spool = Path(tempfile.mkdtemp(prefix=self._spool_prefix, dir=self._file.parent))
        except OSError as error:
            raise StorageError(f"{database}: nothing can be written beside it: {error.strerror}") from error
        try:
            self.journal = JournalWriter(self._spool / "journal", on_trouble=on_trouble)
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> RecorderProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.discard()

    def discard(self) -> None:
        """Leave nothing behind: kill the process if it was not finished, and remove the journal."""
        if self._process is not None and self._process.exitcode is None:
            # Else it would wait for the end of this process, and this process for its.
            self._process.kill()
            self._process.join()
        shutil.rmtree(self._spool, ignore_errors=True)

    def start(
        self,
        source: str,
        *,
        decode_as: tuple[str, ...] = (),
        wanted: str | None = None,
        quiet: bool,
    ) -> None:
        """Start recording a session from `source`; it is open when this returns. Raises StorageError."""
        self._connection, theirs = multiprocessing.Pipe()
        self._process = start_child(
            record_journal,
            self._spool / "journal",
            self._database,
            source,
            f"relay {time.strftime('%Y-%m-%d %H:%M:%S')}",
            decode_as,
            wanted,
            quiet,
            theirs,
            self._tell is not None,
        )
        theirs.close()
        try:
            failure: str | None = self._connection.recv()
        except EOFError:
            failure = "the recorder did not start"
        if failure is not None:
            raise StorageError(failure)
        self._tidy()

    @property
    def sentinel(self) -> int:
        """A descriptor that is readable once the process has died."""
        assert self._process is not None
        return self._process.sentinel

    @property
    def connection(self) -> Connection:
        """Readable when the process says something, or has died."""
        assert self._connection is not None
        return self._connection

    def hear(self) -> bool:
        """Tell one sentence of the process, waiting for it; False if there are no more."""
        try:
            sentence: str = self.connection.recv()
        except (EOFError, OSError):
            return False
        if self._tell is not None:
            self._tell(sentence)
        return True

    def finish(self) -> bool:
        """Wait until all is recorded, the journal being closed; whether all went well."""
        assert self._process is not None
        with suppress(OSError):
            # From here on the process gives up what it cannot write.
            self.connection.send(None)
        while self.hear():
            pass
        self.connection.close()
        self._process.join()
        return self._process.exitcode == 0

    @property
    def _spool_prefix(self) -> str:
        return f".{self._file.name}-spool-"

    def _tidy(self) -> None:
        """Remove the spools of relays that were killed; the recorder has made sure that none is running."""
        for path in self._file.parent.iterdir():
            if path.name.startswith(self._spool_prefix) and path != self._spool:
                shutil.rmtree(path, ignore_errors=True)
