"""The control socket of a relay that holds messages: viewers follow and decide about them through it.

A Unix stream socket named `hands`, in the folder of the recording's journal (`services/supervision/`), which
other users cannot enter. Both sides send JSON, one object per line, each at most `MAX_LINE_BYTES` bytes.

The relay sends objects of three kinds, distinguished by `type`:

- `hello`, once, at first: `version` of this protocol, and the `database` (its absolute path) and `session`
  being recorded.
- `waiting`, at first and after each change: `held` has the held messages, oldest first, each a `HeldMessage`
  with `data` in base64; `more` is the number of those that do not fit in. `now_ns` is the relay's clock. Of
  changes in quick succession only the last is sent. Where a message is too long for a line, its `fields` or
  its `data` are left out, and `is_whole` is false.
- `reply`, to each request, by its `id`: `refusal` is a sentence with the reason if it was refused, else null.
  If the request has changed the held messages, `waiting` is sent before.

The client sends requests: an `id` of its own choice, `do`, and for one message its `number`, and `text`:

    {"id": 1, "do": "let-go", "number": 7}           "drop" has the same form
    {"id": 2, "do": "change", "number": 7, "text": "dice=2,1"}
    {"id": 3, "do": "answer", "number": 7, "text": "REJECTED"}
    {"id": 4, "do": "let-all-go"}                    "drop-all" has the same form

An invalid request is answered with a refusal whose `id` is null. All clients get the same. If two act on one
message, the second is refused. A client that does not read for `CLIENT_TIMEOUT_S`, or sends a longer line, is
dropped. No input can stop the relay.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.model import Direction
from kiebitz.proxy.system.clock import now_ns
from kiebitz.proxy.system.safe_files import open_folder
from kiebitz.services.supervision.journal_folder import CONTROL_SOCKET

VERSION = 1

MAX_LINE_BYTES = 1 << 18
"""Maximum length of a line of the protocol, in bytes."""

MAX_CLIENTS = 16
"""Maximum number of clients; a further one is dropped at once."""

CLIENT_TIMEOUT_S = 5.0
"""Time limit (seconds) for a client to read what was sent, and for the relay to reply."""

_MAX_MESSAGE_BYTES = MAX_LINE_BYTES // 4
"""Maximum size of a message, in bytes; a larger one is sent without its bytes, then without its fields."""

_PAUSE_S = 0.05
_SHARE = 20
"""Minimum time (seconds) between two updates; they take at most a twentieth of a core."""

_MAX_PATH_BYTES = 100
"""Maximum length of a socket's path on all systems, in bytes."""

Act = Literal["let-go", "drop", "change", "answer", "let-all-go", "drop-all"]
FOR_ALL: frozenset[Act] = frozenset({"let-all-go", "drop-all"})
"""Actions on all held messages."""


class HeldMessage(msgspec.Struct, frozen=True):
    """A message held since `since_ns` by `rule`; `number` identifies it.

    `stream` is its number in the database; `who` is the name of its client. `bears_ns` is the protocol's
    timeout for the message or its answer, None if there is none.
    """

    number: int
    stream: int
    direction: Direction
    client: str
    server: str
    who: str | None
    protocol: str
    name: str
    fields: dict[str, Any]
    since_ns: int
    rule: str
    data: bytes
    bears_ns: int | None
    is_whole: bool = True


class HeldMessageStore(Protocol):
    """Held messages. `on_change` is called when the list has changed."""

    on_change: Callable[[], None]

    def held(self) -> Sequence[HeldMessage]:
        """Return all held messages, oldest first."""

    def act(self, do: Act, number: int, text: str) -> None:
        """Carry out a request.

        Raises KeyError if the message is not held any more, AssignmentError if `text` does not fit.
        """


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """The session being recorded."""

    version: int
    database: str
    session: int


class Waiting(msgspec.Struct, frozen=True, tag="waiting"):
    """The held messages."""

    held: list[HeldMessage]
    more: int
    now_ns: int


