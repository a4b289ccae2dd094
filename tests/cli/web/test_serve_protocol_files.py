"""Served databases with protocol files: each is read with its own text, and no text slows other sessions."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from command import kiebitz
from dice_file import DICE, OTHER, capture_game, write_file
from processes_and_rows import until
from served_pages import QUICK_S, Serving, serving

SLOW_ROWS = "\n".join(
    rf'X{row} = "c: t=/(\\w?){{{100 + row % 100}}}\\1[0-9]{"z" * (row // 100)}/"' for row in range(200)
)
SLOW = DICE.replace("[messages]\n", f"[messages]\n{SLOW_ROWS}\n")
"""A text with patterns that backtrack, each for a second when the dissector is made."""

ENDS_S = 5.0
"""Time limit in seconds for the server's end after Ctrl-C."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    database = folder / "dice.db"
    capture = capture_game(folder)
    assert kiebitz("import", capture, "-w", str(database), "-P", write_file(folder)).status == 0
    return database


def with_text(recorded: Path, path: Path, text: str) -> Path:
    """Copy a database and replace its protocol file, as a stranger would; it appears at once."""
    unfinished = path.with_suffix(".part")
    shutil.copy(recorded, unfinished)
    digest = hashlib.sha256(text.encode()).hexdigest()
    with closing(sqlite3.connect(unfinished)) as connection, connection:
        connection.execute("UPDATE protocol_files SET text = ?, sha256 = ?", (text, digest))
    return unfinished.rename(path)


def rolls(server: Serving) -> dict[str, str]:
    """Return the sentence about the first roll in each session, by the session's name."""
    found = {}
    for session in server.well("api/sessions")["sessions"]:
        events = server.well("api/tables/1/events", session=session["number"])["events"]
        found[session["name"]] = next(event["sentence"] for event in events if event["kind"] == "rolled")
    return found


EXPECTED = {"a.db:1": "alice rolls 5", "b.db:1": "alice throws a 5", "c.db:1": "alice rolls 5"}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("by_name", [True, False], ids=["named", "folder"])
def test_each_database_is_read_with_its_own_text(by_name: bool, recorded: Path, tmp_path: Path) -> None:
    paths = [
        with_text(recorded, tmp_path / name, text)
        for name, text in (("a.db", DICE), ("b.db", OTHER), ("c.db", DICE))
    ]
    arguments = [*map(str, paths)] if by_name else [str(tmp_path)]
    with serving(*arguments) as server:
        until(lambda: rolls(server) == EXPECTED, "all are served", QUICK_S)
        assert all(
            table["latest"].startswith("bob") and ("throws" in table["latest"]) == (name == "b.db:1")
            for one in server.well("api/home")["sessions"]
            for name in [one["session"]["name"]]
            for table in one["tables"]
        )
        if not by_name:
            with_text(recorded, tmp_path / "later.db", OTHER)
            later = EXPECTED | {"later.db:1": "alice throws a 5"}
            until(lambda: rolls(server) == later, "a later one is served with its own text", QUICK_S)
        assert "differently" not in server.err


@pytest.mark.parametrize("arrives", ["before", "later"])
def test_a_slow_text_slows_no_other_session(arrives: str, recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "class"
    folder.mkdir()
    shutil.copy(recorded, folder / "good.db")
    if arrives == "before":
        for number in range(3):
            with_text(recorded, folder / f"slow{number}.db", SLOW + f"\n# {number}\n")
    with serving(str(folder)) as server:
        until(lambda: "good.db:1" in rolls(server), "the good one is served", QUICK_S)
        if arrives == "later":
            for number in range(3):
                with_text(recorded, folder / f"slow{number}.db", SLOW + f"\n# {number}\n")
            time.sleep(3)
        for path in ("api/sessions", "api/home", "api/tables/1/state", "api/tables/1/events"):
            begun_s = time.monotonic()
            assert server.get(path).status == 200
            assert time.monotonic() - begun_s < ENDS_S, path
        # Requests for the slow ones, if they are served yet, keep no thread of the good one's.
        asking = [
            threading.Thread(
                target=server.get, args=("api/tables/1/events", None, "GET"), kwargs={"session": n}
            )
            for n in (2, 3, 4)
        ]
        for thread in asking:
            thread.start()
        begun_s = time.monotonic()
        assert server.get("api/tables/1/state", session=1).status == 200
        assert time.monotonic() - begun_s < ENDS_S
        for thread in asking:
            thread.join()
        begun_s = time.monotonic()
    assert time.monotonic() - begun_s < ENDS_S, "Ctrl-C ends it at once"
