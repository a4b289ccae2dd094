"""The control socket of a relay that holds messages: viewers decide through it about held messages.

A Unix stream socket named `hands`, in the folder of the recording's journal (`services/supervision/`), which
no other user can enter. Both sides send JSON, an object a line, each at most `MOST_LINE` bytes.

The relay says, with `type` for which of them it is:

- `hello`, once, at first: `version` of this protocol, and the `database` (its whole path) and `session` that
  are recorded now.
- `waiting`, at first and whenever it has changed: `held` has what waits, oldest first, each a `HeldMessage`,
  of which `data` is written in base64; `more` is how many do not fit in besides. `now_ns` is the relay's
  clock. Of changes in quick succession only the last is told. Where a message is too long for a line, its
  `fields` or its `data` are left out, and `is_whole` is false.
- `reply`, to each request, by its `id`: `refusal` is a sentence that says why it was not done, or null. If it
  has changed what waits, that is told before.

The other side sends requests: an `id` of its own choice, `do`, and for one message its `number`, and `text`:

    {"id": 1, "do": "let-go", "number": 7}           drop likewise
    {"id": 2, "do": "change", "number": 7, "text": "dice=2,1"}
    {"id": 3, "do": "answer", "number": 7, "text": "REJECTED"}
    {"id": 4, "do": "let-all-go"}                    drop-all likewise

What is no request is answered with a refusal whose `id` is null. Everybody is told the same. Of two who act
on one message the second is refused. Who does not read for `PATIENCE_S`, or sends a longer line, is dropped.
Nothing that comes here can stop the relay.
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

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Direction
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.faults import fault
from kiebitz.services.supervision.journal_folder import HANDS

VERSION = 1

MOST_LINE = 1 << 18
"""A line of the protocol has no more bytes."""

MOST_WATCHERS = 16
"""So many watch at once; one more is dropped at once."""

PATIENCE_S = 5.0
"""So long somebody may leave unread what was sent."""

_MOST_MESSAGE = MOST_LINE // 4
"""A message that takes more is told without its bytes, and then without its fields."""

_PAUSE_S = 0.05
_SHARE = 20
"""What changes more quickly than this is told at once; of a core telling takes so small a share at most."""

_LONGEST_PATH = 100
"""What systems take for the name of a socket (bytes)."""

Act = Literal["let-go", "drop", "change", "answer", "let-all-go", "drop-all"]
FOR_ALL: frozenset[Act] = frozenset({"let-all-go", "drop-all"})
"""What is done to everything that waits."""


class HeldMessage(msgspec.Struct, frozen=True):
    """A message that waits, by its `number`, since `since_ns`, as `rule` has it.

    `stream` is its number in the database; `who` is what its client calls itself. `bears_ns` is how long it
    is awaited, or an answer to it, by its protocol; None if that says nothing.
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


class Holding(Protocol):
    """Held messages. `on_change` is called when the list has changed."""

    on_change: Callable[[], None]

    def held(self) -> Sequence[HeldMessage]:
        """Return all held messages, oldest first."""

    def act(self, do: Act, number: int, text: str) -> None:
        """Carry out a request.

        Raises KeyError if the message is not held any more, AssignmentError if `text` does not fit.
        """


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """Who is there: what is recorded now."""

    version: int
    database: str
    session: int


class Waiting(msgspec.Struct, frozen=True, tag="waiting"):
    """What waits."""

    held: list[HeldMessage]
    more: int
    now_ns: int


