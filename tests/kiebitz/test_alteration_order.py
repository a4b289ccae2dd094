"""Alteration on real sockets keeps order, content and bounds: delays, halves, ends, resets, floods.

One relay carries all scenes of the first test, each with a server and rules of its own.
"""

from __future__ import annotations

import random
import select
import shlex
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from altering_relay import Line, alterations, conversation, recorded, relaying
from processes_and_rows import until

from kiebitz.dissectors.model import DIRECTIONS

Afterwards = Callable[[Path], None]
"""Looks at what was recorded, when the relay has ended."""

MIB = 1 << 20


class Scene(NamedTuple):
    """A scene on a line; `&` in its options narrows a filter down to that line's server."""

    protocol: str
    options: str
    play: Callable[[Line], Generator[None, Path, None]]
    """Plays up to the first `yield`, then the relay ends; the rest checks the results."""

    def rules(self, line: Line) -> list[str]:
        """Return its options for its line."""
        where = f'and {line.transport} and server == "{line.server}"'
        return [word.replace("&", where) for word in shlex.split(self.options)]


SCENES: list[Scene] = []


def scene(protocol: str, *options: str) -> Callable[[Callable[[Line], Generator[None, Path, None]]], object]:
    """Register a scene."""

    def register(play: Callable[[Line], Generator[None, Path, None]]) -> object:
        SCENES.append(Scene(protocol, " ".join(options), play))
        return play

    return register


def login(length: int) -> bytes:
    return b"LOGI " + b"a" * (length - 7) + b"\r\n"


def said_meanwhile(line: Line, *pieces: bytes) -> threading.Thread:
    def say_all() -> None:
        for piece in pieces:
            line.say("c2s", piece)

    sender = threading.Thread(target=say_all, daemon=True)
    sender.start()
    return sender


def deeds(database: Path, line: Line) -> list[tuple[str, bytes | None, bytes]]:
    return [(deed.action, deed.original, deed.passed_on) for deed in alterations(database, line)]


@scene("okey", """--delay 'msg == "LPLA" &' 150ms""")
def order_is_kept_behind_a_delay(line: Line) -> Generator[None, Path, None]:
    begun = time.monotonic()
    line.say("c2s", b"PING\r\nLPLA\r\nLLPL\r\n")
    line.hear("c2s", [b"PING\r\n"])
    line.say("c2s", b"PING\r\n")
    line.hear("c2s", [b"LPLA\r\nLLPL\r\nPING\r\n"])
    assert time.monotonic() - begun > 0.149
    assert b"".join(line.got["c2s"]) == b"PING\r\nLPLA\r\nLLPL\r\nPING\r\n"
    yield


@scene("okey", """--delay 'msg == "LPLA" &' '800ms, reorder'""")
def those_behind_may_pass(line: Line) -> Generator[None, Path, None]:
    line.say("c2s", b"PING\r\nLPLA\r\nLLPL\r\n")
    line.hear("c2s", [b"PING\r\nLLPL\r\n"])
    line.say("c2s", b"PING\r\n")
    line.hear("c2s", [b"PING\r\nLPLA\r\n"])
    assert b"".join(line.got["c2s"]) == b"PING\r\nLLPL\r\nPING\r\nLPLA\r\n"
    yield


@scene("okey", """--delay 'msg == "LPLA" &' '500ms, reorder'""")
def none_comes_out_inside_of_another(line: Line) -> Generator[None, Path, None]:
    beginning = b"LOGI" + b" a" * 700_000
    line.say("c2s", b"LPLA\r\n" + beginning)
    # It is too long to be waited for: its beginning is passed on, and LPLA is due before its end comes.
    line.hear("c2s", [beginning])
    time.sleep(0.6)
    line.say("c2s", b"\r\nPING\r\n")
    line.hear("c2s", [b"\r\nLPLA\r\nPING\r\n"])
    assert sorted(b"".join(line.got["c2s"]).split(b"\r\n")) == sorted([b"", beginning, b"LPLA", b"PING"])
    yield


@scene(
    "okey",
    """--change 'nickname == "a" &' nickname=b --duplicate 'nickname == "b" &'""",
    """--change 'nickname == "b" & [2nd]' nickname=c --drop 'nickname == "a" &'""",
    """--drop 'msg == "LPLA" & [2nd]'""",
)
def rules_in_their_order(line: Line) -> Generator[None, Path, None]:
    line.say("c2s", b"LOGI a\r\nLPLA\r\nLPLA\r\nLOGI d\r\n")
    line.hear("c2s", [b"LOGI b\r\nLOGI c\r\nLPLA\r\nLOGI d\r\n"])
    assert b"".join(line.got["c2s"]) == b"LOGI b\r\nLOGI c\r\nLPLA\r\nLOGI d\r\n"
    yield


