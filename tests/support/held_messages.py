"""Messages held by a relay that is not there: the engine's side of the control socket, made up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
import uvloop

from kiebitz.dissectors.editing.assignment_parser import parse_assignments, split_name
from kiebitz.dissectors.editing.message_encoding import edit_message, encode_new
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.registry import dissector_of
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.alteration.control_client import ControlClient
from kiebitz.services.alteration.control_server import FOR_ALL, Act, ControlServer, HeldMessage
from kiebitz.services.supervision.journal_folder import JournalFolder

QUICK_S = 10.0
"""Time limit for what takes no time."""


class MadeUp:
    """Holds what it is given to hold, and notes what was done: as `done` has it, in words."""

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.done: list[tuple[Any, ...]] = []
        self._held: dict[int, HeldMessage] = {}

    def hold(self, message: HeldMessage) -> None:
        self._held[message.number] = message
        self.on_change()

    def held(self) -> Sequence[HeldMessage]:
        return [*self._held.values()]

    def act(self, do: Act, number: int, text: str) -> None:
        done: list[Any] = [do.replace("-", " ")]
        if do in FOR_ALL:
            done += self._held
            self._held.clear()
        else:
            message = self._held[number]
            done.append(number)
            if do in ("change", "answer"):
                done.append(self._encoded(do, message, text))
            if do != "answer":
                del self._held[number]
        self.done.append(tuple(done))
        if do != "answer":
            self.on_change()

    @staticmethod
    def _encoded(do: Act, message: HeldMessage, text: str) -> bytes:
        dissector = dissector_of(message.protocol)
        assert dissector is not None
        if do == "change":
            return edit_message(dissector, message.data, message.direction, parse_assignments(text))
        name, rest = split_name(text)
        return encode_new(dissector, name, [OPPOSITE[message.direction]], parse_assignments(rest))[1]


def held_message(
    number: int,
    data: bytes = b"ANNOUNCE;4,2;token",
    direction: Direction = "c2s",
    *,
    protocol: str = "maexchen",
    waited_s: float = 0.0,
    **more: Any,
) -> HeldMessage:
    """A message that waits; what is not said of it follows from its bytes."""
    dissector = dissector_of(protocol)
    assert dissector is not None
    decoded = dissector.codec.decode(data, direction)
    assert decoded.row is not None
    bears_s = dissector.conformance.timeouts.get(decoded.row.name)
    encode_new = HeldMessage(
        number=number,
        stream=1,
        direction=direction,
        client="127.0.0.1:40000",
        server="127.0.0.1:9000",
        who="alice",
        protocol=protocol,
        name=decoded.row.name,
        fields=decoded.fields,
        since_ns=now_ns() - int(waited_s * 1e9),
        rule="--hold 'msg == \"ANNOUNCE\"'",
        data=data,
        bears_ns=None if bears_s is None else int(bears_s * 1e9),
    )
    return msgspec.structs.replace(encode_new, **more)


class Follower(ControlClient):
    """A client with a loop in a thread of its own, for tests without one."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._running = asyncio.run_coroutine_threadsafe(self.run(), self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.cancel()
        asyncio.run_coroutine_threadsafe(self._loop.shutdown_default_executor(), self._loop).result(QUICK_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(QUICK_S)
        self._loop.close()

    def act(self, do: Act, number: int | None = None, text: str = "") -> None:
        """Send a request and wait for the reply."""
        asyncio.run_coroutine_threadsafe(self.ask(do, number, text), self._loop).result(QUICK_S)


class Relay:
    """What a relay has of it: a loop in a thread, an engine, and the socket beside a database."""

    def __init__(self, engine: MadeUp, spool: JournalFolder, session: Callable[[], str]) -> None:
        self.engine = engine
        self.spool = spool
        self.hands = ControlServer(engine, spool.folder, session)
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        # As `proxy.forwarder.run_relay` does it.
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self.hands.attend(self._loop)
        self._begun.set()
        try:
            await self._stopped.wait()
        finally:
            self.hands.leave()

    def begin(self) -> None:
        self._thread.start()
        self._begun.wait(10)

    def end(self) -> None:
        """As when the relay ends."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(10)

    def hold(self, *messages: HeldMessage) -> None:
        """Hold them from now on."""

        def hold() -> None:
            for message in messages:
                self.engine.hold(message)

        self.do(hold)

    def do(self, deed: Callable[[], object]) -> None:
        """Have something done on its loop, as by itself."""
        self._loop.call_soon_threadsafe(deed)


@contextmanager
def holding(database: Path | str, session: int = 1, engine: MadeUp | None = None) -> Iterator[Relay]:
    """A relay that records into a database, and holds messages."""
    spool = JournalFolder(Path(database).absolute())
    try:
        relay = Relay(engine or MadeUp(), spool, lambda: f"{database}:{session}")
        relay.begin()
        try:
            yield relay
        finally:
            relay.end()
    finally:
        spool.discard()
