"""A capture many times as long as a recorded one: its games again and again, a minute apart.

Every repetition has tokens of its own. Otherwise the later ones would be what a dissector has just read, and
remembering that would pass for speed.
"""

from __future__ import annotations

import re
from pathlib import Path
from struct import Struct

RECORDED = Path(__file__).parents[2] / "captures" / "maexchen-old-20111003.pcap"
PACKETS = 9007
"""Packets in `RECORDED`, each a message."""

SHIFT_S = 60
"""Seconds from one repetition to the next; the recorded games take 40."""

_MAGIC = b"\xd4\xc3\xb2\xa1"
_FILE_HEADER = 24
# Seconds, microseconds, bytes captured, bytes on the wire.
_PACKET_HEADER = Struct("<4I")
_SECONDS = Struct("<I")
# The first group of a UUID is what is made anew: the others are enough to know one by.
_TOKEN = re.compile(rb"[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")
_ODD = 0x9E3779B1
"""Its multiples differ in all eight digits."""


def repeat(target: Path, times: int) -> int:
    """Write `RECORDED` so many times over into one capture; give the number of packets."""
    recorded = RECORDED.read_bytes()
    if not recorded.startswith(_MAGIC):
        raise ValueError("only the common form of pcap is repeated")
    body = recorded[_FILE_HEADER:]
    packets = _packets(body)
    tokens = [(found.start(), int(found[0], 16)) for found in _TOKEN.finditer(body)]
    with target.open("wb") as file:
        file.write(recorded[:_FILE_HEADER])
        for number in range(times):
            repetition = bytearray(body)
            for place, seconds in packets:
                _SECONDS.pack_into(repetition, place, seconds + number * SHIFT_S)
            mask = number * _ODD & 0xFFFFFFFF
            for place, value in tokens:
                repetition[place : place + 8] = b"%08x" % (value ^ mask)
            file.write(repetition)
    return times * len(packets)


def _packets(body: bytes) -> list[tuple[int, int]]:
    """Where each packet is, and its time in seconds."""
    found: list[tuple[int, int]] = []
    place = 0
    while place < len(body):
        seconds, _, captured, _ = _PACKET_HEADER.unpack_from(body, place)
        found.append((place, seconds))
        place += _PACKET_HEADER.size + captured
    return found
