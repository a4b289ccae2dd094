"""Capture files: both formats in all their variants, compressed, cut short, damaged, and not captures."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import os
import random
import shutil
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from command import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import a_few, every, times
from zstd_data import zstd_compressed

from kiebitz.proxy.capture import pcapng
from kiebitz.proxy.capture.files import CaptureError, open_capture
from kiebitz.proxy.capture.formats import (
    BROKEN_INTERFACE,
    BROKEN_PACKET,
    OVERLONG_PACKET,
    UNDESCRIBED_INTERFACE,
    CaptureDefect,
)
from kiebitz.proxy.capture.packets import RawPacket

CAPTURES = ROOT / "captures"
TINY = CAPTURES / "maexchen-head-tiny.pcap"
SECOND = 1_000_000_000
PACKETS = [
    (1_700_000_000 * SECOND + 123_456_000, b"first"),
    (1_700_000_001 * SECOND, b""),
    (SECOND, b"x" * 999),
]


def pcap(order: str = "<", nano: bool = False, linktype: int = 1) -> bytes:
    unit = 1 if nano else 1000
    data = struct.pack(order + "IHHIIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 262144, linktype)
    for ts_ns, content in PACKETS:
        seconds, rest = divmod(ts_ns, SECOND)
        data += struct.pack(order + "IIII", seconds, rest // unit, len(content), len(content) + 7) + content
    return data


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def section(order: str, version: int = 1) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, version, 0, -1))


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def interface(order: str, linktype: int, snaplen: int = 0, *options: tuple[int, bytes]) -> bytes:
    body = struct.pack(order + "HHI", linktype, 0, snaplen)
    body += b"".join(option(order, code, value) for code, value in options)
    return block(order, 1, body + (bytes(4) if options else b""))


def enhanced(order: str, number: int, ticks: int, content: bytes, wirelen: int | None = None) -> bytes:
    head = struct.pack(
        order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(content), wirelen or len(content)
    )
    # With a flags option behind the padding.
    return block(order, 6, head + content + bytes(-len(content) % 4) + option(order, 2, bytes(4)) + bytes(4))


def read(data: bytes) -> tuple[list[RawPacket], str | None, dict[CaptureDefect, int]]:
    capture = open_capture(io.BytesIO(data))
    return list(capture), capture.truncated, dict(capture.reader.faults)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [False, True])
def test_pcap(order: str, nano: bool) -> None:
    expected = [(ts_ns, 113, content, len(content) + 7) for ts_ns, content in PACKETS]
    assert read(pcap(order, nano, 113)) == (expected, None, {})


def test_upper_half_of_a_pcap_linktype_is_about_check_sequences() -> None:
    assert {packet[1] for packet in read(pcap(linktype=0x2400_0001))[0]} == {1}


RESOLUTIONS = [
    # if_tsresol, if_tsoffset, ticks, nanoseconds
    (None, None, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
    (b"\x06", None, 1, 1_000),
    (b"\x09", None, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
    (b"\x00", None, 1_700_000_000, 1_700_000_000 * SECOND),
    (b"\x03", 100, 2_500, 102_500_000_000),
    (b"\x0c", None, 7_000_000_000_999, 7_000_000_000),
    (b"\x8a", None, 1024 * 3 + 512, 3_500_000_000),
    (b"\x80", -1, 3, 2 * SECOND),
    # Beyond what 64 bits of nanoseconds hold, and before 1970: the time of the packet before, 0 here.
    (b"\x00", None, 1 << 60, 0),
    (b"\x00", -10, 5, 0),
]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("resolution", "offset", "ticks", "expected"), RESOLUTIONS)
def test_pcapng_time(
    order: str, resolution: bytes | None, offset: int | None, ticks: int, expected: int
) -> None:
    options = [(2, b"lo")]
    if resolution is not None:
        options.append((9, resolution))
    if offset is not None:
        options.append((14, struct.pack(order + "q", offset)))
    data = section(order) + interface(order, 1, 0, *options) + enhanced(order, 0, ticks, b"abc", 9)
    assert read(data)[0] == [(expected, 1, b"abc", 9)]


@pytest.mark.parametrize("first", "<>")
@pytest.mark.parametrize("second", "<>")
def test_pcapng_sections_number_their_interfaces_again(first: str, second: str) -> None:
    data = (
        section(first)
        + interface(first, 1)
        + interface(first, 101)
        + enhanced(first, 1, 1, b"raw")
        + enhanced(first, 0, 2, b"ethernet")
        + section(second)
        + interface(second, 276, 0, (9, b"\x09"))
        + enhanced(second, 0, 3, b"cooked")
    )
    assert read(data) == (
        [(1000, 101, b"raw", 3), (2000, 1, b"ethernet", 8), (3, 276, b"cooked", 6)],
        None,
        {},
    )


def test_pcapng_simple_and_obsolete_packet_blocks() -> None:
    for snaplen, captured in ((0, b"0123456789"), (4, b"0123")):
        data = (
            section("<")
            + interface("<", 1, snaplen)
            + block("<", 2, struct.pack("<HHIIII", 0, 7, 0, 5, 3, 4) + b"old")
            + block("<", 3, struct.pack("<I", 10) + captured)
        )
        assert read(data) == ([(5000, 1, b"old", 4), (5000, 1, captured, 10)], None, {})


def statistics(order: str, number: int, *options: tuple[int, bytes]) -> bytes:
    body = struct.pack(order + "III", number, 0, 0)
    return block(order, 5, body + b"".join(option(order, code, value) for code, value in options) + bytes(4))


@pytest.mark.parametrize("order", "<>")
def test_pcapng_counts_the_packets_that_the_capturing_machine_has_dropped(order: str) -> None:
    def count(number: int) -> bytes:
        return struct.pack(order + "Q", number)

    data = (
        section(order)
        + interface(order, 1)
        + interface(order, 1)
        + statistics(order, 0, (4, count(1000)), (5, count(2)))
        # A later block of an interface counts from the beginning, too.
        + statistics(order, 0, (5, count(3)), (7, count(4)))
        + statistics(order, 1, (7, count(10)))
        # Unreadable counts, an unknown interface, and no interface at all.
        + statistics(order, 1, (7, b"\x99"))
        + statistics(order, 7, (5, count(99)))
        + block(order, 5, b"tiny")
        + section(order)
        + interface(order, 1)
        + statistics(order, 0, (5, count(100)))
        + enhanced(order, 0, 1, b"good")
    )
    capture = open_capture(io.BytesIO(data))
    assert [packet[2] for packet in capture] == [b"good"]
    assert capture.reader.dropped == 3 + 4 + 10 + 100


FAULTY_BLOCKS = {
    UNDESCRIBED_INTERFACE: enhanced("<", 1, 1, b"x"),
    OVERLONG_PACKET: block("<", 6, struct.pack("<IIIII", 0, 0, 0, 4000, 4000) + b"short"),
    BROKEN_PACKET: block("<", 6, b"tiny"),
    BROKEN_INTERFACE: block("<", 1, b"tiny"),
}


@pytest.mark.parametrize("reason", FAULTY_BLOCKS, ids=" ".join)
def test_pcapng_continues_after_a_faulty_block(reason: CaptureDefect) -> None:
    start = section("<") + interface("<", 1)
    unknown = block("<", 10, b"secrets") + block("<", 0x0BAD, b"custom") + block("<", 4, b"")
    data = start + FAULTY_BLOCKS[reason] + unknown + enhanced("<", 0, 1, b"good")
    packets, truncated, faults = read(data)
    assert [packet[2] for packet in packets] == [b"good"]
    assert truncated is None
    assert faults == {reason: 1}


def test_simple_packet_without_interface() -> None:
    assert read(section("<") + block("<", 3, struct.pack("<I", 1) + b"x"))[2] == {UNDESCRIBED_INTERFACE: 1}


PCAPNG = section("<") + interface("<", 1) + b"".join(enhanced("<", 0, 5, content) for _, content in PACKETS)


@pytest.mark.parametrize("whole", [pcap(), PCAPNG], ids=["pcap", "pcapng"])
def test_every_truncation_keeps_what_is_whole_and_reports_it(whole: bytes) -> None:
    packets, truncated, _ = read(whole)
    assert truncated is None
    ends = [offset for offset in range(24, len(whole)) if _is_whole(whole[:offset])]
    assert len(ends) >= len(PACKETS)
    for length in range(4, len(whole)):
        try:
            kept, truncated, _ = read(whole[:length])
        except CaptureError:
            # Only a file header that is not whole is refused.
            assert length < 28
            continue
        assert kept == packets[: len(kept)]
        assert (truncated is None) == (length in ends)
        if truncated:
            assert "byte" in truncated


def _is_whole(data: bytes) -> bool:
    try:
        return read(data)[1] is None
    except CaptureError:
        return False


def test_truncation_names_packet_byte_and_lengths() -> None:
    assert read(pcap()[:-9])[1] == (
        "the capture ends inside packet 3 at byte 61: 1006 of its 1015 bytes are there"
    )
    assert (
        read(PCAPNG[:-1])[1]
        == "the capture ends inside a block at byte 144: 1043 of its 1044 bytes are there"
    )


DAMAGED = {
    "packet 1 claims 4294967295 bytes": pcap()[:24] + b"\xff" * 16,
    "a block claims a length of 4294967295 bytes": section("<")
    + struct.pack("<II", 6, 0xFFFFFFFF)
    + bytes(99),
    "a block claims a length of 8 bytes": section("<") + struct.pack("<II", 6, 8) + bytes(99),
    "a block claims a length of 16777217 bytes": section("<")
    + struct.pack("<II", 6, (1 << 24) + 1)
    + bytes(99),
    "a block does not repeat its length": section("<") + struct.pack("<III", 6, 12, 13),
    "a section header is broken": section("<") + section(">")[:20],
}


@pytest.mark.parametrize("complaint", DAMAGED)
def test_damage_ends_the_capture(complaint: str) -> None:
    packets, truncated, _ = read(DAMAGED[complaint])
    assert packets == []
    assert truncated is not None
    assert complaint in truncated


def modified(order: str, header_length: int, magic: int = 0xA1B2CD34, linktype: int = 1) -> bytes:
    """Return a pcap file with longer record headers: an interface, a protocol, a packet type, and a rest."""
    data = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 262144, linktype)
    for ts_ns, content in PACKETS:
        seconds, rest = divmod(ts_ns, SECOND)
        data += struct.pack(order + "IIII", seconds, rest // 1000, len(content), len(content) + 7)
        data += struct.pack(order + "IHB", 2, 0x800, 4)[: header_length - 16].ljust(header_length - 16, b"\0")
        data += content
    return data


def swapped(major: int, minor: int, linktype: int = 1) -> bytes:
    """Return a pcap file with the original length before the captured one."""
    data = struct.pack(">IHHIIII", 0xA1B2C3D4, major, minor, 0, 0, 262144, linktype)
    for ts_ns, content in PACKETS:
        seconds, rest = divmod(ts_ns, SECOND)
        data += struct.pack(">IIII", seconds, rest // 1000, len(content) + 7, len(content)) + content
    return data


def ixia(order: str, magic: int, unit: int) -> bytes:
    data = struct.pack(order + "IHHIIIII", magic, 2, 4, 0, 0, 262144, 1, 0)
    for ts_ns, content in PACKETS:
        seconds, rest = divmod(ts_ns, SECOND)
        data += struct.pack(order + "IIII", seconds, rest // unit, len(content), len(content) + 7) + content
    return data


VARIANTS = {
    **{
        f"{name}, {order}": modified(order, length, magic)
        for order in "<>"
        for name, length, magic in (
            ("Kuznetsov 1999-10-29", 24, 0xA1B2CD34),
            ("Kuznetsov 1999-09-15", 28, 0xA1B2CD34),
            ("Kuznetsov 1999-04-17", 24, 0xA1B2C3D4),
            ("Nokia", 20, 0xA1B2C3D4),
        )
    },
    **{
        f"Ixia {name}, {order}": ixia(order, magic, unit)
        for order in "<>"
        for name, magic, unit in (("hardware", 0x1C0001AC, 1), ("software", 0x1C0001AB, 1000))
    },
    "version 2.1": swapped(2, 1),
    "version 2.3, lengths swapped": swapped(2, 3),
    "version 2.3, as today": pcap()[:6] + b"\3\0" + pcap()[8:],
    "DG/UX": swapped(543, 0),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstd_compressed])
def test_variants_of_pcap(name: str, compress: Callable[[bytes], bytes]) -> None:
    assert read(compress(VARIANTS[name])) == (read(pcap())[0], None, {})


def test_aix_numbers_link_types_in_its_own_way_and_counts_nanoseconds() -> None:
    packets, truncated, _ = read(swapped(2, 2, 6))
    assert truncated is None
    assert [packet[1] for packet in packets] == [1, 1, 1]
    assert packets[0][0] == 1_700_000_000 * SECOND + 123_456
    # libpcap of that age had the same version.
    assert read(swapped(2, 2))[0] == read(pcap())[0]


@pytest.mark.full
@pytest.mark.parametrize(
    "name", every(4, ["Kuznetsov 1999-10-29, <", "Nokia, >", "Ixia software, <", "version 2.1"])
)
def test_variants_of_pcap_are_read_as_wireshark_reads_them(name: str, tmp_path: Path) -> None:
    path = tmp_path / "variant.pcap"
    path.write_bytes(VARIANTS[name])
    check_like_tshark(path)


def test_a_live_pipe_of_a_variant_is_not_held_up() -> None:
    """The first packet passes before a second one shows the variant."""
    ends = os.pipe()
    whole = modified("<", 24)
    with open(ends[0], "rb") as reading, open(ends[1], "wb", buffering=0) as writing:
        writing.write(whole[: 24 + 24 + 5])
        packets = iter(open_capture(reading))
        assert next(packets) == read(whole)[0][0]
        writing.write(whole[24 + 24 + 5 :])
        writing.close()
        assert list(packets) == read(whole)[0][1:]


@pytest.mark.parametrize("length", [2, 4])
def test_frame_check_sequences_are_cut_off(length: int) -> None:
    frame = b"0123456789abcdef"
    check = b"\xfc" * length
    expected = [(5000, 1, frame, 16), (5000, 1, frame[:10], 16), (5000, 1, frame, 16), (5000, 1, frame, 16)]
    for value in (length, length * 8):
        data = (
            section("<")
            + interface("<", 1, 0, (13, bytes([value])))
            + enhanced("<", 0, 5, frame + check)
            + enhanced("<", 0, 5, frame[:10], 16 + length)
            + block("<", 2, struct.pack("<HHIIII", 0, 0, 0, 5, 16 + length, 16 + length) + frame + check)
            + block("<", 3, struct.pack("<I", 16 + length) + frame + check)
        )
        assert read(data) == (expected, None, {})
    head = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, length // 2 << 28 | 1 << 26 | 1)
    record = struct.pack("<IIII", 0, 5, 16 + length, 16 + length) + frame + check
    assert read(head + record) == (expected[:1], None, {})


def unrounded(order: str, kind: int, body: bytes, how: str) -> bytes:
    """Return a block whose length does not count its padding; `how` is how it ends."""
    length = len(body) + 12
    end = length + -length % 4 if how == "rounded at the end" else length
    padding = b"" if how == "without padding" else bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, length) + body + padding + struct.pack(order + "I", end)


@pytest.mark.parametrize("how", ["padded", "without padding"])
@pytest.mark.parametrize("order", "<>")
def test_unrounded_block_lengths(order: str, how: str) -> None:
    data = section(order) + interface(order, 1)
    contents = [b"x" * size for size in (1, 2, 3, 4, 5, 77)]
    for content in contents:
        head = struct.pack(order + "IIIII", 0, 0, 9, len(content), len(content))
        data += unrounded(order, 6, head + content, how)
    data += unrounded(order, 0xBAD, b"a custom block", how) + enhanced(order, 0, 9, b"last")
    assert read(data) == ([(9000, 1, content, len(content)) for content in [*contents, b"last"]], None, {})


GOOD = [enhanced("<", 0, number, bytes([number]) * (number % 7)) for number in range(1, 9)]
BEFORE = section("<") + interface("<", 1)
DAMAGES = {
    "a length at the end": GOOD[2][:-4] + b"\x77\0\0\0",
    "a length at the start": GOOD[2][:4] + b"\x77\0\0\0" + GOOD[2][8:],
    "a length of 4 GiB": GOOD[2][:4] + b"\xff" * 4 + GOOD[2][8:],
    "a length of nothing": GOOD[2][:4] + bytes(4) + GOOD[2][8:],
    "a length of 15 MiB": GOOD[2][:4] + (15 << 20).to_bytes(4, "little") + GOOD[2][8:],
    "bytes that are lost": GOOD[2][:20] + GOOD[2][27:],
    "bytes that are too many": GOOD[2][:20] + b"junk!" + GOOD[2][20:],
    "zeros": bytes(512),
    "text": b"These are no packets. " * 9,
    "another block inside": block("<", 6, struct.pack("<IIIII", 0, 0, 0, 80, 80) + GOOD[0])[:-4] + bytes(4),
    "a broken section": section("<")[:8] + bytes(20),
    "a section of another version": block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 9, 0, -1)),
    "3 MiB of noise": random.Random(5).randbytes(3 << 20),
}


@pytest.mark.full(but=3)
@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("compress", a_few([bytes, zstd_compressed], [bytes]))
def test_damage_costs_a_block_and_a_sentence(name: str, compress: Callable[[bytes], bytes]) -> None:
    data = BEFORE + b"".join(GOOD[:2]) + DAMAGES[name] + b"".join(GOOD[3:])
    capture = open_capture(io.BytesIO(compress(data)))
    packets = list(capture)
    assert [packet[0] // 1000 for packet in packets] == [1, 2, 4, 5, 6, 7, 8]
    assert capture.truncated is None
    (damage,) = capture.reader.damages
    place = len(BEFORE) + len(GOOD[0] + GOOD[1])
    assert damage.startswith(f"damaged at byte {place}: ")
    assert damage.endswith(f"; {len(DAMAGES[name])} bytes were left out")


def test_damaged_interface_keeps_its_number() -> None:
    broken = interface("<", 105)[:-4] + b"\x77\0\0\0"
    data = section("<") + broken + interface("<", 1) + enhanced("<", 0, 1, b"x") + enhanced("<", 1, 2, b"y")
    capture = open_capture(io.BytesIO(data))
    assert list(capture) == [(2000, 1, b"y", 1)]
    assert dict(capture.reader.faults) == {UNDESCRIBED_INTERFACE: 1}
    assert len(capture.reader.damages) == 1


def test_damages_are_bounded() -> None:
    data = BEFORE + (bytes(16) + GOOD[0]) * 3000
    capture = open_capture(io.BytesIO(data))
    assert 100 <= len(list(capture)) <= 101
    assert len(capture.reader.damages) == 100
    assert capture.truncated is not None
    assert "what follows cannot be read" in capture.truncated


@pytest.mark.full
def test_search_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes may unpack to gigabytes in which no block is."""
    monkeypatch.setattr(pcapng, "MAX_SKIPPED", 3 << 20)
    for size, found in ((2 << 20, 2), (5 << 20, 1)):
        capture = open_capture(io.BytesIO(zstd_compressed(BEFORE + GOOD[0] + bytes(size) + GOOD[1])))
        assert len(list(capture)) == found
        assert (capture.truncated is None) == (found == 2)


