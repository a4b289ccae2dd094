from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from foreign_files import create_as_stranger, folder_for_all, give_to_stranger
from strength import a_few

from kiebitz.dissectors.model import Chunk
from kiebitz.proxy.journal.reader import JournalError, JournalReader
from kiebitz.proxy.journal.writer import CHUNK, GAP, HEAD, LENGTH, OPEN, JournalWriter
from kiebitz.services.recording.rotation import Limits, Rotation
from kiebitz.services.supervision.journal_folder import JournalFolder, hold, remove_leftovers
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.session.follower import next_paths

# The folder of a relay that was killed.


def leave_spool(path: Path) -> Path:
    (path / "journal").mkdir(mode=0o700, parents=True)
    path.chmod(0o700)
    for name in ("00000001.journal", "00000002.journal", "start.json", "start.new"):
        (path / "journal" / name).write_bytes(b"{}")
    return path


def all_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def pipe(path: Path) -> None:
    os.mkfifo(path, 0o666)


def folder_of_links(path: Path) -> None:
    path.mkdir(0o700)
    (path / "journal").symlink_to(path.parent.parent / "victim")


def journal_of_links(path: Path) -> None:
    (path / "journal").mkdir(0o700, parents=True)
    path.chmod(0o700)
    (path / "journal" / "start.json").symlink_to(path.parent.parent / "victim" / "journal" / "start.json")


def open_to_all(path: Path) -> None:
    leave_spool(path)
    path.chmod(0o777)


def with_something_else(path: Path) -> None:
    leave_spool(path)
    (path / "journal" / "letter.txt").write_text("dear")


def test_tidying_removes_only_leftovers_of_a_killed_relay(tmp_path: Path) -> None:
    victim = leave_spool(tmp_path / "victim")
    before = all_below(victim)
    folder = tmp_path / "folder"
    folder.mkdir()
    makers: dict[str, Callable[[Path], object]] = {
        "left": leave_spool,
        "empty": lambda path: path.mkdir(0o700),
        "pipe": pipe,
        "open": open_to_all,
        "letter": with_something_else,
        "links": folder_of_links,
        "journal-of-links": journal_of_links,
        "link": lambda path: path.symlink_to(victim),
    }
    for name, make in makers.items():
        make(folder / f".game.db-spool-{name}")
    leave_spool(folder / ".other.db-spool-left")
    held = hold(leave_spool(folder / ".game.db-spool-held"))
    remove_leftovers(folder / "game.db")
    os.close(held)
    left = {path.name.removeprefix(".game.db-spool-") for path in folder.iterdir()}
    assert left == {"pipe", "open", "letter", "links", "link", ".other.db-spool-left", "held"}
    assert all_below(folder / ".game.db-spool-letter") == ["journal", "journal/letter.txt"]
    assert len(all_below(folder / ".game.db-spool-held")) == 5
    assert all_below(victim) == before


@pytest.mark.full
@pytest.mark.parametrize(
    "inside", a_few([False, True], [True], lambda inside: "many files" if inside else "many folders")
)
def test_tidying_takes_a_second_at_most(
    tmp_path: Path, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3000):
        if inside:
            (tmp_path / ".game.db-spool-x" / "journal").mkdir(0o700, parents=True, exist_ok=True)
            (tmp_path / ".game.db-spool-x").chmod(0o700)
            (tmp_path / ".game.db-spool-x" / "journal" / f"{number:08}.journal").touch()
        else:
            (tmp_path / f".game.db-spool-{number}").mkdir(0o700)
    clock = iter(number / 1000 for number in range(10_000))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    remove_leftovers(tmp_path / "game.db")
    left = len(all_below(tmp_path))
    assert 1900 < left < 2600


def test_the_folder_is_removed_though_another_one_is_in_its_place(tmp_path: Path) -> None:
    spool = JournalFolder(tmp_path / "game.db")
    (path,) = tmp_path.iterdir()
    spool.journal.mkdir()
    (spool.journal / "00000001.journal").touch()
    path.rename(tmp_path / "away")
    with_something_else(path)
    spool.discard()
    assert all_below(tmp_path / "away") == []
    assert len(all_below(path)) == 6


def test_a_folder_that_is_removed_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Path] = []

    def hold_late(folder: Path) -> int:
        if len(taken) < 3:
            taken.append(folder)
            remove_leftovers(tmp_path / "game.db")
        return hold(folder)

    monkeypatch.setattr("kiebitz.services.supervision.journal_folder.hold", hold_late)
    spool = JournalFolder(tmp_path / "game.db")
    assert len(taken) == 3
    assert list(tmp_path.iterdir()) == [spool.journal.parent]
    spool.discard()
    assert list(tmp_path.iterdir()) == []


# The journal.


def test_a_journal_is_not_written_into_a_folder_of_others(tmp_path: Path) -> None:
    folder = folder_for_all(tmp_path / "shared") / "journal"
    for make in (lambda path: path.mkdir(0o700), lambda path: path.symlink_to(tmp_path), Path.touch):
        create_as_stranger(folder, make)
        with pytest.raises(OSError, match="accessible to other users"):
            JournalWriter(folder, on_trouble=print)
        folder.rmdir() if folder.is_dir() and not folder.is_symlink() else folder.unlink()
    assert list((tmp_path / "shared").iterdir()) == []


