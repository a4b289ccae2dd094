"""Findings are written in parts, also those of one item: memory is bounded, and nothing is lost between."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes_and_rows import rows
from test_resuming import all_rows

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection import inspector
from kiebitz.dissectors.inspection.isolation import GAME_ENDED
from kiebitz.dissectors.model import Chunk, Findings, Ids, Item, Stream
from kiebitz.dissectors.protocol_file.game.state import MAX_STATE, MAX_VALUE
from kiebitz.dissectors.protocol_file.game.table import MAX_EVENTS
from kiebitz.dissectors.registry import ProtocolFile, add_file, dissector_of, remove_files
from kiebitz.storage.recording.recorder import Recorder
from kiebitz.storage.recording.resuming import ResumedRecorder

JSON = 'protocol = "bomb"\nport = 4712\nframing = "lines"\nformat = "json"\nname = "t"\n[messages]\n'
MANY = (
    JSON.replace('format = "json"\nname = "t"\n', "")
    + 'A = "c:"\nB = "s: < A"\nC = "s:"\n[events]\nc = { on = "C", say = "y" }\n'
)


@pytest.fixture
def bomb(request: pytest.FixtureRequest) -> Iterator[Dissector]:
    add_file(ProtocolFile("bomb", request.param, "bomb.toml"))
    dissector = dissector_of("bomb")
    assert dissector is not None
    yield dissector
    remove_files(["bomb"])


def of_events(number: int) -> str:
    return MANY + "".join(f'e{each} = {{ on = "B", say = "x" }}\n' for each in range(number))


def conversation(*data: bytes) -> list[Item]:
    stream = Stream(1, "tcp", "127.0.0.1:40000", "127.0.0.1:4712", 0)
    items: list[Item] = []
    offset = 0
    for number, each in enumerate(data):
        items.append(Chunk(stream, "s2c", number + 1, offset, each))
        offset += len(each)
    return items


def inspected(dissector: Dissector, items: list[Item]) -> Findings:
    reader = inspector.Inspector([dissector], Ids(), {("tcp", 4712): dissector})
    for item in items:
        reader.feed(item)
    return reader.drain()


PUT = JSON + 'B = "s: n=[text] v=any"\n[events]\nput = { on = "B", put = { "p.{n}" = "v" } }\n'


def put(names: int, size: int) -> bytes:
    listed = ",".join(f'"p{number}"' for number in range(names))
    return b'{"t":"B","n":[%s],"v":{"c":"%s"}}\n' % (listed.encode(), b"x" * size)


@pytest.mark.parametrize(
    ("bomb", "data", "limit"),
    [
        (of_events(MAX_EVENTS), b"B\n", None),
        (of_events(MAX_EVENTS + 1), b"B\n", "more than 64 events"),
        (PUT, put(1, MAX_VALUE - 100), None),
        (PUT, put(1, MAX_VALUE), "65,536 are allowed"),
        (PUT, put(15, MAX_VALUE - 100), None),
        (PUT, put(17, MAX_VALUE - 100), "one message puts more than 1,048,576 bytes"),
        (PUT, b"".join(put(1, 60_000).replace(b"p0", b"q%d" % number) for number in range(17)), None),
        (
            PUT,
            b"".join(put(1, 60_000).replace(b"p0", b"q%d" % number) for number in range(30)),
            "the state has more than 1,048,576 bytes",
        ),
    ],
    indirect=["bomb"],
)
def test_a_limit_ends_the_game_and_nothing_else(bomb: Dissector, data: bytes, limit: str | None) -> None:
    found = inspected(bomb, conversation(data, data, b"?\n"))
    ended = [diagnostic.text for diagnostic in found.diagnostics if diagnostic.code == GAME_ENDED]
    assert len(ended) == (limit is not None)
    assert limit is None or limit in ended[0]
    assert len(found.messages) == 2 * data.count(b"\n") + 1
    assert sum(len(str(event.changes)) for event in found.events) < 2 * MAX_STATE


@pytest.mark.full
@pytest.mark.parametrize("bomb", [of_events(MAX_EVENTS)], indirect=True)
def test_one_item_is_written_in_parts(bomb: Dissector) -> None:
    parts = []
    reader = inspector.Inspector([bomb], Ids(), {("tcp", 4712): bomb})
    reader.on_full = lambda: parts.append(len(reader.drain().events))
    reader.feed(conversation(b"B\n" * 2000)[0])
    parts.append(len(reader.drain().events))
    assert sum(parts) == 2000 * MAX_EVENTS
    assert max(parts) <= inspector.MAX_DECODED_BYTES // 1000


class KilledError(BaseException):
    """The death of a recorder within an item."""


@pytest.mark.parametrize("bomb", [of_events(3)], indirect=True)
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_a_recorder_killed_between_two_parts_is_resumed(
    bomb: Dissector, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspector, "MAX_DECODED_BYTES", 40_000)
    items = [b"B\n" * 100, b"?\nB\n" * 100, b"B\n"]
    forced = {("tcp", 4712): bomb}

    def begun(name: str) -> Recorder:
        return Recorder(str(tmp_path / name), "relay", "bomb", started_ns=0, decode_as=forced)

    whole = begun("whole.db")
    whole.record(conversation(*items))
    whole.close()
    recorder = begun("killed.db")

    def commit_and_die() -> None:
        nonlocal parts
        recorder.commit()
        parts -= 1
        if not parts:
            raise KilledError

    recorder.set_on_full(commit_and_die)
    with pytest.raises(KilledError):
        recorder.record(conversation(*items))
    recorder.release()
    resumed = ResumedRecorder([str(tmp_path / "killed.db")], 1, forced)
    rest = conversation(*items)[resumed.items :]
    for item in rest:
        item.stream = resumed.open_streams[0]
    resumed.record(rest)
    resumed.close()
    assert all_rows(tmp_path / "killed.db") == all_rows(tmp_path / "whole.db")


RULES = "".join(f'r{number} = {{ on = "B", unless = "1 > 2", say = "no" }}\n' for number in range(300))
PUTS = ", ".join(f'"a.k{number}" = "({number} + 1)"' for number in range(100))


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    "bomb",
    [
        of_events(MAX_EVENTS),
        of_events(MAX_EVENTS).replace('"x"', f'"{"x" * 1900}"'),
        of_events(9).replace('"x"', f'"{"{who}" * 380}"'),
        MANY.replace("[events]", f"[rules]\n{RULES}[events]"),
        MANY + f'e = {{ on = "B", put = {{ {PUTS} }} }}\n',
    ],
    indirect=True,
    ids=["events", "sentences", "values in sentences", "rules", "changes"],
)
def test_the_database_is_bounded_by_its_messages(
    bomb: Dissector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspector, "MAX_EXCESS", 1 << 20)
    database, number = tmp_path / "game.db", 400
    other = Stream(2, "tcp", "127.0.0.1:40000", "127.0.0.2:4712", 0)
    recorder = Recorder(str(database), "relay", "bomb", started_ns=0, decode_as={("tcp", 4712): bomb})
    recorder.record([Chunk(other, "s2c", 0, 0, b"C\n")])
    recorder.record(conversation(*[b"B\n"] * number))
    recorder.record([Chunk(other, "s2c", number + 2, 2, b"C\n")])
    recorder.close()
    bound = (2 << 20) + number * (inspector.FINDINGS_PER_MESSAGE + 2 * inspector.FINDINGS_PER_BYTE)
    assert os.path.getsize(database) < bound
    assert rows(database, "SELECT count(*), sum(length) FROM messages") == [(number + 2, 2 * number + 4)]
    assert rows(database, "SELECT count(*), sum(length) FROM chunks") == [(number + 2, 2 * number + 4)]
    ((text,),) = rows(database, f"SELECT text FROM diagnostics WHERE code = '{GAME_ENDED}'")
    assert "its events are too large for its messages" in text
    of_other = "SELECT count(*) FROM events AS e JOIN tables AS t ON t.id = e.table_id WHERE t.server"
    assert rows(database, f"{of_other} = '127.0.0.2:4712'") == [(2,)]