@scene(
    "okey",
    """--drop 'msg == "PING" & [every 3rd]' --drop 'msg == "LPLA" & [first 2]'""",
    """--drop 'msg == "LLPL" & [2nd]'""",
)
def which_and_how_often(line: Line) -> Generator[None, Path, None]:
    said = b"PING\r\nLPLA\r\nLLPL\r\n" * 7
    kept = [
        *(b"PING\r\n", b"LLPL\r\n"),
        *(b"PING\r\n",),
        *(b"LPLA\r\n", b"LLPL\r\n"),
        *(b"PING\r\n", b"LPLA\r\n", b"LLPL\r\n") * 2,
        *(b"LPLA\r\n", b"LLPL\r\n"),
        *(b"PING\r\n", b"LPLA\r\n", b"LLPL\r\n"),
    ]
    for direction in DIRECTIONS:
        # Each direction counts for itself; of these only the server sends PING.
        line.say(direction, said if direction == "c2s" else b"PING\r\n" * 7)
        line.hear(direction, kept if direction == "c2s" else [b"PING\r\n" * 5])
    assert b"".join(line.got["c2s"]) == b"".join(kept)
    yield


@scene(
    "maexchen",
    """--change 'msg == "ROLLED" and state.turn == "carl" &' dice=2,1""",
    """--drop 'msg == "YOUR TURN" and state.turn == "bob" &'""",
)
def what_the_table_says_by_then(line: Line) -> Generator[None, Path, None]:
    line.play({8: [b"ROLLED;2,1;d1c7abfb-9ef3-4df1-a3f5-50e0e9b477e6"]}, {})
    assert b"ROLLED;2,1;d1c7abfb-9ef3-4df1-a3f5-50e0e9b477e6" in line.got["s2c"]
    yield


@scene("okey", """--drop 'msg == "LLPL" &'""", """--drop 'msg == "LOGI" &'""")
def half_a_message_waits_for_a_second(line: Line) -> Generator[None, Path, None]:
    begun = time.monotonic()
    line.say("c2s", b"LOGI a")
    line.hear("c2s", [b"LOGI a"])
    assert time.monotonic() - begun > 0.999
    # The rest of it belongs to what is passed on already; the next message is a whole one.
    for piece in (b"b", b"c\r\n"):
        line.say("c2s", piece)
        line.hear("c2s", [piece])
    line.say("c2s", b"LOGI d\r\nPING\r\n")
    line.hear("c2s", [b"PING\r\n"])
    yield


@scene("okey", """--delay 'msg == "LPLA" &' 100ms""")
def an_end_waits_for_what_was_said_before(line: Line) -> Generator[None, Path, None]:
    line.say("c2s", b"LPLA\r\n")
    line.end_of("c2s").shutdown(socket.SHUT_WR)
    line.say("s2c", b"PING\r\n")
    line.hear("s2c", [b"PING\r\n"])
    line.hear("c2s", [b"LPLA\r\n"])
    assert line.end_of("s2c").recv(1) == b""
    line.say("s2c", b"+PING\r\n")
    line.hear("s2c", [b"+PING\r\n"])
    yield


@scene("okey", """--insert 'msg == "LPLA" &' '+LPLA playerlist=a'""")
def nothing_is_put_in_behind_an_end(line: Line) -> Generator[None, Path, None]:
    line.end_of("s2c").shutdown(socket.SHUT_WR)
    assert line.end_of("c2s").recv(1) == b""
    line.say("c2s", b"LPLA\r\n")
    line.hear("c2s", [b"LPLA\r\n"])
    # The other direction continues.
    line.say("c2s", b"PING\r\n")
    line.hear("c2s", [b"PING\r\n"])
    yield


@scene("okey", """--delay 'msg == "LPLA" &' 60s""")
def a_reset_waits_for_nothing(line: Line) -> Generator[None, Path, None]:
    line.say("c2s", b"PING\r\nLPLA\r\n")
    line.hear("c2s", [b"PING\r\n"])
    client = line.end_of("c2s")
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    with pytest.raises(ConnectionResetError):
        line.hear("c2s", [b"LPLA\r\n"])
    database = yield
    assert deeds(database, line) == [("drop", b"LPLA\r\n", b"")]


@scene("okey", """--delay 'msg == "LOGI" & [1st]' 100ms""")
def what_waited_and_is_more_than_a_record(line: Line) -> Generator[None, Path, None]:
    said = [b"LOGI a\r\n", login(200 << 10), login(MIB - 10), b"PING\r\n"]
    sender = said_meanwhile(line, *said)
    line.hear("c2s", said)
    sender.join()
    assert b"".join(line.got["c2s"]) == b"".join(said)
    database = yield
    assert b"".join(recorded(database, line)["c2s"]) == b"".join(said)


