from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command import ODD, ROOT, TINY, kiebitz
from file_conversations import Conversation as Talk
from kiebitz_noughts.dissector import NOUGHTS
from processes_and_rows import free_port, running
from session_factory import Conversation, record

from kiebitz.dissectors.registry import BUILT_IN, installed, plugins

KNOBELN = "from kiebitz_knobeln.dissector import KNOBELN, Dissector\n"

UNUSABLE = [
    # What a plug-in's module holds, the protocol that it offers as its THING, and why that is left out.
    ("import not_there", "knobeln", "cannot be loaded (ModuleNotFoundError: No module named 'not_there')"),
    ("raise ValueError('on\\ntwo lines')", "knobeln", "cannot be loaded (ValueError: on two lines)"),
    ("raise SystemExit(7)", "knobeln", "cannot be loaded (SystemExit: 7)"),
    ("", "knobeln", "cannot be loaded (AttributeError: module 'offered' has no attribute 'THING')"),
    ("THING = None", "knobeln", "offered:THING is not a Dissector"),
    (f"{KNOBELN}THING = Dissector", "knobeln", "offered:THING is not a Dissector"),
    (
        f"{KNOBELN}THING = Dissector(grammar=KNOBELN.grammar, transport='udp', framer=KNOBELN.framer)",
        "knobeln",
        "missing 2 required keyword-only arguments: 'codec' and 'table'",
    ),
    (f"{KNOBELN}THING = KNOBELN", "okay", "it offers okay, but offered:THING is knobeln"),
    (f"{KNOBELN}THING = KNOBELN", "maexchen", "there is a protocol maexchen already, from Kiebitz itself"),
]


def lay_out(folder: Path, package: str, module: str, code: str, protocol: str) -> None:
    """A package that offers a protocol, as pip leaves it in a folder."""
    (folder / f"{module}.py").write_text(code)
    about = folder / f"{module}-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(f"[kiebitz.dissectors]\n{protocol} = {module}:THING\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("offered", "other"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    plugins.cache_clear()
    yield tmp_path
    plugins.cache_clear()


SQUARES = """\
┌───┬───┬───┐  bob is to move
│ X │ O │ O │  alice: X
├───┼───┼───┤  ▶ bob: O
│   │ X │   │
├───┼───┼───┤
│   │   │ X │
└───┴───┴───┘
alice wins
"""
COUNTED = """\
Squares taken, games won
         squares                             games
  alice  3 ████████████████████████████████  1 ██████████▋
  bob    2 █████████████████████▍            0
"""


def test_a_plugin_brings_pictures_and_statistics(folder: Path) -> None:
    code = "from kiebitz_noughts.dissector import NOUGHTS as THING"
    lay_out(folder, "kiebitz-noughts", "offered", code, "noughts")
    talk = Talk(NOUGHTS, "\r\n", 3333).send("a> HELLO alice", "a< WELCOME", "b> HELLO bob", "b< WELCOME")
    talk.send(*(f"*< {line}" for line in ("START alice bob", "MARK alice 1", "MARK bob 2", "MARK alice 5")))
    talk.send("*< MARK bob 3", "*< MARK alice 9", "*< WON alice")
    database = record(folder / "x.db", talk.items, ended=False)
    _, _, shown = kiebitz("state", database).out.partition("\n")
    assert "".join(f"{line.rstrip()}\n" for line in shown.splitlines()) == SQUARES
    assert COUNTED in "".join(f"{line.rstrip()}\n" for line in kiebitz("stats", database).out.splitlines())
    target = folder / "table.svg"
    assert kiebitz("state", database, "--svg", str(target)).status == 0
    seen = [*ElementTree.parse(target).getroot().itertext()]
    assert {"X", "alice", "bob", "bob is to move"} <= {*seen}


@pytest.mark.parametrize(("code", "protocol", "reason"), UNUSABLE)
def test_a_plugin_that_cannot_be_used_is_left_out(
    folder: Path, code: str, protocol: str, reason: str
) -> None:
    lay_out(folder, "some-game", "offered", code, protocol)
    found = installed()
    assert tuple(found.dissectors.values()) == BUILT_IN
    assert found.origins == {}
    (problem,) = found.problems
    assert problem.startswith("the plug-in some-game 1.2 is left out: ")
    assert reason in problem
    assert problem.endswith("; update it, or remove it with pip uninstall some-game")
    assert problem.isprintable()


def test_the_others_are_taken_in(folder: Path) -> None:
    lay_out(folder, "broken-game", "offered", "import not_there", "a")
    lay_out(folder, "some-game", "other", f"{KNOBELN}THING = KNOBELN", "knobeln")
    found = installed()
    assert [*found.dissectors][-1] == "knobeln"
    assert len(found.dissectors) == len(BUILT_IN) + 1
    assert found.origins == {"knobeln": "some-game 1.2"}
    assert len(found.problems) == 1


def test_of_two_for_one_protocol_the_second_is_left_out(folder: Path) -> None:
    for module in ("offered", "other"):
        lay_out(folder, f"{module}-game", module, f"{KNOBELN}THING = KNOBELN", "knobeln")
    found = installed()
    assert found.origins == {"knobeln": "offered-game 1.2"}
    (problem,) = found.problems
    assert (
        "other-game 1.2 is left out: there is a protocol knobeln already, from offered-game 1.2;" in problem
    )


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("protocols",), 0), (("events", TINY), 0), (("events", TINY, "-Y", "a.b"), 2), (("check", ODD), 3)],
)
def test_omissions_are_reported_once(folder: Path, arguments: tuple[str, ...], status: int) -> None:
    lay_out(folder, "broken-game", "offered", "raise OSError('\x1b')", "a")
    done = kiebitz(*arguments)
    assert done.status == status
    first, *others = done.err.splitlines()
    assert first.startswith(
        "kiebitz: the plug-in broken-game 1.2 is left out: offered:THING cannot be loaded"
    )
    assert "\\x1b" in first
    assert not any("broken-game" in line for line in others)


