"""A session's bytes as a pcapng file, under headers made up from the streams' addresses.

Each packet has comments that say what it means: its message, the event that this tells of, and what is wrong
with it. Times keep their nanoseconds. A TCP stream has the handshake and the end that it must have had; bytes
that are missing are a packet of which only the headers were captured.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import BinaryIO

from scapy.utils import RawPcapNgWriter

from dissectors.records import DIRECTIONS, OPPOSITE, Direction
from storage.escaping import field_words, printable
from storage.made_packets import ACK, FIN, PSH, RST, SYN, Ends, endpoint, tcp_packet, udp_packet
from storage.sentences import sentence
from storage.timeline import Timeline
from storage.traffic import ChunkRow, StreamRow, datagrams, streams

_LINKTYPE_RAW = 101
_COMMENT_BYTES = 4000
"""A comment is cut off here; the format allows 65,535 bytes."""

_SEGMENT_BYTES = 65_000
"""What fits into an IP packet beside its headers."""

_Packet = tuple[bytes, int]
"""A packet, and how many bytes at its end are missing."""


class _Writer(RawPcapNgWriter):  # type: ignore[misc]  # scapy has no types, so its class is Any
    """Scapy's writer with times in nanoseconds, on a file that is open already."""

    def __init__(self, file: BinaryIO) -> None:
        # Scapy's own opens a file by its name; this sets all that it sets besides.
        self.filename = getattr(file, "name", "")
        self.f = file
        self.header_present = False
        self.endian = "<"
        self.endian_magic = b"\x4d\x3c\x2b\x1a"
        self.interfaces2id = {None: 0}
        self.linktype = _LINKTYPE_RAW
        # Times are given in the file's own unit.
        self.tsresol = 1

    def _write_block_idb(self, linktype: int, ifname: bytes | None = None) -> None:
        interface = struct.pack("<HHI", linktype, 0, 0)
        nanoseconds = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)  # if_tsresol = 10^-9, opt_endofopt
        self.f.write(self.build_block(struct.pack("<I", 1), interface, nanoseconds))

    def put(self, packet: bytes, ts_ns: int, sent: int, comments: list[str]) -> None:
        """Write a packet of which `sent` bytes were sent."""
        cut = [comment.encode()[:_COMMENT_BYTES].decode(errors="ignore").encode() for comment in comments]
        self._write_packet(packet, _LINKTYPE_RAW, sec=ts_ns, usec=0, wirelen=sent, comments=cut)


def write(timeline: Timeline, file: BinaryIO) -> None:
    """Write all that was sent in a session, in the order in which it came."""
    rows = streams(timeline)
    begun_before = {
        (number, direction)
        for number, direction in timeline.connection.execute(
            "SELECT stream_id, direction FROM chunks WHERE data IS NULL AND length IS NULL AND offset = 0"
            " AND stream_id IN (SELECT id FROM streams WHERE session_id = ?)",
            (timeline.session.id,),
        )
    }
    ends = {row.id: (endpoint(row.client), endpoint(row.server)) for row in rows}
    connections = {
        row.id: _Connection(
            row, ends[row.id], [way for way in DIRECTIONS if (row.id, way) not in begun_before]
        )
        for row in rows
        if row.transport == "tcp"
    }
    comments = _Comments(timeline)
    writer = _Writer(file)
    writer.write_header(None)
    turns = _Turns(connections)
    for row, missing in datagrams(timeline):
        for ts_ns, packet in turns.before(row):
            writer.put(packet, ts_ns, len(packet), [])
        connection = connections.get(row.stream_id)
        if connection is not None:
            said = comments.of(row, in_a_stream=True)
            for packet, lost in connection.packets(row):
                writer.put(packet, row.ts_ns, len(packet) + lost, said)
                said = []
        elif row.data is not None:
            client, server = ends[row.stream_id]
            packet = udp_packet(
                (client, server) if row.direction == "c2s" else (server, client), row.data, missing
            )
            writer.put(packet, row.ts_ns, len(packet) + missing, comments.of(row, in_a_stream=False))
    for ts_ns, packet in turns.before(None):
        writer.put(packet, ts_ns, len(packet), [])


class _Connection:
    """The packets of a TCP stream. `begun` are the directions of which the beginning was seen.

    Its SYNs have numbers of its own, as another stream may have been between the same ports.
    """

    def __init__(self, row: StreamRow, ends: Ends, begun: list[Direction]) -> None:
        self.row = row
        self._ends: dict[Direction, Ends] = {"c2s": ends, "s2c": (ends[1], ends[0])}
        self._begun = begun
        self._isn = row.id * 1_000_000
        self._next: dict[Direction, int] = {"c2s": self._isn + 1, "s2c": self._isn + 1}

    def opening(self) -> Iterator[bytes]:
        """The handshake (RFC 9293, 3.5), or what of it was seen."""
        if "c2s" in self._begun:
            yield tcp_packet(self._ends["c2s"], self._isn, 0, SYN)
            if "s2c" in self._begun and self.row.close_reason != "refused":
                yield tcp_packet(self._ends["s2c"], self._isn, self._isn + 1, SYN | ACK)
                yield self._segment("c2s", ACK)

    def packets(self, row: ChunkRow) -> Iterator[_Packet]:
        """Bytes, or the headers of what is missing, and that they were received."""
        way = row.direction
        length = len(row.data) if row.data is not None else row.length or 0
        for start in range(0, length, _SEGMENT_BYTES):
            size = min(_SEGMENT_BYTES, length - start)
            data = row.data[start : start + size] if row.data is not None else b""
            yield self._segment(way, PSH | ACK, data, size - len(data)), size - len(data)
            self._next[way] += size
            yield self._segment(OPPOSITE[way], ACK), 0

    def ending(self) -> Iterator[bytes]:
        """The end, as far as there is a packet for it."""
        if self.row.close_reason == "closed":
            yield self._segment("c2s", FIN | ACK)
            self._next["c2s"] += 1
            yield self._segment("s2c", FIN | ACK)
            self._next["s2c"] += 1
            yield self._segment("c2s", ACK)
        elif self.row.close_reason == "reset":
            yield self._segment("c2s", RST | ACK)
        elif self.row.close_reason == "refused":
            yield tcp_packet(self._ends["s2c"], 0, self._isn + 1, RST | ACK)

    def _segment(self, way: Direction, flags: int, data: bytes = b"", missing: int = 0) -> bytes:
        return tcp_packet(self._ends[way], self._next[way], self._next[OPPOSITE[way]], flags, data, missing)


