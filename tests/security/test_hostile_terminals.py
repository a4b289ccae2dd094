"""Full-screen commands and the report of `kiebitz probe` write none of a peer's own sequences."""

from __future__ import annotations

import re
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import ODD
from damaged_databases import FORGED, SPOTS, Kind, Spot, spoilt, spots_of
from damaged_databases import HOSTILE as SUFFIX
from hostile_text import CAPTURES_OF, CODES, is_harmless
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
NAME = SUFFIX.replace(";", "")
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
    columns = {"name", "note", "player", "label", "actor", "sentence", "text", "fields", "data"}
    spots = [spot for spot in SPOTS if spot.column in columns and spot.kind != "names"]
    path = spoilt(tmp_path, CAPTURES_OF["maexchen"], spots, HOSTILE)
    with OnTerminal("watch", path, columns=200, rows=50) as terminal:
        terminal.read_until(lambda written: b"q quit" in written)
        terminal.type(b"\t")
        terminal.read_until(lambda written: b"31337" in written)
        terminal.type(b"n\t\t\tn\x1b[B\tq")
        assert terminal.ended() == 0
        assert_harmless(terminal.written)


def on_terminal(*arguments: str) -> OnTerminal:
    return OnTerminal(*arguments, columns=1000, COLUMNS="1000")


def text_of(terminal: OnTerminal) -> str:
    return CODES.sub("", terminal.written.decode(errors="replace"))


def until(terminal: OnTerminal, words: str) -> None:
    terminal.read_until(lambda _: words in text_of(terminal))


def drives_nothing(text: str) -> bool:
    lines = text.replace("\r", "\n")
    return is_harmless(lines) and not re.search(rf"^ *{FORGED}", lines, re.MULTILINE)


@contextmanager
def relayed(database: Path, *options: str) -> Iterator[tuple[OnTerminal, Callable[..., None]]]:
    """Yield a relay of Mäxchen on a terminal, and a function that sends a message and answers."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        server.bind(("127.0.0.1", 0))
        for one in (server, client):
            one.settimeout(PATIENCE_S)
        port, behind = free_port("udp"), server.getsockname()[1]

        def exchange(said: bytes, *answers: bytes) -> None:
            client.sendto(said, ("127.0.0.1", port))
            data, sender = server.recvfrom(1 << 16)
            assert data == said
            for answer in answers:
                server.sendto(answer, sender)
                assert client.recv(1 << 16) == answer

        mode, forced = f"reverse:udp://127.0.0.1:{behind}@{port}", f"udp.port=={behind},maexchen"
        with on_terminal("relay", "-m", mode, "-w", str(database), "-d", forced, *options) as terminal:
            yield terminal, exchange


@pytest.mark.parametrize(
    ("name", "encoding"),
    a_few(
        [(name, encoding) for name in (NAME, "日本") for encoding in ("utf-8", "latin-1")],
        [(NAME, "latin-1")],
        lambda row: f"{'hostile' if row[0] == NAME else 'foreign'}-{row[1]}",
    ),
)
def test_hostile_peer_names_control_no_terminal_of_a_relay(
    name: str, encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A terminal may have no such letter: that must not end the recording.
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    with relayed(tmp_path / f"a\n{FORGED}.db") as (relay, exchange):
        until(relay, "listening on")
        for said in (f"REGISTER;{name}", name, f"JOIN;{name}"):
            exchange(said.encode(), b"REGISTERED")
        until(relay, "is registered")
        until(relay, "error[")
        relay.signal(signal.SIGINT)
        assert relay.ended() == 0
        assert "recorded" in text_of(relay)
        assert "fault" not in text_of(relay)
        assert drives_nothing(text_of(relay))


@pytest.mark.full
def test_hostile_peers_are_watched(tmp_path: Path) -> None:
    with relayed(tmp_path / "game.db", "--watch") as (terminal, exchange):
        until(terminal, "q quit")
        exchange(b"REGISTER;" + BYTES + b"\n", b"REGISTERED\n", BYTES, b"ROUND STARTED;1;" + BYTES)
        terminal.type(b"\t")
        until(terminal, "31337")
        terminal.type(b"\t\tq")
        assert terminal.ended() == 0
        assert_harmless(terminal.written)


@pytest.mark.full
def test_a_replay_that_serves_a_spoilt_database_drives_no_terminal(tmp_path: Path) -> None:
    path = spoilt(tmp_path, CAPTURES_OF["maexchen"], spots_of("values"))
    with on_terminal("replay", path, "--serve", "127.0.0.1:0") as terminal:
        until(terminal, "\n")
        if "playing" in text_of(terminal):
            terminal.signal(signal.SIGINT)
        assert terminal.ended() in (1, 130)
        assert drives_nothing(text_of(terminal))


@pytest.mark.full
def test_a_bar_with_the_name_of_a_file_drives_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / f"a\n{FORGED}\x1b[2J[bold].pcap"
    path.write_bytes(Path(ODD).read_bytes())
    with on_terminal("import", str(path), "-w", str(tmp_path / "game.db")) as terminal:
        assert terminal.ended() == 0
        assert "[bold].pcap" in text_of(terminal)
        assert drives_nothing(text_of(terminal))


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
    look(spoilt(tmp_path, CAPTURES_OF["maexchen"], [spot]))


@pytest.mark.parametrize("kind", a_few(["names", "values"], ["values"]))
@pytest.mark.parametrize("protocol", a_few(CAPTURES_OF, ["catan"]))
def test_hostile_game_texts_are_inert(protocol: str, kind: Kind, tmp_path: Path) -> None:
    look(spoilt(tmp_path, CAPTURES_OF[protocol], spots_of(kind)))


def test_a_sound_one_is_shown_and_the_forged_words_with_it(tmp_path: Path) -> None:
    """Else nothing of the above would show anything."""
    spots = Spot("events", "actor", "text"), Spot("messages", "fields", "values")
    path = spoilt(tmp_path, CAPTURES_OF["maexchen"], spots)

    async def script(sight: Sight) -> None:
        await sight.press("tab")
        assert FORGED in sight.text

    watch(path, script, (100, 30))
