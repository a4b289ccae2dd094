"""A session's datagrams as a pcapng file, under headers made up from the streams' addresses.

Each packet has comments that say what it means: its message, the event that this tells of, and what is wrong
with it. Times keep their nanoseconds. Sums are right, except where the end of a datagram is missing.
"""

from __future__ import annotations

import ipaddress
import json
import struct
from typing import BinaryIO

from scapy.utils import RawPcapNgWriter

from storage.escaping import field_words, printable
from storage.sentences import sentence
from storage.timeline import Timeline
from storage.traffic import ChunkRow, datagrams

_LINKTYPE_RAW = 101
_UDP = 17
_HOP_LIMIT = 64
_COMMENT_BYTES = 4000
"""A comment is cut off here; the format allows 65,535 bytes."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
    """Write all datagrams of a session in the order in which they came."""
    ends = {
        number: (_endpoint(client), _endpoint(server))
        for number, client, server in timeline.connection.execute(
            "SELECT id, client, server FROM streams WHERE session_id = ?", (timeline.session.id,)
        )
    }
    comments = _Comments(timeline)
    writer = _Writer(file)
    writer.write_header(None)
    for row, missing in datagrams(timeline):
        if row.data is not None:
            client, server = ends[row.stream_id]
            source, destination = (client, server) if row.direction == "c2s" else (server, client)
            packet = _packet(source, destination, row.data, missing)
            writer.put(packet, row.ts_ns, len(packet) + missing, comments.of(row))


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

    def of(self, row: ChunkRow) -> list[str]:
        """A comment for each message that begins in these bytes, and for each thing that is wrong there."""
        end = row.offset + len(row.data or b"")
        found = self._connection.execute(
            "SELECT kind, id FROM temp.places"
            " WHERE stream_id = ? AND direction = ? AND offset BETWEEN ? AND ?"
            # Where an empty datagram stands the next one begins: the length and the time tell them apart.
            " AND CASE WHEN length = 0 THEN ? AND ts_ns = ? ELSE offset < ? END"
            " ORDER BY offset, kind DESC, id",
            (row.stream_id, row.direction, row.offset, end, not row.data, row.ts_ns, end),
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


def _endpoint(text: str) -> tuple[_Address, int]:
    host, _, port = text.rpartition(":")
    # A link-local address may have its interface behind a %.
    return ipaddress.ip_address(host.strip("[]").partition("%")[0]), int(port)


def _packet(
    source: tuple[_Address, int], destination: tuple[_Address, int], data: bytes, missing: int
) -> bytes:
    """An IP packet with a UDP datagram, of which `missing` bytes at the end are not there."""
    (source_ip, source_port), (destination_ip, destination_port) = source, destination
    if source_ip.version != destination_ip.version:
        # A relay may be reached by one and reach its server by the other.
        source_ip, destination_ip = _as_ipv6(source_ip), _as_ipv6(destination_ip)
    length = 8 + len(data) + missing
    addresses = source_ip.packed + destination_ip.packed
    ports = struct.pack("!HHH", source_port, destination_port, length)
    sum_of_all = 0  # no sum (RFC 768)
    if not missing:
        sum_of_all = (
            _checksum(addresses + struct.pack("!HH", _UDP, length) + ports + b"\0\0" + data) or 0xFFFF
        )
    if source_ip.version == 4:
        before, after = struct.pack("!BxHxxxxBB", 0x45, 20 + length, _HOP_LIMIT, _UDP), addresses
        header = before + struct.pack("!H", _checksum(before + after)) + after
    else:
        header = struct.pack("!IHBB", 6 << 28, length, _UDP, _HOP_LIMIT) + addresses
    return header + ports + struct.pack("!H", sum_of_all) + data


def _as_ipv6(address: _Address) -> _Address:
    return ipaddress.IPv6Address(f"::ffff:{address}") if address.version == 4 else address


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071): modulo 65,535 is the sum of 16-bit digits, carries added."""
    padded = data + b"\0" * (len(data) % 2)
    return ~(int.from_bytes(padded, "big") % 0xFFFF) & 0xFFFF
