from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import CAPTURES, ODD, ROOT, TINY, kiebitz
from imported_databases import database_of
from session_factory import Conversation, record
from strength import a_few, every
from terminals import OnTerminal, unstyled

BADCARD = "schafkopf-1.3-badcard.pcap"
FIVE = "catan-five-servers.pcapng.gz"


@pytest.fixture(scope="module")
def five() -> str:
    return database_of(FIVE)


@pytest.mark.parametrize(
    ("capture", "names"),
    every(
        3,
        [
            ("maexchen-head-tiny.pcap", {"alice", "bob", "carl", "dora", "zuschauer"}),
            ("schafkopf-1.3-2humans.pcap", {"Jürgen Groß", "Bärbel"}),
            (
                "catan-yaks-g1-3p.pcap.gz",
                {"King DirectHand (AI)", "ConcreteExchange (AI)", "AssortedPets (AI)"},
            ),
            ("okey-head-game-win.pcap.gz", {"boran", "istref", "pascal", "robin"}),
            ("cgml-hands.pcap.gz", {"robot Karel", "robot Emil & spol.", "wampaire", "robot <3>"}),
        ],
    ),
)
def test_messages_name_identified_clients(capture: str, names: set[str]) -> None:
    rows = kiebitz("messages", database_of(capture), "--json").json
    assert {row["player"] for row in rows} - {None} == names
    # The address is there all the same.
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", row["client"]) for row in rows)
    who = next(row for row in rows if row["player"])
    line = kiebitz("messages", database_of(capture), "-Y", f"# == {who['id']}").out.splitlines()[1]
    assert who["player"] in line
    assert who["client"] not in line


def test_the_latest_name_of_a_client_counts(tmp_path: Path) -> None:
    talk = (
        Conversation().says(b"REGISTER;old").hears(b"REGISTERED").says(b"REGISTER;new").hears(b"REGISTERED")
    )
    rows = kiebitz("messages", record(tmp_path / "game.db", talk.items), "--json").json
    assert {row["player"] for row in rows} == {"new"}


@pytest.mark.parametrize("command", a_few(["messages", "events", "games"], ["games"]))
@pytest.mark.full
def test_the_server_is_listed_where_there_are_several(command: str, five: str) -> None:
    several, one = kiebitz(command, five), kiebitz(command, TINY)
    assert "server" in several.out.splitlines()[0].split()
    assert "server" not in one.out.splitlines()[0].split()
    rows = kiebitz(command, five, "--json").json
    assert len({row["server"] for row in rows}) == 5
    assert {row["server"] for row in kiebitz(command, TINY, "--json").json} == {"127.0.0.1:9000"}


@pytest.mark.full
def test_a_replay_into_a_pipe_says_which_table_where_there_are_several(five: str) -> None:
    lines = kiebitz("replay", five, "--speed", "0", "--to", "#2").out.splitlines()
    assert lines[0].split(maxsplit=2)[1:] == [":8080", "player 0 joins"]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("capture", "result"),
    [
        ("catan-niedlichepixel-game2-3p.pcap.gz", "winner BlueBro; points BlueBro 9, RedBro 6, OrangeBro 7"),
        ("cgml-hands.pcap.gz", "contract G; declarer wampaire; money robot Emil & spol. 1, wampaire -2"),
        ("okey-head-game-win.pcap.gz", "winner pascal"),
        ("maexchen-head-tiny.pcap", "losers alice; reason ANNOUNCED_LOSING_DICE"),
    ],
)
def test_results_are_reported_by_names(capture: str, result: str) -> None:
    assert result in kiebitz("games", database_of(capture)).out.splitlines()[1]


def test_check_says_under_which_numbers_a_diagnostic_is_listed() -> None:
    rows = kiebitz("check", database_of(BADCARD), "--json").json
    by_code = {row["code"]: row for row in rows}
    assert (by_code["bad-field"]["message"], by_code["bad-field"]["player"]) == (118, "Falsch")
    for row in rows:
        (message,) = kiebitz(
            "messages", database_of(BADCARD), "-Y", f"number == {row['message']}", "--json"
        ).json
        assert message["event"] == row["event"]
        assert row["id"] in [diagnostic["id"] for diagnostic in message["flaws"]]
    text = kiebitz("check", database_of(BADCARD)).out
    assert "11.752960 s, message #118, stream 2, Falsch → 127.0.0.1:35555 (c2s), byte 7" in text
    with_event = next(row for row in rows if row["event"] is not None)
    assert f"message #{with_event['message']}, event #{with_event['event']}, stream" in text


def test_a_note_blames_no_player() -> None:
    out = kiebitz("check", database_of(BADCARD), "-Y", 'diag.severity == "note"').out
    assert "= from: server" in out
    assert "malformed" not in out


