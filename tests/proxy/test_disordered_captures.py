"""TCP captured out of order, twice, by two clocks or with losses: tshark's bytes, and the same game."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from copy import copy
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import pytest
from command import CAPTURES
from inspected_captures import inspected
from packet_reordering import (
    Packets,
    duplicate_packets,
    imported,
    packets_of,
    shift_clock,
    swap_packets,
    with_late_acknowledgements,
    write_packets,
)
from strength import a_few, few_captures, times
from tcp_segments import (
    MILLISECOND,
    Sent,
    check_order,
    conversation,
    handshake,
    items_of_packets,
    line_of,
    sent,
    write_pcap,
)

from kiebitz.dissectors.model import Chunk, Direction, Findings, Gap, Item, Stream
from kiebitz.services.decode_as import server_ports

NAMES = sorted(
    path.name for path in CAPTURES.iterdir() if re.search(r"\.pcap(ng)?(\.gz)?$", path.name) is not None
)
Talk = tuple[tuple[str, bytes], tuple[str, bytes]]
"""Both ends of a connection with what each has sent, in order of the ends."""
_HOLE = re.compile(rb"\[(\d+) bytes missing in capture file\]\0\Z")


def talks(items: Iterable[Item]) -> list[Talk]:
    """Return the data of each stream, with gaps in tshark's notation."""
    said: dict[Stream, dict[Direction, bytearray]] = {}
    for item in items:
        both = said.setdefault(item.stream, {"c2s": bytearray(), "s2c": bytearray()})
        if isinstance(item, Chunk):
            both[item.direction] += item.data
        elif isinstance(item, Gap) and item.length is not None:
            hole = both[item.direction]
            # What was given up in two steps is one hole to tshark.
            before = _HOLE.search(hole)
            length = item.length
            if before is not None:
                length += int(before[1])
                del hole[before.start() :]
            hole += b"[%d bytes missing in capture file]\0" % length
    found = []
    for stream, both in said.items():
        if both["c2s"] or both["s2c"]:
            found.append(_talk(stream.client, bytes(both["c2s"]), stream.server, bytes(both["s2c"])))
    return sorted(found)


def followed(path: Path) -> list[Talk]:
    """Return the same from tshark."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    command = [tshark, "-r", str(path), "-o", "tcp.desegment_tcp_streams:FALSE"]
    numbers = _output([*command, "-Y", "tcp", "-T", "fields", "-e", "tcp.stream"]).split()
    streams = max((int(number) for number in numbers), default=-1) + 1
    requests = [part for number in range(streams) for part in ("-z", f"follow,tcp,raw,{number}")]
    found = []
    for text in _output([*command, "-q", *requests]).split("Follow: tcp,raw\n")[1:]:
        lines = text.splitlines()
        first, second = lines[1].removeprefix("Node 0: "), lines[2].removeprefix("Node 1: ")
        here = bytearray()
        there = bytearray()
        for line in lines[3:]:
            if not line.startswith("="):
                (there if line.startswith("\t") else here).extend(bytes.fromhex(line))
        if here or there:
            found.append(_talk(first, bytes(here), second, bytes(there)))
    return sorted(found)


def _talk(first: str, here: bytes, second: str, there: bytes) -> Talk:
    low, high = sorted(((first, here), (second, there)))
    return low, high


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


GAMES = [name for name in NAMES if not name.startswith(("maexchen", "catan-five"))]
"""The captures of TCP; the five servers' games are there one by one."""

Disorder = Callable[[Packets, random.Random], Packets]


def by_clocks_apart(packets: Packets, chance: random.Random) -> Packets:
    return shift_clock(packets, chance.randint(-2_000_000, 2_000_000), sort=True)


def by_jumping_clocks(packets: Packets, chance: random.Random) -> Packets:
    return shift_clock(packets, chance.choice((-50, -2, 2, 50)) * 1_000_000, sort=False)


DISORDERS: dict[str, Disorder] = {
    "1 % swapped": partial(swap_packets, share=0.01),
    "3 % swapped": partial(swap_packets, share=0.03),
    "10 % swapped": partial(swap_packets, share=0.1),
    "5 % doubled": partial(duplicate_packets, share=0.05),
    "all doubled": partial(duplicate_packets, share=1),
    "late acknowledgements": partial(with_late_acknowledgements, share=0.3),
    "two clocks": by_clocks_apart,
    "two clocks, as they were captured": by_jumping_clocks,
}

SEEDS = range(times(22, quick=1))