@scene("okey", """--change 'msg == "LOGI" &' nickname=b --duplicate 'msg == "LLPL" &'""")
def a_long_message_and_one_that_is_too_long(line: Line) -> Generator[None, Path, None]:
    # A busy relay may take more than a second for a message of 1 MiB, and then passes it on unchanged.
    long, too_long = login(200 << 10), login(2 * MIB + MIB // 2)
    sender = said_meanwhile(line, long, too_long, b"LLPL\r\n", login(MIB + 1), b"PING\r\n")
    told = [b"LOGI b\r\n", too_long, b"LLPL\r\n" * 2, login(MIB + 1), b"PING\r\n"]
    line.hear("c2s", told)
    sender.join()
    assert b"".join(line.got["c2s"]) == b"".join(told)
    database = yield
    assert b"".join(recorded(database, line)["c2s"]) == b"".join(told)
    assert deeds(database, line) == [("change", long, b"LOGI b\r\n"), ("double", None, b"LLPL\r\n")]


@scene("okey", """--delay 'msg == "LPLA" &' 100ms --drop 'msg == "LPLA" &'""")
def bytes_that_nobody_can_read(line: Line) -> Generator[None, Path, None]:
    said = random.Random(7).randbytes(100_000)
    sender = said_meanwhile(line, said)
    line.hear("c2s", [said])
    sender.join()
    assert b"".join(line.got["c2s"]) == said
    yield


@scene("maexchen", """--drop 'msg == "SEE" &'""")
def datagrams_of_nothing(line: Line) -> Generator[None, Path, None]:
    for data in (b"", b"REGISTER;a", b"\xff\xfe", b"X" * 60_000):
        line.say("c2s", data)
        line.hear("c2s", [data])
    line.say("s2c", b"")
    line.hear("s2c", [b""])
    assert line.got == {"c2s": [b"", b"REGISTER;a", b"\xff\xfe", b"X" * 60_000], "s2c": [b""]}
    database = yield
    assert recorded(database, line) == line.got


@scene("okey", """--delay 'msg == "LOGI" &' 100ms""")
def a_flood_waits_with_its_sender(line: Line) -> Generator[None, Path, None]:
    said = [login(10_000 + number) for number in range(150)]
    sender = said_meanwhile(line, *said)
    line.hear("c2s", said)
    sender.join()
    assert b"".join(line.got["c2s"]) == b"".join(said)
    yield


@scene("maexchen", """--delay 'msg == "REGISTER" &' 3600s""")
def a_flood_of_datagrams_is_dropped_and_told_of(line: Line) -> Generator[None, Path, None]:
    for _ in range(200):
        line.say("c2s", b"REGISTER;" + b"a" * 9_991)
        time.sleep(0.0002)
    # The next client is accepted when the relay has read all earlier data.
    with line.enter() as other:

        def is_heard() -> bool:
            other.send(b"SEE;x")
            return bool(select.select([line.end_of("s2c")], [], [], 0.1)[0])

        until(is_heard, "the other client is heard")
    database = yield
    done = [(deed.action, deed.rule[:19]) for deed in alterations(database, line)]
    # A message counts for its bytes and 256 more; the system may have dropped some itself.
    assert done.count(("delay", "--delay 'msg == \"RE")) == MIB // (10_000 + 256)
    assert {*done} == {("delay", "--delay 'msg == \"RE"), ("drop", "too much is queued:")}


@scene("okey", """--delay 'msg == "LOGI" &' 3600s""")
def what_waits_at_the_end_is_passed_on(line: Line) -> Generator[None, Path, None]:
    line.say("c2s", b"LOGI a\r\nLOGI b\r\n")
    time.sleep(0.05)
    database = yield
    line.hear("c2s", [b"LOGI a\r\nLOGI b\r\n"])
    assert b"".join(line.got["c2s"]) == b"LOGI a\r\nLOGI b\r\n"
    assert b"".join(recorded(database, line)["c2s"]) == b"LOGI a\r\nLOGI b\r\n"


@scene("maexchen", """--delay 'msg == "REGISTER" &' 3600s""")
def datagrams_that_wait_at_the_end_are_passed_on(line: Line) -> Generator[None, Path, None]:
    line.say("c2s", b"REGISTER;a")
    time.sleep(0.05)
    yield
    line.hear("c2s", [b"REGISTER;a"])
    assert line.got["c2s"] == [b"REGISTER;a"]


@pytest.mark.full
def test_scenes(tmp_path: Path) -> None:
    lines = [Line(scene.protocol) for scene in SCENES]
    rules = [word for line, scene in zip(lines, SCENES, strict=True) for word in scene.rules(line)]
    database = tmp_path / "altered.db"
    with relaying(lines, database, *rules) as relay:
        for line in lines:
            line.connect()
        played = [scene.play(line) for line, scene in zip(lines, SCENES, strict=True)]
        # A session is read in the main thread.
        conversation("maexchen")
        # Most of them wait most of the time.
        with ThreadPoolExecutor(len(played)) as beside:
            [*beside.map(next, played)]
        relay.end()
        for begun in played:
            try:
                begun.send(database)
            except StopIteration:
                continue
            raise AssertionError("a scene has one yield")
    assert "No message can be inserted from" in relay.said
    assert "too much is queued" in relay.said
