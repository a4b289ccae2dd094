from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import CAPTURES, ROOT, kiebitz
from imported_databases import database_of
from strength import every

BADCARD = "schafkopf-1.3-badcard.pcap"
FIVE = "catan-five-servers.pcapng.gz"


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


def sniffed(capture: str, database: Path, *options: str, **environment: str) -> str:
    arguments = [sys.executable, "-m", "kiebitz", "sniff", "-i", "-", "-w", str(database), *options]
    # The command takes plain pcap only through a pipe.
    data = (CAPTURES / capture).read_bytes()
    if capture.endswith(".gz"):
        data = gzip.decompress(data)
    env = {**os.environ, **environment}
    done = subprocess.run(arguments, cwd=ROOT, input=data, capture_output=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.full
def test_live_lines_have_the_names_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[names]\n"127.0.0.1" = "table 3"\n')
    out = sniffed(BADCARD, tmp_path / "game.db", KIEBITZ_CONFIG=str(file))
    assert "error[bad-field] Falsch: " in out
    assert "127.0.0.1" not in out


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
