from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, ROOT, TINY, Done, kiebitz
from conversation_files import Block, blocks, check
from hypothesis import given
from hypothesis import strategies as st
from served_pages import serving
from snapshots import DATA, as_bytes, marked
from strength import a_few
from terminals import OnTerminal

from kiebitz.cli.configuration.reading import parse_configuration
from kiebitz.cli.configuration.settings import ConfigurationError

BADCARD = str(CAPTURES / "schafkopf-1.3-badcard.pcap")
NAMES = '[names]\n"127.0.0.1" = "table 3"\n"127.0.0.1:9000" = "the server"\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("KIEBITZ_CONFIG", str(path))
    return path


def alone(*arguments: str, cwd: Path, **environment: str) -> Done:
    """Return the command in a process of its own, in a folder, with this environment."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kiebitz", *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Done(done.returncode, done.stdout, done.stderr)


# Mistakes.


@pytest.mark.parametrize(
    "block", blocks(DATA / "configuration_mistakes.txt").values(), ids=lambda block: block.title
)
def test_a_mistake_is_reported_at_its_place(file: Path, block: Block) -> None:
    file.write_bytes(b"\n".join(map(as_bytes, block.steps)))
    done = kiebitz("events", TINY)
    assert (done.status, done.out) == (2, "")
    said = done.err.replace(str(file), "FILE").splitlines()
    check(block, "\n".join([*block.steps, *(f"    {marked(line.encode(), ())}" for line in said)]))


def test_help_is_there_whatever_is_wrong(file: Path) -> None:
    file.write_text("x = 1")
    done = kiebitz("-h")
    assert done.status == 0
    assert done.out.endswith(f"Configuration file:\n  {file}\n")


TOML = st.text(st.sampled_from("[]{}.=\"'\n #,019abdt\\:") | st.characters(), max_size=60)


@given(TOML, st.sampled_from(["", "[names]\n", "names = ", '[names]\n"10.0.0.7" = ', "colour = "]))
def test_any_file_is_read_or_reported(text: str, before: str) -> None:
    try:
        found = parse_configuration("/c", f"{before}{text}".encode("utf-8", "surrogatepass"))
    except ConfigurationError as error:
        told = [str(error), *error.excerpt()]
    else:
        assert all(name.isprintable() for name in found.names.values())
        return
    assert len(told) in (1, 3)
    assert told[0].startswith("/c")
    if len(told) == 3:
        assert set(told[2].strip()) == {"^"}
        assert len(told[2]) <= len(told[1]) + 1 or not told[1].isascii()


# Where it is.


@pytest.mark.parametrize("home", ["XDG_CONFIG_HOME", "HOME"])
def test_it_is_looked_for_at_home(tmp_path: Path, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KIEBITZ_CONFIG")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv(home, str(tmp_path))
    file = tmp_path / ("kiebitz" if home == "XDG_CONFIG_HOME" else ".config/kiebitz") / "config.toml"
    assert kiebitz("-h").out.endswith(f"Configuration file:\n  {file} (not found)\n")
    file.parent.mkdir(parents=True)
    file.write_text("x = 1")
    assert kiebitz("-h").out.endswith(f"Configuration file:\n  {file}\n")
    done = kiebitz("streams", TINY)
    assert (done.status, done.err.splitlines()[0].partition(": unknown")[0]) == (
        2,
        f"kiebitz: {file}, line 1",
    )


def test_it_is_not_looked_for_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = [
        tmp_path / "config.toml",
        tmp_path / "kiebitz.toml",
        tmp_path / "own" / "kiebitz" / "config.toml",
    ]
    planted[-1].parent.mkdir(parents=True)
    for path in planted:
        path.write_text("x = 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KIEBITZ_CONFIG")
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    # By its standard a relative path is none.
    monkeypatch.setenv("XDG_CONFIG_HOME", "own")
    assert kiebitz("streams", TINY).status == 0


# Output.


@pytest.mark.full
@pytest.mark.parametrize(
    ("colour", "environment", "on_terminal", "in_pipe"),
    a_few(
        [
            ("always", {}, True, True),
            ("never", {}, False, False),
            ("auto", {}, True, False),
            ("always", {"NO_COLOR": "1"}, False, False),
            ("never", {"FORCE_COLOR": "1"}, True, True),
        ],
        lambda row: (row[0], len(row[1])) == ("always", 0),
    ),
)
def test_the_colours(
    file: Path, colour: str, environment: dict[str, str], on_terminal: bool, in_pipe: bool
) -> None:
    file.write_text(f'colour = "{colour}"')
    done = alone("check", BADCARD, cwd=ROOT, KIEBITZ_CONFIG=str(file), **environment)
    assert ("\x1b[31m" in done.out) == in_pipe
    surroundings: dict[str, Any] = {"KIEBITZ_CONFIG": str(file), **environment}
    with OnTerminal("check", BADCARD, **surroundings) as command:
        assert command.ended() == 3
    assert (b"\x1b[31m" in command.written) == on_terminal


@pytest.mark.full
def test_pictures_have_no_colours_either(file: Path) -> None:
    file.write_text('colour = "never"')
    with OnTerminal("state", TINY, KIEBITZ_CONFIG=str(file)) as command:
        assert command.ended() == 0
    assert not re.search(rb"\x1b\[[0-9;]*[34][0-9;]*m", command.written)


@pytest.mark.full
def test_live_lines_have_the_names(file: Path, tmp_path: Path) -> None:
    file.write_text(NAMES)
    with Path(BADCARD).open("rb") as capture:
        done = subprocess.run(
            [sys.executable, "-m", "kiebitz", "sniff", "-i", "-", "-w", str(tmp_path / "game.db")],
            stdin=capture,
            capture_output=True,
            cwd=ROOT,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 0
    assert "error[bad-field] Falsch: " in done.stdout
    assert "127.0.0.1" not in done.stdout


@pytest.mark.full
def test_the_page_has_the_names(file: Path) -> None:
    file.write_text(NAMES)
    with serving(TINY) as server:
        (table,) = server.well("api/tables")["tables"]
    assert (table["server"], table["place"]) == ("127.0.0.1:9000", "the server")
