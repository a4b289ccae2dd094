"""An inspection in a process of its own, so that an import uses a second core.

This process reads the capture and writes the database, the other one makes rows of items: each about half of
the work. Items go there in batches, and their rows come back some batches later.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NamedTuple

from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import End, Findings, Ids, Item, Stream
from kiebitz.dissectors.registry import installed
from kiebitz.proxy.journal.follower import start_fork
from kiebitz.services.faults import telling_faults
from kiebitz.services.gc_tuning import collecting_seldom
from kiebitz.services.importing.ipc_encoding import packed_items, packed_rows, unpacked_items, unpacked_rows
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.recording.inspection import LocalInspection
from kiebitz.storage.recording.rows import Columns, Rows, empty_rows

_AHEAD = 4
"""Batches that may be on their way, there or back; so much is in memory."""

_Ports = dict[tuple[str, int], str | None]
"""Server (transport, port) to the name of the protocol that it is said to speak; None for no game."""


class _Batch(NamedTuple):
    """Items that were sent: the rows of their chunks, and, once it is there, what was found in them."""

    chunks: Columns
    answer: Future[bytes]


class InspectionElsewhere:
    """An inspection in another process. Raises StorageError if that dies.

    Made before a database is opened, so that the other process, a copy of this one, has neither its file nor
    the lock on it.
    """

    def __init__(self) -> None:
        # Loaded once for both.
        installed()
        self._connection, theirs = multiprocessing.Pipe()
        self._process = start_fork(_inspect, theirs, self._connection)
        theirs.close()
        # Items wait for the other process, and its rows for this one, while this one goes on.
        self._speaker = ThreadPoolExecutor(1, "items")
        self._listener = ThreadPoolExecutor(1, "rows")
        self._batches: deque[_Batch] = deque()
        self._items: list[Item] = []
        self._is_finished = False
        self.feed = self._items.append

    def begin(self, session_id: int, ids: Ids, decode_as: DecodeAs) -> InspectionElsewhere:
        """Inspect a session, as an `Inspect` does."""
        ports: _Ports = {
            server: dissector.protocol if dissector is not None else None
            for server, dissector in decode_as.items()
        }
        try:
            self._connection.send((session_id, ids, ports))
        except OSError as error:
            raise _death() from error
        return self

    def gather(self, rows: Rows) -> Findings:
        """Send what was fed, and append to `rows` what has come back.

        Waits until only a few batches are on their way, and at the end for the next one. The rows of chunks
        that are in `rows` wait, too: whatever is written has all that was found in it.
        """
        batches = self._batches
        if not self._is_finished:
            self._send(self._items)
            self._items.clear()
        if rows["chunks"]:
            batches[-1].chunks.extend(rows["chunks"].columns)
            rows["chunks"].clear()
        most = len(batches) - 1 if self._is_finished else _AHEAD
        while batches and (len(batches) > most or batches[0].answer.done()):
            batch = batches.popleft()
            try:
                answer = batch.answer.result()
            except (EOFError, OSError) as error:
                raise _death() from error
            rows["chunks"].extend(batch.chunks.columns)
            for table, columns in unpacked_rows(answer).items():
                rows[table].extend(columns)
        return Findings()

    @property
    def is_busy(self) -> bool:
        """Whether the other process has yet to answer."""
        return bool(self._batches)

    def finish(self) -> None:
        """Nothing more comes."""
        self._send(self._items)
        self._send(None)
        self._is_finished = True

    def close(self) -> None:
        """End the process, which has nothing more to do or is not waited for."""
        self._process.kill()
        self._process.join()
        self._speaker.shutdown()
        self._listener.shutdown()
        self._connection.close()

    def _send(self, items: list[Item] | None) -> None:
        # If it cannot be sent, nothing is answered, either.
        self._speaker.submit(self._connection.send_bytes, b"" if items is None else packed_items(items))
        self._batches.append(
            _Batch(empty_rows()["chunks"], self._listener.submit(self._connection.recv_bytes))
        )


def _death() -> StorageError:
    return StorageError("the process that inspects has died; what was written until then is kept")


@telling_faults
@collecting_seldom()
def _inspect(connection: Connection, theirs: Connection) -> None:
    """Answer each batch of items with rows, and None with the last ones; to be run by `start_fork`.

    Before the first batch comes which session it is.
    """
    # In a copy their end is open, too, and would keep the pipe open when they are gone.
    theirs.close()
    dissectors = installed().dissectors
    streams: dict[int, Stream] = {}
    # Whoever imports may be killed.
    with suppress(EOFError, OSError):
        session_id, ids, ports = connection.recv()
        decode_as = {
            server: dissectors[protocol] if protocol is not None else None
            for server, protocol in ports.items()
        }
        inspection = LocalInspection(session_id, ids, decode_as)
        while True:
            batch = connection.recv_bytes()
            if not batch:
                inspection.finish()
            else:
                for item in unpacked_items(batch, streams):
                    inspection.feed(item)
                    if isinstance(item, End):
                        del streams[item.stream.id]
            rows = empty_rows()
            inspection.gather(rows)
            connection.send_bytes(packed_rows(rows))
