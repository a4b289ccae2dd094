"""The computer's clock is set back by an hour while a game is relayed.

Between dense messages the loop stays awake, else it sleeps. A capture in which the clock was set back is in
`tests/data/commands/disorder.txt`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from maexchen_programs import Player, Server, play
from mitmproxy_live import assert_recorded
from processes_and_rows import free_port, rows, running
from recording_relays import recorded, relaying, round_trips
from strength import a_few
from udp_relays import eventually

from kiebitz.proxy.journal.follower import start_child, start_fork
from kiebitz.proxy.relay import busy_wait as busy_wait_module
from kiebitz.proxy.relay.busy_wait import BUSY_WAIT_NS, DENSE_NS, BusyWait
from kiebitz.proxy.system.clock import adopt, now_ns, origin_ns

HOUR_NS = 3600 * 10**9

# Setting the real clock would set that of all who work on this machine. The relay asks for the time of day by
# time.time_ns alone: that one goes back when the process gets a signal.
SET_BACK = """
import signal
import sys
import time

from kiebitz.cli.main import run

if __name__ == "__main__":
    time_ns, back = time.time_ns, []
    time.time_ns = lambda: time_ns() - sum(back)
    signal.signal(signal.SIGUSR1, lambda number, frame: back.append(3600 * 10**9))
    sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.full
def test_while_a_game_is_relayed(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    script = tmp_path / "set_back.py"
    script.write_text(SET_BACK)
    server = Server(expected=3, rounds=4)
    port = free_port("udp")
    mode = f"reverse:udp://127.0.0.1:{server.port}@{port}"
    players = [Player(name, ("127.0.0.1", port)) for name in ("alice", "bob", "carl")]
    relay_command = (sys.executable, str(script), "relay", "-m", mode, "-w", str(database))

    def set_back(relay: int) -> None:
        eventually(lambda: rows(database, "SELECT count(*) FROM games") >= [(2,)])
        os.kill(relay, signal.SIGUSR1)

    with running(*relay_command, ready="listening on") as relay, ThreadPoolExecutor(1) as beside:
        done = beside.submit(set_back, relay.pid)
        play(server, players)
        done.result(0)
    assert_recorded(database, players)
    for table, column in (("chunks", "ts_ns"), ("events", "ts_ns"), ("games", "started_ns")):
        times = [time for (time,) in rows(database, f"SELECT {column} FROM {table} ORDER BY id")]
        assert times == sorted(times)
    # Copies of a broadcast are one event, each round has its verdict, and no copy is late.
    assert rows(database, "SELECT count(*) FROM events WHERE kind = 'round_started'") == [(4,)]
    assert rows(database, "SELECT count(*) FROM games WHERE result IS NOT NULL") == [(4,)]
    assert rows(database, "SELECT * FROM diagnostics WHERE severity != 'note'") == []
    assert rows(database, "SELECT closed_ns > opened_ns FROM streams") == [(1,)] * 3


def report_time(to: Connection) -> None:
    to.send(now_ns())


@pytest.mark.full
@pytest.mark.parametrize("start", a_few([start_child, start_fork], [start_child]))
def test_a_child_goes_by_its_parents_clock(start: Callable[..., BaseProcess]) -> None:
    """The time of day was set between the two starts."""
    before = origin_ns()
    adopt(before - 10 * 365 * 24 * HOUR_NS)
    try:
        ours, theirs = Pipe()
        child = start(report_time, theirs)
        assert abs(ours.recv() - now_ns()) < HOUR_NS
        child.join()
    finally:
        adopt(before)


FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)

JUMPS = ["+1h", "+10y", "-1h", "-10y"]


@pytest.mark.full
@pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed")
@pytest.mark.parametrize("jump", JUMPS)
def test_the_clock_jumps_and_a_second_recorder_begins_behind_it(tmp_path: Path, jump: str) -> None:
    """Relay and recorders go by one clock: times are in order, and no recorder claims to be late."""
    offset = tmp_path / "offset"

    def set_clock(by: str) -> None:
        (tmp_path / "new").write_text(by)
        (tmp_path / "new").replace(offset)

    set_clock("+0")
    faked = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_NO_CACHE": "1",
    }
    database = tmp_path / "game.db"
    with relaying(database, faked) as echo:
        begun_ns = time.time_ns()
        said = round_trips(echo, 0, 10)
        set_clock(jump)
        said += round_trips(echo, 10, 10)
        echo.kill_recorder()
        said += round_trips(echo, 20, 200)
        echo.wait_for("the recorder has caught up")
        set_clock("+0")
        said += round_trips(echo, 220, 10)
        assert echo.stop() == 0
    assert " s behind" not in echo.said
    assert recorded(database) == said
    times = [time for (time,) in rows(database, "SELECT ts_ns FROM chunks ORDER BY id")]
    assert times == sorted(times)
    assert begun_ns - HOUR_NS / 2 < times[0] <= times[-1] < time.time_ns() + HOUR_NS / 2
    ((started, ended),) = rows(database, "SELECT started_ns, ended_ns FROM sessions")
    assert started <= times[0] <= times[-1] <= ended


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
