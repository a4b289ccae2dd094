"""The client of a relay's control socket: follows its held messages, and acts on them.

The socket is found by the database: the folder of the recording's journal is next to it. A folder or a socket
that belongs to another user is ignored. Where there is none, no messages are held, and nothing is reported.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import msgspec

from kiebitz.services.alteration.control_server import (
    CLIENT_TIMEOUT_S,
    MAX_LINE_BYTES,
    VERSION,
    Act,
    ControlError,
    HeldMessage,
    Hello,
    Reply,
    Request,
    Waiting,
    socket_address,
)
from kiebitz.services.supervision.journal_folder import CONTROL_SOCKET, private_folders

RecordedSession = tuple[str, int]
"""A database and the number of a session in it."""

_RETRY_S = 0.5
_SHARE = 20
"""Interval (seconds) between two searches for a socket; they take at most a twentieth of a core."""

_ROTATED = re.compile(r"(?P<stem>.*)_\d{5}_\d{14}")
"""The name of a database that continues another one; see `kiebitz.services.recording.rotation`."""

_ServerMessage = Hello | Waiting | Reply

_DECODER: msgspec.json.Decoder[_ServerMessage] = msgspec.json.Decoder(_ServerMessage)


class NoAnswerError(ControlError):
    """The relay did not reply in time: the request may have been carried out."""


class HeldSnapshot(msgspec.Struct, frozen=True):
    """Held messages, the number of further ones, and the relay's clock at `heard_s` of this process's."""

    messages: Sequence[HeldMessage] = ()
    more: int = 0
    now_ns: int = 0
    heard_s: float = 0.0

    def __len__(self) -> int:
        return len(self.messages) + self.more

    def waited_ns(self, message: HeldMessage) -> int:
        """Return how long a message has been held."""
        since_ns = int((time.monotonic() - self.heard_s) * 1e9)
        return max(self.now_ns + since_ns - message.since_ns, 0)

    def is_overdue(self, message: HeldMessage) -> bool:
        """Return True if a message is held for longer than its timeout."""
        return message.bears_ns is not None and self.waited_ns(message) > message.bears_ns


class ControlClient:
    """Follows the held messages of a relay while `run` runs.

    `place` returns the recorded session, None if there is none; it is called repeatedly. `held` are the held
    messages, None where nothing can be held; `changes` counts their changes.
    """

    def __init__(self, place: Callable[[], RecordedSession | None]) -> None:
        self._place = place
        self.held: HeldSnapshot | None = None
        self.changes = 0
        self._asked: dict[int, asyncio.Future[None]] = {}
        self._numbers = count(1)
        self._writer: asyncio.StreamWriter | None = None
        self._looked_s = 0.0

    async def run(self) -> None:
        """Follow one relay after the other until cancelled."""
        while True:
            with suppress(OSError, TimeoutError, ValueError, msgspec.DecodeError, RecursionError):
                await self._follow()
            await asyncio.sleep(max(_RETRY_S, self._looked_s * _SHARE))

    async def ask(self, do: Act, number: int | None = None, text: str = "") -> None:
        """Send a request and wait for the reply.

        Raises:
            ControlError: The relay refused the request; the text is its reason.
            NoAnswerError: No reply arrived in time.
        """
        if self._writer is None:
            raise ControlError("no messages are held: the relay has ended")
        request = Request(next(self._numbers), do, number, text)
        line = msgspec.json.encode(request) + b"\n"
        if len(line) > MAX_LINE_BYTES:
            raise ControlError(f"the request is longer than {MAX_LINE_BYTES} bytes")
        reply = self._asked[request.id] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(line)
            async with asyncio.timeout(CLIENT_TIMEOUT_S):
                await reply
        except TimeoutError:
            raise NoAnswerError(f"the relay has not replied for {CLIENT_TIMEOUT_S:g} s") from None
        finally:
            self._asked.pop(request.id, None)

    async def _follow(self) -> None:
        """Follow the relay that records now, until it ends or another one records.

        Raises OSError, TimeoutError, ValueError, DecodeError.
        """
        place, begun_s = self._place(), time.monotonic()
        found = await _connected(place[0]) if place is not None else None
        self._looked_s = time.monotonic() - begun_s
        if place is None or found is None:
            return
        reader, writer = await asyncio.open_unix_connection(sock=found, limit=MAX_LINE_BYTES)
        try:
            async with asyncio.timeout(CLIENT_TIMEOUT_S):
                hello = _decode(await reader.readline())
            if not _records(hello, place):
                return
            self._writer = writer
            while self._place() == place:
                self._take(_decode(await reader.readline()))
        finally:
            writer.transport.abort()
            if self._writer is not None:
                self._leave()

    def _take(self, said: _ServerMessage) -> None:
        if isinstance(said, Waiting):
            self._show(HeldSnapshot(said.held, said.more, said.now_ns, time.monotonic()))
        elif isinstance(said, Reply) and said.id in self._asked and not self._asked[said.id].done():
            if said.refusal is None:
                self._asked[said.id].set_result(None)
            else:
                self._asked[said.id].set_exception(ControlError(said.refusal))

    def _show(self, held: HeldSnapshot | None) -> None:
        self.held = held
        self.changes += 1

    def _leave(self) -> None:
        self._writer = None
        for reply in self._asked.values():
            if not reply.done():
                reply.set_exception(ControlError("the relay ended before it replied"))
        self._show(None)


def _decode(line: bytes) -> _ServerMessage:
    """Decode a line. Raises OSError if there is none, DecodeError."""
    if not line.endswith(b"\n"):
        raise ConnectionError("the relay has ended")
    return _DECODER.decode(line)


def _records(hello: _ServerMessage, place: RecordedSession) -> bool:
    if not isinstance(hello, Hello) or hello.version != VERSION or hello.session != place[1]:
        return False
    with suppress(OSError):
        return os.path.samefile(hello.database, place[0])
    return False


async def _connected(database: str) -> socket.socket | None:
    """Connect in a thread; if cancelled meanwhile, the connection is closed."""
    connecting = asyncio.ensure_future(asyncio.to_thread(_connect, database))
    try:
        return await asyncio.shield(connecting)
    except asyncio.CancelledError:
        connecting.add_done_callback(_close_unused)
        raise


def _close_unused(connecting: asyncio.Future[socket.socket | None]) -> None:
    found = connecting.result() if not connecting.cancelled() and connecting.exception() is None else None
    if found is not None:
        found.close()


def _connect(database: str) -> socket.socket | None:
    """Connect to the relay that records into a database, or into one that this continues."""
    file = Path(database).absolute()
    names = [file]
    if rotated := _ROTATED.fullmatch(file.stem):
        names.append(file.with_name(rotated["stem"] + file.suffix))
    for name in names:
        with closing(private_folders(name)) as found:
            for folder, descriptor in found:
                with suppress(OSError):
                    return _connect_in(folder, descriptor)
    return None


def _connect_in(folder: Path, descriptor: int) -> socket.socket:
    """Connect to the socket in a folder of this user. Raises OSError."""
    there = os.stat(CONTROL_SOCKET, dir_fd=descriptor, follow_symlinks=False)
    if not stat.S_ISSOCK(there.st_mode) or there.st_uid != os.geteuid():
        raise PermissionError("it is not ours")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(CLIENT_TIMEOUT_S)
        made.connect(socket_address(folder, descriptor))
    except BaseException:
        made.close()
        raise
    return made