class Reply(msgspec.Struct, frozen=True, tag="reply"):
    """The outcome of a request."""

    id: int | None
    refusal: str | None


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An action on held messages."""

    id: int
    do: Act
    number: int | None = None
    text: str = ""


class ControlError(KiebitzError):
    """A request cannot be carried out; the sentence says why."""


class ControlServer:
    """The socket in `folder`, which accepts clients from `attend` to `leave`.

    `session` returns the session being recorded, as `DB:N`. Raises ControlError if there can be no socket.
    """

    def __init__(self, holding: HeldMessageStore, folder: Path, session: Callable[[], str]) -> None:
        self._holding = holding
        self._folder = folder
        self._session = session
        self._watchers: dict[_Client, asyncio.Task[None]] = {}
        self._server: asyncio.Task[asyncio.Server] | None = None
        self._written: dict[int, bytes] = {}
        self._list: bytes | None = None
        self._socket = _bind(folder)
        holding.on_change = self._changed

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        """Accept clients on this loop."""
        self._server = loop.create_task(self._listen())

    async def _listen(self) -> asyncio.Server:
        # Since Python 3.13 loops remove the socket, and look for it at its address, which may begin with a
        # descriptor that is closed by now. Older ones do not know the argument.
        arguments: tuple[dict[str, Any], ...] = ({"cleanup_socket": False}, {})
        for more in arguments:
            with suppress(TypeError):
                return await asyncio.start_unix_server(
                    self._come, sock=self._socket, limit=MAX_LINE_BYTES, **more
                )
        raise AssertionError("an event loop that listens on no socket")

    def leave(self) -> None:
        """Drop the clients. Held messages are left to the relay."""
        self._holding.on_change = lambda: None
        for task in self._watchers.values():
            task.cancel()
        if self._server is not None:
            if self._server.done() and self._server.exception() is None:
                self._server.result().close()
            self._server.cancel()
        self.close()

    def close(self) -> None:
        """Close and remove the socket; sufficient if no client was accepted."""
        self._socket.close()
        with suppress(OSError):
            os.unlink(self._folder / CONTROL_SOCKET)

    def waiting(self) -> bytes:
        """Return the held messages as a line, encoded once for all clients."""
        if self._list is None:
            held = self._holding.held()
            self._written = {
                message.number: self._written.get(message.number) or _encode(message) for message in held
            }
            rest = MAX_LINE_BYTES - 200
            shown: list[msgspec.Raw] = []
            for message in held:
                written = self._written[message.number]
                rest -= len(written) + 1
                if rest < 0:
                    break
                shown.append(msgspec.Raw(written))
            told = {"type": "waiting", "held": shown, "more": len(held) - len(shown), "now_ns": now_ns()}
            self._list = _line(told)
        return self._list

    def done(self, line: bytes) -> bytes:
        """Carry out the request in a line; return the reply."""
        try:
            request = _REQUESTS.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            return _line(Reply(None, f"invalid request: {error}"))
        refusal = None
        try:
            if request.number is None and request.do not in FOR_ALL:
                raise ControlError(f"{request.do} needs the number of a message")
            self._holding.act(request.do, request.number or 0, request.text)
        except KeyError:
            refusal = f"message {request.number} is no longer held: it was forwarded or dropped"
        except KiebitzError as error:
            refusal = str(error)
        except Exception as error:
            # No request may stop the relay, not even by an unforeseen error.
            refusal = fault(error)
        return _line(Reply(request.id, refusal))

    def _changed(self) -> None:
        self._list = None
        for watcher in self._watchers:
            watcher.changed()

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._watchers) >= MAX_CLIENTS:
            writer.transport.abort()
            return
        watcher = _Client(self, reader, writer)
        self._watchers[watcher] = task
        try:
            database, _, session = self._session().rpartition(":")
            await watcher.serve(_line(Hello(VERSION, os.path.abspath(database), int(session))))
        except (OSError, TimeoutError, asyncio.CancelledError):
            # The client has gone or does not read, or the relay ends.
            pass
        finally:
            del self._watchers[watcher]
            writer.transport.abort()


class _Client:
    """A client. Only the latest list is queued for it, and one reply."""

    def __init__(
        self, server: ControlServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._has_changed = asyncio.Event()
        self._has_changed.set()
        # Makes `drain` wait until everything is written.
        writer.transport.set_write_buffer_limits(high=0)
        self._turn = asyncio.Lock()

    def changed(self) -> None:
        self._has_changed.set()

    async def serve(self, hello: bytes) -> None:
        """Serve the client until it leaves. Raises OSError, TimeoutError."""
        await self._send(hello)
        telling = asyncio.ensure_future(self._notify())
        hearing = asyncio.ensure_future(self._hear())
        try:
            done, _ = await asyncio.wait((telling, hearing), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            telling.cancel()
            hearing.cancel()

    async def _notify(self) -> None:
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            begun_s = time.monotonic()
            line = self._server.waiting()
            took_s = time.monotonic() - begun_s
            await self._send(line)
            await asyncio.sleep(max(_PAUSE_S, took_s * _SHARE))

    async def _hear(self) -> None:
        while True:
            try:
                line = await self._reader.readline()
            except ValueError:
                sentence = f"a line is longer than {MAX_LINE_BYTES} bytes: the connection is closed"
                await self._send(_line(Reply(None, sentence)))
                return
            if not line.endswith(b"\n"):
                return
            reply = self._server.done(line)
            if self._has_changed.is_set():
                self._has_changed.clear()
                reply = self._server.waiting() + reply
            await self._send(reply)
            # A client that floods requests must not keep the relay from forwarding.
            await asyncio.sleep(0)

    async def _send(self, line: bytes) -> None:
        async with self._turn:
            self._writer.write(line)
            async with asyncio.timeout(CLIENT_TIMEOUT_S):
                await self._writer.drain()


_REQUESTS = msgspec.json.Decoder(Request)


def _line(said: Any) -> bytes:
    return msgspec.json.encode(said) + b"\n"


def _encode(message: HeldMessage) -> bytes:
    """Encode a message, leaving out what is too long."""
    for left_out in ({}, {"data": b""}, {"data": b"", "fields": {}}):
        shown = msgspec.structs.replace(message, **left_out, is_whole=not left_out)
        written = msgspec.json.encode(shown)
        if len(written) <= _MAX_MESSAGE_BYTES:
            break
    return written


def _bind(folder: Path) -> socket.socket:
    """Return a socket bound in a folder, whatever the length of its path. Raises ControlError."""
    place = f"{folder}/{CONTROL_SOCKET}"
    descriptor = open_folder(folder)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(socket_address(folder, descriptor))
        os.chmod(place, 0o600)
        made.setblocking(False)
    except OSError as error:
        made.close()
        why = "its path is too long" if error.errno == errno.ENAMETOOLONG else error.strerror or error
        raise ControlError(f"{place}: cannot create the socket for held messages: {why}") from error
    finally:
        os.close(descriptor)
    return made


def socket_address(folder: Path, descriptor: int) -> str:
    """Return the address of the socket in a folder that is open as `descriptor`. Raises OSError."""
    place = f"{folder}/{CONTROL_SOCKET}"
    if len(os.fsencode(place)) <= _MAX_PATH_BYTES:
        return place
    short = f"/proc/self/fd/{descriptor}/{CONTROL_SOCKET}"
    if not os.path.exists(os.path.dirname(short)):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return short
