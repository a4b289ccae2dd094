"""Inspection in a second process, so that an import uses a second core.

This process reads the capture and writes the database, the other one turns items into rows: each about half
of the work. Items are sent in batches, and their rows return some batches later.
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
from kiebitz.dissectors.registry import ProtocolFile, installed, protocol_files
from kiebitz.proxy.journal.follower import start_fork
from kiebitz.services.faults import reporting_faults
from kiebitz.services.gc_tuning import infrequent_gc
from kiebitz.services.importing.ipc_encoding import decode_items, decode_rows, encode_items, encode_rows
from kiebitz.services.protocol_files import add_received
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.recording.inspection import LocalInspection
from kiebitz.storage.recording.rows import Columns, Rows, empty_rows

_AHEAD = 4
"""Maximum number of batches in transit, which bounds the memory used."""

_Ports = dict[tuple[str, int], str | None]
"""Protocol names by server (transport, port), as given with -d; None for no game."""


class _Batch(NamedTuple):
    """A batch of items that was sent: the rows of its chunks, and the future reply with the others."""

    chunks: Columns
    answer: Future[bytes]


class ProcessInspection:
    """An inspection in another process. Raises StorageError if that dies.

    Create it before opening a database: the other process is a fork and must have neither its file nor its
    lock.
    """

    def __init__(self) -> None:
        # Loaded before the fork, for both.
        installed()
        self._connection, theirs = multiprocessing.Pipe()
        self._process = start_fork(_inspect, theirs, self._connection, protocol_files())
        theirs.close()
        # Threads send items and receive rows while this one continues.
        self._speaker = ThreadPoolExecutor(1, "items")
        self._listener = ThreadPoolExecutor(1, "rows")
        self._batches: deque[_Batch] = deque()
        self._items: list[Item] = []
        self._is_finished = False
        self.feed = self._items.append

    def begin(self, session_id: int, ids: Ids, decode_as: DecodeAs) -> ProcessInspection:
        """Begin to inspect a session; this method is an `Inspect`."""
        ports: _Ports = {
            server: dissector.protocol if dissector is not None else None
            for server, dissector in decode_as.items()
        }
        try:
            self._connection.send((session_id, ids, ports))
        except OSError as error:
            raise _process_died() from error
        return self

    def gather(self, rows: Rows) -> Findings:
        """Send the items fed, and append the returned rows to `rows`.

        Waits while too many batches are in transit, and at the end for the next one. Rows of chunks wait too,
        so that rows are written together with the findings in them.
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
                raise _process_died() from error
            rows["chunks"].extend(batch.chunks.columns)
            for table, columns in decode_rows(answer).items():
                rows[table].extend(columns)
        return Findings()

    @property
    def is_busy(self) -> bool:
        """True if replies are pending."""
        return bool(self._batches)

    def finish(self) -> None:
        """Send the last items and the end."""
        self._send(self._items)
        self._send(None)
        self._is_finished = True

    def close(self) -> None:
        """Kill the process, whether or not it has finished."""
        self._process.kill()
        self._process.join()
        self._speaker.shutdown()
        self._listener.shutdown()
        self._connection.close()

    def _send(self, items: list[Item] | None) -> None:
        # If it cannot be sent, nothing is answered, either.
        self._speaker.submit(self._connection.send_bytes, b"" if items is None else encode_items(items))
        self._batches.append(
            _Batch(empty_rows()["chunks"], self._listener.submit(self._connection.recv_bytes))
        )


def _process_died() -> StorageError:
    return StorageError("the inspecting process has died; what was written before is kept")


@reporting_faults
@infrequent_gc()
def _inspect(connection: Connection, theirs: Connection, files: tuple[ProtocolFile, ...]) -> None:
    """Reply to each batch of items with rows, and to None with the last ones; run by `start_fork`.

    The first record describes the session.
    """
    # A fork inherits the other end, which would keep the pipe open after the parent's exit.
    theirs.close()
    add_received(files)
    dissectors = installed().dissectors
    streams: dict[int, Stream] = {}
    # The importing process may be killed.
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
                for item in decode_items(batch, streams):
                    inspection.feed(item)
                    if isinstance(item, End):
                        del streams[item.stream.id]
            rows = empty_rows()
            inspection.gather(rows)
            connection.send_bytes(encode_rows(rows))
