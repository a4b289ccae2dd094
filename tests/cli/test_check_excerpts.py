"""Excerpts of `check`: carets in datagrams, and the lines around an error in byte streams."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from cleanup import close_after_test
from command import kiebitz
from conversation_files import Block, blocks, check
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from session_factory import START_NS
from snapshots import DATA, as_bytes
from strength import every
from terminals import OnTerminal

from kiebitz.dissectors.model import Chunk, Direction, End, Gap, Item, Stream
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.services.evidence.excerpt import MAX_CELLS, datagram_excerpt, ranges_to_read, stream_excerpt
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.read.recorded_bytes import ByteRange, RecordedBytes
from kiebitz.storage.recording.recorder import Recorder

Part = bytes | int | None


def record(path: Path, parts: Sequence[Part], size: int | None = None, direction: Direction = "s2c") -> str:
    stream = Stream(1, "tcp", "127.0.0.1:40000", "127.0.0.1:35555", START_NS)
    items: list[Item] = []
    offset = 0
    for number, part in enumerate(parts, 1):
        ts_ns = START_NS + number * 1_000_000
        if isinstance(part, bytes):
            step = size or len(part)
            for start in range(0, len(part), step):
                items.append(Chunk(stream, direction, ts_ns, offset + start, part[start : start + step]))
            offset += len(part)
        else:
            items.append(Gap(stream, direction, ts_ns, offset, part))
            offset += part or 0
    items.append(End(stream, START_NS + 1_000_000_000, "closed"))
    decode_as = {("tcp", 35555): SCHAFKOPF}
    recorder = Recorder(str(path), "relay", "made up", started_ns=START_NS, decode_as=decode_as)
    recorder.record(items)
    recorder.close()
    return str(path)


def parts_of(case: Block) -> list[Part]:
    """Return the stream of a case."""
    found: list[Part] = []
    for step in case.steps:
        gap = re.fullmatch(r"gap (?:(\d+)|\?)", step)
        found.append(as_bytes(step) if gap is None else int(gap[1]) if gap[1] else None)
    return found


def excerpt_of(block: str) -> list[str]:
    """Return the excerpt of a block, and where parsing resumed."""
    return [line for line in block.splitlines()[2:] if " = " not in line or "resumed" in line]


def paket(text: str, line_end: str = "\n") -> bytes:
    return "".join(f"{line}{line_end}" for line in text.split()).encode()


ID = b"!ID\n2\n!END\n"
DRAN = b"!DRAN\n0\n!END\n"
CARDS = "EICHEL SAU GRAS SAU HERZ SAU SCHELLEN SAU EICHEL ZEHN GRAS ZEHN " + "§ " * 16
CASES = blocks(DATA / "excerpts.txt")


@pytest.mark.full(but=2)
@pytest.mark.parametrize("size", [None, 1, 7])
@pytest.mark.parametrize("case", every(2, CASES.values(), lambda case: case.title))
def test_lines_are_shown_around_a_diagnostic(tmp_path: Path, case: Block, size: int | None) -> None:
    found = kiebitz("check", record(tmp_path / "x.db", parts_of(case), size)).out.split("\n\n")
    code = case.title.rpartition(": ")[2]
    [block] = [block for block in found if f"[{code}]" in block.splitlines()[0]]
    check(case, "\n".join([*case.steps, *(f"    {line}" for line in excerpt_of(block))]))


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("a gap: gap", {"bytes": None, "hex": None, "resumed_offset": 49, "resumed_message": "DRAN"}),
        ("the stream ends in a line: truncated", {"bytes": "", "hex": "", "resumed_offset": None}),
        ("a NUL: unusual-value", {"bytes": r"A\x00b", "hex": "410062", "suggestion": None}),
        ("the beginning is missing: mid-stream", {"bytes": "", "offset_in_msg": None}),
    ],
)
def test_programs_get_it_all(tmp_path: Path, case: str, told: dict[str, object]) -> None:
    database = record(tmp_path / "x.db", parts_of(CASES[case]))
    [row] = kiebitz("check", database, "--json", "-Y", f'diag.code == "{case.rpartition(": ")[2]}"').json
    assert {key: row[key] for key in told} == told


def test_all_lines_of_a_whole_model_are_not_shown() -> None:
    data = paket("!MODEL !UPDATE " + CARDS)
    lines = stream_excerpt([ByteRange(0, len(data), data)], 0, len(data), 0)
    assert [line.text for line in lines if line.offset is not None] == [
        "!MODEL",
        "!UPDATE",
        "EICHEL",
        "SAU",
        "GRAS",
        "SAU",
        "§",
        "§",
    ]
    assert not any("c2" in line.text for line in lines)


def test_many_small_chunks_are_read_at_once(tmp_path: Path) -> None:
    model = paket("!MODEL !UPDATE " + CARDS)
    connection = close_after_test(open_existing(record(tmp_path / "x.db", [model] * 20, size=1)))
    found = RecordedBytes(connection)
    assert found.between(1, "s2c", 0, 1) == [ByteRange(0, 1, b"!")]
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    start = 3 * len(model)
    assert found.between(1, "s2c", start, start + len(model)) == [ByteRange(start, len(model), model)]
    assert len(asked) == 1


@pytest.mark.parametrize("size", [None, 1])
def test_bytes_and_gaps_between_two_places(tmp_path: Path, size: int | None) -> None:
    connection = close_after_test(
        open_existing(record(tmp_path / "x.db", [None, b"abcdef", 4, b"gh", 2], size))
    )
    found = RecordedBytes(connection)
    everything = [
        ByteRange(0, None, None),
        ByteRange(0, 6, b"abcdef"),
        ByteRange(6, 4, None),
        ByteRange(10, 2, b"gh"),
        ByteRange(12, 2, None),
    ]
    assert found.between(1, "s2c", 0, 100) == everything
    assert found.between(1, "s2c", 1, 12) == [ByteRange(1, 5, b"bcdef"), *everything[2:4]]
    assert found.between(1, "s2c", 2, 4) == [ByteRange(2, 2, b"cd")]
    assert found.between(1, "s2c", 8, 9) == everything[2:3]
    assert found.between(1, "s2c", 13, 20) == everything[4:]
    assert found.between(1, "s2c", 14, 20) == []
    assert found.between(1, "c2s", 0, 20) == []


@given(
    st.lists(
        st.one_of(st.binary(max_size=40), st.sampled_from([b"\n", b"\r\n", b"x" * 3000, 5])), max_size=12
    ),
    st.integers(0, 9000),
    st.integers(0, 9000),
)
def test_any_part_of_any_stream_can_be_shown(parts: list[bytes | int], offset: int, length: int) -> None:
    stretches = []
    at = 0
    for part in parts:
        size = part if isinstance(part, int) else len(part)
        if size:
            stretches.append(ByteRange(at, size, part if isinstance(part, bytes) else None))
        at += size
    offset = min(offset, at)
    seen = [
        ByteRange(
            max(stretch.offset, start),
            min(stretch.offset + stretch.length, end) - max(stretch.offset, start),
            stretch.data[max(0, start - stretch.offset) : end - stretch.offset],
        )
        if stretch.data is not None
        else stretch
        for start, end in ranges_to_read(offset, length)
        for stretch in stretches
        if stretch.length is not None and stretch.offset < end and start < stretch.offset + stretch.length
    ]
    lines = stream_excerpt(seen, offset, length, 0)
    assert sum(line.offset is not None for line in lines) <= 15
    assert any(set(line.text) <= {" ", "^"} for line in lines)
    offsets = [line.offset for line in lines if line.offset is not None]
    assert offsets == sorted(offsets)
    for line in lines:
        assert (line.text + line.line_end).isprintable()
        assert cell_len(line.text + line.line_end) <= MAX_CELLS + 2


@pytest.mark.full
def test_on_a_terminal_nothing_is_wider_than_it(tmp_path: Path) -> None:
    database = record(tmp_path / "x.db", [ID, b"!MODUS\n" + b"SOLO" * 50 + b"\n!END\n", DRAN])
    with OnTerminal("check", database, NO_COLOR="1") as plain, OnTerminal("check", database) as coloured:
        assert plain.ended() == coloured.ended() == 3
    assert b"\x1b" not in plain.written
    assert all(len(line) <= 80 for line in plain.lines[1:] if not line.startswith("For "))
    assert any(line.lstrip().startswith("= expected: Modus = ") for line in plain.lines)
    assert coloured.lines == plain.lines
    assert coloured.written != plain.written


@pytest.mark.parametrize("protocol", [dissector.protocol for dissector in BUILT_IN])
def test_the_reference_fits_80_columns(protocol: str) -> None:
    done = kiebitz("protocols", protocol)
    assert done.status == 0
    names = done.out.index("Names for filters")
    assert all(len(line) <= 80 for line in done.out[:names].splitlines())


# Datagrams.

DATAGRAMS = [*blocks(DATA / "datagram_excerpts.txt").values()]


def excerpt(data: bytes, offset: int, length: int) -> list[str]:
    """Return the lines that show a datagram, which does not begin at 0 of its stream."""
    return [line.text for line in datagram_excerpt(1000, data, 1000 + offset, length)]


@pytest.mark.parametrize("block", DATAGRAMS, ids=lambda block: block.title)
def test_a_datagram_is_shown_so(block: Block) -> None:
    lines = []
    for step in block.steps:
        place, _, data = step.partition(" ")
        offset, _, length = place.partition("+")
        lines += [step, *(f"    {line}" for line in excerpt(as_bytes(data), int(offset), int(length)))]
    check(block, "\n".join(lines))


@given(st.binary(max_size=300), st.integers(0, 300), st.integers(0, 300))
def test_any_bytes_can_be_shown(data: bytes, offset: int, length: int) -> None:
    lines = excerpt(data, offset, length)
    assert len(lines) in (2, 4)
    for text, carets in zip(lines[::2], lines[1::2], strict=True):
        assert text.isprintable()
        assert cell_len(text) <= MAX_CELLS + 2
        assert set(carets) <= {" ", "^"}
        assert carets.endswith("^")
        assert len(carets) <= cell_len(text) + 1
