"""Hostile names of peers, and hostile texts in arguments and paths, control no terminal.

A name is in all messages about its player: the names of recorded players are replaced. Output about one
session
is tested in `test_hostile_database_text.py`, which spoils each text.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from altered_captures import replaced
from altered_sessions import recorded
from command import TINY, kiebitz
from corpora import put_sessions
from damaged_databases import FORGED
from hostile_text import NAMES, PLAYERS, RICHS_OWN, is_harmless, on_a_terminal, spelt
from strength import a_few, every
from tables import tried_commands


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    made = {}
    for protocol, (capture, player) in PLAYERS.items():
        known = recorded(capture)
        for kind, name in NAMES.items():
            folder = tmp_path_factory.mktemp(protocol) / "a\x1b[2J\u202e[b]"
            folder.mkdir()
            said = replaced(f"{player}={spelt(name, protocol)}")([*known.said])
            made[protocol, kind] = known.with_said(said).write(folder / "game.db")
    return made


CORPUS = tried_commands("test_hostile_text corpus")


@pytest.mark.parametrize("command", a_few(CORPUS, [["sessions"]], " ".join))
@pytest.mark.full
def test_no_name_in_a_corpus_drives_anything(
    command: list[str],
    corpus: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for columns in (None, "100"):
        monkeypatch.setenv("COLUMNS", columns or "80")
        show = kiebitz if columns is None else on_a_terminal
        done = show("corpus", command[0], corpus, *command[1:])
        assert done.status in (0, 3), done.err
        assert is_harmless(RICHS_OWN.sub("", done.out))
        assert is_harmless(done.err)


@pytest.fixture(scope="module")
def corpus(sessions: dict[tuple[str, str], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("corpus") / "a\x1b[2J\u202e[b]'"
    chosen = [path for at, path in sessions.items() if at[0] == "maexchen" or at[1] == "controls"]
    put_sessions(folder, chosen)
    return str(folder)


ODD = f"o\n{FORGED}\x1b[2J\x9b5m\u202ed[bold]{{0}}%s"
FAILING = tried_commands("test_hostile_text")
"""Commands that refuse what they are given; DB is a session."""


@pytest.mark.parametrize("command", every(4, FAILING, " ".join))
def test_no_argument_drives_the_terminal_by_way_of_an_error(command: list[str], tmp_path: Path) -> None:
    database = str(tmp_path / "game.db")
    assert kiebitz("import", TINY, "-w", database).status == 0
    words = {"DB": database, "TINY": TINY}
    done = kiebitz(*(words.get(argument, argument.replace("{odd}", ODD)) for argument in command))
    assert done.status in (1, 2)
    assert "error of Kiebitz" not in done.err
    assert is_harmless(done.out)
    assert is_harmless(done.err)
    assert f"\n{FORGED}" not in done.err


def test_a_file_with_a_hostile_name_is_reported_in_words(tmp_path: Path) -> None:
    whole = Path(TINY).read_bytes()
    (tmp_path / f"{ODD}.pcap").write_bytes(whole[:-5])
    (tmp_path / f"{ODD}.txt").write_bytes(b"no capture")
    for name in (f"{ODD}.pcap", f"{ODD}.txt", f"{ODD}.pcab"):
        commands = [[word, name] for word in ("events", "sessions", "redissect")] + [["export", "-T", name]]
        for command in (["import", name, "-w", str(tmp_path / f"{ODD}.db")], *commands):
            with contextlib.chdir(tmp_path):
                for done in (kiebitz(*command), on_a_terminal(*command)):
                    text = RICHS_OWN.sub("", done.out + done.err)
                    assert is_harmless(text)
                    assert f"\n{FORGED}" not in text
                    assert "[bold]{0}%s" in text or done.status == 0