class Reply(msgspec.Struct, frozen=True, tag="reply"):
    """What became of a request."""

    id: int | None
    refusal: str | None


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody wants to be done."""

    id: int
    do: Act
    number: int | None = None
    text: str = ""


class ControlError(KiebitzError):
    """Nobody can act by hand; the sentence says why."""


class ControlServer:
    """The socket in `folder`, from when it is made, and those who watch, from `attend` to `leave`.

    `session` gives what is recorded now, as `DB:N`. Raises ControlError where there can be no socket.
    """

    def __init__(self, holding: Holding, folder: Path, session: Callable[[], str]) -> None:
        self._holding = holding
        self._folder = folder
        self._session = session
        self._watchers: dict[_Watcher, asyncio.Task[None]] = {}
        self._server: asyncio.Task[asyncio.Server] | None = None
        self._written: dict[int, bytes] = {}
        self._list: bytes | None = None
        self._socket = _bound(folder)
        holding.on_change = self._changed

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let watchers in, on this loop."""
        self._server = loop.create_task(
            asyncio.start_unix_server(self._come, sock=self._socket, limit=MOST_LINE)
        )

    def leave(self) -> None:
        """Let them go. What waits is not touched: that is the relay's to let go or to drop."""
        self._holding.on_change = _nothing
        for task in self._watchers.values():
            task.cancel()
        if self._server is not None:
            if self._server.done() and self._server.exception() is None:
                self._server.result().close()
            self._server.cancel()
        self.close()

    def close(self) -> None:
        """Give the socket back; enough where nobody was let in."""
        self._socket.close()
        with suppress(OSError):
            os.unlink(self._folder / HANDS)

    def waiting(self) -> bytes:
        """What waits, as a line; made once for all who are told."""
        if self._list is None:
            held = self._holding.held()
            self._written = {
                message.number: self._written.get(message.number) or _written(message) for message in held
            }
            rest = MOST_LINE - 200
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
        """Do what a line asks for; gives the reply."""
        try:
            request = _REQUESTS.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            return _line(Reply(None, f"this is no request: {error}"))
        refusal = None
        try:
            if request.number is None and request.do not in FOR_ALL:
                raise ControlError(f"{request.do} goes with the number of a message")
            self._holding.act(request.do, request.number or 0, request.text)
        except KeyError:
            refusal = f"message {request.number} does not wait any more: it was let go or dropped meanwhile"
        except KiebitzError as error:
            refusal = str(error)
        except Exception as error:
            # What nothing has foreseen ends a relay no more than anything else that comes here.
            refusal = fault(error)
        return _line(Reply(request.id, refusal))

    def _changed(self) -> None:
        self._list = None
        for watcher in self._watchers:
            watcher.changed()

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._watchers) >= MOST_WATCHERS:
            writer.transport.abort()
            return
        watcher = _Watcher(self, reader, writer)
        self._watchers[watcher] = task
        try:
            database, _, session = self._session().rpartition(":")
            await watcher.serve(_line(Hello(VERSION, os.path.abspath(database), int(session))))
        except (OSError, TimeoutError, asyncio.CancelledError):
            # It is gone, does not read, or the relay ends.
            pass
        finally:
            del self._watchers[watcher]
            writer.transport.abort()


class _Watcher:
    """One that is told, and asks. Of the list only the latest waits for it, of replies one."""

    def __init__(
        self, server: ControlServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._has_changed = asyncio.Event()
        self._has_changed.set()
        # So `drain` waits until all is taken.
        writer.transport.set_write_buffer_limits(high=0)
        self._turn = asyncio.Lock()

    def changed(self) -> None:
        """What waits is another list."""
        self._has_changed.set()

    async def serve(self, hello: bytes) -> None:
        """Until it leaves. Raises OSError, TimeoutError."""
        await self._send(hello)
        telling = asyncio.ensure_future(self._tell())
        hearing = asyncio.ensure_future(self._hear())
        try:
            done, _ = await asyncio.wait((telling, hearing), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            telling.cancel()
            hearing.cancel()

    async def _tell(self) -> None:
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
                sentence = f"a line has more than {MOST_LINE} bytes: nothing more is read"
                await self._send(_line(Reply(None, sentence)))
                return
            if not line.endswith(b"\n"):
                return
            reply = self._server.done(line)
            if self._has_changed.is_set():
                self._has_changed.clear()
                reply = self._server.waiting() + reply
            await self._send(reply)
            # Who asks without end does not keep the relay from its bytes.
            await asyncio.sleep(0)

    async def _send(self, line: bytes) -> None:
        async with self._turn:
            self._writer.write(line)
            async with asyncio.timeout(PATIENCE_S):
                await self._writer.drain()


_REQUESTS = msgspec.json.Decoder(Request)


def _nothing() -> None:
    """Nobody is to be told any more."""


def _line(said: Any) -> bytes:
    return msgspec.json.encode(said) + b"\n"


def _written(message: HeldMessage) -> bytes:
    """A message as it is told."""
    for left_out in ({}, {"data": b""}, {"data": b"", "fields": {}}):
        shown = msgspec.structs.replace(message, **left_out, is_whole=not left_out)
        written = msgspec.json.encode(shown)
        if len(written) <= _MOST_MESSAGE:
            break
    return written


def _bound(folder: Path) -> socket.socket:
    """A socket in a folder, however long its path is."""
    place = f"{folder}/{HANDS}"
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(address_in(folder, descriptor))
        os.chmod(place, 0o600)
        made.setblocking(False)
    except OSError as error:
        made.close()
        why = "its path is too long" if error.errno == errno.ENAMETOOLONG else error.strerror or error
        raise ControlError(f"{place}: there can be no socket to act on what is held by: {why}") from error
    finally:
        os.close(descriptor)
    return made


def address_in(folder: Path, descriptor: int) -> str:
    """The address of the socket in a folder that is open as `descriptor`. Raises OSError if there is none."""
    place = f"{folder}/{HANDS}"
    if len(os.fsencode(place)) <= _LONGEST_PATH:
        return place
    short = f"/proc/self/fd/{descriptor}/{HANDS}"
    if not os.path.exists(os.path.dirname(short)):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return short
