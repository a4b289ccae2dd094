"""Files: where a command writes, who may read what it wrote, and that no name from the network is a path."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from altered_captures import replaced
from altered_sessions import recorded
from command import ODD, TINY, kiebitz
from strength import every

NAMES = (
    "../../escaped",
    "/tmp/escaped-by-kiebitz",
    "a/../../escaped",
    "..",
    "~/escaped",
    "nul\0byte",
    "COM1",
)


@pytest.fixture(params=every(3, [0o000, 0o022, 0o077], "umask {:03o}".format))
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


WRITING = [
    ["import", TINY, "-w", "game.db"],
    *(
        ["export", "game.db", "-T", form, "-o", f"game.{form}"]
        for form in ("pcapng", "jsonl", "csv", "parquet")
    ),
    ["state", "game.db", "--svg", "state.svg"],
    ["replay", "game.db", "--speed", "100000", "--svg", "replay.svg"],
    ["redissect", "game.db"],
    ["import", ODD, "-w", "game.db"],
]


@pytest.mark.full
@pytest.mark.usefixtures("umask")
def test_written_files_are_private(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        for command in WRITING:
            done = kiebitz(*command)
            assert done.status == 0, done.err
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert files.keys() >= {"game.db", "game.pcapng", "game.parquet", "state.svg", "replay.svg"}
    assert set(files.values()) == {0o600}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", every(3, NAMES))
def test_no_name_from_the_network_is_a_path(name: str, tmp_path: Path) -> None:
    known = recorded("maexchen-head-tiny.pcap")
    folder = tmp_path / "some" / "folder"
    folder.mkdir(parents=True)
    known.with_said(replaced({"alice": name, "bob": f"{name}.db"})([*known.said])).write(folder / "game.db")
    with contextlib.chdir(folder):
        for command in WRITING[1:-1]:
            assert kiebitz(*command).status == 0
        for command in (["events", "game.db"], ["diff", "game.db", TINY], ["check", "game.db"]):
            assert kiebitz(*command).status in (0, 3)
    named = {command[-1] for command in WRITING[1:-2]} | {"game.db"}
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    # SQLite's files next to an open database.
    found -= {f"some/folder/game.db-{kind}" for kind in ("wal", "shm")}
    assert found == {f"some/folder/{name}" for name in named}
    assert not Path("/tmp/escaped-by-kiebitz").exists()
