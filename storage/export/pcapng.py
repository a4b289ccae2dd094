"""A session's bytes as a pcapng file, with synthetic headers from the streams' addresses.

The comments of a packet describe the messages that begin in it, their events, and their violations. The
section's comment names the session. Times keep their nanoseconds. A TCP stream has a synthetic handshake and
end; missing bytes are a packet of which only the headers were captured.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import BinaryIO

import msgspec
from scapy.utils import RawPcapNgWriter

from kiebitz.dissectors.escaping import field_words, printable
from kiebitz.dissectors.model import DIRECTIONS, OPPOSITE, Direction, Stream
from kiebitz.storage.database.schema import SessionRow
from kiebitz.storage.export.packets import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    Endpoints,
    endpoint,
    tcp_packet,
    udp_packet,
)
from kiebitz.storage.read.alterations import AlteredMessages, StoredAlteration, alteration_text, alterations
from kiebitz.storage.read.event_text import sentence
from kiebitz.storage.read.message_queries import streams
from kiebitz.storage.read.recorded_bytes import ChunkRow, datagrams
from kiebitz.storage.read.timeline import Timeline

_LINKTYPE_RAW = 101
_MAX_COMMENT_BYTES = 4000
"""Comments are truncated to this; the format allows 65,535 bytes."""

_MAX_COMMENTS = 1000
"""Maximum comments of a packet: 65,000 bytes may contain thousands of messages."""

_MAX_SEGMENT_BYTES = 65_000
"""Bytes that fit into an IP packet with its headers."""

_SECTION_HEADER = b"\n\r\r\n"
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_OPT_COMMENT, _SHB_USERAPPL = 1, 4


class _Writer(RawPcapNgWriter):  # type: ignore[misc]  # scapy has no types, so its class is Any
    """Scapy's writer with times in nanoseconds, on an open file."""

    def __init__(self, file: BinaryIO, session: SessionRow) -> None:
        # Scapy's __init__ opens a file by its name; this sets all its other attributes.
        self.filename = getattr(file, "name", "")
        self.f = file
        self.header_present = False
        self.endian = "<"
        self.endian_magic = b"\x4d\x3c\x2b\x1a"
        self.interfaces2id = {None: 0}
        self.linktype = _LINKTYPE_RAW
        # Times are given in the file's own unit.
        self.tsresol = 1
        self._session = session

    def _write_block_shb(self) -> None:
        section = struct.pack("<IHHq", _BYTE_ORDER_MAGIC, 1, 0, -1)
        session = self._session
        comment = f"{session.name}: session {session.id}, {session.kind} of {session.source}"
        options = _option(_OPT_COMMENT, _comment(comment))
        options += _option(_SHB_USERAPPL, _comment(f"Kiebitz {session.kiebitz_version}"))
        self.f.write(self.build_block(_SECTION_HEADER, section, options + bytes(4)))

    def _write_block_idb(self, linktype: int, ifname: bytes | None = None) -> None:
        interface = struct.pack("<HHI", linktype, 0, 0)
        nanoseconds = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)  # if_tsresol = 10^-9, opt_endofopt
        self.f.write(self.build_block(struct.pack("<I", 1), interface, nanoseconds))

    def put(self, packet: bytes, ts_ns: int, sent: int, comments: list[str]) -> None:
        """Write a packet whose original length is `sent` bytes."""
        if len(comments) > _MAX_COMMENTS:
            more = f"and {len(comments) - _MAX_COMMENTS + 1:,} more comments"
            comments = [*comments[: _MAX_COMMENTS - 1], more]
        cut = [_comment(comment) for comment in comments]
        self._write_packet(packet, _LINKTYPE_RAW, sec=ts_ns, usec=0, wirelen=sent, comments=cut)


