from __future__ import annotations

import re
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command import CAPTURES, ODD, TINY, kiebitz, spawn
from conversation_files import blocks, check
from hypothesis import given, settings
from hypothesis import strategies as st
from processes_and_rows import until
from shells import Bash, Zsh, complete_in_fish, offered
from snapshots import DATA
from strength import a_few

from kiebitz.cli.completion.shells import parse_line

BADCARD = str(CAPTURES / "schafkopf-1.3-badcard.pcap")
NAMES = [
    *("al ice", "o'hara", 'a"b', "$(touch pwned)", "`touch pwned`", "a!b", "*", "~", "ü", "a\\b", "#1"),
    *("a;touch pwned", "a,b", "a:b=c", "a&b|c<d>e(f)", "{a,b}", "[x]", "$HOME"),
]
NO_WORDS = ["-x", "a\x1b[2J", "a\nb", "\u202eb", "a\x9b2J", "a\0b", "\u2028b", ""]

NOTE = "$(touch pwned) `touch pwned` %F{red} a:b\x1b[2J\x9b2J\n\u202e"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("completed")
    assert kiebitz("import", ODD, TINY, "-w", str(made / "game.db")).status == 0
    assert kiebitz("import", TINY, "-w", str(made / "odd.db")).status == 0
    with closing(sqlite3.connect(made / "odd.db")) as connection, connection:
        names = [(name, number) for number, name in enumerate([*NAMES, *NO_WORDS], 1)]
        connection.executemany("UPDATE events SET actor = ? WHERE id = ?", names)
        for change in ("games SET label = ?", "sessions SET name = ?"):
            connection.execute(f"UPDATE {change}", (NOTE,))
    (made / "tiny.pcap").write_bytes(Path(TINY).read_bytes())
    return made


@pytest.fixture(scope="module")
def bash(folder: Path) -> Iterator[Bash]:
    with Bash(folder) as started:
        yield started


# In a real bash.

LINES = blocks(DATA / "completed_lines.txt")


@pytest.mark.parametrize("title", a_few(LINES, lambda title: not title.endswith("full")))
def test_lines_in_bash(bash: Bash, title: str) -> None:
    check(LINES[title], "\n".join(f"{line}\n    {bash.completed(line)}" for line in LINES[title].steps))


def test_the_sessions_of_a_database_in_bash(bash: Bash) -> None:
    # Bash leaves what is before the colon as it is.
    assert bash.all_of("kiebitz state game.db:") == ["state", "game.db:1", "2"]
    assert bash.all_of("kiebitz events game.db:") == ["events", "game.db:1", "2", "*"]


def test_odd_names_are_words_in_bash(bash: Bash, folder: Path) -> None:
    before = sorted(folder.iterdir())
    found = bash.all_of("kiebitz events odd.db --as ")
    assert set(NAMES) <= set(found)
    assert not set(NO_WORDS) & set(found)
    assert sorted(folder.iterdir()) == before


# In a real zsh and a real fish.


