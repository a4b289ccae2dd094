"""Run the examples of README.md and of the pages in docs/, and compare their output.

Blocks of `console` are run by the shell, those of `python` by the interpreter, those of `sql` on a session.
The examples of a page build on each other, in a folder of its own.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from command import ODD, ROOT
from strength import a_few
from wireshark_comparison import tshark

from kiebitz import import_capture
from kiebitz.cli.main import run

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
UNTIL = "timeout 60 sh -c 'until grep -qs {} server.txt; do sleep 0.05; done'"
PATIENT = {
    "sleep 1": UNTIL.format("playing"),
    "cat server.txt": f"{UNTIL.format('stopped')}; cat server.txt",
}

LONG = {
    *(
        "docs/anonymizing.md",
        "docs/exports.md",
        "docs/stats.md",
        "docs/guides/class.md",
        "docs/guides/diff.md",
    ),
    *("docs/guides/live-peer.md", "docs/guides/malformed.md", "docs/guides/right-client.md"),
    *("docs/guides/okey-and-marias.md", "docs/guides/share-a-round.md", "docs/guides/ten-years.md"),
}
"""Pages with so many or so long commands that `make test` leaves them out."""


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def _with(language: str) -> list[Path]:
    return [page for page in PAGES if _blocks(page, language)]


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("captures", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def _examples(page: Path) -> Iterator[tuple[str, str]]:
    for block in _blocks(page, "console"):
        yield from re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("page", a_few(_with("console"), lambda page: _named(page) not in LONG, _named))
def test_the_examples_print_what_the_page_shows(page: Path, folder: Path) -> None:
    others = []
    if any(command.startswith("tshark ") for command, _ in _examples(page)):
        tshark()
    for command, shown in _examples(page):
        plain = _plain(command)
        # The README's as a reader runs them; of the many on other pages those that need no shell here.
        printed = _in_bash(command, folder) if plain is None or page == PAGES[0] else _here(plain)
        if printed != shown:
            others.append(f"$ {command}\n{printed}\ninstead of\n{shown}")
    assert not others, "\n".join(others)


def _plain(command: str) -> list[str] | None:
    """Return the arguments of a call of Kiebitz that needs no shell; None for any other command."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    # A `#` inside a word is none of a comment.
    lexer.commenters = ""
    words = list(lexer)
    if words[0] != "kiebitz" or any(set(word) <= set("|&;<>()") for word in words):
        return None
    return words[1:]


def _here(arguments: list[str]) -> str:
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)
    with redirect_stdout(written), redirect_stderr(written):
        run(arguments)
    written.seek(0)
    return written.read()


def _in_bash(command: str, folder: Path) -> str:
    for hasty, patient in PATIENT.items():
        command = command.replace(hasty, patient)
    if "> server.txt" in command:
        (folder / "server.txt").unlink(missing_ok=True)
    scripts = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-c", f"{command} 2>&1"],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
    )
    return done.stdout


@pytest.mark.parametrize("page", _with("python"), ids=_named)
def test_the_programs_run(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for program in _blocks(page, "python"):
        if not program.startswith("import "):
            # A piece of a module, which test_architecture.py looks for.
            continue
        exec(compile(program, _named(page), "exec"), {"__name__": "__main__"})
        assert capsys.readouterr().out


def test_the_queries_find_something(folder: Path) -> None:
    with import_capture(ODD, "game.db"):
        pass
    empty = {*_blocks(ROOT / "docs" / "database.md", "sql")}
    assert len(empty) >= 5
    # In a capture nothing is altered.
    for database in ("game.db", "captures/maexchen-lost-rolled.db"):
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            empty = {query for query in empty if connection.execute(query).fetchone() is None}
    assert not empty


def test_there_are_examples() -> None:
    assert len([*_examples(PAGES[0])]) >= 4
    assert sum(len([*_examples(page)]) for page in PAGES) >= 35
    assert len(_with("python")) >= 2