def _comment(text: str) -> bytes:
    """Encode a comment as one printable line of limited length."""
    return printable(text).encode()[:_MAX_COMMENT_BYTES].decode(errors="ignore").encode()


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def write(timeline: Timeline, file: BinaryIO) -> None:
    """Write everything that was sent in a session, in order."""
    rows = streams(timeline)
    begun_before = {
        (number, direction)
        for number, direction in timeline.connection.execute(
            "SELECT stream_id, direction FROM chunks WHERE data IS NULL AND length IS NULL AND offset = 0"
            " AND stream_id IN (SELECT id FROM streams WHERE session_id = ?)",
            (timeline.session.id,),
        )
    }
    if timeline.session.continues:
        begun_before |= {(number, way) for number in _open_before(timeline) for way in DIRECTIONS}
    ends = {row.id: (endpoint(row.client), endpoint(row.server)) for row in rows}
    connections = {
        row.id: _Connection(
            row, ends[row.id], [way for way in DIRECTIONS if (row.id, way) not in begun_before]
        )
        for row in rows
        if row.transport == "tcp"
    }
    comments = _Comments(timeline)
    writer = _Writer(file, timeline.session)
    writer.write_header(None)
    turns = _ConnectionEvents(connections, comments)
    for row, missing in datagrams(timeline):
        for ts_ns, packet, said in turns.before(row):
            writer.put(packet, ts_ns, len(packet), said)
        connection = connections.get(row.stream_id)
        if connection is not None:
            for piece in _segments(row):
                lost = 0 if piece.data is not None else piece.length or 0
                packet = connection.send(piece, lost)
                writer.put(packet, row.ts_ns, len(packet) + lost, comments.of(piece))
                packet = connection.acknowledge(piece)
                writer.put(packet, row.ts_ns, len(packet), [])
        elif row.data is not None:
            client, server = ends[row.stream_id]
            ways = (client, server) if row.direction == "c2s" else (server, client)
            packet = udp_packet(ways, row.id, row.data, missing)
            writer.put(packet, row.ts_ns, len(packet) + missing, comments.of(row))
    for ts_ns, packet, said in turns.before(None):
        writer.put(packet, ts_ns, len(packet), said)


def _open_before(timeline: Timeline) -> set[int]:
    """Return the streams whose first bytes are in the previous database."""
    rows = timeline.connection.execute(
        "SELECT stream_id FROM chunks WHERE offset > 0 AND id IN (SELECT min(id) FROM chunks"
        " WHERE stream_id IN (SELECT id FROM streams WHERE session_id = ?) GROUP BY stream_id, direction)",
        (timeline.session.id,),
    )
    return {number for (number,) in rows}


def _segments(row: ChunkRow) -> Iterator[ChunkRow]:
    """Split a stream's bytes, or a gap, into parts that fit into packets."""
    length = len(row.data) if row.data is not None else row.length or 0
    for start in range(0, length, _MAX_SEGMENT_BYTES):
        size = min(_MAX_SEGMENT_BYTES, length - start)
        data = row.data[start : start + size] if row.data is not None else None
        yield msgspec.structs.replace(row, offset=row.offset + start, length=size, data=data)