@pytest.mark.full
def test_odd_names_are_words_in_zsh(bash: Bash, folder: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    before = sorted(folder.iterdir())
    with Zsh(folder) as zsh:
        found = zsh.all_of("kiebitz events odd.db --as ")
        assert set(NAMES) <= set(found)
        assert not set(NO_WORDS) & set(found)
        # The meaning of a number is shown next to it.
        for line in ("kiebitz state odd.db --game ", "kiebitz state odd.db:"):
            assert zsh.words(zsh.completed(line, "\t\t"))[-1][-1].isdecimal()
            assert not re.search("[\x80-\x9f\u2028\u202e]|\x1b\\[2J", zsh.written)
    assert sorted(folder.iterdir()) == before


@pytest.mark.full
def test_odd_names_are_words_in_fish(bash: Bash, folder: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    before = sorted(folder.iterdir())
    words = complete_in_fish("kiebitz events odd.db --as ", folder)
    program = "printf '%s\\0' " + " ".join(words)
    done = subprocess.run(["fish", "--no-config", "-c", program], capture_output=True, check=True)
    found = done.stdout.decode().split("\0")[:-1]
    # Fish puts in a tilde as it is.
    assert {*NAMES} - {"~"} <= {*found}
    assert not {*NO_WORDS} & {*found}
    assert complete_in_fish("kiebitz state odd.db --game ", folder) == ["1", "2"]
    assert sorted(folder.iterdir()) == before


WORDS = st.text(st.sampled_from(" '\"\\$`!*~#ab:=;&|(){}[]<>,/-") | st.characters(categories=["L", "N"]))


@pytest.mark.full
@settings(max_examples=30)
@given(st.lists(st.tuples(WORDS, WORDS, st.sampled_from(["", "'", '"']), st.booleans()), min_size=5))
def test_any_word_is_gone_on_with(cases: list[tuple[str, str, str, bool]]) -> None:
    lines, meant = [], []
    for kept, rest, quote, is_begun in cases:
        # As typed so far: the whole word in quotation marks, or each letter after a backslash.
        begun = parse_line("kiebitz " + quote, "").completion(kept) or ""
        line = f"x {quote}{begun}"
        at = parse_line(line, "" if is_begun else begun)
        assert (at.words, at.word, at.quote) == (["x"], kept, quote)
        assert at.kept == (kept if is_begun else "")
        going_on = at.completion(kept + rest)
        assert going_on is not None
        if kept + rest:
            lines.append(f"{quote}{begun if is_begun else ''}{going_on}{quote}")
            meant.append(kept + rest)
    program = "printf '%s\\0' " + " ".join(lines)
    done = subprocess.run(["bash", "-c", program], capture_output=True, check=True)
    assert not meant or done.stdout.decode().split("\0")[:-1] == meant


# What is offered.


def test_fields_to_edit_are_offered_with_their_values() -> None:
    for word, found in {
        "#31 d": ["#31 dice=3,3"],
        "31 o": ["31 only "],
        "31 only d": ["31 only dice=3,3"],
        "31 dice=2,1 o": [],
        "999 ": ["999 only "],
    }.items():
        line = f"kiebitz whatif {TINY} --edit '{word}"
        assert [one.removeprefix("plain,") for one in offered(line, word=word) if one] == found


def test_the_interfaces_are_offered() -> None:
    names = {name for _, name in socket.if_nameindex()}
    for command in ("sniff -i ", "relay -m transparent@9001 --print-rules -i "):
        assert {line.removeprefix("plain,") for line in offered(f"kiebitz {command}")} == names


def test_descriptions_of_numbers_are_offered_to_shells_that_show_them(folder: Path) -> None:
    found = offered(f"kiebitz follow {folder / 'tiny.pcap'} ", "zsh")
    assert found[:3] == ["plain", "1", "alice to 127.0.0.1:9000"]
    # A comma in a candidate is part of it.
    assert "plain,udp.port==9000,maexchen\tMäxchen" in offered(
        "kiebitz sniff -d udp.port==", "fish", "udp.port=="
    )
    assert 'split --max 1 ","' in kiebitz("completion", "fish").out


@pytest.mark.full
def test_a_session_that_is_being_recorded(tmp_path: Path) -> None:
    database = tmp_path / "live.db"
    sniff = spawn("sniff", "-i", "-", "-w", str(database), "-q", stdin=subprocess.PIPE)
    try:
        assert sniff.stdin is not None
        sniff.stdin.write(Path(TINY).read_bytes())
        sniff.stdin.flush()

        def alice_is_offered() -> bool:
            return database.exists() and "plain,alice" in offered(f"kiebitz state {database} --as ")

        until(alice_is_offered, "alice is known", 60)
        assert sniff.poll() is None
        sniff.stdin.close()
        assert sniff.wait(60) == 0
    finally:
        sniff.kill()
        for pipe in (sniff.stdout, sniff.stderr):
            assert pipe is not None
            pipe.close()
