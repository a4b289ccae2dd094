"""Mutated conversations: messages changed, lost, repeated, or sent by another client."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from altered_sessions import Recorded, Said, recorded
from mutation import Choices, mutate

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import (
    OPPOSITE,
    Chunk,
    Direction,
    End,
    Fault,
    Gap,
    Item,
    Stream,
    Transport,
    port_of,
)

CORPUS = {
    "maexchen": ("maexchen-head-tiny.pcap", "maexchen-head-odd.pcap", "maexchen-old-20110928-seed-tiny.pcap"),
    "schafkopf": (
        *("schafkopf-1.3-1human-tiny.pcap", "schafkopf-1.3-badcard.pcap", "schafkopf-1.3-2humans.pcap"),
        *("schafkopf-1.3-crlf.pcap", "schafkopf-old-1.0.pcap"),
    ),
    "catan": (
        *("catan-yaks-lobby.pcap.gz", "catan-yaks-g1-3p.pcap.gz", "catan-eisfrei-game2-3p.pcap.gz"),
        *("catan-lurche-py-3p.pcap.gz", "catan-niedlichepixel-framing.pcap.gz"),
    ),
    "okey": (
        *("okey-head-tiny.pcap.gz", "okey-head-game-win.pcap.gz", "okey-head-malformed.pcap.gz"),
        *("okey-seed-game-win.pcap.gz", "okey-seed-lobby.pcap.gz", "okey-seed-malformed.pcap.gz"),
    ),
    "cgml": ("cgml-tiny.pcap.gz", "cgml-hands.pcap.gz", "cgml-wrapped.pcap.gz", "cgml-styles.pcap.gz"),
}
"""Protocol -> the captures that its conversations come from."""

LONGEST = 400
"""Messages of one input."""

REASONS = ("closed", "reset", "idle", "end")
"""Reasons for the end of a connection."""

_SECOND = 1_000_000_000
JUMPS_NS = (_SECOND // 10, 3 * _SECOND, 400 * _SECOND, -_SECOND, -400 * _SECOND)
"""Steps of a clock in ns, in either direction."""


@cache
def _conversations(protocol: str) -> tuple[list[Recorded], list[bytes]]:
    known = [recorded(name) for name in CORPUS[protocol]]
    return known, [*{said.data: None for one in known for said in one.said}]


def servers_of(dissector: Dissector) -> set[tuple[Transport, int]]:
    """Transport and port of all servers that the conversations in a protocol are with."""
    known, _ = _conversations(dissector.protocol)
    return {(stream.transport, port_of(stream.server)) for recording in known for stream in recording.streams}


class Spoilt:
    """Items from a recorded conversation, while there are choices left.

    `forced` is the protocol of its servers; without it, it is detected. Streams have the numbers from
    `first_stream` to `last_stream`, and may be left open unless all are to be `ended`.
    """

    def __init__(
        self, dissector: Dissector, choices: Choices, first_stream: int = 1, ended: bool = False
    ) -> None:
        self._choices = choices
        known, self._others = _conversations(dissector.protocol)
        recording = choices.of(known)
        servers = {(stream.transport, port_of(stream.server)) for stream in recording.streams}
        self.forced: DecodeAs = {} if choices.one_in(4) else dict.fromkeys(servers, dissector)
        self.items: list[Item] = []
        self.last_stream = first_stream - 1
        self._streams = {stream.id: self._begun(stream) for stream in recording.streams}
        self._shift_ns = 0
        self._offsets: dict[tuple[int, Direction], int] = {}
        # From its beginning a game is followed deep; from elsewhere it has to be picked up.
        begin = choices.below(len(recording.said)) if choices.one_in(3) else 0
        rate = choices.of((64, 16, 4, 2))
        for said in recording.said[begin : begin + LONGEST]:
            if choices.spent:
                break
            if choices.one_in(rate):
                self._spoil(said)
            else:
                self._say(said, said.data)
        if ended or not choices.one_in(3):
            reason = choices.of(REASONS)
            self.items += [End(stream, self._now_ns, reason) for stream in self._streams.values()]

    @property
    def _now_ns(self) -> int:
        return self.items[-1].ts_ns if self.items else 0

    def _begun(self, like: Stream) -> Stream:
        self.last_stream += 1
        return Stream(self.last_stream, like.transport, like.client, like.server, like.opened_ns)

    def _spoil(self, said: Said) -> None:
        choices = self._choices
        stream = self._streams[said.stream]
        match choices.below(16):
            case 0:
                return  # lost without a gap
            case 1:
                self._say(said, said.data)
            case 2:
                self._say(said, choices.of(self._others))
                return
            case 3:
                said = replace(said, direction=OPPOSITE[said.direction])
            case 4:
                said = replace(said, stream=choices.of([*self._streams]))
            case 5:
                self._lose(stream, said, choices.of((len(said.data), None, 0, 5, 100_000)))
            case 6:
                offset = self._offsets.get((stream.id, said.direction), 0)
                self.items.append(
                    Fault(stream, said.direction, self._now_ns, offset, "unreachable", "nobody")
                )
            case 7:
                self.items.append(End(stream, self._now_ns, choices.of(REASONS)))
                self._streams[said.stream] = self._begun(stream)
            case 8:
                self._shift_ns += choices.of(JUMPS_NS)
            case 9:
                self._say(said, mutate(said.data, choices, self._others))
            case _:
                said = replace(said, data=mutate(said.data, choices, self._others))
        self._say(said, said.data)

    def _say(self, said: Said, data: bytes) -> None:
        stream = self._streams[said.stream]
        key = (stream.id, said.direction)
        # A byte stream is cut anywhere; of a datagram the end may be missing.
        pieces, missing = [data], 0
        if self._choices.one_in(16):
            at = self._choices.below(len(data) + 1)
            if stream.transport == "tcp":
                pieces = [data[:at], data[at:]]
            else:
                pieces, missing = [data[:at]], len(data) - at
        for piece in pieces:
            offset = self._offsets.get(key, 0)
            self._offsets[key] = offset + len(piece) + missing
            if piece or stream.transport == "udp":
                now_ns = max(0, said.ts_ns + self._shift_ns)
                self.items.append(Chunk(stream, said.direction, now_ns, offset, piece, missing))

    def _lose(self, stream: Stream, said: Said, length: int | None) -> None:
        key = (stream.id, said.direction)
        offset = self._offsets.get(key, 0)
        self._offsets[key] = offset + (length or 0)
        self.items.append(Gap(stream, said.direction, self._now_ns, offset, length))
