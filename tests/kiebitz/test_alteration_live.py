"""Messages altered on real sockets by the real command: what each side gets, and what is recorded."""

from __future__ import annotations

import select
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alteration_files import CONVERSATIONS, cases, play_all, scenes
from altering_relay import Line, alterations, recorded, relaying
from conversation_files import blocks
from processes_and_rows import until
from snapshots import DATA

MIB = 1 << 20


def test_each_action_in_each_direction(tmp_path: Path) -> None:
    titles = [title for title in blocks(CONVERSATIONS) if "forced" not in title]
    play_all([case for title in titles for case in cases(title)], tmp_path / "altered.db")


@pytest.mark.full
def test_forced(tmp_path: Path) -> None:
    titles = [title for title in blocks(CONVERSATIONS) if "forced" in title]
    play_all([case for title in titles for case in cases(title)], tmp_path / "altered.db", "--force")


def login(length: int) -> bytes:
    return b"LOGI " + b"a" * (length - 7) + b"\r\n"


@pytest.mark.full
def test_what_an_engine_forwards_comes_through_a_relay(tmp_path: Path) -> None:
    """Play all scenes of the text through one relay, each with a server and rules of its own."""
    every = [scene for block in blocks(DATA / "alterations.txt").values() for scene in scenes(block)]
    played = [(scene, Line(scene.protocol)) for scene in every if scene.is_relayed]
    assert len(played) > 20
    lines, database = [line for _, line in played], tmp_path / "altered.db"
    with relaying(lines, database, *(word for scene, line in played for word in scene.rules(line))) as relay:
        for line in lines:
            line.connect()
        playing = [scene.play(line) for scene, line in played]
        # Most of them wait most of the time.
        with ThreadPoolExecutor(len(played)) as beside:
            [*beside.map(lambda one: next(one, None), playing)]
            relay.end()
            [*beside.map(lambda one: next(one, None), playing)]
    for line in lines:
        told = {direction: b"".join(data) for direction, data in line.got.items()}
        assert {direction: b"".join(data) for direction, data in recorded(database, line).items()} == told
    assert "No message can be inserted from" in relay.said


LONG, TOO_LONG, LONGER = login(200 << 10), login(2 * MIB + MIB // 2), login(MIB + 1)
FLOODS = [
    ("--delay", ["msg == 'LOGI'", "100ms"], [login(10_000 + number) for number in range(150)], None),
    (
        "--delay",
        ["msg == 'LOGI' [1st]", "100ms"],
        [b"LOGI a\r\n", LONG, login(MIB - 10), b"PING\r\n"],
        None,
    ),
    # A busy relay may take more than a second for a message of 1 MiB, and then passes it on unchanged.
    (
        "--change",
        ["msg == 'LOGI'", "nickname=b"],
        [LONG, TOO_LONG, b"LLPL\r\n", LONGER, b"PING\r\n"],
        [b"LOGI b\r\n", TOO_LONG, b"LLPL\r\n", LONGER, b"PING\r\n"],
    ),
]


@pytest.mark.full
@pytest.mark.parametrize(("option", "values", "said", "told"), FLOODS)
def test_a_flood_waits_with_its_sender(
    option: str, values: list[str], said: list[bytes], told: list[bytes] | None, tmp_path: Path
) -> None:
    line, database = Line("okey"), tmp_path / "altered.db"
    with relaying([line], database, option, *values):
        line.connect()
        sender = threading.Thread(target=line.say, args=("c2s", b"".join(said)), daemon=True)
        sender.start()
        line.hear("c2s", told or said)
        sender.join()
    assert b"".join(line.got["c2s"]) == b"".join(told or said) == b"".join(recorded(database, line)["c2s"])
    if told:
        assert [(deed.action, deed.original) for deed in alterations(database, line)] == [("change", LONG)]


@pytest.mark.full
def test_a_flood_of_datagrams_is_dropped_and_reported(tmp_path: Path) -> None:
    line, database = Line("maexchen"), tmp_path / "altered.db"
    with relaying([line], database, "--delay", 'msg == "REGISTER"', "3600s") as relay:
        line.connect()
        for _ in range(200):
            line.say("c2s", b"REGISTER;" + b"a" * 9_991)
            time.sleep(0.0002)
        # The next client is accepted when the relay has read all earlier data.
        with line.enter() as other:

            def is_heard() -> bool:
                other.send(b"SEE;x")
                return bool(select.select([line.end_of("s2c")], [], [], 0.1)[0])

            until(is_heard, "the other client is heard")
    done = [(deed.action, deed.rule[:19]) for deed in alterations(database, line)]
    # A message counts for its bytes and 256 more; the system may have dropped some itself.
    assert done.count(("delay", "--delay 'msg == \"RE")) == MIB // (10_000 + 256)
    assert {*done} == {("delay", "--delay 'msg == \"RE"), ("drop", "too much is queued:")}
    assert "too much is queued" in relay.said
