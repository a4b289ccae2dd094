from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from altered_message import RULE, Deed, altered_session, bytes_of, done_to, some
from cleanup import close_after_test
from command import CAPTURES, TINY, kiebitz
from session_factory import record
from strength import GAMES, a_few, times
from tcp_segments import plain

from kiebitz.cli.live_view import LiveView
from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.editing.item_edits import Splice
from kiebitz.dissectors.model import Altered, Item, Message, Stream
from kiebitz.storage.database.schema import TABLES
from kiebitz.storage.derived.derived_session import derive_session, revert_session
from kiebitz.storage.diff import compare
from kiebitz.storage.read.conditions import compile_optional_filter
from kiebitz.storage.read.message_queries import diagnostics, messages
from kiebitz.storage.read.recorded_items import RecordedItems
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.recording.recorder import Recorder
from kiebitz.storage.recording.resuming import ResumedRecorder
from kiebitz.storage.session.session import Session

SECOND = 1_000_000_000

Making = Callable[[Timeline, Message], Deed]

DEEDS: dict[str, Making] = {
    "drop": lambda _, row: Deed(row, "drop"),
    "double": lambda timeline, row: Deed(row, "double", bytes_of(timeline, row), kept=True),
    "change": lambda timeline, row: Deed(row, "change", bytes_of(timeline, _other(timeline, row))),
    "delay": lambda timeline, row: Deed(row, "delay", bytes_of(timeline, row), late_ns=SECOND // 2),
}


def _other(timeline: Timeline, row: Message) -> Message:
    every = [other for other in some(timeline, 10_000) if other.direction == row.direction]
    alike = [other for other in every if other.name == row.name and other.fields != row.fields]
    return (alike or every)[0]


def _accused(timeline: Timeline) -> set[tuple[str, str, str]]:
    return {(d.severity, d.code, d.text) for d in diagnostics(timeline, "d.severity <> 'note'")}


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("protocol", "action"),
    # Each action, and each protocol.
    a_few(
        [(protocol, action) for protocol in GAMES for action in DEEDS],
        lambda row: [*GAMES].index(row[0]) % len(DEEDS) == [*DEEDS].index(row[1]),
    ),
)
def test_no_violation_is_reported_and_all_can_be_undone(tmp_path: Path, protocol: str, action: str) -> None:
    capture = str(CAPTURES / GAMES[protocol])
    before = open_session(capture)
    accused = _accused(before)
    for number, row in enumerate(some(before, times(40, 2))):
        deed = DEEDS[action](before, row)
        after = altered_session(tmp_path / f"{number}.db", capture, [deed])
        assert _accused(after) <= accused, row
        sent = (None, None, None) if deed.kept else (row.ts_ns, bytes_of(before, row), row.name)
        alterations = after.connection.execute("SELECT action, sent_ns, original, name FROM alterations")
        assert alterations.fetchall() == [(action, *sent)]
        undone = revert_session(after, lambda done, total: None)
        assert compare(before, undone).equal, row
        for timeline in (after, undone):
            timeline.connection.close()
    before.connection.close()


DONE = ("change #33 ANNOUNCED;carl;5,1", "drop #34", "double #35", "delay #38 100")
"""An announcement is changed, another dropped, one doubled, and a turn late: see tests/data/commands, too."""


@pytest.fixture(scope="module")
def altered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("altered") / "game.db"
    altered_session(path, TINY, done_to(TINY, DONE)).connection.close()
    return path


def test_items_come_out_as_they_came_in(altered: Path, tmp_path: Path) -> None:
    timeline = open_session(str(altered))
    items = [plain(item) for item in RecordedItems(timeline).items()]
    again = record(tmp_path / "again.db", list(RecordedItems(timeline).items()))
    other = open_session(again)
    assert [plain(item) for item in RecordedItems(other).items()] == items
    assert sum(item[0] == "Altered" for item in items) == 4
    for one in (timeline, other):
        one.connection.close()


