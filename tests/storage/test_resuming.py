"""A session that was broken off anywhere is carried on as if nothing had happened, in all protocols."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from cleanup import kept_until_end
from command import CAPTURES
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import every, times

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.model import Item, Stream
from kiebitz.storage.database.schema import SESSION_CONDITIONS, StorageError
from kiebitz.storage.read.recorded_items import RecordedItems
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.recording.recorder import Recorder
from kiebitz.storage.recording.resuming import ResumedRecorder

ONE_OF_EACH = [
    "catan-yaks-lobby.pcap.gz",
    "cgml-tiny.pcap.gz",
    "okey-head-tiny.pcap.gz",
    "maexchen-head-odd.pcap",
    "schafkopf-1.3-badcard.pcap",
]


@cache
def imported(capture: str) -> Timeline:
    with kept_until_end():
        return open_session(str(CAPTURES / capture))


def items_of(capture: str) -> Iterator[Item]:
    return RecordedItems(imported(capture)).items()


def on_known(items: Iterable[Item], known: Iterable[Stream]) -> Iterator[Item]:
    """Yield the items, on those streams where these are known, as a journal gives them."""
    streams = {stream.id: stream for stream in known}
    for item in items:
        item.stream = streams.get(item.stream.id, item.stream)
        yield item


def begun(path: Path, capture: str) -> Recorder:
    return Recorder(str(path), "relay", "a capture", started_ns=imported(capture).started_ns)


def all_rows(path: Path) -> dict[str, list[Any]]:
    tables = ("sessions", *SESSION_CONDITIONS)
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables
        }


@cache
def undisturbed(capture: str) -> dict[str, list[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.db"
        recorder = begun(path, capture)
        recorder.record(items_of(capture))
        recorder.close()
        return all_rows(path)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("capture", every(2, ONE_OF_EACH[::-1]))
@settings(max_examples=times(8), deadline=None)
@given(data=st.data())
def test_a_session_that_was_broken_off_is_carried_on(capture: str, data: st.DataObject) -> None:
    total = sum(1 for _ in items_of(capture))
    committed = data.draw(st.integers(0, total))
    lost = data.draw(st.integers(0, 5))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "broken-off.db"
        recorder = begun(path, capture)
        items = items_of(capture)
        recorder.record(islice(items, committed))
        recorder.commit()
        before = all_rows(path)
        recorder.record(islice(items, lost))
        recorder.gather()
        recorder.release()
        resumed = ResumedRecorder([str(path)], 1)
        assert resumed.items == committed
        assert all_rows(path) == before
        resumed.record(on_known(islice(items_of(capture), committed, None), resumed.open_streams))
        resumed.close()
        assert all_rows(path) == undisturbed(capture)


def test_unreproducible_messages_are_not_carried_over(tmp_path: Path) -> None:
    path = tmp_path / "game.db"
    recorder = begun(path, ONE_OF_EACH[2])
    recorder.record(items_of(ONE_OF_EACH[2]))
    recorder.commit()
    recorder.release()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM events WHERE id = (SELECT max(id) FROM events)")
    with pytest.raises(StorageError, match="do not follow from its bytes"):
        ResumedRecorder([str(path)], 1)
