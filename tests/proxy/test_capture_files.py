"""Capture files: both formats in all their variants, compressed, cut short, damaged, and not captures."""

from __future__ import annotations

import io
import itertools
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from command import ROOT
from conversation_files import Block, blocks, check
from hypothesis import given, settings
from hypothesis import strategies as st
from made_captures import file_of, gzipped
from snapshots import DATA, as_text
from strength import every, times
from zstd_data import zstd_compressed

from kiebitz.proxy.capture import pcapng
from kiebitz.proxy.capture.files import CaptureError, open_capture
from kiebitz.proxy.capture.packets import RawPacket

SECOND = 1_000_000_000


def findings(source: io.BytesIO) -> list[str]:
    """Return what is read of a capture file, as in capture_files.txt."""
    try:
        capture = open_capture(source)
    except CaptureError as error:
        # Without what the compression's library says.
        return [f"refused: {error}".partition(" near byte")[0]]
    lines = [
        f"{ts_ns // SECOND}.{ts_ns % SECOND:09} {linktype} '{as_text(data)}' {wirelen}"
        for ts_ns, linktype, data, wirelen in capture
    ]
    lines += capture.reader.damages
    lines += [f"{count} {' '.join(defect)}" for defect, count in capture.reader.faults.items()]
    lines += [f"{capture.reader.dropped} dropped"] * bool(capture.reader.dropped)
    return [*lines, capture.truncated] if capture.truncated else lines


class _Pieces(io.BytesIO):
    """A stream that gives a few bytes at a time, as a slow pipe does."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.read(self._size)


@pytest.mark.parametrize("block", blocks(DATA / "capture_files.txt").values(), ids=lambda block: block.title)
def test_cases(block: Block, capfd: pytest.CaptureFixture[str]) -> None:
    found = []
    for line in block.steps:
        for order in "<>":
            data = file_of(line, order)
            found.append(findings(io.BytesIO(data)))
            if not found[-1][0].startswith("refused"):
                # However it comes it is the same capture, unless only the second record shows the variant.
                sources: list[io.BytesIO] = [_Pieces(data, 7)] if "extra" not in line else []
                sources += [io.BytesIO(pack(data)) for pack in PACK] if "zip" not in line else []
                assert [findings(source) for source in sources] == [found[-1]] * len(sources)
    check(block, "\n".join([*block.steps, *(f"    {line}" for line in found[0])]))
    for other in found:
        assert other == found[0]
    # scapy reports nothing by itself.
    assert capfd.readouterr() == ("", "")


TINY = (ROOT / "captures" / "maexchen-head-tiny.pcap").read_bytes()
LINES = [line for block in blocks(DATA / "capture_files.txt").values() for line in block.steps]
PCAP, PCAPNG = file_of("pcap; records"), file_of("section; interface 1; packets")
FILES = [file_of(line, order) for line in LINES if not re.search("gzip|zstd", line) for order in "<>"]
PACK = [gzipped, zstd_compressed]


def read(data: bytes) -> list[str]:
    return findings(io.BytesIO(data))


@pytest.mark.parametrize("whole", [PCAP, PCAPNG], ids=["pcap", "pcapng"])
def test_every_truncation_keeps_what_is_whole_and_reports_it(whole: bytes) -> None:
    packets = read(whole)
    whole_ends = 0
    for length in range(4, len(whole)):
        found = read(whole[:length])
        if found == packets[: len(found)]:
            whole_ends += 1
        elif found[0].startswith("refused"):
            # Only a file header that is not whole is.
            assert length < 28
        else:
            assert found[:-1] == packets[: len(found) - 1]
            assert "the capture ends inside" in found[-1]
    # Behind the headers, and behind two packets.
    assert whole_ends == (3 if whole is PCAP else 4)


def test_a_live_pipe_of_a_variant_is_not_held_up() -> None:
    """The first packet passes before a second one shows the variant."""
    ends = os.pipe()
    whole = file_of("pcap magic=a1b2cd34; records extra=8")
    with open(ends[0], "rb") as reading, open(ends[1], "wb", buffering=0) as writing:
        writing.write(whole[: 24 + 24 + 5])
        packets = iter(open_capture(reading))
        assert next(packets)[2] == b"first"
        writing.write(whole[24 + 24 + 5 :])
        writing.close()
        assert [len(packet[2]) for packet in packets] == [0, 999]


START = "section; interface 1; packet 0@1 'a'"


def test_damages_are_bounded() -> None:
    found = read(file_of("; ".join([START, *["bytes '⟦␀×16⟧'; packet 0@2 'b'"] * 3000])))
    assert len([line for line in found if line.startswith("damaged at byte")]) == 100
    assert 100 <= len([line for line in found if line.endswith(" 1 'b' 1")]) <= 101
    assert found[-1].endswith("; what follows cannot be read")


@pytest.mark.full
def test_search_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes may unpack to gigabytes in which no block is."""
    monkeypatch.setattr(pcapng, "MAX_SKIPPED", 3 << 20)
    start, last = file_of(START), file_of("packet 0@2 'b'")
    noise = random.Random(5).randbytes(2 << 20)
    for rubbish, is_found in ((noise, True), (bytes(2 << 20), True), (bytes(5 << 20), False)):
        found = read(zstd_compressed(start + rubbish + last))
        assert (found[1] == "0.000002000 1 'b' 1") == is_found
        assert found[-1].endswith("what follows cannot be read") != is_found


