"""Full-screen commands and the report of `kiebitz probe` write none of a peer's own sequences."""

from __future__ import annotations

import re
import shlex
import socket
import sys
from pathlib import Path

import pytest
from command import TINY, kiebitz
from damaged_databases import FORGED, SPOTS, Spot, damage
from hostile_text import CAPTURES_OF, is_harmless
from processes_and_rows import PATIENCE_S, free_port
from strength import a_few
from terminals import OnTerminal
from watch_driver import Sight, watch

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.services.damage import damaged_database

HOSTILE = (
    "\x1b]0;31337\x07\x1b[31337m\x9b31337m\x1bP31337\x1b\\\u202e\u2028\u2066\x85\x0e"
    "</script><script>alert(1)</script>"
)
BYTES = HOSTILE.encode() + b"\x9b31337m\x00\xff"
_DRIVES = re.compile("(\x1b[^0-9]|\x9b)[0-9;]*31337|[\x0e\x80-\x9f\u2028\u202e\u2066]")


def assert_harmless(written: bytes) -> None:
    """Fail if anything of the above is written as it is, or if it is not there at all."""
    text = written.decode()
    found = _DRIVES.search(text)
    assert found is None, text[max(0, found.start() - 80) : found.end() + 80]
    assert "31337" in text


@pytest.mark.full
def test_a_hostile_database_is_watched(tmp_path: Path) -> None:
    path = tmp_path / "game.db"
    assert kiebitz("import", TINY, "-w", str(path)).status == 0
    columns = {"name", "note", "player", "label", "actor", "sentence", "text", "fields", "data"}
    damage(str(path), [spot for spot in SPOTS if spot.column in columns and spot.kind != "names"], HOSTILE)
    with OnTerminal("watch", str(path), columns=200, rows=50) as terminal:
        terminal.read_until(lambda written: b"q quit" in written)
        terminal.type(b"\t")
        terminal.read_until(lambda written: b"31337" in written)
        terminal.type(b"n\t\t\tn\x1b[B\tq")
        assert terminal.ended() == 0
        assert_harmless(terminal.written)


@pytest.mark.full
def test_hostile_peers_are_watched(tmp_path: Path) -> None:
    port = free_port("udp")
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        for one in (server, client):
            one.bind(("127.0.0.1", 0))
            one.settimeout(PATIENCE_S)
        behind = server.getsockname()[1]
        mode = f"reverse:udp://127.0.0.1:{behind}@{port}"
        options = ["-w", str(tmp_path / "game.db"), "-d", f"udp.port=={behind},maexchen", "--watch"]
        with OnTerminal("relay", "-m", mode, *options, columns=200, rows=50) as terminal:
            terminal.read_until(lambda written: b"q quit" in written)
            client.sendto(b"REGISTER;" + BYTES + b"\n", ("127.0.0.1", port))
            _, address = server.recvfrom(1 << 16)
            for answer in (b"REGISTERED\n", BYTES, b"ROUND STARTED;1;" + BYTES):
                server.sendto(answer, address)
                client.recv(1 << 16)
            terminal.type(b"\t")
            terminal.read_until(lambda written: b"31337" in written)
            terminal.type(b"\t\tq")
            assert terminal.ended() == 0
            assert_harmless(terminal.written)


_SERVER = """
import socket, sys
hostile = bytes.fromhex(sys.argv[2])
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind(("127.0.0.1", int(sys.argv[1])))
while True:
    sys.stdout.buffer.write(hostile + b"\\n")
    sys.stdout.buffer.flush()
    said, address = one.recvfrom(65536)
    one.sendto(hostile, address)
"""


@pytest.mark.full
@pytest.mark.parametrize("options", a_few([[], ["--json"]], [[]]))
def test_a_hostile_server_is_probed(options: list[str], tmp_path: Path) -> None:
    port, report = free_port("udp"), tmp_path / "probe.html"
    program = shlex.join([sys.executable, "-c", _SERVER, str(port), BYTES.hex()])
    arguments = ["server", str(port), "-d", "maexchen", "--only", "maexchen/REGISTER/whole"]
    arguments += ["--restart", program, "--report", str(report), *options]
    with OnTerminal("probe", *arguments, columns=200, rows=50) as terminal:
        assert terminal.ended() in (0, 3)
        assert _DRIVES.search(terminal.written.decode()) is None
    page = report.read_bytes()
    assert_harmless(page.replace(b"\n", b""))
    assert b"<script" not in page
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", page)


_LINE = re.compile(rf"^ *{FORGED}", re.MULTILINE)


async def everything(sight: Sight) -> None:
    for keys in (["end"], ["home"], ["n"], ["question_mark"], ["escape"], ["a"], ["down", "enter"], ["end"]):
        await sight.press(*keys)
        safe(sight)
    for _ in range(6):
        await sight.press("tab")
        safe(sight)
        for _ in range(2):
            await sight.press("down")
        safe(sight)
    await sight.press("y")
    safe(sight)
    await sight.press("t")
    safe(sight)


def safe(sight: Sight) -> None:
    assert is_harmless(sight.text)
    assert not _LINE.search(sight.text)


def spoilt(protocol: str, folder: Path, spots: list[Spot]) -> str:
    path = str(folder / "game.db")
    assert kiebitz("import", CAPTURES_OF[protocol], "-w", path).status == 0
    damage(path, spots)
    return path


def look(path: str) -> None:
    try:
        watch(path, everything, (100, 30))
    except Exception as error:
        # The command reports a damaged one then.
        if not isinstance(error, KiebitzError) and damaged_database(["watch", path]) is None:
            raise


@pytest.mark.parametrize("spot", a_few(SPOTS, SPOTS[-3:-2], ".".join))
@pytest.mark.full
def test_no_column_does_anything(spot: Spot, tmp_path: Path) -> None:
    look(spoilt("maexchen", tmp_path, [spot]))


@pytest.mark.parametrize("kind", a_few(["names", "values"], ["values"]))
@pytest.mark.parametrize("protocol", a_few(CAPTURES_OF, ["catan"]))
def test_hostile_game_texts_are_inert(protocol: str, kind: str, tmp_path: Path) -> None:
    words = {"protocol", "transport", "direction", "severity", "kind"}
    look(
        spoilt(
            protocol,
            tmp_path,
            [spot for spot in SPOTS if spot.kind in ("text", kind) and spot.column not in words],
        )
    )


def test_a_sound_one_is_shown_and_the_forged_words_with_it(tmp_path: Path) -> None:
    """Else nothing of the above would show anything."""
    path = spoilt(
        "maexchen", tmp_path, [Spot("events", "actor", "text"), Spot("messages", "fields", "values")]
    )

    async def script(sight: Sight) -> None:
        await sight.press("tab")
        assert FORGED in sight.text

    watch(path, script, (100, 30))
