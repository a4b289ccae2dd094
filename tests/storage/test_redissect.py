"""redissect: the same rows again from the bytes alone, and nothing lost that only the source knew."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from command import CAPTURES, kiebitz
from session_factory import Conversation, record

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.model import Chunk, End
from kiebitz.storage.read.recorded_items import RecordedItems

DERIVED = ("tables", "games", "messages", "diagnostics", "events", "snapshots")


def _dump(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    lines = list(connection.iterdump())
    connection.close()
    return lines


def _change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("redissect") / "all.db"
    captures = sorted(str(capture) for capture in CAPTURES.glob("maexchen-head-*.pcap"))
    assert kiebitz("import", *captures, "-w", str(path)).status == 0
    return path


@pytest.fixture
def database(recorded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(recorded, tmp_path / "copy.db"))


def test_all_derived_rows_come_back(database: Path) -> None:
    before = _dump(database)
    _change(database, *(f"DELETE FROM {table}" for table in DERIVED), "UPDATE streams SET protocol = NULL")
    done = kiebitz("redissect", str(database))
    assert (done.status, done.out, done.err) == (0, "", "")
    assert _dump(database) == before


@pytest.mark.full
def test_one_session_leaves_the_others_alone(database: Path) -> None:
    last = kiebitz("sessions", str(database), "--json").json[-1]["id"]
    before = _dump(database)
    assert kiebitz("redissect", f"{database}:{last}").status == 0
    assert _dump(database) == before
    listed = [kiebitz("events", f"{database}:{number}").out for number in (1, 2)]
    assert kiebitz("redissect", f"{database}:1").status == 0
    assert listed == [kiebitz("events", f"{database}:{number}").out for number in (1, 2)]
    # And all together bring the old numbers back.
    assert kiebitz("redissect", str(database)).status == 0
    assert _dump(database) == before


def test_values_known_only_to_the_source_are_kept(tmp_path: Path) -> None:
    talk = Conversation().says(b"REGISTER;alice").hears(b"REGISTERED").fault().says(b"")
    talk.says(b"ROLL;x", missing=9)
    other = Conversation("127.0.0.1:40001", number=2).says(b"REGISTER;bob").fault()
    path = tmp_path / "x.db"
    record(path, sorted([*talk.ends().items, *other.items], key=lambda item: item.ts_ns))
    before = _dump(path)
    assert kiebitz("redissect", str(path)).status == 0
    assert _dump(path) == before


def test_a_session_that_broke_off_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    record(path, Conversation().says(b"REGISTER;alice").hears(b"REGISTERED").items, ended=False)
    before = _dump(path)
    assert kiebitz("redissect", str(path)).status == 0
    assert _dump(path) == before


def test_a_clock_that_was_set_back_ends_no_stream_before_its_last_bytes(tmp_path: Path) -> None:
    hour_ns = 3600 * 10**9
    talk = Conversation().says(b"REGISTER;alice").hears(b"REGISTERED").ends().items
    late = Conversation("127.0.0.1:40001", number=2).says(b"REGISTER;bob").hears(b"REGISTERED").items
    path = tmp_path / "x.db"
    for item in talk[1:]:
        item.ts_ns -= hour_ns
    record(path, [*talk[:2], *late, talk[2]])
    items = [*RecordedItems(open_session(str(path))).items()]
    expected = [(Chunk, 1), (Chunk, 1), (End, 1), (Chunk, 2), (Chunk, 2)]
    assert [(type(item), item.stream.id) for item in items] == expected


@pytest.mark.full
def test_a_failure_leaves_the_database_as_it_was(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _dump(database)

    def fails(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("kiebitz.storage.derived.redissect.insert", fails)
    done = kiebitz("redissect", str(database))
    assert done.status == 1
    assert "the disk is full" in done.err
    assert _dump(database) == before