def test_a_reader_reads_only_its_own_journal(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "journal", on_trouble=print)
    writer.chunk(writer.open("udp", "127.0.0.1:5", "127.0.0.1:9", 1), "c2s", 2, 0, b"mine")
    writer.flush()
    reader = JournalReader(tmp_path / "journal", identity=writer.identity)
    (tmp_path / "journal").rename(tmp_path / "away")
    other = JournalWriter(tmp_path / "journal", on_trouble=print)
    other.close()
    (item,) = reader.read()
    assert isinstance(item, Chunk)
    assert item.data == b"mine"
    with pytest.raises(JournalError, match="another folder"):
        JournalReader(tmp_path / "journal", identity=writer.identity)
    (tmp_path / "link").symlink_to(tmp_path / "away")
    with pytest.raises(JournalError, match="is lost"):
        JournalReader(tmp_path / "link", identity=writer.identity)
    reader.close()


STREAM = HEAD.pack(OPEN, 0, 1, 9, 0, 0) + b"udp\0a:1\0b"
SEGMENTS = {
    "a length that is too long": STREAM + HEAD.pack(CHUNK, 0, 1, (1 << 32) - 1, 0, 0),
    "an offset that no database holds": STREAM + HEAD.pack(CHUNK, 0, 1, 1, 0, (1 << 64) - 1) + b"x",
    "a gap that no database holds": STREAM + HEAD.pack(GAP, 0, 1, 8, 0, 0) + LENGTH.pack((1 << 64) - 1),
    "a gap with half a length": STREAM + HEAD.pack(GAP, 0, 1, 4, 0, 0) + bytes(100),
    "a stream that nobody opened": HEAD.pack(CHUNK, 0, 7, 1, 0, 0) + b"x",
    "a kind that there is not": HEAD.pack(9, 0, 1, 0, 0, 0),
}


@pytest.mark.parametrize("segment", SEGMENTS.values(), ids=SEGMENTS.keys())
def test_a_hostile_segment_is_damage(tmp_path: Path, segment: bytes) -> None:
    (tmp_path / "00000001.journal").write_bytes(segment)
    reader = JournalReader(tmp_path)
    with pytest.raises(JournalError, match="damaged"):
        reader.read()
    reader.close()


STARTS: dict[str, object] = {
    "a segment that is not there": {"segment": 4_000_000_000, "items": 0, "open": []},
    "a segment before the first": {"segment": -1},
    "more items than there can be": {"items": 1 << 70},
    "fewer than none": {"items": -5},
    "a stream's number": {"open": [[1 << 40, "udp", "a", "b", 0]]},
    "a stream's time": {"open": [[1, "udp", "a", "b", 1 << 80]]},
    "a transport": {"open": [[1, "../..", "a", "b", 0]]},
    "something else": [1],
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_a_hostile_start_is_damage(tmp_path: Path, start: object) -> None:
    (tmp_path / "00000001.journal").write_bytes(STREAM)
    (tmp_path / "start.json").write_bytes(json.dumps(start).encode())
    with pytest.raises(JournalError, match="damaged"):
        JournalReader(tmp_path)


def test_a_start_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "start.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(JournalError, match="too long"):
        JournalReader(tmp_path)


@pytest.mark.parametrize("name", ["00000001.journal", "start.json"])
@pytest.mark.parametrize("make", [pipe, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_an_entry_that_is_no_file_is_reported_as_damage(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    make(tmp_path / name)
    with pytest.raises(JournalError, match="damaged"):
        JournalReader(tmp_path).read()


# The next database of a rotation.

NEXT = "game_00001_20261122074829.db"


def mine(path: str) -> str:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
    return path


@pytest.mark.parametrize("ending", ["", "-journal", "-wal", "-shm"])
@pytest.mark.parametrize(
    "make",
    [pipe, Path.mkdir, Path.touch, lambda path: path.symlink_to(path.parent.parent / "victim")],
    ids=["pipe", "folder", "file", "link"],
)
def test_a_prepared_name_is_not_taken(
    tmp_path: Path, make: Callable[[Path], object], ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = folder_for_all(tmp_path / "shared")
    monkeypatch.setattr("time.strftime", lambda _: "20261122074829")
    bait = create_as_stranger(shared / f"{NEXT}{ending}", make)
    before = bait.lstat()
    made = Rotation(str(shared / "game.db"), Limits(1.0, None)).begin(mine)
    assert Path(made).name == NEXT.replace("00001", "00002")
    assert os.path.samestat(bait.lstat(), before)
    assert not (tmp_path / "victim").exists()
    assert not (ending and (shared / NEXT).exists())


def test_names_are_not_tried_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.strftime", lambda _: "20261122074829")
    for number in range(1, 1001):
        (tmp_path / NEXT.replace("00001", f"{number:05}")).touch()
    rotation = Rotation(str(tmp_path / "game.db"), Limits(1.0, None))
    with pytest.raises(StorageError, match="record in another folder"):
        rotation.begin(mine)
    assert Path(rotation.begin(mine)).name == NEXT.replace("00001", "01001")


def test_a_watcher_does_not_continue_in_a_database_of_others(tmp_path: Path) -> None:
    shared = folder_for_all(tmp_path / "shared")
    game = shared / "game.db"
    game.touch()
    create_as_stranger(shared / NEXT, Path.touch)
    create_as_stranger(shared / NEXT.replace("29.db", "30.db"), lambda path: path.symlink_to(game))
    assert next_paths(str(game)) == []
    own = shared / NEXT.replace("29.db", "31.db")
    own.touch()
    assert next_paths(str(game)) == [str(own)]
    # Who watches another user's recording watches the next one of that user, too.
    give_to_stranger(game)
    assert len(next_paths(str(game))) == 3
