"""`kiebitz protocols --check` and `--new`: mistakes, warnings, coverage, and the template."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import ROOT, kiebitz

from kiebitz.dissectors.protocol_file.reading.reader import read
from kiebitz.services.protocol_template import examples

CAPTURE = str(ROOT / "captures" / "maexchen-head-tiny.pcap")

MIA = """\
protocol = "mia"
transport = "udp"
port = 9000
format = "delimited"
delimiter = ";"

[messages]
REGISTER = "c: player=player"
REGISTERED = "s: < REGISTER"
REGISTER_SPECTATOR = "c: name=player"
"ROUND STARTING" = "s: token=id:token"
JOIN = "c: token=id:token < ROUND STARTING"
"ROUND STARTED" = "s*: number=0.. players=rest"
"YOUR TURN" = "s: token=id:token"
ROLL = "c: token=id:token < YOUR TURN"
"PLAYER ROLLS" = "s*: player=player"
ROLLED = "s: dice=[1..6] token=id:token < ROLL"
ANNOUNCE = "c: dice=[1..6] token=id:token < ROLLED"
ANNOUNCED = "s*: player=player dice=[1..6]"
"PLAYER LOST" = "s*: player=player reason=text"
SCORE = "s*: points=rest"

[identity]
login = ["REGISTER", "REGISTER_SPECTATOR"]
"""
"""Describes each message of the capture."""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mia.toml"


@pytest.mark.full
def test_a_new_file_is_valid(file: Path) -> None:
    done = kiebitz("protocols", "--new", "dice.toml")
    assert (done.status, done.out) == (0, "")
    assert done.err == "Edit it, then: kiebitz protocols --check dice.toml CAPTURE\n"
    done = kiebitz("protocols", "--check", "dice.toml")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "the properties of all protocols hold for 9 sample messages",
        "dice.toml: dice has 9 messages, 5 events, 1 rule: no errors, no warnings",
    ]
    assert not (file.parent / ".hypothesis").exists()


def test_a_new_file_on_standard_output_and_of_any_name(file: Path) -> None:
    done = kiebitz("protocols", "--new", "-")
    assert 'protocol = "game"' in done.out
    for name, protocol in {"7 Wonders!": "wonders", "catan": "game", "tcp": "game", "Ü": "game"}.items():
        assert kiebitz("protocols", "--new", f"{name}.toml").status == 0
        assert f'protocol = "{protocol}"' in (file.parent / f"{name}.toml").read_text()


@pytest.mark.parametrize("name", [name for name, _ in examples()])
def test_a_new_file_like_another(file: Path, name: str) -> None:
    assert kiebitz("protocols", "--new", "mine.toml", "--like", name).status == 0
    found = read((file.parent / "mine.toml").read_text()).specification
    assert (found.protocol, found.title) == ("mine", "Mine")
    assert found.messages


def test_a_new_file_like_nothing(file: Path) -> None:
    for name, hint in {"pexezo": ": did you mean pexeso?", "go": "; there are: maexchen, "}.items():
        done = kiebitz("protocols", "--new", "mine.toml", "--like", name)
        assert (done.status, done.out) == (1, "")
        assert done.err.startswith(f"kiebitz: no protocol and no example is called {name}{hint}")
        assert not (file.parent / "mine.toml").exists()


def test_an_existing_file_is_kept(file: Path) -> None:
    file.write_text("mine")
    done = kiebitz("protocols", "--new", "mia.toml")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("kiebitz: mia.toml exists: name another file, or delete it first\n")
    assert file.read_text() == "mine"


def test_mistakes_are_shown_with_their_places(file: Path) -> None:
    file.write_text(
        MIA.replace("REGISTERED =", "REGISTRED =").replace("s*: player=player r", "s*: p=playr r")
    )
    done = kiebitz("protocols", "--check", "mia.toml")
    assert (done.status, done.err) == (1, "")
    assert done.out.splitlines() == [
        "mia.toml:20:24: error: no type playr: did you mean player?",
        '  "PLAYER LOST" = "s*: p=playr reason=text"',
        "                         ^^^^^",
        "mia.toml: 1 error",
    ]


UNREADABLE = {
    "missing": (None, "mia.toml: this protocol file cannot be read: No such file or directory"),
    "not UTF-8": (b'protocol = "mia"\ntitle = "\xff"\n', "mia.toml: line 2 is not UTF-8"),
    "large": (b"#" * 300_000, "mia.toml: a protocol file has at most 256 KiB"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_file(file: Path, case: str) -> None:
    data, message = UNREADABLE[case]
    if data is not None:
        file.write_bytes(data)
    done = kiebitz("protocols", "--check", "mia.toml")
    assert (done.status, done.out, done.err.splitlines()[0]) == (2, "", f"kiebitz: {message}")


@pytest.mark.full
def test_coverage_of_a_capture(file: Path) -> None:
    file.write_text(MIA)
    done = kiebitz("protocols", "--check", "mia.toml", CAPTURE)
    assert done.err == ""
    assert done.status == 0
    assert done.out.splitlines() == [
        "mia.toml:1:12: warning: its messages can be those of maexchen, too:"
        " -d says which protocol a port has",
        '  protocol = "mia"',
        "             ^^^^^",
        "the properties of all protocols hold for 14 sample messages",
        "client → server: 17 of 17 messages (100.0%), 588 of 588 bytes (100.0%) without a diagnostic",
        "server → client: 52 of 52 messages (100.0%), 1,539 of 1,539 bytes (100.0%) without a diagnostic",
        "mia.toml: mia has 14 messages, no events, no rules: no errors, 1 warning",
    ]


def warnings_of(file: Path, text: str) -> list[str]:
    file.write_text(text)
    done = kiebitz("protocols", "--check", file.name, CAPTURE)
    found = (line.partition(" warning: ")[2] for line in done.out.splitlines() if " warning: " in line)
    return [*found][1:]


PICTURE = """
[events]
round = { on = "ROUND STARTED", opens = true, say = "round {number}" }
announced = { on = "ANNOUNCED", say = "{player}", put = { "cells.PLACE" = "dice.0", last = "player" } }
lost = { on = "PLAYER LOST", when = "reason == last", say = "{player} loses", ends = true }
won = { on = "SCORE", when = "points == 'nothing'", say = "won" }
counted = { on = "SCORE", silent = true, when = "points == 'nothing'", put = { n = 1 } }
[board.grid]
cells = "cells"
"""


@pytest.mark.full
def test_events_that_never_happen_and_an_empty_grid_have_warnings(file: Path) -> None:
    never = [
        'lost never happens, although the captures have "PLAYER LOST"',
        'won never happens, although the captures have "SCORE"',
    ]
    assert warnings_of(file, MIA + PICTURE.replace("PLACE", "{dice.0},{dice.1}")) == never
    # Names have no coordinates.
    found = warnings_of(file, MIA + PICTURE.replace("PLACE", "{player}"))
    assert found[:2] == never
    assert found[2].startswith("the grid shows none of ")
    assert "keys are " in found[2]
    assert "alice" in found[2]


@pytest.mark.full
def test_what_a_file_lacks_and_what_no_capture_has(file: Path) -> None:
    file.write_text(
        MIA.replace("\nROLL =", "\nREROLL =")
        .replace('< ROLL"', '< REROLL"')
        .replace("reason=text", "reason=1..6")
        .replace(
            'SCORE = "s*: points=rest"', 'SCORE = ["s*: points=rest", "s*: a=integer b=integer"]\nBYE = "c:"'
        )
    )
    done = kiebitz("protocols", "--check", "mia.toml", CAPTURE)
    assert done.status == 3
    lines = done.out.splitlines()
    warnings = [line.partition(" warning: ")[2] for line in lines if " warning: " in line]
    assert warnings[1:] == [
        "no capture contains REROLL from a client",
        "no capture contains PLAYER LOST from a server",
        "no message is read as this row of SCORE: another row fits before it",
        "no message in the captures has the fields of this row of SCORE",
        "no capture contains BYE from a client",
    ]
    failures = [index for index, line in enumerate(lines) if " × " in line]
    assert [lines[index] for index in failures] == [
        '5 × server → client: PLAYER LOST: reason: "ANNOUNCED_LOSING_DICE" is not a whole number'
        " [bad-number], first in #52",
        '2 × client → server: "ROLL" is not a message a client sends: did you mean REROLL? [unknown-message],'
        " first in #25",
    ]
    assert lines[failures[1] + 1].startswith("  ROLL;")
    assert "client → server: 15 of 17 messages (88.2%)" in done.out


@pytest.mark.full
def test_a_capture_of_another_protocol(file: Path) -> None:
    file.write_text(MIA.replace("9000", "9001").replace("REGISTER", "LOGIN").replace("JOIN", "ENTER"))
    text = file.read_text()
    for name in ("ROUND", "TURN", "ROLL", "ANNOUNCE", "LOST", "SCORE", "LOGIN", "ENTER"):
        text = text.replace(name, f"X{name}")
    file.write_text(text)
    done = kiebitz("protocols", "--check", "mia.toml", CAPTURE)
    assert done.status == 1
    assert (
        f"nothing in {CAPTURE} is mia; there are servers at udp 9000 (2,127 bytes): is framing right, and is"
        " port one of these?" in done.out
    )


@pytest.mark.full
def test_a_database(file: Path) -> None:
    kiebitz("import", CAPTURE, "-w", "game.db", "-d", "udp.port==9000,none")
    file.write_text(MIA)
    done = kiebitz("protocols", "--check", "mia.toml", "game.db:1", CAPTURE)
    assert done.status == 0
    assert "server → client: " in done.out


def test_without_hypothesis(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kiebitz.cli.protocol_check.find_spec", lambda name: None)
    file.write_text(MIA)
    done = kiebitz("protocols", "--check", "mia.toml")
    assert done.status == 0
    assert done.err.startswith("kiebitz: the properties of all protocols are not checked: hypothesis is not")


def test_completion() -> None:
    from kiebitz.cli.commands.protocols import protocols

    argument = next(parameter for parameter in protocols.params if parameter.name == "names")
    context = protocols.make_context("protocols", [], resilient_parsing=True)
    assert [each.value for each in argument.shell_complete(context, "mae")] == ["maexchen"]
    context = protocols.make_context("protocols", ["--check", "uno.toml"], resilient_parsing=True)
    assert [each.type for each in argument.shell_complete(context, "mae")] == ["file"]