@pytest.mark.full
def test_messages_mark_what_is_diagnosticed_and_show_what_was_sent() -> None:
    done = kiebitz("messages", database_of(BADCARD), "-Y", "number == 118")
    assert r"error[bad-field] · gives a card for a Hochzeit · !KARTE\nBLAU\nSAU\n!END\n" in done.out
    assert (
        kiebitz("messages", database_of(BADCARD), "-Y", "number == 118", "--json")
        .json[0]["bytes"]
        .startswith("!KARTE")
    )
    with OnTerminal("messages", database_of(BADCARD), "-Y", "number in {117, 118}", columns=100) as command:
        assert command.ended() == 0
    plain, malformed = command.written.decode().splitlines()[1:3]
    assert "\x1b[31m" in malformed
    assert "error[bad-field]" in unstyled(malformed)
    assert "\x1b[" not in plain


@pytest.mark.full
def test_an_import_counts_errors_warnings_and_notes(tmp_path: Path) -> None:
    done = kiebitz("import", ODD, "-w", str(tmp_path / "game.db"))
    told = kiebitz("check", ODD).out.splitlines()[-1]
    assert f", {told} -> " in done.err
    again = kiebitz("import", TINY, "-w", str(tmp_path / "game.db"))
    assert ", no errors, no warnings, 3 notes -> " in again.err


def test_sessions_name_the_source_of_their_time(tmp_path: Path) -> None:
    kiebitz("import", TINY, "-w", str(tmp_path / "game.db"))
    assert "started (local)" in kiebitz("sessions", str(tmp_path / "game.db")).out


def test_a_capture_is_no_database_to_record_into(tmp_path: Path) -> None:
    capture = tmp_path / "catan.pcap"
    capture.write_bytes(Path(TINY).read_bytes())
    done = kiebitz("import", TINY, "-w", str(capture))
    assert done.status == 1
    assert "this is not a database, and only those can be recorded into: use another file" in done.err
    assert capture.read_bytes() == Path(TINY).read_bytes()


def test_kiebitz_alone_shows_its_help() -> None:
    done = kiebitz()
    # click before 8.2 prints the help as if it were asked for.
    assert (done.status, bool(done.out)) in ((2, False), (0, True))
    assert (done.err or done.out).startswith("Usage: kiebitz")
    assert "For help" not in done.err


@pytest.mark.full
@pytest.mark.parametrize("variable", ["FORCE_COLOR", "CLICOLOR_FORCE"])
@pytest.mark.parametrize("command", ["state", "check", "follow"])
def test_colours_may_be_asked_for(variable: str, command: str) -> None:
    catan = database_of("catan-yaks-g1-3p.pcap.gz")
    arguments = [sys.executable, "-m", "kiebitz", command, catan, *(["1"] if command == "follow" else [])]

    def shown(**environment: str) -> str:
        given = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "COLUMNS": "80", **environment}
        done = subprocess.run(arguments, cwd=ROOT, env=given, capture_output=True, text=True)
        assert done.returncode in (0, 3)
        return done.stdout

    coloured = shown(**{variable: "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"})
    assert re.search(r"\x1b\[[0-9;]*m", coloured)
    # `watch -c` knows no more than sixteen colours.
    assert not re.search(r"\x1b\[[0-9;]*[34]8;", coloured)
    plain = [shown(), shown(**{variable: "0"}), shown(**{variable: "1", "NO_COLOR": "1"})]
    assert not any("\x1b[3" in text or "\x1b[4" in text for text in plain)


def sniffed(capture: str, database: Path, *options: str) -> str:
    arguments = [sys.executable, "-m", "kiebitz", "sniff", "-i", "-", "-w", str(database), *options]
    # The command takes plain pcap only through a pipe.
    data = (CAPTURES / capture).read_bytes()
    if capture.endswith(".gz"):
        data = gzip.decompress(data)
    done = subprocess.run(arguments, cwd=ROOT, input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.full
def test_live_lines_say_which_table_where_there_are_several(tmp_path: Path) -> None:
    lines = sniffed(FIVE, tmp_path / "five.db").splitlines()
    last = lines[-1].split(maxsplit=2)
    assert re.fullmatch(r":\d+", last[1])
    assert len({line.split()[1] for line in lines if re.match(r" *\d+\.\d+  :\d+ ", line)}) >= 4


@pytest.mark.full
def test_live_errors_name_the_client_and_no_table_where_there_is_one(tmp_path: Path) -> None:
    out = sniffed(BADCARD, tmp_path / "game.db")
    assert re.search(r"^ *\d+\.\d+  ", out, re.MULTILINE)
    assert not re.search(r"^ *\d+\.\d+  :\d+ ", out, re.MULTILINE)
    assert 'error[bad-field] Falsch: KARTE: "BLAU" is not known here' in out
    assert "error[suit-not-followed] Falsch: Falsch plays GRAS OBER" in out


@pytest.mark.full
def test_a_live_filter_knows_names_and_sessions(tmp_path: Path) -> None:
    lines = sniffed(
        BADCARD, tmp_path / "game.db", "-Y", 'who == "Falsch" && session == 1 && diag'
    ).splitlines()
    assert lines
    assert any("Falsch: KARTE" in line for line in lines)
    assert sniffed(BADCARD, tmp_path / "other.db", "-Y", 'who == "nobody"') == ""
