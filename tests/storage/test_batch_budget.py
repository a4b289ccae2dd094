"""Findings are written in parts, also those of one item: memory is bounded, and nothing is lost between."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import kiebitz
from processes_and_rows import KIEBITZ, PATIENCE_S, rows
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
MANY = JSON.replace('format = "json"\nname = "t"\n', "") + 'A = "c:"\nB = "s: < A"\n[events]\n'


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


@pytest.mark.full
@pytest.mark.parametrize("messages", [200_000, 1_500_000], ids=["in one process", "in two processes"])
def test_ctrl_c_ends_an_import_within_a_packet(messages: int, tmp_path: Path) -> None:
    file, database = tmp_path / "bomb.toml", tmp_path / "bomb.db"
    file.write_text(of_events(MAX_EVENTS))
    recorder = Recorder(
        str(tmp_path / "made.db"), "relay", "bomb", started_ns=0, decode_as={("tcp", 4712): None}
    )
    recorder.record(conversation(*[b"B\n" * 30_000] * (messages // 30_000)))
    recorder.close()
    assert (
        kiebitz("export", str(tmp_path / "made.db"), "-T", "pcapng", "-o", str(tmp_path / "b.pcapng")).status
        == 0
    )
    command = [*KIEBITZ, "import", "-P", str(file), str(tmp_path / "b.pcapng"), "-w", str(database)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    try:
        end = time.monotonic() + PATIENCE_S
        while not database.exists() or os.path.getsize(database) < 1 << 20:
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    finally:
        process.kill()
        process.communicate()
    assert rows(database, "SELECT ended_ns IS NOT NULL FROM sessions") == [(1,)]
    assert kiebitz("check", str(database)).status == 0
