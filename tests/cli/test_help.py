from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from command import ROOT, kiebitz

from kiebitz.cli.main import COMMANDS
from kiebitz.cli.main import kiebitz as group

NAMES = [name for section in COMMANDS.values() for name in section]


def _command(name: str) -> click.Command:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    return command


@pytest.mark.full(but=7)
@pytest.mark.parametrize("name", NAMES)
def test_help_has_a_sentence_and_an_example(name: str) -> None:
    done = kiebitz(name, "-h")
    assert done.status == 0
    first = (_command(name).help or "").strip().split("\n\n")[0]
    assert first.endswith(".")
    assert first[0].isupper()
    examples = re.findall(r"^ +(?:.*\| *)?kiebitz (\w+)", done.out, re.MULTILINE)
    assert name in examples or f"kiebitz {name}" in done.out.partition("Example")[2]


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_explained(name: str) -> None:
    for parameter in _command(name).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.opts


def test_the_list_of_commands_has_them_all() -> None:
    done = kiebitz("-h")
    assert done.status == 0
    for name in NAMES:
        assert re.search(rf"^  {name} +\S", done.out, re.MULTILINE)


def test_help_as_a_command() -> None:
    assert kiebitz("help").out == kiebitz("-h").out
    assert kiebitz("help", "state").out == kiebitz("state", "-h").out


def test_kiebitz_alone_shows_its_help() -> None:
    done = kiebitz()
    # click before 8.2 prints the help as if it were asked for.
    assert (done.status, bool(done.out)) in ((2, False), (0, True))
    assert (done.err or done.out).startswith("Usage: kiebitz")
    assert "For help" not in done.err


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version(option: str) -> None:
    assert kiebitz(option).out.startswith(
        f"kiebitz {version('kiebitz')} (Python {sys.version.split()[0]}, SQLite "
    )


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules that a command has loaded when it is over."""
    program = f"import sys; from kiebitz.cli.main import run; run({[*arguments]!r}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return set(done.stdout.split())


HEAVY = {"asyncio", "lark", "pyarrow", "scapy", "sqlite_utils"}


def test_start_loads_only_what_is_asked_for() -> None:
    loaded = loaded_by("sessions", "-h")
    assert "kiebitz.cli.commands.sessions" in loaded
    assert not loaded & {*HEAVY, "rich.console", "kiebitz.cli.commands.check"}
    assert not any(re.match(r"kiebitz\.proxy\.(?!system)\w", name) for name in loaded)
    # The list of commands needs no protocol.
    assert not any(re.match(r"msgspec|kiebitz\.dissectors\.grammar", name) for name in loaded_by("-h"))


@pytest.mark.full
def test_a_question_to_a_database_loads_only_what_was_spoken(tmp_path: Path) -> None:
    database = str(tmp_path / "game.db")
    assert not loaded_by("import", "captures/maexchen-head-tiny.pcap", "-w", database) & HEAVY
    loaded = loaded_by("events", database)
    assert "kiebitz.dissectors.protocols.maexchen.dissector" in loaded
    assert not loaded & {*HEAVY, "rich.console", "kiebitz.dissectors.protocols.catan.dissector"}


@pytest.mark.full
def test_no_command_loads_mitmproxy() -> None:
    program = (
        "import sys; from click import Context; from kiebitz.cli.main import kiebitz as group\n"
        "for name in group.list_commands(Context(group)): group.get_command(Context(group), name)\n"
        "print('mitmproxy' in sys.modules, 'kiebitz.cli.commands.addon_path' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == "False True\n"


@pytest.mark.parametrize(
    ("command", "former", "name"),
    [
        ("relay", "--double", "--duplicate"),
        ("relay", "--at-end", "--held-at-exit"),
        ("export", "--replaced", "--mapping-file"),
        ("import", "--replaced", "--mapping-file"),
        ("probe", "--wait", "--timeout"),
        ("probe", "--time", "--max-time"),
        ("probe", "--most", "--max-cases"),
        ("probe", "--again", "--last-verdict"),
        ("probe", "--like", "--via-session"),
        ("replay", "--patience", "--timeout"),
    ],
)
def test_former_option_names_are_accepted_but_hidden(command: str, former: str, name: str) -> None:
    found = _command(command)
    parser = found.make_parser(click.Context(found))
    assert parser._long_opt[former].obj is parser._long_opt[name].obj
    shown = found.get_help(click.Context(found))
    assert name in shown
    assert f"{former} " not in shown