@pytest.mark.parametrize("pack", PACK)
def test_compressed_and_cut_short(pack: Callable[[bytes], bytes]) -> None:
    # Two members, or frames, one after another, cut in the middle of a packet.
    assert read(pack(PCAP[:50]) + pack(PCAP[50:])) == read(PCAP)
    noise = random.Random(1)
    whole = PCAP
    for number in range(400):
        whole += struct.pack("<IIII", number, 0, 1000, 1000) + noise.randbytes(1000)

    def kept(data: bytes, says: str) -> list[RawPacket]:
        capture = open_capture(io.BytesIO(data))
        found = list(capture)
        assert says in (capture.truncated or "")
        return found

    packed = pack(whole)
    packets = kept(whole, "")
    half = kept(packed[: len(packed) // 2], "data is truncated after")
    assert half == packets[: len(half)]
    assert 100 < len(half) < 300
    # Only the checksum at the end is missing: all packets are there, but it is reported.
    assert kept(packed[:-1], "truncated") == packets
    # What follows is no further member; so is a checksum that is wrong.
    for damaged in (packed + b"garbage", packed[:-4] + bytes(4)):
        found = kept(damaged, "is damaged near byte")
        assert found == packets[: len(found)]
        assert len(found) >= len(packets) - 132


def test_a_frame_of_zstd_to_be_skipped() -> None:
    assert read(b"\x5f\x2a\x4d\x18\x03\x00\x00\x00abc" + zstd_compressed(PCAP)) == read(PCAP)


@pytest.mark.full
def test_a_small_file_cannot_fill_the_memory() -> None:
    # RFC 8878, 3.1.1.2: a raw block with the file header, then blocks of 4 bytes for 128 KiB of zeros each.
    zeros = (1 << 17 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    bomb = b"\x28\xb5\x2f\xfd\x00\x38" + (24 << 3).to_bytes(3, "little") + PCAP[:24] + zeros * 2000
    for packed in (bomb, gzipped(PCAP[:24] + bytes(1 << 26))):
        tracemalloc.start()
        capture = open_capture(io.BytesIO(packed))
        assert sum(1 for _ in itertools.islice(capture, 10_000)) == 10_000
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
        tracemalloc.stop()


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "game.pcap").write_bytes(PCAP)
    with open_capture(str(tmp_path / "game.pcap")) as capture:
        assert capture.size == len(PCAP)
        assert len(list(capture)) == 3
        assert capture.position == capture.size
    (tmp_path / "notes.txt").write_text("notes")
    for path, complaint in (
        (tmp_path, "is a directory"),
        (tmp_path / "gane.pcap", f"did you mean {tmp_path / 'game.pcap'}?"),
        (tmp_path / "no" / "such", "there is no file"),
        (tmp_path / "game.pcap" / "x", "cannot be opened"),
        ("nul\0byte", ""),
        (tmp_path / "notes.txt", f"{tmp_path / 'notes.txt'} is not a capture"),
    ):
        with pytest.raises(CaptureError) as caught:
            open_capture(str(path))
        assert complaint in str(caught.value)


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
        process.stdin.write(PCAP[:46])
        process.stdin.flush()
        # The first packet is here before the second is sent.
        assert process.stdout.readline() == b"5\n"
        process.stdin.write(PCAP[46:])
        process.stdin.close()
        assert process.stdout.read().split() == [b"0", b"999", b"None", str(len(PCAP)).encode(), b"None"]


def test_standard_input_that_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    with pytest.raises(CaptureError, match="standard input is a terminal"):
        open_capture("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(CaptureError, match="standard input is closed"):
        open_capture("-")


def test_a_stream_that_fails_is_a_truncation() -> None:
    class Failing(_Pieces):
        def read1(self, size: int | None = -1, /) -> bytes:
            data = super().read1(size)
            if not data:
                raise OSError(5, "Input/output error")
            return data

    failure = f"reading failed at byte {len(PCAP)}: Input/output error"
    assert findings(Failing(PCAP, 40)) == [*read(PCAP), failure]


@pytest.mark.full
@pytest.mark.parametrize(
    "data",
    every(
        4,
        [
            *(gzipped(TINY), TINY, zstd_compressed(TINY)),
            file_of("pcap magic=a1b2cd34; records extra=8"),
            file_of("pcap >; records extra=4"),
            file_of("pcap magic=1c0001ab; bytes u32:0; records"),
            file_of("pcap > version=2.1; records swapped"),
        ],
        lambda row: row[:4].hex(),
    ),
)
def test_packets_have_the_times_and_lengths_that_tshark_finds(data: bytes, tmp_path: Path) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    path = tmp_path / "capture"
    path.write_bytes(data)
    fields = ["-e", "frame.time_epoch", "-e", "frame.cap_len", "-e", "frame.len"]
    told = subprocess.run(
        [tshark, "-r", str(path), "-T", "fields", *fields], capture_output=True, check=True, text=True
    )
    with open_capture(str(path)) as capture:
        assert [
            f"{ts_ns // SECOND}.{ts_ns % SECOND:09d}\t{len(data)}\t{wirelen}"
            for ts_ns, _, data, wirelen in capture
        ] == told.stdout.splitlines()


CHANGES = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=4)


def changed(data: bytes, changes: list[tuple[int, int]]) -> bytes:
    made = bytearray(data)
    for place, value in changes if data else ():
        made[place % len(data)] = value
    return bytes(made)


@given(st.sampled_from(FILES), CHANGES, st.integers(0, 400), st.binary(max_size=300), st.integers(1, 40))
@settings(max_examples=times(500), deadline=2000)
def test_any_bytes_are_read_alike_at_once_in_pieces_and_compressed(
    start: bytes, changes: list[tuple[int, int]], cut: int, rest: bytes, size: int
) -> None:
    data = changed(start, changes)[: len(start) - cut] + rest
    found = read(data)
    if found[:1] and found[0].startswith("refused"):
        return
    # The variant of a pcap file is guessed by what is there of its second record.
    if data[:28] == PCAPNG[:28] or (start == PCAP and data[:28] == PCAP[:28]):
        assert findings(_Pieces(data, size)) == found
    for pack in PACK:
        assert read(pack(data)) == found


@given(st.sampled_from([pack(data) for pack in PACK for data in (PCAP, PCAPNG)]), CHANGES)
@settings(max_examples=times(200), deadline=2000)
def test_any_changed_bytes_of_a_compressed_file(packed: bytes, changes: list[tuple[int, int]]) -> None:
    read(changed(packed, changes))
