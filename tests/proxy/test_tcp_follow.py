"""TCP against tshark: the bytes of each connection are those of its Follow Stream."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Literal

import pytest
from cleanup import close_after_test
from followed_streams import CAPTURES, NAMES, followed, talks
from strength import a_few
from tcp_segments import (
    MILLISECOND,
    Sent,
    check_order,
    handshake,
    items_of_packets,
    sender_and_receiver,
    sent,
    write_pcap,
)

from kiebitz.dissectors.model import Chunk, Gap
from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.capture.packets import RawPacket
from kiebitz.services.importing.packets import import_capture
from kiebitz.storage.database.schema import MEMORY


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
