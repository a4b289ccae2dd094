"""Packets: all link types and tunnels give what Ethernet gives, fragments are whole, the rest is counted."""

from __future__ import annotations

import itertools
import random
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from command import CAPTURES, kiebitz
from conversation_files import blocks, check
from hypothesis import given, settings
from hypothesis import strategies as st
from made_captures import file_of
from snapshots import DATA, as_bytes, as_text
from strength import a_few, every, times

from kiebitz.proxy.capture import fragments
from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.capture.layers import layer_names
from kiebitz.proxy.capture.link_layers import LINK_TYPES
from kiebitz.proxy.capture.packets import Datagram, PacketDecoder, Segment, endpoints

PORTS = struct.pack(">HH", 50_000, 9_000)
TEXT = b"ROLL;a message that is not short"
DATAGRAM = PORTS + struct.pack(">HH", 8 + len(TEXT), 0) + TEXT
SEGMENT = PORTS + struct.pack(">IIHHHH", 1000, 2000, 0x5018, 500, 0, 0) + TEXT
MACS = bytes.fromhex("020000000001020000000002")
STATIONS = bytes(2) + MACS + bytes(6) + b"\x10\0"
ENDS = {
    # Of a tunnel, and of the packet. The sums of the addresses of IPv4 are the same.
    "ip4": bytes([203, 0, 113, 1, 203, 0, 113, 2]),
    "in4": bytes([113, 1, 203, 0, 113, 2, 203, 0]),
    "ip6": bytes.fromhex("20010db8000000000000000000000001" + "20010db8000000000000000000000002"),
    "in6": bytes.fromhex("20010db8000000000000000000000003" + "20010db8000000000000000000000004"),
}