def test_a_last_block_that_is_cut_short_is_not_searched_for_blocks() -> None:
    """Its packet may be a piece of another capture, as when one is copied over the network."""
    carrier = enhanced("<", 0, 3, GOOD[0] + GOOD[1])
    packets, truncated, _ = read(BEFORE + GOOD[0] + carrier[:-40])
    assert len(packets) == 1
    assert truncated is not None
    assert "ends inside a block" in truncated


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize("compress", [gzipped, zstd_compressed])
def test_compressed(compress: type[bytes]) -> None:
    for data in (pcap(), PCAPNG):
        assert read(compress(data)) == read(data)
        # Two members, or frames, one after another, cut in the middle of a packet.
        assert read(compress(data[:50]) + compress(data[50:])) == read(data)


def test_gzip_padded_with_zeros_and_zstd_with_skippable_frame() -> None:
    assert read(gzipped(pcap()) + bytes(5000)) == read(pcap())
    assert read(b"\x5f\x2a\x4d\x18\x03\x00\x00\x00abc" + zstd_compressed(pcap())) == read(pcap())


@pytest.mark.parametrize("compress", [gzipped, zstd_compressed])
def test_compressed_and_cut_short(compress: type[bytes]) -> None:
    noise = random.Random(1)
    data = pcap() + b"".join(
        struct.pack("<IIII", number, 0, 1000, 1000) + noise.randbytes(1000) for number in range(400)
    )
    packed = compress(data)
    whole = read(data)[0]
    packets, truncated, _ = read(packed[: len(packed) // 2])
    assert packets == whole[: len(packets)]
    assert 100 < len(packets) < 300
    assert truncated is not None
    assert "data is truncated after" in truncated
    # Only the checksum at the end is missing: all packets are there, but it is reported.
    packets, truncated, _ = read(packed[:-1])
    assert packets == whole
    assert truncated is not None
    # What follows is no further member; so is a checksum that is wrong.
    for damaged in (packed + b"garbage", packed[:-4] + bytes(4)):
        packets, truncated, _ = read(damaged)
        assert packets == whole[: len(packets)]
        assert len(packets) >= len(whole) - 132
        assert truncated is not None
        assert "is damaged near byte" in truncated


@pytest.mark.full
def test_a_small_file_cannot_fill_the_memory() -> None:
    # RFC 8878, 3.1.1.2: a raw block with the file header, then blocks of 4 bytes for 128 KiB of zeros each.
    zeros = (1 << 17 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    bomb = b"\x28\xb5\x2f\xfd\x00\x38" + (24 << 3).to_bytes(3, "little") + pcap()[:24] + zeros * 2000
    for packed in (bomb, gzipped(pcap()[:24] + bytes(1 << 26))):
        tracemalloc.start()
        capture = open_capture(io.BytesIO(packed))
        assert sum(1 for _ in itertools.islice(capture, 10_000)) == 10_000
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
        tracemalloc.stop()


NOT_CAPTURES = [
    (b"", "the stream is empty"),
    (b"\xd4\xc3", "starts with d4 c3; supported are pcap and pcapng"),
    (b"Hello, world, how are you\n", "starts with 'Hello, world, ho'; supported are pcap and pcapng"),
    (b"SQLite format 3\0" + bytes(100), "starts with 53 51 4c"),
    (gzipped(b""), "the gzip content of the stream is empty"),
    (gzipped(b"text"), "the gzip content of the stream is not a capture: it starts with 'text'"),
    (zstd_compressed(b"text"), "the zstd content of the stream is not a capture"),
    (gzipped(pcap())[:12], "cannot be read: the gzip data is truncated after 12 bytes"),
    (b"\x1f\x8bnonsense", "cannot be read: the gzip data is damaged"),
    (b"\x28\xb5\x2f\xfdnonsense", "cannot be read: the zstd data is damaged"),
    (pcap()[:23], "the stream cannot be read: its header is broken or incomplete"),
    (section("<")[:20], "its header is broken or incomplete"),
    (section("<")[:4] + b"\xff" * 40, "its header is broken or incomplete"),
    (section("<", version=2), "its header is of version 2, and only version 1 is read"),
]


@pytest.mark.parametrize(("data", "complaint"), NOT_CAPTURES)
def test_not_a_capture(data: bytes, complaint: str) -> None:
    with pytest.raises(CaptureError) as caught:
        open_capture(io.BytesIO(data))
    assert complaint in str(caught.value)


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "game.pcap").write_bytes(pcap())
    with open_capture(str(tmp_path / "game.pcap")) as capture:
        assert capture.size == len(pcap())
        assert len(list(capture)) == 3
        assert capture.position == capture.size
    for path, complaint in (
        (tmp_path, "is a directory"),
        (tmp_path / "gane.pcap", f"did you mean {tmp_path / 'game.pcap'}?"),
        (tmp_path / "no" / "such", "there is no file"),
        (tmp_path / "game.pcap" / "x", "cannot be opened"),
    ):
        with pytest.raises(CaptureError) as caught:
            open_capture(str(path))
        assert complaint in str(caught.value)
    with pytest.raises(CaptureError):
        open_capture("nul\0byte")
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(CaptureError) as caught:
        open_capture(str(tmp_path / "notes.txt"))
    assert str(caught.value).startswith(f"{tmp_path / 'notes.txt'} is not a capture")


def test_standard_input_as_it_comes() -> None:
    code = (
        "from kiebitz.proxy.capture.files import open_capture\n"
        "capture = open_capture('-')\n"
        "for packet in capture: print(len(packet[2]), flush=True)\n"
        "print(capture.size, capture.position, capture.truncated)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pcap()[:46])
        process.stdin.flush()
        # The first packet is here before the second is sent.
        assert process.stdout.readline() == b"5\n"
        process.stdin.write(pcap()[46:])
        process.stdin.close()
        assert process.stdout.read().split() == [b"0", b"999", b"None", str(len(pcap())).encode(), b"None"]


def test_standard_input_that_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    with pytest.raises(CaptureError, match="standard input is a terminal"):
        open_capture("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(CaptureError, match="standard input is closed"):
        open_capture("-")


def test_a_stream_that_fails_is_a_truncation() -> None:
    class Failing(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            data = super().read1(40)
            if not data:
                raise OSError(5, "Input/output error")
            return data

    capture = open_capture(Failing(pcap()))
    assert len(list(capture)) == 3
    assert capture.truncated == f"reading failed at byte {len(pcap())}: Input/output error"


def test_scapy_stays_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    for data in [
        *DAMAGED.values(),
        PCAPNG[:-1],
        section("<") + FAULTY_BLOCKS[BROKEN_INTERFACE],
    ]:
        read(data)
    assert capfd.readouterr() == ("", "")


def check_like_tshark(path: Path) -> None:
    """Check that each packet's time and lengths are those that tshark finds."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    fields = ["frame.time_epoch", "frame.cap_len", "frame.len"]
    arguments = [argument for field in fields for argument in ("-e", field)]
    told = subprocess.run(
        [tshark, "-r", str(path), "-T", "fields", *arguments], capture_output=True, check=True, text=True
    )
    expected = [line.split("\t") for line in told.stdout.splitlines()]
    with open_capture(str(path)) as capture:
        packets = list(capture)
    assert [
        [f"{ts_ns // SECOND}.{ts_ns % SECOND:09d}", str(len(data)), str(wirelen)]
        for ts_ns, _, data, wirelen in packets
    ] == expected


@pytest.mark.full
@pytest.mark.parametrize("compress", a_few([bytes, gzipped, zstd_compressed], [gzipped]))
def test_sample_capture_is_read_like_tshark_reads_it(compress: type[bytes], tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(compress(TINY.read_bytes()))
    check_like_tshark(path)


MAGICS = st.sampled_from(
    [
        pcap()[:24],
        pcap(">")[:24],
        modified("<", 24)[:24],
        ixia("<", 0x1C0001AC, 1)[:28],
        swapped(2, 2, 6)[:24],
        section("<"),
        section(">") + interface(">", 1),
        gzipped(pcap()),
        b"",
    ]
)


@given(MAGICS, st.binary(max_size=300), st.sampled_from([bytes, gzipped, zstd_compressed]))
@settings(max_examples=times(300), deadline=2000)
def test_any_bytes(start: bytes, rest: bytes, compress: type[bytes]) -> None:
    try:
        packets, _, _ = read(compress(start + rest))
    except CaptureError:
        return
    assert all(0 <= ts_ns < 1 << 63 for ts_ns, _, _, _ in packets)


@given(st.data())
@settings(max_examples=times(200), deadline=2000)
def test_any_flipped_bytes(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([pcap(), PCAPNG, gzipped(PCAPNG), zstd_compressed(pcap())]))
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    begun = time.monotonic()
    with contextlib.suppress(CaptureError):
        read(bytes(changed))
    assert time.monotonic() - begun < 2


class _Pieces(io.BytesIO):
    """A stream that gives a few bytes at a time, as a slow pipe does."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.read(self._size)


@given(st.data(), st.integers(1, 40))
@settings(max_examples=times(200), deadline=2000)
def test_a_capture_is_read_alike_at_once_and_in_pieces(data: st.DataObject, size: int) -> None:
    changed = bytearray(data.draw(st.sampled_from([pcap(), PCAPNG, PCAPNG + PCAPNG])))
    for _ in range(data.draw(st.integers(0, 3))):
        changed[data.draw(st.integers(28, len(changed) - 1))] = data.draw(st.integers(0, 255))
    captures = [open_capture(source) for source in (io.BytesIO(changed), _Pieces(bytes(changed), size))]
    at_once, in_pieces = (
        (list(capture), capture.truncated, capture.reader.damages, dict(capture.reader.faults))
        for capture in captures
    )
    assert at_once == in_pieces