class _Connection:
    """The packets of a TCP stream. `begun` are the directions whose beginning was captured.

    Its SYNs have their own sequence numbers, as another stream may have used the same ports.
    """

    def __init__(self, row: Stream, ends: Endpoints, begun: list[Direction]) -> None:
        self.row = row
        self._ending, _, text = (row.close_reason or "").partition(": ")
        self._reset_text = text.encode("utf-8", "replace")
        self._ends: dict[Direction, Endpoints] = {"c2s": ends, "s2c": (ends[1], ends[0])}
        self._begun = begun
        self._isn = row.id * 1_000_000
        self._next: dict[Direction, int] = {"c2s": self._isn + 1, "s2c": self._isn + 1}

    def handshake(self) -> Iterator[bytes]:
        """Yield the handshake (RFC 9293, 3.5), as far as it was captured."""
        if "c2s" in self._begun:
            yield tcp_packet(self._ends["c2s"], self._isn, 0, SYN)
            if "s2c" in self._begun and self._ending != "refused":
                yield tcp_packet(self._ends["s2c"], self._isn, self._isn + 1, SYN | ACK)
                yield self._segment("c2s", ACK)

    def send(self, segment: ChunkRow, missing: int) -> bytes:
        """Return a segment with bytes, or only the headers if they are missing."""
        way = segment.direction
        data = segment.data or b""
        packet = self._segment(way, PSH | ACK, data, missing)
        self._next[way] += len(data) + missing
        return packet

    def acknowledge(self, segment: ChunkRow) -> bytes:
        """Return the acknowledgement of a segment."""
        return self._segment(OPPOSITE[segment.direction], ACK)

    def teardown(self) -> Iterator[bytes]:
        """Yield the packets that end the stream, if its close reason has any."""
        if self._ending == "closed":
            yield self._segment("c2s", FIN | ACK)
            self._next["c2s"] += 1
            yield self._segment("s2c", FIN | ACK)
            self._next["s2c"] += 1
            yield self._segment("c2s", ACK)
        elif self._ending == "reset":
            yield self._segment("c2s", RST | ACK, self._reset_text)
        elif self._ending == "refused":
            yield tcp_packet(self._ends["s2c"], 0, self._isn + 1, RST | ACK, self._reset_text)

    def _segment(self, way: Direction, flags: int, data: bytes = b"", missing: int = 0) -> bytes:
        return tcp_packet(self._ends[way], self._next[way], self._next[OPPOSITE[way]], flags, data, missing)


class _ConnectionEvents:
    """The starts and ends of connections, in order between the rows of bytes."""

    def __init__(self, connections: dict[int, _Connection], comments: _Comments) -> None:
        self._connections = connections
        self._comments = comments
        self._unopened = {number: connection.row.opened_ns for number, connection in connections.items()}
        # At the same time, ends come before starts.
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

    def before(self, row: ChunkRow | None) -> Iterator[tuple[int, bytes, list[str]]]:
        """Yield the packets between the previous row and this one, or the end, with times and comments."""
        while self._turns and (row is None or self._turns[-1][0] < row.ts_ns):
            ts_ns, kind, number = self._turns.pop()
            if kind == 1:
                yield from self._open(number)
            else:
                for packet in self._connections[number].teardown():
                    yield ts_ns, packet, []
        if row is not None:
            yield from self._open(row.stream_id)

    def _open(self, number: int) -> Iterator[tuple[int, bytes, list[str]]]:
        ts_ns = self._unopened.pop(number, None)
        if ts_ns is not None:
            said = self._comments.of_opening(number)
            for packet in self._connections[number].handshake():
                yield ts_ns, packet, said
                said = []


def _alteration_text(row: StoredAlteration) -> str:
    return f"Kiebitz: {alteration_text(row, field_words(row.fields) if row.fields else '')}"