class _Turns:
    """When connections open and end between the rows of their bytes."""

    def __init__(self, connections: dict[int, _Connection]) -> None:
        self._connections = connections
        self._unopened = {number: connection.row.opened_ns for number, connection in connections.items()}
        # What ends makes room for what opens at the same time.
        self._turns = sorted(
            [(ts_ns, 1, number) for number, ts_ns in self._unopened.items()]
            + [
                (
                    connection.row.closed_ns,
                    0 if connection.row.closed_ns > connection.row.opened_ns else 2,
                    number,
                )
                for number, connection in connections.items()
                if connection.row.closed_ns is not None
            ],
            reverse=True,
        )

    def before(self, row: ChunkRow | None) -> Iterator[tuple[int, bytes]]:
        """The packets between the last row and this one, or the end, with their times."""
        while self._turns and (row is None or self._turns[-1][0] < row.ts_ns):
            ts_ns, kind, number = self._turns.pop()
            if kind == 1:
                yield from self._open(number)
            else:
                for packet in self._connections[number].ending():
                    yield ts_ns, packet
        if row is not None:
            yield from self._open(row.stream_id)

    def _open(self, number: int) -> Iterator[tuple[int, bytes]]:
        ts_ns = self._unopened.pop(number, None)
        if ts_ns is not None:
            for packet in self._connections[number].opening():
                yield ts_ns, packet


class _Comments:
    """What the packets of a session mean.

    What is said of which place in a stream is put into a temporary table, by which each packet finds its own:
    the database's own indexes do not lead from a place to a message.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._connection = timeline.connection
        session = (timeline.session.id,)
        self._connection.execute("DROP TABLE IF EXISTS temp.places")
        self._connection.execute(
            "CREATE TEMP TABLE places (stream_id INT, direction TEXT, offset INT, length INT, ts_ns INT,"
            " kind TEXT, id INT, PRIMARY KEY (stream_id, direction, offset, kind, id)) WITHOUT ROWID"
        )
        for kind, told in (("message", "1"), ("diagnostic", "message_id IS NULL")):
            self._connection.execute(
                f"INSERT INTO temp.places SELECT stream_id, direction, offset, length, ts_ns, '{kind}', id"
                f" FROM {kind}s WHERE {told} AND stream_id IN (SELECT id FROM streams WHERE session_id = ?)",
                session,
            )

    def of(self, row: ChunkRow, in_a_stream: bool) -> list[str]:
        """A comment for each message that begins in these bytes, and for each thing that is wrong there."""
        if row.data is None:
            return [f"{row.length} bytes are missing"] if row.length else []
        end = row.offset + len(row.data)
        found = self._connection.execute(
            "SELECT kind, id FROM temp.places"
            " WHERE stream_id = ? AND direction = ? AND offset BETWEEN ? AND ?"
            # Where an empty datagram stands the next one begins: the length and the time tell them apart.
            " AND CASE WHEN length = 0 THEN ? AND ts_ns = ? ELSE offset < ? END"
            " ORDER BY offset, kind DESC, id",
            (row.stream_id, row.direction, row.offset, end, in_a_stream or not row.data, row.ts_ns, end),
        ).fetchall()
        comments: list[str] = []
        for kind, number in found:
            comments += self._of_message(number) if kind == "message" else self._flaws("id", number)
        return comments

    def _of_message(self, number: int) -> list[str]:
        name, fields, kind, data, protocol = self._connection.execute(
            "SELECT m.name, m.fields, e.kind, e.data, s.protocol FROM messages AS m"
            " JOIN streams AS s ON s.id = m.stream_id LEFT JOIN events AS e ON e.id = m.event_id"
            " WHERE m.id = ?",
            (number,),
        ).fetchone()
        said = f"{printable(name)} {field_words(json.loads(fields))}".rstrip()
        if kind is not None:
            said += f": {sentence(protocol, kind, json.loads(data))}"
        return [said, *self._flaws("message_id", number)]

    def _flaws(self, column: str, number: int) -> list[str]:
        rows = self._connection.execute(
            f"SELECT severity, code, text FROM diagnostics WHERE {column} = ? ORDER BY id", (number,)
        )
        return [f"{severity}[{code}]: {printable(text)}" for severity, code, text in rows]
