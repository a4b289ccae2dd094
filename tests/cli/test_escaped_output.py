from __future__ import annotations

import io
import json
import logging
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command import ROOT
from damaged_databases import FORGED, HOSTILE
from hostile_text import RICHS_OWN, is_harmless
from rich.segment import Segment
from rich.text import Text as RichText

from kiebitz.cli.mitm import log as mitmproxy_log
from kiebitz.cli.terminal import console
from kiebitz.cli.terminal.screen import LINE_BREAK, Console, Group, Table, Text, as_json
from kiebitz.dissectors.escaping import printable
from kiebitz.services.standard_streams import print_error_line, warn

RUFF = shutil.which("ruff", path=f"{Path(sys.executable).parent}:/usr/bin:/usr/local/bin")

PAST_IT = {
    "echo": "import click\n\nclick.echo('x')\n",
    "echo by its name": "from click import echo\n\necho('x')\n",
    "secho": "import click\n\nclick.secho('x')\n",
    "style": "import click\n\nclick.style('x', fg='red')\n",
    "prompt": "import click\n\nclick.prompt('x')\n",
    "click's own module": "from click.utils import echo\n\necho('x')\n",
    "print": "print('x')\n",
    "stdout": "import sys\n\nsys.stdout.write('x')\n",
    "stdout by its name": "from sys import stdout\n\nstdout.write('x')\n",
    "stderr": "import sys\n\nsys.stderr.write('x')\n",
    "the first stdout": "import sys\n\nassert sys.__stdout__\n",
    "rich's console": "from rich.console import Console\n\nConsole().print('x')\n",
    "rich's text": "from rich.text import Text\n\nText('x')\n",
    "rich's print": "from rich import print as show\n\nshow('x')\n",
    "rich's progress bar": "import rich.progress\n\nrich.progress.Progress()\n",
    "a log": "import logging\n\nlogging.warning('x')\n",
    "a candidate": "from click.shell_completion import CompletionItem\n\nCompletionItem('x')\n",
}


ROOMS = ["storage", "proxy", "dissectors", "cli"]
ROOMS += sorted(f"cli/{page.parent.name}" for page in (ROOT / "cli").glob("*/__init__.py"))


@pytest.mark.skipif(RUFF is None, reason="ruff is not installed")
def test_ruff_refuses_the_ways_past_it(tmp_path: Path) -> None:
    assert RUFF is not None
    # A project with the same rules, in which each room has a module for each way.
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ways = {f"{room}/new_{number}.py": (way, room) for room in ROOMS for number, way in enumerate(PAST_IT)}
    for path, (way, _) in ways.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"from __future__ import annotations\n\n{PAST_IT[way]}")
    done = subprocess.run(
        [RUFF, "check", "--no-cache", "--output-format", "json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    refused = {
        Path(each["filename"]).relative_to(tmp_path.resolve()).as_posix()
        for each in json.loads(done.stdout)
        if each["code"] in ("TID251", "T201")
    }
    assert [ways[path] for path in ways.keys() - refused] == []


def test_only_these_may_go_round_it() -> None:
    """A module that has moved would be refused itself, and leave its freedom to the next of its old name."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    freed = [place for place, rules in lint["per-file-ignores"].items() if "TID251" in rules]
    assert freed.count("tests/**") == 1
    for place in freed:
        assert place == "tests/**" or (ROOT / place).is_file()
    bans = lint["flake8-tidy-imports"]["banned-api"].values()
    named = {name for ban in bans for name in re.findall(r"\b(?:cli|kiebitz)\.[a-z_.]*[a-z]", ban["msg"])}
    assert "cli.terminal.console" in named
    for name in named:
        assert (ROOT / f"{name.replace('.', '/')}.py").is_file()


# The console.


def test_a_line_stays_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.show_line("a ", console.Styled(HOSTILE, "red", bold=True), HOSTILE)
    console.show_lines([HOSTILE, "b"])
    print_error_line(HOSTILE)
    warn(HOSTILE, HOSTILE)
    written = capsys.readouterr()
    assert (written.out.count("\n"), written.err.count("\n")) == (3, 3)
    assert is_harmless(written.out + written.err)
    assert rf"\n{FORGED}\x1b[2J" in written.out


def test_an_escape_is_wrapped_as_it_is_shown() -> None:
    lines = console.wrapped(f"{HOSTILE} and more", 40, "- ", "  ")
    assert all(is_harmless(line) and len(line) <= 40 for line in lines)
    assert "".join(line[2:] for line in lines).startswith(printable(HOSTILE)[:30])


def test_text_that_needs_escapes_is_no_candidate() -> None:
    found = console.with_prefix("", [("a", HOSTILE), (HOSTILE, None)])
    assert [(item.value, item.help) for item in found] == [("a", printable(HOSTILE))]


def test_a_value_for_programs_stays_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    console.write_json({HOSTILE: HOSTILE})
    out = capsys.readouterr().out
    assert is_harmless(out)
    assert json.loads(out) == {HOSTILE: HOSTILE}


# What rich draws.


class Raw:
    """A renderable that goes round our texts."""

    def __rich_console__(self, *_: object) -> object:
        yield Segment(HOSTILE)
        yield RichText(HOSTILE)


TEXTS = {
    "made": Text(HOSTILE),
    "put behind": Text("a").append(HOSTILE, "red"),
    "put together": Text.assemble(HOSTILE, (HOSTILE, "bold"), Text(HOSTILE)),
    "joined": Text(HOSTILE).join([Text("a"), Text("b")]).append(HOSTILE),
    "added": Text("a") + HOSTILE,
    "copied": Text("a").copy().append(HOSTILE),
    "of several lines": LINE_BREAK.join([Text("a"), Text("b")]).append(HOSTILE),
    "wrapped": Text("a b").lines(Console(), 2)[0].append(HOSTILE),
}


@pytest.mark.parametrize("way", TEXTS)
def test_a_text_has_no_line_break_but_ours(way: str) -> None:
    plain = TEXTS[way].plain
    assert is_harmless(plain)
    assert plain.count("\n") == (way == "of several lines")


def _table() -> Table:
    table = Table(HOSTILE)
    table.add_row(HOSTILE, Text(HOSTILE))
    return table


DRAWN = {
    "a string": HOSTILE,
    "a group": Group(HOSTILE, Text(HOSTILE)),
    "a table": _table(),
    "JSON": as_json({HOSTILE: [HOSTILE]}),
}


@pytest.mark.parametrize("what", [*DRAWN, "past our texts"])
def test_a_console_writes_nothing_that_drives_a_terminal(what: str) -> None:
    out = io.StringIO()
    shown = Console(file=out, width=1000, force_terminal=True)
    shown.print(DRAWN[what] if what in DRAWN else Raw())
    text = RICHS_OWN.sub("", out.getvalue())
    assert is_harmless(text)
    if what in DRAWN:
        assert not any(line.lstrip().startswith(FORGED) for line in text.splitlines())
    assert ":red_circle:" not in text
    assert "[red]" in text


# Mitmproxy's log.


def test_a_line_of_mitmproxys_log_stays_a_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for say in (mitmproxy_log.inform, mitmproxy_log.warn, mitmproxy_log.alert):
            say(f"%s {HOSTILE}")
    assert [record.getMessage() for record in caplog.records] == [printable(f"%s {HOSTILE}")] * 3


# Names of files, and arguments.