@cache
def capture(name: str) -> Packets:
    return packets_of(CAPTURES / name)


def items_of(packets: Packets) -> list[Item]:
    return items_of_packets(packets, server_ports({}, "tcp"))


def said(items: list[Item]) -> Counter[tuple[str, str, bytes]]:
    whole: dict[tuple[int, str, str], bytes] = {}
    for item in items:
        if isinstance(item, Chunk):
            key = (item.stream.id, item.stream.client, item.direction)
            whole[key] = whole.get(key, b"") + item.data
    return Counter((client, direction, data) for (_, client, direction), data in whole.items())


def accused(found: Findings) -> Counter[tuple[str, str]]:
    return Counter(
        (diagnostic.severity, diagnostic.blame)
        for diagnostic in found.diagnostics
        if diagnostic.severity != "note"
    )


def outcomes(found: Findings) -> list[str]:
    latest = {game.id: (game.protocol, game.result) for game in found.games}
    return sorted(map(repr, latest.values()))


def hands(found: Findings) -> Any:
    held: dict[tuple[int, int], dict[tuple[str, ...], Any]] = {}
    for event in found.events:
        for path, value in event.changes:
            if event.game_id is not None and any(step in ("hands", "private", "hand") for step in path):
                held.setdefault((event.table_id, event.game_id), {})[tuple(path)] = value
    return held


@cache
def as_it_was(name: str) -> tuple[Counter[tuple[str, str, bytes]], Counter[tuple[str, str]], list[str], Any]:
    items = items_of(capture(name))
    found = inspected(items)
    return said(items), accused(found), outcomes(found), hands(found)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("disorder", DISORDERS.values(), ids=DISORDERS)
@pytest.mark.parametrize("name", a_few(GAMES, ["schafkopf-1.3-badcard.pcap", "okey-seed-game-win.pcap.gz"]))
def test_the_same_game(name: str, disorder: Disorder) -> None:
    bytes_before, accused_before, outcomes_before, hands_before = as_it_was(name)
    for seed in SEEDS:
        items = items_of(disorder(capture(name), random.Random(seed)))
        assert said(items) == bytes_before
        found = inspected(items)
        assert not accused(found) - accused_before
        assert outcomes(found) == outcomes_before
        assert hands(found) == hands_before


@pytest.mark.parametrize("name", few_captures(GAMES))
def test_the_same_bytes_however_far_apart(name: str) -> None:
    """Their meaning in a game is unknown: a deal may be seconds after the card that is played."""
    for seed in SEEDS:
        packets = swap_packets(capture(name), random.Random(seed), share=0.03, within_ns=1 << 62)
        assert said(items_of(packets)) == as_it_was(name)[0]


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_the_same_bytes_as_tshark(name: str, tmp_path: Path) -> None:
    items = items_of_packets(capture(name))
    assert talks(items) == followed(CAPTURES / name)
    assert not any(isinstance(item, Gap) for item in items)
    for seed in SEEDS if not name.startswith("maexchen") else ():
        packets = swap_packets(capture(name), random.Random(seed), share=0.03)
        write_packets(tmp_path / "swapped.pcap", packets)
        assert talks(items_of_packets(packets)) == followed(tmp_path / "swapped.pcap")


LINES = 400


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
    [_untouched, _reordered, _sent_again, _overlapping, _lossy, _without_beginning, _one_sided, _snapped],
)
def test_troubles(trouble: Callable[[list[Sent], random.Random], list[Sent]], tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    write_pcap(path, trouble(conversation(LINES), random.Random(7)))
    items = items_of_packets(packets_of(path))
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
        assert b"".join(line_of(number) for number in range(LINES) if number % 3) in texts
    check_order(items)


def test_a_byte_in_each_segment_gives_the_same_session(tmp_path: Path) -> None:
    name = "schafkopf-1.3-1human-tiny.pcap"
    segments: list[Sent] = []
    begun = set()
    for item in items_of_packets(capture(name)):
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
    for packets in (capture(name), packets_of(tmp_path / "bytes.pcap")):
        _, query = imported(packets, tmp_path)
        bytes_of: dict[tuple[int, str], bytes] = {}
        for stream, direction, data in query("SELECT stream_id, direction, data FROM chunks ORDER BY id"):
            bytes_of[stream, direction] = bytes_of.get((stream, direction), b"") + data
        messages = "SELECT stream_id, direction, name, fields, offset, length FROM messages ORDER BY id"
        sessions.append((bytes_of, query(messages)))
    assert sessions[0] == sessions[1]
    assert sessions[0][0]