def ip_packet(ends: str, protocol: int, content: bytes, **fields: str) -> bytes:
    """Return an IP packet with a correct checksum."""
    extra = int(fields.get("options", 0))
    if ends.endswith("6"):
        length = int(fields.get("total", len(content)))
        return struct.pack(">IHBB", 6 << 28, length, protocol, 64) + ENDS[ends] + content
    total = int(fields.get("total", 20 + extra + len(content)))
    flags = int(fields.get("flags", "4000"), 16)
    head = struct.pack(">BBHHHBBH", 0x45 + extra // 4, 0, total, 9, flags, 64, protocol, 0) + ENDS[ends]
    head += b"\1" * extra
    checksum = sum(struct.unpack(f">{len(head) // 2}H", head))
    while checksum >> 16:
        checksum = (checksum & 0xFFFF) + (checksum >> 16)
    return head[:10] + struct.pack(">H", ~checksum & 0xFFFF) + head[12:] + content


PACKETS = {
    "UDP": ip_packet("in4", 17, DATAGRAM),
    "TCP": ip_packet("in4", 6, SEGMENT),
    "UDP, IPv6": ip_packet("in6", 17, DATAGRAM),
    "TCP, IPv6": ip_packet("in6", 6, SEGMENT),
}
PACKET = PACKETS["UDP"]


def frame_of(text: str, packet: bytes = PACKET) -> bytes:
    """Return the frame of a line in packets.txt, around an IP packet."""
    is4 = packet[0] >> 4 == 4
    kind = b"\x08\0" if is4 else b"\x86\xdd"
    snap = b"\xaa\xaa\x03\0\0\0" + kind + packet
    number = packet[9:10] if is4 else packet[6:7]
    words = {
        **{"P": packet, "P4": packet, "TYPE": kind, "ETH": MACS + kind + packet, "SNAP": snap},
        **{"PPP": (b"\0\x21" if is4 else b"\0\x57") + packet, "MAC": MACS, "STATIONS": STATIONS},
        **{"WIFI": b"\x08\1" + STATIONS + snap, "N": number, "C": packet[20 if is4 else 40 :], "TEXT": TEXT},
        # A packet with a wrong header checksum.
        "WRONG": packet[:10] + b"\0\1" + packet[12:],
    }

    def around(name: str, inner: bytes) -> bytes:
        if length := re.fullmatch(r"len(le)?([+-]\d+)?", name):
            return struct.pack("<H" if length[1] else ">H", len(inner) + int(length[2] or 0)) + inner
        ends, _, rest = name.partition(":")
        protocol, *fields = rest.split(",")
        protocol = protocol.split("|")[0 if is4 else -1]
        if ends == "udp":
            head = struct.pack(">HHHH", 40_000, int(protocol), 8 + len(inner), 0)
            return ip_packet("ip4", 17, head + inner)
        value = number[0] if protocol == "N" else int(protocol)
        return ip_packet(ends, value, inner, **dict(field.split("=") for field in fields))

    opened: list[tuple[str, bytes]] = [("", b"")]
    for token in re.findall(r"'[^']*'|[^\s()]+\(|\)|[^\s()]+", text):
        if token.endswith("("):
            opened.append((token[:-1], b""))
            continue
        if token == ")":
            made = around(*opened.pop())
        elif token.startswith("'"):
            made = as_bytes(token[1:-1])
        else:
            token, _, count = token.partition("*")
            token = token.split("|")[0 if is4 else -1]
            made = (words[token] if token in words else bytes.fromhex(token)) * int(count or 1)
        name, before = opened.pop()
        opened.append((name, before + made))
    ((_, frame),) = opened
    return frame


class Row(NamedTuple):
    """A line of packets.txt."""

    name: str
    linktype: int
    frame: str
    note: str

    @property
    def kinds(self) -> list[str]:
        """The packets that the frame may be of."""
        header = re.search(r"in([46]):(\w+)", self.frame)
        version = header[1] if header else "4" if "P4" in self.frame else ""
        transport = {"6": "TCP", "17": "UDP"}.get(header[2], "") if header else ""
        kinds = [kind for kind in PACKETS if kind.startswith(transport)]
        return [kind for kind in kinds if not version or ("IPv6" in kind) == (version == "6")]


def rows(section: str) -> list[Row]:
    found = []
    for line in blocks(DATA / "packets.txt")[section].text.splitlines():
        if line:
            name, linktype, frame, *note = re.split("  +", line)
            found.append(Row(name, int(linktype), frame, "".join(note)))
    return found


LINKS = rows("in these frames a packet is read as in Ethernet")
TUNNELS = rows("and in these tunnels")
HEADERS = rows("and with these headers of IP and its transports")
FRAMES = [*LINKS, *TUNNELS, *HEADERS]
COUNTED = {
    "unread": rows("not read, and reported"),
    "ignored": rows("not read, as no game is in it"),
    "malformed": rows("malformed"),
}
NO_TUNNELS = rows("datagrams to the port of a tunnel that are none")


def decoded(
    linktype: int, data: bytes, wirelen: int | None = None
) -> tuple[list[Datagram | Segment], PacketDecoder]:
    decoder = PacketDecoder()
    found = []
    sent = decoder.decode(linktype, data, wirelen or len(data), 0)
    while sent is not None:
        found.append(sent)
        sent = decoder.rest.pop(0) if decoder.rest else None
    decoder.close()
    return found, decoder


def parts(sent: Datagram | Segment) -> tuple[bytes, bytes, int]:
    """Return flow, payload and number of missing bytes."""
    return (sent.flow, sent.payload, sent.missing) if isinstance(sent, Segment) else sent[:3]


@pytest.mark.parametrize("row", a_few(FRAMES, FRAMES[::4] + HEADERS, lambda row: row.name))
def test_a_wrapped_packet_is_read_as_in_ethernet(row: Row) -> None:
    for kind in row.kinds:
        (plain,), _ = decoded(1, frame_of("ETH", PACKETS[kind]))
        frame = frame_of(row.frame, PACKETS[kind])
        (sent,), decoder = decoded(row.linktype, frame)
        # An IPv6 packet has an identification only as a fragment.
        is_same = sent == plain or ("in6:44" in row.frame and parts(sent) == parts(plain))
        assert is_same, kind
        assert not decoder.ignored + decoder.unread + decoder.malformed
        # Cut by a snap length: the captured part, with the rest missing, or counted once.
        start = frame.rindex(TEXT)
        for length in range(len(frame)):
            short, decoder = decoded(row.linktype, frame[:length], len(frame))
            if length >= start:
                (sent,) = short
                _, payload, missing = parts(sent)
                assert payload == TEXT[: length - start]
                assert len(payload) + missing == len(TEXT)
            elif short == []:
                assert (decoder.ignored + decoder.unread + decoder.malformed).total() == 1


def aggregated(*packets: bytes) -> bytes:
    """Return an 802.11 frame that has several, padded to a multiple of four bytes but for the last."""
    content = b""
    for packet in packets:
        content += bytes(-len(content) % 4) + frame_of("MAC len(SNAP)", packet)
    return frame_of("8802 STATIONS 8000") + content


def test_frames_of_an_aggregate_are_all_read() -> None:
    packets = [
        ip_packet("in4", 17, PORTS + struct.pack(">HH", 8 + size, 0) + bytes(size)) for size in (5, 6, 7, 8)
    ]
    plain = [decoded(1, frame_of("ETH", packet))[0][0] for packet in packets]
    whole = aggregated(*packets)
    found, decoder = decoded(105, whole)
    assert found == plain
    assert not decoder.ignored
    found, _ = decoded(127, frame_of("00000900 02000000 10") + whole + frame_of("deadbeef"))
    assert found == plain
    # One frame that is cut short does not take the others with it.
    assert decoded(105, whole[:-30], len(whole))[0][:3] == plain[:3]


def read(linktype: int, data: bytes, wirelen: int | None = None) -> list[str]:
    """Return what is read of a frame, and what is counted, as in packets.txt."""
    found, decoder = decoded(linktype, data, wirelen)
    lines = []
    for sent in found:
        flow, payload, missing = parts(sent)
        line = f"{' > '.join(endpoints(flow))} '{as_text(payload)}'" + f" and {missing}" * bool(missing)
        if isinstance(sent, Segment):
            numbers = f"seq {sent.seq} ack {sent.ack} flags {sent.flags:02x} window {sent.window}"
            lines.append(f"{line} {numbers} scale {sent.scale} {as_text(sent.reset_text.encode())}".rstrip())
        else:
            lines.append(f"{line} #{sent[3]}")
    return lines + [f"{name}: {what}" for name in COUNTED for what in getattr(decoder, name)]


def test_what_is_read() -> None:
    block = blocks(DATA / "packets.txt")["and this is read of these frames of Ethernet"]
    lines = []
    for step in block.steps:
        text, _, cut = step.partition("  -")
        frame = frame_of(text, PACKETS[Row("", 1, text, "").kinds[0]])
        lines += [step, *(f"    {line}" for line in read(1, frame[: len(frame) - int(cut or 0)], len(frame)))]
        (sent,), _ = decoded(1, frame)
        _, payload, missing = parts(sent)
        # Cut by a snap length: what is missing is known as soon as there is a header, which tells it.
        is_read = False
        for length in range(len(frame) if "total" not in text else 0):
            short, decoder = decoded(1, frame[:length], len(frame))
            assert is_read <= bool(short)
            is_read = bool(short)
            if is_read and payload:
                _, kept, missed = parts(short[0])
                assert (payload.startswith(kept), len(kept) + missed) == (True, len(payload) + missing)
            elif not is_read:
                assert (decoder.ignored + decoder.unread + decoder.malformed).total() == 1
    check(block, "\n".join(lines))


@pytest.mark.parametrize(
    ("counter", "row"),
    [(counter, row) for counter, found in COUNTED.items() for row in found],
    ids=lambda value: value.name if isinstance(value, Row) else value,
)
def test_skipped_data_is_counted_by_kind(counter: str, row: Row) -> None:
    found, decoder = decoded(row.linktype, frame_of(row.frame, PACKETS[row.kinds[0]]))
    assert found == []
    counts = {name: dict(getattr(decoder, name)) for name in COUNTED if getattr(decoder, name)}
    assert counts == {counter: {row.name: 1}}


@pytest.mark.parametrize("row", NO_TUNNELS, ids=lambda row: row.name)
def test_a_port_alone_is_no_tunnel(row: Row) -> None:
    packet = frame_of(row.frame)
    found, decoder = decoded(row.linktype, packet)
    assert found == [(packet[12:24], packet[28:], 0, 9)]
    assert not decoder.ignored + decoder.unread + decoder.malformed


@pytest.mark.parametrize("row", TUNNELS, ids=lambda row: row.name)
def test_nesting_is_bounded(row: Row) -> None:
    packet = PACKET
    sent: list[Datagram | Segment] = []
    levels = 0
    while len(packet) < 60_000:
        packet = frame_of(row.frame, packet)
        before, (sent, decoder) = sent, decoded(101, packet)
        if not sent:
            break
        assert before in ([], sent)
        levels += 1
    assert 2 <= levels <= 16
    assert decoder.malformed == {"more than 16 layers": 1}


def test_fragments_of_a_tunnel_are_put_together() -> None:
    content = frame_of("0000 0800 P")
    decoder = PacketDecoder()
    first = ip_packet("ip4", 47, content[:40], flags="2000")
    last = ip_packet("ip4", 47, content[40:], flags="0005")
    assert decoder.decode(101, first, len(first), 0) is None
    assert decoder.decode(101, last, len(last), 0) == decoded(101, PACKET)[0][0]


def test_each_link_type_that_is_read_has_a_name_and_a_test() -> None:
    assert set(LINK_TYPES) <= {*layer_names("link types"), 12, 14}
    # These are the same reader as one that is tested.
    assert set(LINK_TYPES) - {row.linktype for row in FRAMES} <= {8, 206, 240, 281, 282, 285}


def in_one_file(path: Path, frames: list[tuple[int, bytes]]) -> Path:
    """Write a pcapng file of frames, each with its link type."""
    linktypes = list(dict.fromkeys(linktype for linktype, _ in frames))
    lines = ["section", *(f"interface {linktype}" for linktype in linktypes)]
    lines += [f"packet {linktypes.index(linktype)}@0 {frame.hex()}" for linktype, frame in frames]
    path.write_bytes(file_of("; ".join(lines)))
    return path


def by_tshark(path: Path, version: str, protocol: str, *options: str) -> list[list[str]]:
    """Return source, destination and payload of each packet."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    fields = [f"{version}.src", f"{protocol}.srcport", f"{version}.dst", f"{protocol}.dstport"]
    arguments = [argument for field in [*fields, f"{protocol}.payload"] for argument in ("-e", field)]
    command = [tshark, "-n", "-r", str(path), *options, "-T", "fields", *arguments]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.full
@pytest.mark.parametrize("kind", every(4, PACKETS))
def test_wrapped_packets_are_read_as_tshark_reads_them(kind: str, tmp_path: Path) -> None:
    compared = [row for row in LINKS + TUNNELS if kind in row.kinds and not row.note.startswith("# tshark")]
    path = in_one_file(
        tmp_path / "wrapped.pcapng", [(row.linktype, frame_of(row.frame, PACKETS[kind])) for row in compared]
    )
    version, protocol = ("ipv6" if "IPv6" in kind else "ip"), kind[:3].lower()
    told = by_tshark(path, version, protocol, "-d", "udp.port==8472,vxlan", "-E", "occurrence=l")
    (sent,), _ = decoded(1, frame_of("ETH", PACKETS[kind]))
    source, target = endpoints(parts(sent)[0])
    expected = [*source.rsplit(":", 1), *target.rsplit(":", 1), TEXT.hex()]
    expected = [text.strip("[]") for text in expected]
    assert {row.name: line for row, line in zip(compared, told, strict=True) if line != expected} == {}


@pytest.mark.full
@pytest.mark.parametrize("name", every(2, ["maexchen-head-tiny.pcap", "maexchen-head-odd.pcap"]))
def test_sample_captures_are_read_as_tshark_reads_them(name: str) -> None:
    found = []
    decoder = PacketDecoder()
    with open_capture(str(CAPTURES / name)) as capture:
        for ts_ns, linktype, data, wirelen in capture:
            datagram = decoder.decode(linktype, data, wirelen, ts_ns)
            if isinstance(datagram, tuple):
                source, target = endpoints(datagram[0])
                found.append([*source.split(":"), *target.split(":"), datagram[1].hex()])
    assert found == by_tshark(CAPTURES / name, "ip", "udp", "-Y", "udp && !icmp")
    assert not decoder.malformed


def check_any(linktype: int, data: bytes, wirelen: int) -> None:
    found, decoder = decoded(linktype, data, wirelen)
    for sent in found:
        flow, payload, missing = parts(sent)
        assert len(flow) in (12, 36)
        assert len(payload) <= len(data)
        assert missing >= 0
    # A packet is read, waits for its other fragments, or is counted.
    counted = (decoder.ignored + decoder.unread + decoder.malformed).total()
    assert len(found) + counted <= max(1, len(data) // 14)
    assert found or counted


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*sorted(LINK_TYPES), -1, 65535]),
            st.binary(max_size=200),
            st.integers(0, 1 << 32),
        ),
        max_size=3,
    )
)
@settings(max_examples=times(3000, 100), deadline=None)
def test_any_bytes_of_any_link_type(packets: list[tuple[int, bytes, int]]) -> None:
    decoder = PacketDecoder()
    for number, (linktype, data, wirelen) in enumerate(packets):
        check_any(linktype, data, wirelen)
        decoder.decode(linktype, data, wirelen, number)
    decoder.close()


@given(
    st.sampled_from([(row, kind) for row in FRAMES for kind in row.kinds]),
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=6),
    st.integers(0, 200),
)
@settings(max_examples=times(3000, 60), deadline=None)
def test_any_flipped_bytes_of_any_wrapping(
    case: tuple[Row, str], changes: list[tuple[int, int]], cut: int
) -> None:
    row, kind = case
    data = bytearray(frame_of(row.frame, PACKETS[kind]))
    for place, value in changes:
        data[place % len(data)] = value
    check_any(row.linktype, bytes(data[: max(len(data) - cut, 0)]), len(data))


def test_the_command_reports_unread_data(tmp_path: Path) -> None:
    frames = [(1, frame_of("ETH")), (127, frame_of("00000800 00000000 0841 STATIONS SNAP"))]
    frames += [(189, bytes(40))] * 12 + [(1, frame_of("MAC 0806 00*46"))]
    path = in_one_file(tmp_path / "mixed.pcapng", frames)
    # Of interfaces that are not described.
    path.write_bytes(path.read_bytes() + file_of(f"packet 3@0 {frames[0][1].hex()}") * 2)
    done = kiebitz("import", str(path), "-w", str(tmp_path / "game.db"))
    assert done.status == 0
    assert done.err.splitlines()[1:] == [
        f"kiebitz: {path}: 12 packets of link type 189 (USB_LINUX) were not read",
        f"kiebitz: {path}: 1 packet of encrypted 802.11 data was not read",
        f"kiebitz: {path}: 2 packets were left out: interface not described",
    ]
    assert "packets, 1 stream" in done.err.splitlines()[0]
    # So does a command that reads the capture itself.
    done = kiebitz("messages", str(path))
    assert "12 packets of link type 189 (USB_LINUX) were not read" in done.err


# Lengths, and the headers of transports.


@pytest.mark.parametrize("kind", PACKETS)
def test_original_length_that_is_wrong(kind: str) -> None:
    """A program that cuts packets may state the kept length: the IP header has the original one."""
    frame = frame_of("ETH", PACKETS[kind])
    for cut in range(1, len(TEXT)):
        ((right,), _) = decoded(1, frame[:-cut], len(frame))
        for stated in (len(frame) - cut, len(frame) - cut - 1, 1):
            assert decoded(1, frame[:-cut], stated)[0] == [right]


# Fragments.

LONG = PORTS + struct.pack(">HH", 8 + 900, 0) + random.Random(2).randbytes(900)
MS = 1_000_000


def fragment(version: str, start: int, more: bool, content: bytes, transport: int = 17) -> bytes:
    if version == "in4":
        return ip_packet("in4", transport, content, flags=f"{start // 8 | more << 13:04x}")
    return ip_packet("in6", 44, struct.pack(">BBHI", transport, 0, start | more, 9) + content)


def feed(packets: list[tuple[int, bytes]]) -> tuple[list[Datagram | Segment], dict[str, int]]:
    """Return what comes of packets with their times, and the counts of malformed ones."""
    decoder = PacketDecoder()
    found = [decoder.decode(101, packet, len(packet), ts_ns) for ts_ns, packet in packets]
    decoder.close()
    return [sent for sent in found if sent is not None], dict(decoder.malformed)


@given(st.data(), st.sampled_from(["in4", "in6"]))
@settings(max_examples=times(200), deadline=None)
def test_fragments_in_any_order(data: st.DataObject, version: str) -> None:
    """However a datagram is cut, with pieces twice and overlapping, it is the same datagram."""
    cuts = sorted(data.draw(st.sets(st.integers(1, len(LONG) // 8), max_size=20)))
    edges = [0, *(cut * 8 for cut in cuts), len(LONG)]
    ranges = list(itertools.pairwise(edges))
    for _ in range(data.draw(st.integers(0, 3))):
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(edges) - 1)] * 2)))
        if first < last:
            ranges.append((edges[first], edges[last]))
    pieces = data.draw(st.permutations(ranges))
    found, malformed = feed(
        [(0, fragment(version, start, end < len(LONG), LONG[start:end])) for start, end in pieces]
    )
    # One of them may be the whole datagram, which then comes twice.
    assert set(found) == {(ENDS[version] + PORTS, LONG[8:], 0, 9)}
    assert not malformed


OTHER = LONG[:8] + LONG[8:].swapcase()
PIECES = {
    # The two pieces of a datagram, and of another one.
    **{"A": (0, True, LONG[:400]), "a": (400, False, LONG[400:])},
    **{"B": (0, True, OTHER[:400]), "b": (400, False, OTHER[400:])},
    # The same place with other bytes; two ends, and a piece behind the end.
    **{"X": (200, False, b"x" * 400), "Y": (0, True, b"x" * 160), "Z": (8, True, LONG[:80])},
    **{"e": (400, False, LONG[:8]), "f": (400, False, LONG[:16]), "G": (800, True, LONG[:8])},
}


@pytest.mark.parametrize("version", ["in4", "in6"])
def test_fragments(version: str) -> None:
    block = blocks(DATA / "packets.txt")["fragments, each a millisecond later than the one before, or more"]
    lines = []
    for step in block.steps:
        ts_ns = 0
        packets = []
        for piece in step.split():
            ts_ns += round(float(piece) * MS) if piece.startswith("+") else MS
            if not piece.startswith("+"):
                packets.append((ts_ns, fragment(version, *PIECES[piece])))
        found, malformed = feed(packets)
        names = {LONG[8:]: "A", OTHER[8:]: "B"}
        whole = " ".join(names[parts(sent)[1]] for sent in found)
        counts = " ".join(f"{what}: {number}" for what, number in malformed.items())
        lines += [step, f"    {whole or 'nothing'} {counts}".rstrip()]
    check(block, "\n".join(lines))


def test_fragments_of_a_segment_and_of_a_datagram_with_one_number() -> None:
    """RFC 791, 3.2: the protocol is part of a packet's identity."""
    packets = [
        fragment("in4", start, start == 0, whole[start : start + 40], protocol)
        for start in (40, 0)
        for whole, protocol in ((SEGMENT, 6), (DATAGRAM + bytes(12), 17))
    ]
    found, _ = feed([(0, packet) for packet in packets])
    assert [type(sent) for sent in found] == [Segment, tuple]
    assert [parts(sent)[1] for sent in found] == [TEXT, TEXT]


@pytest.mark.parametrize(
    ("header", "first", "second", "whole", "malformed"),
    [
        # An extension header; the number in the second fragment does not count.
        (b"\x11\0" + bytes(6), 60, 99, [LONG[8:]], {}),
        (struct.pack(">BBHI", 17, 0, 8, 9), 44, 44, [], {"impossible fragment": 1}),
    ],
    ids=["an extension header", "a fragment"],
)
def test_headers_inside_fragments(
    header: bytes, first: int, second: int, whole: list[bytes], malformed: dict[str, int]
) -> None:
    content = header + LONG
    found, counts = feed(
        [
            (0, fragment("in6", 400, False, content[400:], second)),
            (0, fragment("in6", 0, True, content[:400], first)),
        ]
    )
    assert ([parts(sent)[1] for sent in found], counts) == (whole, malformed)


def test_fragments_cut_by_the_snap_length() -> None:
    """Data after the first hole in the datagram is missing, even if it was captured."""
    decoder = PacketDecoder()
    first, last = (fragment("in4", *PIECES[name]) for name in "Aa")
    assert decoder.decode(101, last, len(last), 0) is None
    found = decoder.decode(101, first[:220], len(first), 0)
    assert found == (ENDS["in4"] + PORTS, LONG[8:200], 708, 9)


@pytest.mark.parametrize("size", [8, 1400])
def test_fragments_are_bounded(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragments, "MAX_PACKETS", 100)
    monkeypatch.setattr(fragments, "MAX_BYTES", 100_000)
    malformed = PacketDecoder().malformed
    assembly = fragments.FragmentReassembler(malformed)
    for number in range(1000):
        assembly.add(number % 300, 0, number * 8 % 60_000, True, size, bytes(size), 17)
        assert len(assembly) <= 100
    assembly.close()
    assert len(assembly) == 0
    assert malformed["incomplete fragments"] > 200
