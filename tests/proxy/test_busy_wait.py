"""Between dense messages the loop stays awake, else it sleeps."""

from __future__ import annotations

import asyncio

import pytest

from kiebitz.proxy.relay import busy_wait as busy_wait_module
from kiebitz.proxy.relay.busy_wait import BUSY_WAIT_NS, DENSE_NS, BusyWait

BEGIN_NS = 1_000_000_000
POLLS = 3
"""The number of polls of a wait here, where each takes as long as this part of it."""


@pytest.mark.parametrize(
    ("intervals_ns", "polls"),
    [
        ((), 0),
        ((DENSE_NS,), 0),
        ((DENSE_NS - 1,), POLLS),
        ((1_000, 1_000, 1_000), POLLS),
        ((1_000, DENSE_NS), POLLS),
    ],
)
def test_the_loop_stays_awake_only_between_dense_messages(
    intervals_ns: tuple[int, ...], polls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = BEGIN_NS
    looked = 0

    def look_at_clock() -> int:
        nonlocal now, looked
        looked += 1
        now += BUSY_WAIT_NS // POLLS
        return now

    async def forward() -> None:
        nonlocal now
        waiting = BusyWait(asyncio.get_running_loop())
        waiting.message_forwarded(now)
        for interval_ns in intervals_ns:
            now += interval_ns
            waiting.message_forwarded(now)
        await asyncio.sleep(0.01)

    monkeypatch.setattr(busy_wait_module, "now_ns", look_at_clock)
    asyncio.run(forward())
    assert looked == polls
