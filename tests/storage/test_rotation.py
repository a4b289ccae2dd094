from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command import CAPTURES, kiebitz
from rotated_recording import assert_well_divided, divided, items_of, recorder_into, states, timeline_of
from session_factory import START_NS, Conversation
from strength import every, times

from kiebitz.dissectors.model import Chunk, Item, Stream
from kiebitz.services.recording.rotation import Limits, Rotation
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.seek import END, Position, game_at
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.recording.resuming import ResumedRecorder
from kiebitz.storage.recording.rotation import RotatingRecorder
from kiebitz.storage.session.session import Session

RECORDED = [
    "maexchen-head-tiny.pcap",
    "schafkopf-1.3-1human-round.pcap",
    "catan-yaks-g1-3p.pcap.gz",
    "okey-head-game-win.pcap.gz",
    "cgml-tiny.pcap.gz",
]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Timeline]]:
    folder = tmp_path_factory.mktemp("imported")
    made: dict[str, Timeline] = {}
    for name in RECORDED:
        path = folder / f"{name}.db"
        assert kiebitz("import", str(CAPTURES / name), "-w", str(path)).status == 0
        made[name] = timeline_of(open_existing(str(path)))
    yield made
    for timeline in made.values():
        timeline.connection.close()


@pytest.mark.full
@pytest.mark.parametrize("name", every(3, RECORDED, lambda name: name.split("-")[0]))
def test_all_databases_together_are_the_whole(
    tmp_path: Path, imported: dict[str, Timeline], name: str
) -> None:
    assert_well_divided(divided(tmp_path, items_of(imported[name])))


@pytest.mark.full
@pytest.mark.parametrize("name", every(5, RECORDED[::-1], lambda name: name.split("-")[0]))
def test_nothing_is_lost_where_no_message_ends(
    tmp_path: Path, imported: dict[str, Timeline], name: str
) -> None:
    # Each byte by itself, so that nearly every place is in the middle of a message over TCP.
    items: list[Item] = [
        Chunk(item.stream, item.direction, item.ts_ns, item.offset + at, item.data[at : at + 1])
        for item in items_of(imported[name])[: times(300, quick=40)]
        if isinstance(item, Chunk) and item.stream.transport == "tcp"
        for at in range(len(item.data))
    ] or items_of(imported[name])
    paths = divided(tmp_path, items, settled=False)
    assert_well_divided(paths)
    for path in paths:
        for command in ("check", "messages", "events", "state", "streams", "games", "replay"):
            assert kiebitz(command, str(path)).status in (0, 3)


def in_the_midst() -> list[Item]:
    talk = Conversation().talk("> REGISTER;alice", "< REGISTERED", "< ROUND STARTING;a", "> JOIN;a")
    return talk.talk("< ROUND STARTED;1;alice,bob", "< YOUR TURN;b", "> ROLL;b", "< ROLLED;5,3;c").items


def test_the_state_is_there_before_anything_happens(tmp_path: Path) -> None:
    first, second = tmp_path / "1.db", tmp_path / "2.db"
    recorder = recorder_into(first)
    recorder.record(in_the_midst())
    recorder.commit()
    recorder.continue_in(str(second))
    recorder.close()
    with closing(open_existing(str(first))) as before, closing(open_existing(str(second))) as after:
        ended, begun = timeline_of(before), timeline_of(after)
        assert ended.session.ended_ns == begun.session.started_ns
        assert states(begun, END) == states(begun, Position(elapsed_ns=0)) == states(ended, END)
        assert game_at(begun, 1, END).state == game_at(ended, 1, END).state
        assert [(game.id, game.label) for game in begun.games()] == [(1, "round 1")]
        assert list(begun.events()) == []
    drawn = kiebitz("state", str(second), "--game", "1")
    assert "5,3" in drawn.out


def test_a_session_goes_on_in_the_next_database(tmp_path: Path) -> None:
    items, path = in_the_midst(), tmp_path / "game.db"
    recorder = recorder_into(path)
    recorder.record(items[:-1])
    recorder.commit()
    session = Session(timeline_of(open_existing(str(path))), str(path))
    known = [event.number for event in session.events()]
    followed = session.follow()
    assert [next(followed).number for _ in known] == known
    recorder.continue_in(str(tmp_path / "game_00001_20260101000000.db"))
    recorder.record(items[-1:])
    recorder.close()
    assert [*known, *(event.number for event in followed)] == [*range(1, 8)]
    assert [stream.player for stream in session.streams()] == ["alice"]
    session.close()


@pytest.mark.parametrize(
    "call", [("redissect", "DB"), ("redissect", "DB:2"), ("whatif", "DB", "--drop", "#8")], ids=" ".join
)
def test_conditions_on_the_beginning_are_marked(tmp_path: Path, call: tuple[str, ...]) -> None:
    items = in_the_midst()
    recorder = recorder_into(tmp_path / "1.db")
    recorder.record(items[:-1])
    recorder.commit()
    recorder.continue_in(str(tmp_path / "2.db"))
    recorder.record(items[-1:])
    recorder.close()
    before = (tmp_path / "2.db").read_bytes()
    done = kiebitz(*(part.replace("DB", str(tmp_path / "2.db")) for part in call))
    assert done.status == 1
    assert "session 2 began in an earlier database" in done.err
    assert (tmp_path / "2.db").read_bytes() == before
    assert kiebitz("redissect", str(tmp_path / "1.db")).status == 0


