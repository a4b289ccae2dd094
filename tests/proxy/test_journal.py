"""The journal: what is written is read, whatever happens to the writer, the disk or the reader in between."""

from __future__ import annotations

import os
import re
import resource
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conversation_files import Block, blocks, check
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import DATA, as_bytes, as_text
from strength import times
from tcp_segments import plain

from kiebitz.dissectors.model import Altered, Chunk, Direction, End, Gap, Item, Stream
from kiebitz.proxy.alterer import Mark
from kiebitz.proxy.journal.reader import JournalError, JournalReader
from kiebitz.proxy.journal.writer import ALTERED, HEAD, MAX_PAYLOAD, JournalWriter

OF_NETWORK = ("network", "network", None)
"""Group, blame and expectation of what the network does."""


def no_trouble(text: str) -> None:
    raise AssertionError(text)


def writer_of(directory: Path, **settings: Any) -> JournalWriter:
    return JournalWriter(directory, **{"on_trouble": no_trouble, **settings})


def one_stream(directory: Path, **settings: Any) -> tuple[JournalWriter, int]:
    """Return a writer with a stream, whose record has 39 bytes, and the stream's number."""
    writer = writer_of(directory, **settings)
    return writer, writer.open("udp", "a:1", "b:2", 1)


def read_all(reader: JournalReader) -> list[Item]:
    items: list[Item] = []
    while batch := reader.read():
        items += batch
    return items


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size` bytes: a disk that is full, without filling one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def journaled(steps: str, directory: Path) -> list[str]:
    """Return what is read of the journal of a line in journal.txt, and what is reported."""
    lines: list[str] = []
    disk_has_room = True
    settings: dict[str, Any] = {
        **{"on_trouble": lambda text: lines.append(f"! {text}"), "has_room": lambda: disk_has_room},
        "retry_seconds": 0.0,
    }
    reader = JournalReader(directory)
    writer = None
    streams = set()
    with ExitStack() as disk:
        for ts_ns, step in enumerate([*steps.split("; "), "read"], 1):
            word, *rest = re.findall(r"'[^']*'|\S+", step)
            if word == "retry":
                settings["retry_seconds"] = float(rest[0])
                continue
            if word == "read":
                for item in read_all(reader):
                    stream = item.stream
                    if stream.id not in streams:
                        streams.add(stream.id)
                        ends = f"{stream.transport} {stream.client} {stream.server}"
                        lines.append(f"{stream.id} opened {stream.opened_ns} {ends}")
                    what, _, *parts = plain(item)
                    shown = [f"'{as_text(part)}'" if isinstance(part, bytes) else str(part) for part in parts]
                    lines.append(f"{stream.id} {what} {' '.join(shown)}")
                lines.append("stopped" if reader.stopped else "-")
                continue
            writer = writer or JournalWriter(directory, **settings)
            values: list[Any] = [int(value) if value.isdecimal() else value.strip("'") for value in rest]
            if word == "full":
                disk.enter_context(largest_file(0))
            elif word in ("crowded", "free"):
                disk.close()
                disk_has_room = word == "free"
            elif word == "open":
                transport, client, server = values
                writer.open(transport, client, server, ts_ns)
            elif word == "altered":
                number, direction, offset, length, kind, *more = values
                rule, since, original, name, fields = [*more, *[None] * 5][:5]
                mark = Mark(kind, rule or "", since, original and as_bytes(original), name, fields)
                writer.altered(number, direction, ts_ns, offset, length, mark)
            elif word in ("chunk", "fault"):
                number, direction, offset, *texts = values
                told = [as_bytes(texts[0])] if word == "chunk" else texts
                getattr(writer, word)(number, direction, ts_ns, offset, *told)
            elif word == "end":
                writer.end(values[0], ts_ns, values[1])
            else:
                getattr(writer, word)()
    return lines


@pytest.mark.parametrize("block", blocks(DATA / "journal.txt").values(), ids=lambda block: block.title)
def test_cases(block: Block, tmp_path: Path) -> None:
    (steps,) = block.steps
    check(block, "\n".join([steps, *(f"    {line}" for line in journaled(steps, tmp_path))]))


def test_an_alteration_is_cut_to_what_a_record_holds(tmp_path: Path) -> None:
    """However long the original is, what comes behind it is read."""
    writer, number = one_stream(tmp_path / "journal")
    fields = f'{{"text":"{"ä" * MAX_PAYLOAD}"}}'
    long = Mark("change", "x" * 10_000, 1, bytes(MAX_PAYLOAD + 1), "NAME", fields)
    writer.altered(number, "c2s", 2, 0, 4, long)
    writer.altered(number, "c2s", 2, 0, 4, Mark("change", "", 1, bytes(MAX_PAYLOAD), "N", '{"t":""}'))
    writer.chunk(number, "c2s", 2, 0, b"ROLL")
    writer.close()
    first, second, chunk = read_all(JournalReader(tmp_path / "journal"))
    assert isinstance(first, Altered)
    assert isinstance(second, Altered)
    assert (len(first.original or b""), len(first.rule), first.fields_json) == (MAX_PAYLOAD, 4096, None)
    assert (len(second.original or b""), second.fields_json) == (MAX_PAYLOAD, '{"t":""}')
    assert plain(chunk) == ("Chunk", 1, "c2s", 2, 0, b"ROLL", 0)


@pytest.mark.parametrize(
    "payload",
    [
        *(b"", b"\xc1", msgspec.msgpack.encode("drop")),
        msgspec.msgpack.encode((-1, "drop", "", None, None, None, None)),
        msgspec.msgpack.encode((0, "burn", "", None, None, None, None)),
        msgspec.msgpack.encode((0, "drop", "", 1 << 63, None, None, None)),
        msgspec.msgpack.encode((0, "drop", "", 1, b"x", "ROLL", "no JSON")),
        msgspec.msgpack.encode((0, "drop", "", 1, b"x", "ROLL", "[]")),
    ],
)
def test_an_alteration_that_no_writer_wrote_is_damage(tmp_path: Path, payload: bytes) -> None:
    writer, number = one_stream(tmp_path / "journal")
    writer.close()
    with (tmp_path / "journal" / "00000001.journal").open("r+b") as file:
        # In place of the last record, which marks the end.
        file.seek(-HEAD.size, os.SEEK_END)
        file.write(HEAD.pack(ALTERED, 0, number, len(payload), 1, 0) + payload)
    reader = JournalReader(tmp_path / "journal")
    with pytest.raises(JournalError, match="no valid record"):
        read_all(reader)


def test_it_is_private(tmp_path: Path) -> None:
    writer_of(tmp_path / "journal").close()
    assert stat.S_IMODE((tmp_path / "journal").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "journal" / "00000001.journal").stat().st_mode) == 0o600


def test_an_old_journal_is_not_overwritten(tmp_path: Path) -> None:
    writer_of(tmp_path).close()
    with pytest.raises(FileExistsError):
        writer_of(tmp_path)


def test_a_reader_knows_that_it_is_behind_and_deletes_what_it_has_read(tmp_path: Path) -> None:
    writer, number = one_stream(tmp_path, segment_bytes=1000)
    pending: list[int] = []
    writer.on_pending = lambda: pending.append(1)
    for i in range(100):
        writer.chunk(number, "c2s", i, i * 100, bytes(100))
        writer.flush()
    # Once per flush.
    assert len(pending) == 99

    def segments() -> int:
        return len(list(tmp_path.glob("*.journal")))

    reader = JournalReader(tmp_path)
    written = segments()
    assert written > 10
    items: list[Item] = []
    ends = []
    while batch := reader.read(limit=3):
        items += batch
        ends.append(reader.is_at_end)
    assert [item.ts_ns for item in items] == list(range(100))
    assert not any(ends[:-3])
    assert reader.is_at_end
    assert segments() == written
    reader.release()
    assert segments() == 1
    writer.chunk(number, "c2s", 100, 10_000, bytes(100))
    writer.flush()
    assert len(reader.read()) == 1
    assert reader.is_at_end
    writer.close()
    assert read_all(reader) == []
    reader.release()
    assert segments() == 1


def test_a_batch_is_bounded(tmp_path: Path) -> None:
    writer, number = one_stream(tmp_path / "journal")
    for i in range(100):
        writer.chunk(number, "c2s", i, i * 60_000, bytes(60_000))
    for i in range(100):
        writer.chunk(number, "s2c", i, i, b"x")
    writer.close()
    reader = JournalReader(tmp_path / "journal")
    batches = []
    while batch := reader.read(limit=30):
        batches.append(batch)
    assert sum(map(len, batches)) == 200
    assert max(map(len, batches)) == 30
    sizes = (sum(len(item.data) for item in batch if isinstance(item, Chunk)) for batch in batches)
    assert max(sizes) <= (1 << 20) + 60_000


def journal_of_three_streams(directory: Path) -> list[tuple[object, ...]]:
    """Many segments, in which streams begin, speak, are faulted and end; the items they hold."""
    writer = writer_of(directory, segment_bytes=400)
    for ts in range(40):
        if ts % 10 == 0:
            writer.open("tcp", f"a:{ts}", "b:2", ts)
        number = ts // 10 + 1
        writer.chunk(number, "c2s", ts, ts % 10 * 20, bytes(20))
        if ts % 10 == 5:
            writer.fault(number, "s2c", ts, 0, "code", "text")
        # The first stream ends late, the last never.
        if ts in (19, 29, 35):
            writer.end({19: 2, 29: 3, 35: 1}[ts], ts, "closed")
        writer.flush()
    writer.close()
    wanted = [plain(item) for item in read_all(JournalReader(directory, base=7))]
    assert len(wanted) == 40 + 4 + 3
    return wanted


@pytest.mark.full(but=1)
@pytest.mark.parametrize("limit", [1, 3, 4096])
def test_a_reader_continues_where_another_one_died(tmp_path: Path, limit: int) -> None:
    wanted = journal_of_three_streams(tmp_path / "written")
    for died_at in range(0, len(wanted) + 1):
        directory = tmp_path / f"{limit} {died_at}"
        shutil.copytree(tmp_path / "written", directory)
        first = JournalReader(directory, base=7)
        found: list[Item] = []
        while len(found) < died_at:
            found += first.read(1)
            if len(found) % 4 == 0:
                first.release()
        safe = len(found)
        # What it has read but not released does not count.
        first.read(2)
        first.close()
        second = JournalReader(directory, base=7, skip=safe)
        while batch := second.read(limit):
            found += batch
        assert [plain(item) for item in found] == wanted
        assert second.stopped
        second.release()
        assert len(list(directory.glob("*.journal"))) == 1
        second.close()


def test_a_reader_continues_with_the_streams_that_are_known(tmp_path: Path) -> None:
    journal_of_three_streams(tmp_path)
    known = Stream(8, "tcp", "a:0", "b:2", 0, protocol="okey")
    items = read_all(JournalReader(tmp_path, base=7, skip=2, known=[known]))
    assert all((item.stream is known) == (item.stream.id == 8) for item in items)


def test_items_that_are_gone_and_not_to_be_skipped_are_damage(tmp_path: Path) -> None:
    journal_of_three_streams(tmp_path)
    first = JournalReader(tmp_path)
    read_all(first)
    first.release()
    first.close()
    with pytest.raises(JournalError, match="begins after item 4"):
        JournalReader(tmp_path, skip=20)


def test_a_released_segment_that_is_still_there_is_deleted(tmp_path: Path) -> None:
    wanted = journal_of_three_streams(tmp_path)
    first = JournalReader(tmp_path)
    left = (tmp_path / "00000001.journal").read_bytes()
    count = len(read_all(first))
    first.release()
    (tmp_path / "00000001.journal").write_bytes(left)
    second = JournalReader(tmp_path, skip=count)
    assert count == len(wanted)
    assert read_all(second) == []
    second.release()
    assert len(list(tmp_path.glob("*.journal"))) == 1


def test_data_that_a_next_reader_needs_is_not_deleted(tmp_path: Path) -> None:
    wanted = journal_of_three_streams(tmp_path)
    reader = JournalReader(tmp_path, base=7)
    read_all(reader)
    with largest_file(0):
        reader.release()
    assert [plain(item) for item in read_all(JournalReader(tmp_path, base=7))] == wanted
    reader.release()
    assert len(list(tmp_path.glob("*.journal"))) == 1


RECORDS = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from(["c2s", "s2c"]),
        st.one_of(st.binary(max_size=40), st.just(None), st.text("abcäß–", max_size=5)),
    ),
    max_size=20,
)


@settings(max_examples=times(150), deadline=None)
@given(RECORDS, st.integers(0, 1 << 16), st.integers(1, 200))
def test_a_journal_cut_anywhere_gives_a_prefix(
    records: list[tuple[int, Direction, bytes | str | None]], cut: int, segment_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        writer = writer_of(path, segment_bytes=segment_bytes)
        for _ in range(3):
            writer.open("tcp", "a:1", "b:2", 0)
        wanted: list[tuple[object, ...]] = []
        ended: set[int] = set()
        for ts, (number, direction, what) in enumerate(records):
            if number in ended:
                continue
            if isinstance(what, bytes):
                writer.chunk(number, direction, ts, 7, what)
                wanted.append(("Chunk", number, direction, ts, 7, what, 0))
            elif what is None:
                writer.end(number, ts, "closed")
                wanted.append(("End", number, ts, "closed"))
                ended.add(number)
            else:
                writer.fault(number, direction, ts, 7, "code", what)
                wanted.append(
                    ("Fault", number, direction, ts, 7, "code", what, 0, *OF_NETWORK, "warning", False)
                )
            writer.flush()
        writer.close()
        whole = JournalReader(path)
        assert [plain(item) for item in read_all(whole)] == wanted
        assert whole.stopped
        whole.close()

        last = max(path.iterdir())
        size = last.stat().st_size
        os.truncate(last, cut % (size + 1))
        torn = JournalReader(path)
        found = [plain(item) for item in read_all(torn)]
        torn.close()
        assert found == wanted[: len(found)]
        assert torn.stopped == (cut % (size + 1) == size)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:60] + bytes(len(data) - 60),
        lambda data: data[:46] + b"\xff" * 20 + data[66:],
        lambda data: data[:46] + b"\x02" + data[47:50] + b"\x09" + data[51:],
    ],
    ids=["zeros", "ones", "unknown stream"],
)
def test_a_damaged_journal_is_said_to_be_one(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    writer, number = one_stream(tmp_path)
    writer.chunk(number, "c2s", 2, 0, b"")  # 28 bytes
    for _ in range(10):
        writer.chunk(number, "c2s", 2, 0, b"x" * 40)
    writer.close()
    segment = tmp_path / "00000001.journal"
    segment.write_bytes(spoil(segment.read_bytes()))
    reader = JournalReader(tmp_path)
    with pytest.raises(JournalError, match=r"00000001\.journal, byte \d+: no valid record"):
        read_all(reader)
    reader.close()


@settings(max_examples=times(60), deadline=None)
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=12), st.integers(0, 1000))
def test_a_write_cut_short_leaves_no_half_record(datagrams: list[bytes], room: int) -> None:
    said: list[str] = []
    with tempfile.TemporaryDirectory() as directory:
        writer = writer_of(Path(directory), on_trouble=said.append, retry_seconds=0.0)
        number = writer.open("udp", "a:1", "b:2", 1)
        offset = 0
        for data in datagrams:
            writer.chunk(number, "c2s", 2, offset, data)
            offset += len(data)
        with largest_file(room):
            writer.flush()
        writer.chunk(number, "c2s", 3, offset, b"after")
        writer.close()
        reader = JournalReader(Path(directory))
        at = 0
        for item in read_all(reader):
            assert isinstance(item, Chunk | Gap)
            assert item.offset == at
            if isinstance(item, Chunk):
                assert item.data == (b"".join(datagrams) + b"after")[at : at + len(item.data)]
                at += len(item.data)
            else:
                assert said
                at += item.length or 0
        reader.close()
        assert reader.stopped
        assert at == offset + 5


def test_the_spool_is_bounded(tmp_path: Path) -> None:
    said: list[str] = []
    writer = writer_of(
        tmp_path, on_trouble=said.append, segment_bytes=10_000, max_bytes=50_000, retry_seconds=0.0
    )
    reader = JournalReader(tmp_path)
    number = writer.open("udp", "a:1", "b:2", 1)
    for i in range(200):
        writer.chunk(number, "c2s", i, i * 1000, bytes(1000))
        writer.flush()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 50_000
    assert len(said) == 1
    assert "waiting for the recorder" in said[0]
    items = read_all(reader)
    reader.release()
    writer.chunk(number, "c2s", 200, 200_000, b"after")
    writer.close()
    items += read_all(reader)
    gap, last = items[-2:]
    assert isinstance(gap, Gap)
    assert isinstance(last, Chunk)
    assert gap.offset == (len(items) - 2) * 1000
    assert gap.length == 200_000 - gap.offset
    assert last.data == b"after"


def test_a_bound_without_room_for_segments_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="three segments"):
        writer_of(tmp_path, max_bytes=1000, segment_bytes=500)


@pytest.mark.full
def test_many_streams_that_came_and_went_unseen_are_not_remembered_forever(tmp_path: Path) -> None:
    said: list[str] = []
    writer = writer_of(tmp_path, on_trouble=said.append, retry_seconds=3600.0)
    with largest_file(0):
        for i in range(20_000):
            number = writer.open("udp", f"a:{i}", "b:2", 1)
            writer.chunk(number, "c2s", 1, 0, b"lost")
            writer.end(number, 2, "idle")
        writer.flush()
    writer.close()
    ends = read_all(JournalReader(tmp_path))
    assert len([item for item in ends if isinstance(item, End)]) == 16_384
    assert sum(item.length or 0 for item in ends if isinstance(item, Gap)) == 4 * 16_384
    assert "80,000 bytes of 20,000 streams (3,616 of which are not recorded at all) are missing" in said[-1]
