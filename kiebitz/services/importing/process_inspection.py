"""Inspection in a second process, so that an import uses a second core.

This process reads the capture and writes the database, the other one turns items into rows: each about half
of the work. Items are sent in batches, and their rows return some batches later.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from msgspec import msgpack

from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Chunk, End, Findings, Ids, Item, Stream
from kiebitz.dissectors.registry import ProtocolFile, installed, protocol_files
from kiebitz.proxy.journal.follower import start_fork
from kiebitz.services.faults import infrequent_gc, reporting_faults
from kiebitz.services.protocol_files import add_received
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.recording.inspection import LocalInspection
from kiebitz.storage.recording.rows import Columns, Rows, empty_rows

_AHEAD = 4
"""Maximum number of batches in transit, which bounds the memory used."""

_Ports = dict[tuple[str, int], str | None]
"""Protocol names by server (transport, port), as given with -d; None for no game."""


_PART, _LAST = b"\0", b"\1"
"""First byte of a reply: more parts follow, or none."""


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
        self._batches: deque[Columns] = deque()
        """The rows of the chunks of each batch that was sent."""
        self._answers: deque[Future[bytes]] = deque()
        """The next parts of replies; as many as there are batches."""
        self._items: list[Item] = []
        self._is_finished = False
        self._is_gathering = False
        self.feed = self._items.append
        self.on_full: Callable[[], object] = lambda: None

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
        so that rows are written together with the findings in them. If a batch has many rows, they come in
        several parts, and `on_full` is called after each.
        """
        if self._is_gathering:
            # Called by `on_full`, which writes the rows of the part.
            return Findings()
        self._is_gathering = True
        try:
            self._gather(rows)
        finally:
            self._is_gathering = False
        return Findings()

    def _gather(self, rows: Rows) -> None:
        batches = self._batches
        if not self._is_finished:
            self._send(self._items)
            self._items.clear()
        if rows["chunks"]:
            batches[-1].extend(rows["chunks"].columns)
            rows["chunks"].clear()
        most = len(batches) - 1 if self._is_finished else _AHEAD
        while batches and (len(batches) > most or self._answers[0].done()):
            rows["chunks"].extend(batches[0].columns)
            batches[0].clear()
            try:
                answer = self._answers.popleft().result()
            except (EOFError, OSError) as error:
                raise _process_died() from error
            tables: dict[str, Sequence[Iterable[Any]]] = msgpack.decode(answer[1:])
            for table, columns in tables.items():
                rows[table].extend(columns)
            if answer[:1] == _LAST:
                batches.popleft()
            else:
                self._receive()
                self.on_full()

    def _receive(self) -> None:
        self._answers.append(self._listener.submit(self._connection.recv_bytes))

    @property
    def is_busy(self) -> bool:
        """True if replies are pending."""
        return bool(self._batches)

    def stop_soon(self) -> None:
        """Have the other process stop soon."""
        assert self._process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGUSR1)

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
        self._speaker.submit(self._connection.send_bytes, b"" if items is None else _encode_items(items))
        self._batches.append(empty_rows()["chunks"])
        self._receive()


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
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
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

        def send(mark: bytes) -> None:
            rows = empty_rows()
            inspection.gather(rows)
            connection.send_bytes(
                mark + msgpack.encode({table: found.columns for table, found in rows.items() if found})
            )

        inspection.on_full = partial(send, _PART)
        signal.signal(signal.SIGUSR1, lambda _number, _frame: inspection.stop_soon())
        while True:
            batch = connection.recv_bytes()
            if not batch:
                inspection.finish()
            else:
                for item in _decode_items(batch, streams):
                    inspection.feed(item)
            send(_LAST)


# Items and rows are sent column by column, in MessagePack: pickling an object for each would cost more than
# their processing.


def _encode_items(items: Sequence[Item]) -> bytes:
    """Encode items in order: chunks in columns, the few others as they are, with their positions."""
    chunks = [item for item in items if isinstance(item, Chunk)]
    others = [(place, item) for place, item in enumerate(items) if not isinstance(item, Chunk)]
    streams = {chunk.stream.id: chunk.stream for chunk in chunks}
    columns = (
        [chunk.stream.id for chunk in chunks],
        [chunk.direction for chunk in chunks],
        [chunk.ts_ns for chunk in chunks],
        [chunk.offset for chunk in chunks],
        [chunk.data for chunk in chunks],
        [chunk.missing for chunk in chunks],
    )
    return msgpack.encode((pickle.dumps((streams, others)), columns))


def _decode_items(data: bytes, streams: dict[int, Stream]) -> list[Item]:
    """Decode items; they refer to the stream objects in `streams`, the open ones, which it updates."""
    rest, (numbers, directions, *values) = msgpack.decode(data)
    its_streams, others = pickle.loads(rest)
    for number, stream in its_streams.items():
        streams.setdefault(number, stream)
    # One object for each direction is looked up more quickly.
    items: list[Item] = [*map(Chunk, map(streams.__getitem__, numbers), map(sys.intern, directions), *values)]
    for place, item in others:
        item.stream = streams.setdefault(item.stream.id, item.stream)
        items.insert(place, item)
        if isinstance(item, End):
            del streams[item.stream.id]
    return items