def test_a_recording_begun_later_in_the_same_database_is_its_own(tmp_path: Path) -> None:
    recorder = recorder_into(tmp_path / "1.db")
    recorder.record(in_the_midst())
    recorder.commit()
    recorder.continue_in(str(tmp_path / "2.db"))
    recorder.close()
    later = recorder_into(tmp_path / "2.db")
    assert later.session_id == 3
    later.record(Conversation(number=next(later.stream_ids)).says(b"REGISTER;bob").hears(b"REGISTERED").items)
    later.close()
    assert kiebitz("redissect", f"{tmp_path / '2.db'}:3").status == 0


@pytest.mark.full
def test_a_connection_that_continues_is_exported_without_a_beginning(
    tmp_path: Path, imported: dict[str, Timeline]
) -> None:
    paths = divided(tmp_path, items_of(imported["okey-head-game-win.pcap.gz"]))
    capture = tmp_path / "second.pcapng"
    assert kiebitz("export", str(paths[1]), "-T", "pcapng", "-o", str(capture)).status == 0
    found = kiebitz("check", str(capture), "--nl")
    assert "mid-stream" in found.out
    with closing(open_existing(str(paths[1]))) as connection:
        (messages,) = connection.execute("SELECT count(*) FROM messages").fetchone()
    assert len(kiebitz("messages", str(capture), "--nl").out.splitlines()) == messages


def test_a_database_that_cannot_be_made_changes_nothing(tmp_path: Path) -> None:
    items = in_the_midst()
    recorder = recorder_into(tmp_path / "1.db")
    recorder.record(items[:4])
    recorder.commit()
    with pytest.raises(StorageError, match="there is no such folder"):
        recorder.continue_in(str(tmp_path / "nowhere" / "2.db"))
    recorder.record(items[4:])
    recorder.close()
    with closing(open_existing(str(tmp_path / "1.db"))) as connection:
        assert connection.execute("SELECT count(*) FROM chunks").fetchone() == (len(items),)
        assert connection.execute("SELECT ended_ns > started_ns FROM sessions").fetchone() == (1,)


@pytest.mark.full
def test_a_recorder_that_follows_a_dead_one_knows_the_databases_before(
    tmp_path: Path, imported: dict[str, Timeline]
) -> None:
    items = items_of(imported["catan-yaks-g1-3p.pcap.gz"])
    third = len(items) // 3
    paths = [str(tmp_path / "1.db"), str(tmp_path / "2.db")]
    recorder = recorder_into(tmp_path / "1.db")
    recorder.record(items[:third])
    rest = recorder.record_until_settled(items[third:])
    recorder.commit()
    recorder.continue_in(paths[1])
    recorder.record(rest[:third])
    recorder.commit()
    counted = recorder.counts
    recorder.release()
    resumed = ResumedRecorder(paths, 2)
    for kind in ("streams", "games", "messages", "events", "diagnostics"):
        assert resumed.counts[kind] == counted[kind]
    rest = rest[third:]
    assert resumed.items == len(items) - len(rest)
    known = {stream.id: stream for stream in resumed.open_streams}
    for item in rest:
        item.stream = known.get(item.stream.id, item.stream)
    resumed.record(rest)
    resumed.close()
    assert_well_divided([Path(path) for path in paths])


# When the next one is due, and what it is called.


def test_names_are_numbered_and_never_taken_twice(tmp_path: Path) -> None:
    made: list[str] = []

    def make(path: str) -> None:
        assert os.stat(path).st_size == 0
        assert os.stat(path).st_mode & 0o777 == 0o600
        made.append(path)

    for _ in range(2):
        rotation = Rotation(str(tmp_path / "game.one.db"), Limits(1.0, None))
        for _ in range(3):
            rotation.begin(make)
    assert len(set(made)) == 6
    for path in made:
        assert re.fullmatch(r"game\.one_0000[1-6]_20\d{12}\.db", Path(path).name)


def test_a_database_that_cannot_be_begun_leaves_no_file(tmp_path: Path) -> None:
    def fail(path: str) -> None:
        raise StorageError("the disk is full")

    rotation = Rotation(str(tmp_path / "game.db"), Limits(1.0, None))
    with pytest.raises(StorageError, match="full"):
        rotation.begin(fail)
    assert list(tmp_path.iterdir()) == []
    assert [rotation.postpone(), rotation.postpone()] == [True, False]
    with pytest.raises(StorageError, match="there is no such folder"):
        Rotation(str(tmp_path / "nowhere" / "game.db"), Limits(1.0, None)).begin(fail)


def test_an_empty_database_continues(tmp_path: Path) -> None:
    rotation = Rotation(str(tmp_path / "game.db"), Limits(0.01, 1))
    recorder = rotation.begin(lambda path: RotatingRecorder(path, "relay", "made up", started_ns=START_NS))
    time.sleep(0.02)
    assert not rotation.is_due(recorder)
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:9000", START_NS)
    recorder.record([Chunk(stream, "c2s", START_NS, 0, b"REGISTER;alice")])
    assert rotation.is_due(recorder)
    recorder.commit()
    rotation.begin(recorder.continue_in)
    assert not rotation.is_due(recorder)
    recorder.close()
