"""Streams of live packets, whose source also reports how long nothing has come."""

from __future__ import annotations

from itertools import count

import pytest
from command import CAPTURES
from tcp_segments import SECOND

from kiebitz.dissectors.model import Chunk, End, Item
from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.flows.packet_flows import PacketFlows

LOOK_EVERY_NS = SECOND // 20


def live_flows(items: list[Item]) -> PacketFlows:
    """Return the streams of a live source with a server at port 8090."""
    return PacketFlows(count(1), lambda *_: None, lambda _: frozenset({8090}), items.extend, from_file=False)


def received(items: list[Item]) -> list[tuple[int, str, bytes]]:
    """Return the streams' bytes and ends, without times."""
    return [
        (item.stream.id, item.direction, bytes(item.data))
        if isinstance(item, Chunk)
        else (item.stream.id, item.reason, b"")
        for item in items
        if isinstance(item, Chunk | End)
    ]


@pytest.mark.parametrize("silence_s", [5, 30, 600])
@pytest.mark.parametrize("is_old", [False, True], ids=["live", "an old capture through a pipe"])
def test_silence_ends_no_connection(silence_s: int, is_old: bool) -> None:
    """A connection is idle after two hours, not while players think; behind a pipe the time may step back."""
    with open_capture(str(CAPTURES / "okey-seed-game-win.pcap.gz")) as capture:
        packets = list(capture)
    undisturbed: list[Item] = []
    flows = live_flows(undisturbed)
    flows.take(packets)
    flows.end()
    items: list[Item] = []
    flows = live_flows(items)
    half = len(packets) // 2
    flows.take(packets[:half])
    for waited_ns in range(0, silence_s * SECOND, LOOK_EVERY_NS):
        flows.take([])
        flows.expire(packets[half - 1][0] + waited_ns)
    late_ns = 0 if is_old else silence_s * SECOND
    flows.take((ts_ns + late_ns, link, data, size) for ts_ns, link, data, size in packets[half:])
    flows.end()
    assert received(items) == received(undisturbed)
