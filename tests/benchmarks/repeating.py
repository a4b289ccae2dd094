"""A capture many times as long as a recorded one: its games again and again, each time later.

Every repetition has something of its own: tokens, or clients, and cards or players. Otherwise the later ones
would be what a dissector has just read, and remembering that would pass for speed.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, permutations, product
from pathlib import Path
from struct import Struct

import msgspec

CAPTURES = Path(__file__).parents[2] / "captures"
_MAGIC = b"\xd4\xc3\xb2\xa1"
_FILE_HEADER = 24
# Seconds, microseconds, bytes captured, bytes on the wire.
_PACKET_HEADER = Struct("<4I")
_SECONDS = Struct("<I")

Renew = Callable[[bytearray, Sequence[int], int], bytes]
"""Packets with their headers, the place of each, and the number of the repetition: what it has instead."""


class Recording(msgspec.Struct, frozen=True):
    """A recorded capture that can be repeated; what it has lasts for less than `shift_s` seconds."""

    file: str
    packets: int
    messages: int
    shift_s: int
    renew: Renew


def _new_tokens(packets: bytearray, places: Sequence[int], number: int) -> bytes:
    mask = number * _ODD & 0xFFFFFFFF
    return _TOKEN.sub(lambda found: b"%08x" % (int(found[0], 16) ^ mask), packets)


# Only the first group of a UUID is replaced: the others suffice to recognize it.
_TOKEN = re.compile(rb"[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")
_ODD = 0x9E3779B1
"""Its multiples differ in all eight digits."""


def _renamed(ports: Sequence[int], place: bytes, orders: Sequence[Sequence[bytes]]) -> Renew:
    """Return a function for other clients' ports, and for some words under each other's names.

    Args:
        ports: The ports of the servers.
        place: A pattern of the words in their places.
        orders: The words, and then their names in each repetition.
    """
    pattern = re.compile(place)

    def renew(packets: bytearray, places: Sequence[int], number: int) -> bytes:
        _move_clients(packets, places, number, ports)
        renamed = dict(zip(orders[0], orders[number * _ODD % len(orders)], strict=True))
        return pattern.sub(lambda found: renamed[found[0]], packets)

    return renew


def _letters(orders: Iterable[Sequence[int]]) -> list[list[bytes]]:
    return [[b"%c" % letter for letter in order] for order in orders]


# Cards, as far as their names are of one length. The players then break the rules now and then, which is a
# diagnostic for every thirty messages.
_CARDS = (
    permutations(names) for names in ((b"OBER", b"ZEHN", b"NEUN"), (b"UNTER", b"KONIG"), (b"GRAS", b"HERZ"))
)
_CARD_NAMES = [sum(names, ()) for names in product(*_CARDS)]
_new_cards = _renamed((35555,), rb"(?:%s)(?=\n)" % b"|".join(_CARD_NAMES[0]), _CARD_NAMES)

_NAMES_OF_PLAYERS = ("id", "Spieler", "Mitspieler", "Eigentümer", "Absender", "Ziel", "Sieger")
_PLAYER = b"(?:%s)[123](?=[,}])" % b"|".join(f'(?<="{name}":)'.encode() for name in _NAMES_OF_PLAYERS)
_new_players = _renamed((6789,), _PLAYER, _letters([b"123", *permutations(b"0123456789", 3)]))
_PLACE = re.compile(rb'"x":(-?\d),"y":(-?\d)')


def _new_players_and_islands(packets: bytearray, places: Sequence[int], number: int) -> bytes:
    """Other players, and each second island as in a mirror, its x and y swapped.

    The game is the same, and breaks the same rules.
    """
    renewed = _new_players(packets, places, number)
    return _PLACE.sub(rb'"x":\2,"y":\1', renewed) if number % 2 else renewed


# The tiles from 1 to 9: only who wins does so no more.
_TILES = _letters(islice(permutations(b"123456789"), 0, None, 997))
_new_tiles = _renamed((8090,), rb"(?<![0-9])[1-9](?=:(?:RED|BLUE|YELLOW|BLACK))", _TILES)

# The cards' colours: the same games by the same rules.
_COLOURS = _letters([*order, *(code + 32 for code in order)] for order in permutations(b"RBGA"))
_COLOUR = rb"(?<=<card>)[RBGA]|(?<=<trumf>)[rbga]|(?<=<trumf>.:)[rbga]"
_new_colours = _renamed((7001, 7002, 7003), _COLOUR, _COLOURS)


def _move_clients(
    packets: bytearray, places: Sequence[int], number: int, server_ports: Sequence[int]
) -> None:
    for place in places:
        for port_at in (place + _SOURCE_PORT, place + _SOURCE_PORT + _PORT.size):
            (port,) = _PORT.unpack_from(packets, port_at)
            if port not in server_ports:
                # No two clients' ports are a multiple of 7 apart, so that none comes twice.
                _PORT.pack_into(packets, port_at, port - 7 * number)


# Behind the packet's header those of Ethernet and of IPv4 without options.
_SOURCE_PORT = _PACKET_HEADER.size + 14 + 20
_PORT = Struct(">H")

MAEXCHEN = Recording("maexchen-old-20111003.pcap", 9007, 9007, 60, _new_tokens)
MAEXCHEN_OF_THREE = Recording("maexchen-old-20110928-seed-tiny.pcap", 2848, 2848, 60, _new_tokens)
SCHAFKOPF = Recording("schafkopf-1.3-2humans.pcap", 11_126, 1068, 120, _new_cards)
CATAN = Recording("catan-infrarot-game2-3p.pcap.gz", 7233, 4837, 180, _new_players_and_islands)
CGML = Recording("cgml-hands.pcap.gz", 5072, 4270, 60, _new_colours)
OKEY = Recording("okey-head-game-win.pcap.gz", 1055, 739, 10, _new_tiles)


def repeat(target: Path, times: int, recording: Recording, later_s: int = 0) -> int:
    """Write a recording this many times into one capture; return the number of packets."""
    recorded = (CAPTURES / recording.file).read_bytes()
    if recording.file.endswith(".gz"):
        recorded = gzip.decompress(recorded)
    if not recorded.startswith(_MAGIC):
        raise ValueError("only the common form of pcap is repeated")
    body = recorded[_FILE_HEADER:]
    places = _places(body)
    with target.open("wb") as file:
        file.write(recorded[:_FILE_HEADER])
        for number in range(times):
            repetition = bytearray(body)
            for place in places:
                (seconds,) = _SECONDS.unpack_from(body, place)
                _SECONDS.pack_into(repetition, place, seconds + later_s + number * recording.shift_s)
            file.write(recording.renew(repetition, places, number))
    return times * len(places)


def cut(capture: Path, packets: int) -> int:
    """Leave only the first packets of a capture; give their number."""
    recorded = capture.read_bytes()
    places = _places(recorded[_FILE_HEADER:])
    if packets < len(places):
        capture.write_bytes(recorded[: _FILE_HEADER + places[packets]])
    return min(packets, len(places))


def _places(body: bytes) -> list[int]:
    found: list[int] = []
    place = 0
    while place < len(body):
        found.append(place)
        place += _PACKET_HEADER.size + _PACKET_HEADER.unpack_from(body, place)[2]
    return found