def test_a_database_of_other_protocols_is_read_without_plugins(folder: Path, tmp_path: Path) -> None:
    database = record(tmp_path / "x.db", Conversation().says(b"REGISTER;alice").hears(b"REGISTERED").items)
    plugins.cache_clear()
    lay_out(folder, "broken-game", "offered", "import not_there", "a")
    for command in ("events", "messages", "state"):
        done = kiebitz(command, database)
        assert (done.status, done.err) == (0, "")
        assert "alice" in done.out


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    lay_out(tmp_path, "broken-game", "offered", "import not_there", "a")
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("arguments", "times"), [(["-h"], 0), (["streams", "-h"], 0), (["streams", TINY], 1), (["protocols"], 1)]
)
def test_only_commands_that_need_protocols_load_them(
    broken: dict[str, str], arguments: list[str], times: int
) -> None:
    command = [sys.executable, "-m", "kiebitz", *arguments]
    done = subprocess.run(command, env=broken, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout
    assert done.stderr.count("the plug-in broken-game 1.2 is left out") == times == done.stderr.count("\n")


@pytest.mark.full
def test_completion_in_a_shell_prints_no_notices(broken: dict[str, str]) -> None:
    words = {"COMP_LINE": "kiebitz protocols maex", "COMP_WORD": "maex", "_KIEBITZ_COMPLETE": "bash_complete"}
    program = "import sys; sys.argv[0] = 'kiebitz'; from kiebitz.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], env=broken | words, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("plain,maexchen\n", "")


@pytest.mark.full
def test_of_the_two_processes_of_a_relay_one_tells(
    broken: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", broken["PYTHONPATH"])
    mode = f"reverse:udp://127.0.0.1:{free_port('udp')}@{free_port('udp')}"
    command = (sys.executable, "-m", "kiebitz", "relay", "-m", mode, "-w", str(tmp_path / "x.db"))
    with running(*command, ready="broken-game 1.2 is left out") as relay:
        assert relay.stderr is not None
        # The other process has loaded all by then.
        assert relay.stderr.readline().startswith("listening on")