class _Comments:
    """The comments of a session's packets.

    A temporary table maps positions to messages and diagnostics, as the database has no such index. A
    diagnostic without bytes (nothing listens there, the beginning is missing) is put on the last packet
    before it.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._connection = timeline.connection
        session = (timeline.session.id,)
        self._connection.execute("DROP TABLE IF EXISTS temp.places")
        self._connection.execute(
            "CREATE TEMP TABLE places (stream_id INT, direction TEXT, offset INT, length INT, ts_ns INT,"
            " kind TEXT, id INT, PRIMARY KEY (stream_id, direction, offset, ts_ns, kind, id)) WITHOUT ROWID"
        )
        for kind, told in (("message", "1"), ("diagnostic", "message_id IS NULL AND length > 0")):
            self._connection.execute(
                f"INSERT INTO temp.places SELECT stream_id, direction, offset, length, ts_ns, '{kind}', id"
                f" FROM {kind}s WHERE {told} AND stream_id IN (SELECT id FROM streams WHERE session_id = ?)",
                session,
            )
        self._altered = AlteredMessages(timeline)
        self._kept_back = deque(row for row in alterations(timeline, "a.length = 0"))
        self._of_chunk: defaultdict[int, list[int]] = defaultdict(list)
        self._of_opening: defaultdict[int, list[int]] = defaultdict(list)
        self._assign_by_time(session)

    def of(self, row: ChunkRow) -> list[str]:
        """Return a comment for each message that begins in these bytes, and for each diagnostic there."""
        kept_back: list[str] = []
        while self._kept_back and self._kept_back[0].chunk_id < row.id:
            dropped = self._kept_back.popleft()
            kept_back.append(f"before this, on stream {dropped.stream.id}: {_alteration_text(dropped)}")
        return kept_back + self._of_bytes(row)

    def _of_bytes(self, row: ChunkRow) -> list[str]:
        if row.data is None:
            return [f"{row.length} bytes are missing"] if row.length else []
        if row.data:
            place, more = "offset >= ? AND offset < ? AND length > 0", row.offset + len(row.data)
        else:
            # An empty datagram has the same offset as the next one: length and time distinguish them.
            place, more = "offset = ? AND ts_ns = ? AND length = 0", row.ts_ns
        found = self._connection.execute(
            f"SELECT kind, id FROM temp.places WHERE stream_id = ? AND direction = ? AND {place}"
            " ORDER BY offset, kind DESC, id",
            (row.stream_id, row.direction, row.offset, more),
        ).fetchall()
        comments: list[str] = []
        for kind, number in found:
            comments += self._of_message(number) if kind == "message" else self._diagnostics("id", number)
        return comments + self._each(self._of_chunk.pop(row.id, []))

    def of_opening(self, stream_id: int) -> list[str]:
        """Return the diagnostics of a connection without bytes."""
        return self._each(self._of_opening.pop(stream_id, []))

    def _assign_by_time(self, session: tuple[int]) -> None:
        """Assign each diagnostic without bytes to a packet."""
        waiting: defaultdict[tuple[int, str], deque[tuple[int, int]]] = defaultdict(deque)
        for number, stream_id, direction, ts_ns in self._connection.execute(
            "SELECT id, stream_id, direction, ts_ns FROM diagnostics WHERE message_id IS NULL AND length = 0"
            " AND stream_id IN (SELECT id FROM streams WHERE session_id = ?) ORDER BY ts_ns, id",
            session,
        ):
            waiting[stream_id, direction].append((ts_ns, number))
        for (stream_id, direction), diagnostics in waiting.items():
            latest = None
            for chunk_id, ts_ns in self._connection.execute(
                "SELECT id, ts_ns FROM chunks WHERE stream_id = ? AND direction = ? AND data IS NOT NULL"
                " ORDER BY id",
                (stream_id, direction),
            ):
                while diagnostics and diagnostics[0][0] < ts_ns:
                    self._of_chunk[latest or chunk_id].append(diagnostics.popleft()[1])
                latest = chunk_id
            rest = self._of_opening[stream_id] if latest is None else self._of_chunk[latest]
            rest += [number for _, number in diagnostics]

    def _of_message(self, number: int) -> list[str]:
        name, fields, kind, data, protocol = self._connection.execute(
            "SELECT m.name, m.fields, e.kind, e.data, s.protocol FROM messages AS m"
            " JOIN streams AS s ON s.id = m.stream_id LEFT JOIN events AS e ON e.id = m.event_id"
            " WHERE m.id = ?",
            (number,),
        ).fetchone()
        said = f"{name} {field_words(json.loads(fields))}".rstrip()
        if kind is not None:
            # The sentence comes first, as fields may be long.
            said = f"{sentence(protocol, kind, json.loads(data))} · {said}"
        altered = self._altered.of(number)
        return [
            said,
            *([_alteration_text(altered)] if altered is not None else []),
            *self._diagnostics("message_id", number),
        ]

    def _each(self, numbers: list[int]) -> list[str]:
        return [text for number in numbers for text in self._diagnostics("id", number)]

    def _diagnostics(self, column: str, number: int) -> list[str]:
        rows = self._connection.execute(
            f"SELECT severity, code, text FROM diagnostics WHERE {column} = ? ORDER BY id", (number,)
        )
        return [f"{severity}[{code}]: {text}" for severity, code, text in rows]
