"""A hook's process driven without a relay: its requests, answers and notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from processes_and_rows import PATIENCE_S

from kiebitz.dissectors.model import Direction
from kiebitz.services.alteration.hook_process import HookProcess
from kiebitz.services.alteration.hook_protocol import Outcome

CLIENT, SERVER = "127.0.0.1:40001", "127.0.0.1:9000"

Answers = dict[int, Sequence[Outcome] | None]


class Hooked:
    """A hook that is attended on a loop of its own; its stream 1 is Mäxchen's."""

    def __init__(self, process: HookProcess, told: list[str], loop: asyncio.AbstractEventLoop) -> None:
        self.process = process
        self.told = told
        self.answers: Answers = {}
        self.order: list[int] = []
        self._loop = loop
        self._asked = 0
        self._offsets: dict[tuple[int, Direction], int] = {}
        self._now_ns = 1_700_000_000_000_000_000
        process.on_answer = self._answered
        process.attend(loop)

    def _answered(self, ticket: int, outcomes: Sequence[Outcome] | None) -> None:
        assert ticket not in self.answers
        self.answers[ticket] = outcomes
        self.order.append(ticket)

    def asked(
        self, frame: bytes, direction: Direction = "s2c", number: int = 1, protocol: str = "maexchen"
    ) -> int | None:
        """Ask about a message; gives the ticket, None if it is to pass as it is."""
        self._asked += 1
        self._now_ns += 1_000_000
        is_asked = self.process.ask(self._asked, number, direction, self._now_ns, protocol, frame)
        return self._asked if is_asked else None

    def says(
        self, frame: bytes, direction: Direction = "s2c", number: int = 1
    ) -> list[tuple[Direction, bytes, int, bool]] | None:
        """Return the data to forward for a message: direction, bytes, delay in ms, and if it is unchanged."""
        ticket = self.asked(frame, direction, number)
        if ticket is None:
            return None
        self.until_answered(ticket)
        found = self.answers[ticket]
        if found is None:
            return None
        return [(one.direction, one.data, one.delay_ns // 1_000_000, one.is_same) for one in found]

    def passes(self, frame: bytes, direction: Direction = "s2c", number: int = 1) -> None:
        """Bytes are passed on."""
        self._now_ns += 1_000_000
        offset = self._offsets.get((number, direction), 0)
        self._offsets[number, direction] = offset + len(frame)
        self.process.passed_on(number, direction, self._now_ns, offset, frame)

    def misses(self, length: int, direction: Direction = "s2c", number: int = 1) -> None:
        """Forward bytes without calling the hook."""
        self._offsets[number, direction] = self._offsets.get((number, direction), 0) + length

    def until_answered(self, ticket: int) -> None:
        self.until(lambda: ticket in self.answers)

    def until(self, true: Callable[[], bool]) -> None:
        """Run the loop until a condition holds."""

        async def wait() -> None:
            while not true():
                await asyncio.sleep(0.001)

        self._loop.run_until_complete(asyncio.wait_for(wait(), PATIENCE_S))


@contextmanager
def hooked(
    folder: Path, source: str | bytes | None, *, is_forced: bool = False, name: str = "hooks.py"
) -> Iterator[Hooked]:
    """Yield a hook made of this source, with stream 1 open; it is left at the end."""
    path = folder / name
    if source is not None:
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
    told: list[str] = []
    process = HookProcess(str(path), tell=told.append, is_forced=is_forced)
    loop = asyncio.new_event_loop()
    try:
        process.start()
        process.opened(1, "udp", CLIENT, SERVER)
        hook = Hooked(process, told, loop)
        yield hook
        process.leave()
    finally:
        process.discard()
        loop.close()