def test_pcapng_has_it_in_comments(altered: Path, tmp_path: Path) -> None:
    pcapng = tmp_path / "game.pcapng"
    assert kiebitz("export", str(altered), "-T", "pcapng", "-o", str(pcapng)).status == 0
    assert f"Kiebitz: changed by {RULE}; as it was sent: ANNOUNCED dice=3,3".encode() in pcapng.read_bytes()
    assert b"before this, on stream 2: Kiebitz: dropped by" in pcapng.read_bytes()
    # Broadcasts are the same there; a capture file does not tell which ones Kiebitz altered.
    found = kiebitz("diff", str(altered), str(pcapng), "--json").json
    assert (found["differences"], found["messages"]) == ([], [])


def test_it_is_redissected_compared_replayed_and_made_another(altered: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(altered, copy)
    before = _rows(copy)
    assert kiebitz("redissect", str(copy)).status == 0
    assert _rows(copy) == before
    assert kiebitz("diff", str(altered), str(copy)).status == 0
    assert kiebitz("replay", str(altered), "--speed", "0").status == 0
    # An altered message is dropped, and no mark moves to another.
    number = kiebitz("messages", str(altered), "--json", "-Y", 'altered == "change"').json[0]["id"]
    timeline = open_session(str(altered))
    (row,) = messages(timeline, "m.id = ?", [number])
    gone = Splice(row.stream.id, row.direction, row.offset, row.length, row.ts_ns, b"")
    derived_from = derive_session(timeline, [gone], lambda done, total: None)
    assert [m.altered for m in Session(derived_from).messages("altered")] == ["double", "delay"]
    for one in (timeline, derived_from):
        one.connection.close()
    assert kiebitz("whatif", str(altered), "--drop", f"#{number}").status == 3


def _rows(path: Path) -> list[list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return [
            connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES if table != "sessions"
        ]


# While it is recorded.


@pytest.mark.full
def test_it_goes_through_the_journal_and_a_recorder_that_dies(altered: Path, tmp_path: Path) -> None:
    """However much of it was committed, the rows are those of one recorder."""
    timeline = open_session(str(altered))
    items = list(RecordedItems(timeline).items())
    timeline.connection.close()
    marks = [number for number, item in enumerate(items) if isinstance(item, Altered)]
    for number, cut in enumerate(cut for mark in marks for cut in (mark, mark + 1)):
        path = str(tmp_path / f"{number}.db")
        first = Recorder(path, "relay", "made up", started_ns=items[0].ts_ns)
        first.record(_anew(items[:cut]))
        first.commit()
        first.release()
        second = ResumedRecorder([path], 1)
        assert second.items == cut
        known = {stream.id: stream for stream in second.open_streams}
        second.record(_anew(items[cut:], known))
        second.close()
        assert _rows(Path(path)) == _rows(altered)


def _anew(items: Sequence[Item], known: dict[int, Stream] | None = None) -> list[Item]:
    """Return the items on streams of their own, as another process would read them."""
    streams = known if known is not None else {}
    for item in items:
        was = item.stream
        streams.setdefault(was.id, Stream(was.id, was.transport, was.client, was.server, was.opened_ns))
    return [msgspec.structs.replace(item, stream=streams[item.stream.id]) for item in items]


def test_each_alteration_is_a_line_while_it_is_recorded(
    altered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    timeline = open_session(str(altered))
    items = list(RecordedItems(timeline).items())
    timeline.connection.close()
    for text, expected in (
        (None, ["changed ANNOUNCED to alice", "dropped ANNOUNCED to bob", "duplicated ANNOUNCED to carl"]),
        ('altered == "drop"', ["dropped ANNOUNCED to bob"]),
    ):
        recorder = Recorder(":memory:", "relay", "made up", started_ns=items[0].ts_ns)
        close_after_test(recorder.connection)
        view = LiveView(recorder, compile_optional_filter(text), quiet=False)
        recorder.record(_anew(items))
        view.show(recorder.close())
        lines = [line[14:] for line in capsys.readouterr().out.splitlines() if "altered  " in line]
        assert lines[: len(expected)] == [f"altered  {words}: {RULE}" for words in expected]
