"""ImpliedBy what a relay holds, and acts on it: the other end of the socket that `hands` tells of.

Which socket that is follows from the database: the folder of the recording's journal lies beside it. Only a
folder and a socket that are ours alone are entered. Where there is none nothing is held, and nothing is said.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import msgspec

from kiebitz.services.alteration.control_server import (
    MOST_LINE,
    PATIENCE_S,
    VERSION,
    Act,
    HandsError,
    HeldMessage,
    Hello,
    Reply,
    Request,
    Waiting,
    address_in,
)
from kiebitz.services.recording.journal_folder import HANDS, folders

Place = tuple[str, int]
"""A database, and the number of a session in it."""

_AGAIN_S = 0.5
_SHARE = 20
"""So often it is looked whether there is a socket; of a core that takes so small a share at most."""

_ROTATED = re.compile(r"(?P<stem>.*)_\d{5}_\d{14}")
"""The name of a database that carries on another recording; see `kiebitz.services.recording.rotation`."""

_PIECE = 1 << 16

_Said = Hello | Waiting | Reply

_SAID: msgspec.json.Decoder[_Said] = msgspec.json.Decoder(_Said)


class NoAnswerError(HandsError):
    """Nobody knows whether it was done."""


class Held(msgspec.Struct, frozen=True):
    """What waits: its messages, how many more there are, and the relay's clock when `heard_s` was ours."""

    messages: Sequence[HeldMessage] = ()
    more: int = 0
    now_ns: int = 0
    heard_s: float = 0.0

    def __len__(self) -> int:
        return len(self.messages) + self.more

    def waited_ns(self, message: HeldMessage) -> int:
        """How long a message has waited by now."""
        since_ns = int((time.monotonic() - self.heard_s) * 1e9)
        return max(self.now_ns + since_ns - message.since_ns, 0)

    def is_overdue(self, message: HeldMessage) -> bool:
        """Whether it has waited longer than somebody waits for it."""
        return message.bears_ns is not None and self.waited_ns(message) > message.bears_ns


class HandsClient:
    """ImpliedBy what is held, in a thread of its own, from `start` to `stop`.

    `place` says which session that is about, None for none; it is asked again and again. `held` is what waits
    now, None where nothing can be held; `changes` counts up when it is another.
    """

    def __init__(self, place: Callable[[], Place | None]) -> None:
        self._place = place
        self.held: Held | None = None
        self.changes = 0
        self._guard = threading.Lock()
        self._asked: dict[int, Future[None]] = {}
        self._numbers = count(1)
        self._socket: socket.socket | None = None
        self._looked_s = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hands", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; what is asked is not answered any more."""
        self._stopped.set()
        with self._guard:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def ask(self, do: Act, number: int | None = None, text: str = "") -> Future[None]:
        """Have something done. The future raises HandsError with the reason if it was not."""
        future: Future[None] = Future()
        # Who waits for it no more takes nothing back.
        future.set_running_or_notify_cancel()
        with self._guard:
            if self._socket is None:
                future.set_exception(HandsError("nothing is held any more: the relay has ended"))
                return future
            request = Request(next(self._numbers), do, number, text)
            line = msgspec.json.encode(request) + b"\n"
            if len(line) > MOST_LINE:
                future.set_exception(HandsError(f"this has more than {MOST_LINE} bytes"))
                return future
            self._asked[request.id] = future
            try:
                self._socket.sendall(line)
            except OSError as error:
                del self._asked[request.id]
                future.set_exception(HandsError(f"the relay does not hear: {error.strerror or error}"))
        return future

    async def have_done(self, do: Act, number: int | None = None, text: str = "") -> None:
        """Have something done, and wait until it is. Raises HandsError; NoAnswerError if nobody says."""
        try:
            await asyncio.wait_for(asyncio.wrap_future(self.ask(do, number, text)), PATIENCE_S)
        except TimeoutError:
            raise NoAnswerError(f"the relay has not answered for {PATIENCE_S:g} s") from None

    # In the thread.

    def _run(self) -> None:
        while not self._stopped.is_set():
            with suppress(OSError, msgspec.DecodeError, RecursionError):
                self._follow()
            self._stopped.wait(max(_AGAIN_S, self._looked_s * _SHARE))

    def _follow(self) -> None:
        """Follow the socket that there is now, as long as it is there. Raises OSError, DecodeError."""
        place, begun_s = self._place(), time.monotonic()
        found = _connected(place[0]) if place is not None else None
        self._looked_s = time.monotonic() - begun_s
        if place is None or found is None:
            return
        found.settimeout(PATIENCE_S)
        with closing(found), closing(found.makefile("rb", _PIECE)) as file:
            hello = _said(file.readline(MOST_LINE))
            if not _is_of(hello, place):
                return
            with self._guard:
                if self._stopped.is_set():
                    return
                self._socket = found
            try:
                # It is silent as long as nothing changes, but takes what is asked.
                found.settimeout(None)
                found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(PATIENCE_S), 0))
                self._hear(file.readline, place)
            finally:
                self._leave()

    def _hear(self, readline: Callable[[int], bytes], place: Place) -> None:
        while line := readline(MOST_LINE):
            said = _said(line)
            if isinstance(said, Waiting):
                self._take(Held(said.held, said.more, said.now_ns, time.monotonic()))
            elif isinstance(said, Reply) and said.id is not None:
                future = self._asked.pop(said.id, None)
                if future is not None and said.refusal is None:
                    future.set_result(None)
                elif future is not None:
                    future.set_exception(HandsError(said.refusal or ""))
            if self._place() != place:
                return

    def _take(self, held: Held | None) -> None:
        self.held = held
        self.changes += 1

    def _leave(self) -> None:
        with self._guard:
            self._socket = None
            asked = [*self._asked.values()]
            self._asked.clear()
        for future in asked:
            future.set_exception(HandsError("the relay has ended before it answered"))
        self._take(None)


def _said(line: bytes) -> _Said:
    """What a line says. Raises OSError where there is none, DecodeError."""
    if not line.endswith(b"\n"):
        raise ConnectionError("the relay has ended")
    return _SAID.decode(line)


def _is_of(hello: _Said, place: Place) -> bool:
    """Whether this is the recording of that session."""
    if not isinstance(hello, Hello) or hello.version != VERSION or hello.session != place[1]:
        return False
    with suppress(OSError):
        return os.path.samefile(hello.database, place[0])
    return False


def _connected(database: str) -> socket.socket | None:
    """The socket of a relay that records into a database, or into one that this carries on."""
    file = Path(database).absolute()
    names = [file]
    if rotated := _ROTATED.fullmatch(file.stem):
        names.append(file.with_name(rotated["stem"] + file.suffix))
    for name in names:
        with closing(folders(name)) as found:
            for folder, descriptor in found:
                with suppress(OSError):
                    return _entered(folder, descriptor)
    return None


def _entered(folder: Path, descriptor: int) -> socket.socket:
    """The socket in a folder that is ours alone. Raises OSError."""
    there = os.stat(HANDS, dir_fd=descriptor, follow_symlinks=False)
    if not stat.S_ISSOCK(there.st_mode) or there.st_uid != os.geteuid():
        raise PermissionError("it is not ours")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(PATIENCE_S)
        made.connect(address_in(folder, descriptor))
    except BaseException:
        made.close()
        raise
    return made
