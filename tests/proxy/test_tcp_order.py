"""TCP captured in another order than it was sent: what comes of it, how long it waits, what stays a gap.

TCP against tshark: the bytes of each connection are those of its Follow Stream.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from copy import copy
from pathlib import Path
from typing import Literal

import pytest
from cleanup import close_after_test
from conversation_files import Block, blocks, check
from followed_streams import CAPTURES, NAMES, followed, talks
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import DATA
from strength import a_few, times
from tcp_segments import (
    MILLISECOND,
    RUBBISH,
    TIMES,
    Sent,
    by_word,
    check_order,
    handshake,
    items_of_packets,
    segments_of,
    sender_and_receiver,
    sent,
    told,
    write_pcap,
)

from kiebitz.dissectors.model import Chunk, Gap, Item
from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.capture.packets import RawPacket, Segment
from kiebitz.proxy.flows import tcp_order
from kiebitz.proxy.flows.tcp import TcpFlows
from kiebitz.proxy.flows.tcp_order import REORDER_TIMEOUT_NS, SegmentReorderer
from kiebitz.services.importing.packets import import_capture
from kiebitz.storage.database.schema import MEMORY

END_MS = 10_000_000
OTHER = "10.0.0.2:40000"


def order(streams: int = 100) -> SegmentReorderer:
    return SegmentReorderer(TcpFlows(itertools.count(1), by_word, frozenset({9000}), max_streams=streams))


def items_of(segments: Iterable[Sent], streams: int = 100) -> list[Item]:
    sorter = order(streams)
    items: list[Item] = []
    for ts_ns, segment in segments:
        sorter.feed(segment, ts_ns, items)
    sorter.close(END_MS * MILLISECOND, items)
    return items


Q1 = sent(1, "c", "PA", b"q1")
A1 = sent(1, "s", "PA", b"a1", ack=2)
Q2 = sent(1, "c", "PA", b"q2", at=2, ack=2)
A2 = sent(1, "s", "PA", b"a2", at=2, ack=4)
TALK = ["1 c2s @0 q1", "1 s2c @0 a1", "1 c2s @2 q2", "1 s2c @2 a2"]


@pytest.mark.parametrize("block", blocks(DATA / "tcp_order.txt").values(), ids=lambda block: block.title)
def test_cases(block: Block) -> None:
    items = items_of(segments_of("; ".join(block.steps)))
    check(block, "\n".join([*block.steps, *(f"    {line}" for line in told(items))]))
    check_order(items)


def fed(segments: Iterable[Sent]) -> tuple[SegmentReorderer, list[Item]]:
    sorter, items = order(), list[Item]()
    for ts_ns, segment in segments:
        sorter.feed(segment, ts_ns, items)
    return sorter, items


def test_complete_data_is_not_delayed() -> None:
    _, items = fed([*handshake(), Q1, A1, Q2, A2])
    assert told(items) == TALK


def test_missing_data_is_awaited_once_and_for_a_limited_time() -> None:
    sorter, items = fed([*handshake(), A1])
    sorter.expire(A1[0] + REORDER_TIMEOUT_NS - 1, items)
    assert items == []
    sorter.expire(A1[0] + REORDER_TIMEOUT_NS, items)
    assert told(items) == ["1 c2s @0 gap 2", "1 s2c @0 a1"]
    items.clear()
    for ts_ns, segment in (
        sent(200, "s", "PA", b"a2", at=2, ack=2),
        sent(201, "s", "PA", b"a3", at=4, ack=2),
    ):
        sorter.feed(segment, ts_ns, items)
    assert told(items) == ["1 s2c @2 a2", "1 s2c @4 a3"]


def test_a_one_sided_capture_waits_once() -> None:
    sorter, items = fed([handshake()[0], sent(1, "c", "PA", b"a", ack=7)])
    sorter.expire(101 * MILLISECOND, items)
    assert told(items) == ["1 c2s @0 a"]
    ts_ns, segment = sent(200, "c", "PA", b"b", at=1, ack=900)
    sorter.feed(segment, ts_ns, items)
    assert told(items) == ["1 c2s @0 a", "1 c2s @1 b"]


def test_the_end_by_a_rst_is_reported_after_the_patience() -> None:
    sorter, items = fed([*handshake(), Q1, sent(2, "c", "R", at=2)])
    sorter.expire(2 * MILLISECOND + REORDER_TIMEOUT_NS, items)
    assert told(items) == ["1 c2s @0 q1", "1 reset 2"]


def test_the_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_order, "MAX_WAITING", 20)
    sorter, items = fed([*handshake(), A1])
    for number in range(100):
        # Without a hole, and at the same time.
        sorter.feed(sent(1, "s", "PA", b"x", at=2 + number, ack=2)[1], MILLISECOND, items)
        assert len(sorter._queue) <= 20
    assert told(items)[:2] == ["1 c2s @0 gap 2", "1 s2c @0 a1"]


def spoken(lines: int) -> list[Sent]:
    segments = handshake()
    at = {"c": 0, "s": 0}
    for number in range(lines):
        who, other = sender_and_receiver(number)
        line = b"line %d\n" % number
        segments.append(sent(1, who, "PA", line, at=at[who], ack=at[other]))
        at[who] += len(line)
    segments.append(sent(1, "c", "FA", at=at["c"], ack=at["s"]))
    segments.append(sent(1, "s", "FA", at=at["s"], ack=at["c"] + 1))
    return segments


@given(st.integers(1, 40), st.integers(2, 12), st.randoms(use_true_random=False))
@settings(max_examples=times(200), deadline=None)
def test_any_order_of_a_conversation_is_put_right(lines: int, places: int, chance: random.Random) -> None:
    segments = spoken(lines)
    mixed = sorted(range(len(segments)), key=lambda place: place + chance.randrange(places))
    assert told(items_of(segments[place] for place in mixed)) == told(items_of(segments))


@given(st.lists(st.tuples(TIMES, RUBBISH), max_size=40), st.sampled_from([1, 3, 100]))
@settings(max_examples=times(300), deadline=None)
def test_any_segments(segments: list[tuple[int, Segment]], streams: int) -> None:
    check_order(items_of(((ms * MILLISECOND, segment) for ms, segment in segments), streams))


@pytest.mark.full
@pytest.mark.parametrize("name", a_few(NAMES, ["catan-yaks-lobby.pcap.gz"]))
def test_sample_captures(name: str) -> None:
    items = items_of_packets(_packets_of(CAPTURES / name))
    assert talks(items) == followed(CAPTURES / name)
    assert not any(isinstance(item, Gap) for item in items)


def _packets_of(path: Path) -> list[RawPacket]:
    with open_capture(str(path)) as capture:
        return list(capture)


LINES = [b"line %d, which is so long\n" % number for number in range(400)]


def _spoken() -> list[Sent]:
    segments = handshake()
    at = {"c": 0, "s": 0}
    for number, line in enumerate(LINES):
        who, other = sender_and_receiver(number)
        segments.append(sent(number + 1, who, "PA", line, at=at[who], ack=at[other]))
        at[who] += len(line)
    last = len(LINES) + 1
    segments.append(sent(last, "c", "FA", at=at["c"], ack=at["s"]))
    segments.append(sent(last + 1, "s", "FA", at=at["s"], ack=at["c"] + 1))
    segments.append(sent(last + 2, "c", "A", at=at["c"] + 1, ack=at["s"] + 1))
    return segments


def _untouched(segments: list[Sent], _chance: random.Random) -> list[Sent]:
    return segments


def _reordered(segments: list[Sent], chance: random.Random) -> list[Sent]:
    bare = [(ts_ns, copy(segment)) for ts_ns, segment in segments]
    first = {segment.flow: segment.ack for _, segment in bare[1:3]}
    for _, segment in bare[3:]:
        segment.ack = first[segment.flow]
    order = sorted(range(3, len(bare) - 3), key=lambda place: place + chance.randrange(5))
    return bare[:3] + [bare[place] for place in order] + bare[-3:]


def _sent_again(segments: list[Sent], chance: random.Random) -> list[Sent]:
    """Return some again at once, some later, some together with what follows them."""
    more = list(segments)
    for _ in range(60):
        place = chance.randrange(3, len(segments) - 3)
        more.insert(more.index(segments[place]) + chance.randrange(1, 20), segments[place])
    return more


def _overlapping(segments: list[Sent], chance: random.Random) -> list[Sent]:
    said: dict[bytes, bytes] = {}
    longer = []
    for ts_ns, segment in segments:
        before = said.get(segment.flow, b"")
        back = chance.randrange(len(before) + 1) if segment.payload and before else 0
        again = copy(segment)
        again.payload = before[len(before) - back :] + segment.payload
        again.seq = (segment.seq - back) % (1 << 32)
        longer.append((ts_ns, again))
        said[segment.flow] = (before + segment.payload)[-100:]
    return longer


def _lossy(segments: list[Sent], chance: random.Random) -> list[Sent]:
    """Return the capture without some segments in its middle, which answers show to have arrived."""
    return segments[:20] + [one for one in segments[20:-20] if chance.random() > 0.1] + segments[-20:]


def _without_beginning(segments: list[Sent], _chance: random.Random) -> list[Sent]:
    return segments[100:]


def _one_sided(segments: list[Sent], _chance: random.Random) -> list[Sent]:
    return [one for one in segments if one[1].flow == segments[0][1].flow]


def _snapped(segments: list[Sent], chance: random.Random) -> list[Sent]:
    cut = [(ts_ns, copy(segment)) for ts_ns, segment in segments]
    for _, segment in cut:
        length = len(segment.payload)
        segment.payload = segment.payload[: chance.randrange(1, 40)]
        segment.missing = length - len(segment.payload)
    return cut


@pytest.mark.full
@pytest.mark.parametrize(
    "trouble",
    a_few(
        [
            *(_untouched, _reordered, _sent_again, _overlapping),
            *(_lossy, _without_beginning, _one_sided, _snapped),
        ],
        [_lossy],
    ),
)
def test_troubles(trouble: Callable[[list[Sent], random.Random], list[Sent]], tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    write_pcap(path, trouble(_spoken(), random.Random(7)))
    items = items_of_packets(_packets_of(path))
    said = talks(item for item in items if trouble is not _snapped or isinstance(item, Chunk))
    assert said == followed(path)
    gaps = [item.length for item in items if isinstance(item, Gap)]
    if trouble is _without_beginning:
        assert gaps == [None, None]
    else:
        assert bool(gaps) == (trouble in (_lossy, _snapped))
    if not gaps:
        (talk,) = said
        texts = {text for _, text in talk}
        assert (b"".join(line for number, line in enumerate(LINES) if number % 3)) in texts
    check_order(items)


@pytest.mark.parametrize("name", ["schafkopf-1.3-1human-tiny.pcap"])
def test_a_byte_in_each_segment_gives_the_same_session(name: str, tmp_path: Path) -> None:
    segments: list[Sent] = []
    begun = set()
    for item in items_of_packets(_packets_of(CAPTURES / name)):
        client, server = item.stream.client, item.stream.server
        ms = item.ts_ns / MILLISECOND
        if item.stream.id not in begun:
            begun.add(item.stream.id)
            segments += handshake(ms, client, server)
        if isinstance(item, Chunk):
            who: Literal["c", "s"] = "c" if item.direction == "c2s" else "s"
            for place in range(len(item.data)):
                byte = item.data[place : place + 1]
                at = item.offset + place
                segments.append(sent(ms, who, "PA", byte, at=at, client=client, server=server))
    write_pcap(tmp_path / "bytes.pcap", segments)
    sessions = []
    for path in (CAPTURES / name, tmp_path / "bytes.pcap"):
        recording, _ = import_capture(str(path), MEMORY, {}, lambda _done, _all: None)
        connection = close_after_test(recording.recorder.connection)
        bytes_of: dict[tuple[int, str], bytes] = {}
        for stream, direction, data in connection.execute(
            "SELECT stream_id, direction, data FROM chunks ORDER BY id"
        ):
            bytes_of[stream, direction] = bytes_of.get((stream, direction), b"") + data
        messages = "SELECT stream_id, direction, name, fields, offset, length FROM messages ORDER BY id"
        sessions.append((bytes_of, connection.execute(messages).fetchall()))
    assert sessions[0] == sessions[1]
    assert sessions[0][0]
