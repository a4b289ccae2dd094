"""Captures as they might have been made: packets in another order than they were sent, late, or twice.

Nothing is taken away: who reads them right finds what was in the capture that they are made of.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

from cleanup import close_after_test

from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.capture.packets import ACK, FIN, RST, SYN, PacketDecoder, RawPacket, Segment
from kiebitz.services.importing.packets import PacketRecording, import_capture
from kiebitz.storage.database.schema import MEMORY

Packets = list[RawPacket]
NEAR_NS = 2_000_000
"""Packets that were captured this far apart may have been sent in the other order."""


def packets_of(path: Path) -> Packets:
    with open_capture(str(path)) as capture:
        return list(capture)


def imported(packets: Packets, folder: Path) -> tuple[PacketRecording, Callable[[str], list[Any]]]:
    """Return the recording of a capture file of these packets, in memory, and what answers queries of it."""
    path = folder / "captured.pcap"
    write_packets(path, packets)
    recording, _ = import_capture(str(path), MEMORY, {}, lambda _done, _all: None)
    connection = close_after_test(recording.recorder.connection)
    return recording, lambda query: connection.execute(query).fetchall()


def by_time(packets: Packets) -> Packets:
    return sorted(packets, key=itemgetter(0))


def swap_packets(packets: Packets, chance: random.Random, share: float, within_ns: int = NEAR_NS) -> Packets:
    """Return a share of all neighbours in each other's place; the times stay in order."""
    mixed = list(packets)
    place = 0
    while place + 1 < len(mixed):
        first, second = mixed[place : place + 2]
        if second[0] - first[0] <= within_ns and chance.random() < share:
            mixed[place : place + 2] = (first[0], *second[1:]), (second[0], *first[1:])
            place += 1
        place += 1
    return mixed


def duplicate_packets(packets: Packets, chance: random.Random, share: float) -> Packets:
    """Return a share of all packets again, a moment later, some behind what followed them."""
    copies = [
        (ts_ns + chance.randrange(1_000_000), linktype, data, wirelen)
        for ts_ns, linktype, data, wirelen in packets
        if chance.random() < share
    ]
    return by_time(packets + copies)


def with_late_acknowledgements(packets: Packets, chance: random.Random, share: float) -> Packets:
    """Return a share of what only acknowledges up to 2 ms later than it was sent."""
    decoder = PacketDecoder()
    mixed = []
    for ts_ns, linktype, data, wirelen in packets:
        sent = decoder.decode(linktype, data, wirelen, ts_ns)
        is_bare = False
        if isinstance(sent, Segment):
            is_bare = sent.flags & (ACK | SYN | FIN | RST) == ACK and not sent.payload
        late_ns = chance.randrange(NEAR_NS) if is_bare and chance.random() < share else 0
        mixed.append((ts_ns + late_ns, linktype, data, wirelen))
    return by_time(mixed)


def shift_clock(packets: Packets, ahead_ns: int, sort: bool) -> Packets:
    """Give the packets to the higher port the time of another clock, which is `ahead_ns` of the first.

    If sorted, the result is as merged by time from two captures; otherwise times jump.
    """
    decoder = PacketDecoder()
    mixed = []
    for ts_ns, linktype, data, wirelen in packets:
        sent = decoder.decode(linktype, data, wirelen, ts_ns)
        flow = b"" if sent is None else sent.flow if isinstance(sent, Segment) else sent[0]
        ahead = ahead_ns if flow[-4:-2] < flow[-2:] else 0
        mixed.append((ts_ns + ahead, linktype, data, wirelen))
    return by_time(mixed) if sort else mixed


def as_pcap(packets: Packets, with_head: bool = True) -> bytes:
    """Return packets of one link type, if any, as a pcap with nanoseconds, or without its head."""
    linktype = packets[0][1] if packets else 1
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, linktype) if with_head else b""
    return head + b"".join(
        struct.pack("<IIII", *divmod(ts_ns, 1_000_000_000), len(data), wirelen) + data
        for ts_ns, _, data, wirelen in packets
    )


def write_packets(path: Path, packets: Packets) -> None:
    """A capture file of these packets, which have one link type, with times in nanoseconds."""
    path.write_bytes(as_pcap(packets))
