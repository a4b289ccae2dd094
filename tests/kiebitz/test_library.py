"""`import kiebitz`, as a notebook or a script uses it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow
import pyarrow.compute
import pytest
from command import CAPTURES, ODD, ROOT, TINY
from command import kiebitz as command
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, running, until

import kiebitz


def test_a_capture_becomes_a_table_of_events_in_five_lines() -> None:
    with kiebitz.open(TINY) as session:
        table = pyarrow.Table.from_pylist([msgspec.structs.asdict(event) for event in session.events()])
    rolls = table.filter(pyarrow.compute.field("kind") == "rolled")
    assert rolls.column("actor").to_pylist()[:1] == ["carl"]
    assert rolls.column("time").type == pyarrow.float64()
    assert table.num_rows == 26


def test_everything_that_a_session_has(capfd: pytest.CaptureFixture[str]) -> None:
    with kiebitz.open(TINY) as session:
        assert session.name == "maexchen-head-tiny.pcap"
        assert session.started is not None
        assert session.started.tzinfo is not None
        assert {stream.player for stream in session.streams()} >= {"alice", "bob", "carl", "dora"}
        assert [game.label for game in session.games()] == ["round 1", "round"]
        roll = next(session.messages('msg == "ROLL"'))
        assert (roll.direction, roll.player, roll.server) == ("c2s", "carl", "127.0.0.1:9000")
        rolled = next(session.events('kind == "rolled"'))
        assert rolled.sentence == "carl has rolled 3,3"
        assert {one.actor for one in session.events('kind == "rolled"', as_player="alice")} <= {"alice"}
        assert {diagnostic.severity for diagnostic in session.diagnostics()} == {"note"}
        (table,) = session.state(f"#{rolled.id}")
        assert (table.protocol, table.event) == ("maexchen", rolled.id)
        assert table.state["games"]["1"]["private"] == {"carl": {"dice": "3,3"}}
        (table,) = session.state(f"#{rolled.id}", as_player="alice")
        assert "private" not in table.state["games"]["1"] or not table.state["games"]["1"]["private"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.full
def test_the_numbers_are_those_of_the_commands() -> None:
    with kiebitz.open(ODD) as session:
        assert [(event.id, event.time, event.sentence, event.data) for event in session.events()] == [
            (row["id"], row["time"], row["sentence"], row["data"])
            for row in command("events", ODD, "--json").json
        ]
        assert [
            (diagnostic.id, diagnostic.code, diagnostic.offset) for diagnostic in session.diagnostics()
        ] == [(row["id"], row["code"], row["offset"]) for row in command("check", ODD, "--json").json]
        assert [(said.id, said.name, said.player) for said in session.messages()] == [
            (row["id"], row["name"], row["player"]) for row in command("messages", ODD, "--json").json
        ]


@pytest.mark.full
def test_captures_are_recorded_and_sessions_opened_by_number(tmp_path: Path) -> None:
    database = str(tmp_path / "games.db")
    heard: list[tuple[int, int | None]] = []
    for capture in (TINY, ODD):
        with kiebitz.import_capture(
            capture, database, on_progress=lambda *read: heard.append(read)
        ) as session:
            assert session.path is not None
    assert heard[-1][0] == heard[-1][1] == Path(ODD).stat().st_size
    with kiebitz.open(database) as latest, kiebitz.open(f"{database}:1") as first:
        assert (latest.name, first.name) == ("maexchen-head-odd.pcap", "maexchen-head-tiny.pcap")
        assert kiebitz.diff(first, TINY).equal
        found = kiebitz.diff(first, latest)
        assert not found.equal
    with kiebitz.import_capture(TINY, decode_as=["udp.port==9000,none"]) as unread:
        assert unread.path is None
        assert list(unread.events()) == []


@pytest.mark.full
def test_a_live_session_is_followed_to_its_end(tmp_path: Path) -> None:
    """Each event arrives while the relay still records, and the end of the session ends it."""
    database, port, server = str(tmp_path / "live.db"), free_port("udp"), free_port("udp")
    mode = f"reverse:udp://127.0.0.1:{server}@127.0.0.1:{port}"
    seen: list[kiebitz.Event] = []
    first = threading.Event()

    def follow() -> None:
        with kiebitz.open(database) as session:
            for event in session.follow():
                seen.append(event)
                first.set()

    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        there.bind(("127.0.0.1", server))
        there.settimeout(PATIENCE_S)
        with running(*KIEBITZ, "relay", "-m", mode, "-w", database, "-q", ready="listening on"):
            client.sendto(b"REGISTER;alice", ("127.0.0.1", port))
            _, relay = there.recvfrom(100)
            there.sendto(b"REGISTERED;0", relay)
            until(lambda: bool(_events(database)), "the first event is there")
            reader = threading.Thread(target=follow)
            reader.start()
            assert first.wait(PATIENCE_S)
            there.sendto(b"ROUND STARTING;b8a8d0d6-8e3b-4ce0-8e86-000000000000", relay)
        reader.join(PATIENCE_S)
    assert not reader.is_alive()
    assert [event.kind for event in seen] == ["registered", "round_starting"]


def _events(database: str) -> list[kiebitz.Event]:
    with kiebitz.open(database) as session:
        return list(islice(session.events(), 1))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nothing.pcap", "there is no such file"),
        (str(ROOT / "README.md"), "is not a capture"),
        (str(CAPTURES / "maexchen-head-tiny.pcap") + ":2", "only databases have numbered sessions"),
    ],
)
def test_errors_are_of_one_kind_and_say_what_is_wrong(given: str, words: str) -> None:
    with pytest.raises(kiebitz.KiebitzError, match=words):
        kiebitz.open(given)


def test_wrong_questions(tmp_path: Path) -> None:
    with kiebitz.open(TINY) as session:
        with pytest.raises(kiebitz.KiebitzError, match="no field"):
            list(session.events("nonsense == 1"))
        with pytest.raises(kiebitz.KiebitzError, match="is not a position"):
            session.state("yesterday")
        with pytest.raises(kiebitz.KiebitzError, match="there is no game 9"):
            session.state(game=9)


def test_wrong_rules_for_ports() -> None:
    with pytest.raises(kiebitz.KiebitzError, match="there is no protocol maexen; did you mean maexchen"):
        kiebitz.import_capture(TINY, decode_as=["udp.port==9000,maexen"])


def test_importing_it_loads_nothing() -> None:
    program = (
        "import sys, kiebitz; print(*sorted(name for name in sys.modules if name.startswith('kiebitz')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.split() == ["kiebitz"]
    assert {"open", "diff", "Session"} <= {*dir(kiebitz)}
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        kiebitz.opne  # noqa: B018  # the access itself fails
