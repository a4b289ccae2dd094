"""check on byte streams: the lines around an error, what of it does not print, and where parsing resumed."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from cleanup import close_after_test
from command import ROOT, kiebitz
from conversation_files import Block, blocks, check
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from session_factory import START_NS
from snapshots import DATA, as_bytes
from strength import every

from kiebitz.dissectors.model import Chunk, Direction, End, Gap, Item, Stream
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.services.evidence.excerpt import MAX_CELLS, ranges_to_read, stream_excerpt
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
LONG = b"!MITSPIELER\nA\n" + b"x" * 2_000_000 + b"\nC\nD\n!END\n"


@pytest.mark.full(but=2)
@pytest.mark.parametrize("size", [None, 1, 7])
@pytest.mark.parametrize("case", every(2, CASES.values(), lambda case: case.title))
def test_lines_are_shown_around_a_diagnostic(tmp_path: Path, case: Block, size: int | None) -> None:
    found = kiebitz("check", record(tmp_path / "x.db", parts_of(case), size)).out.split("\n\n")
    code = case.title.rpartition(": ")[2]
    [block] = [block for block in found if f"[{code}]" in block.splitlines()[0]]
    check(case, "\n".join([*case.steps, *(f"    {line}" for line in excerpt_of(block))]))


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    database = record(tmp_path / "x.db", [ID, LONG, DRAN])
    block = kiebitz("check", database).out.split("\n\n")[0]
    shown = "x" * (MAX_CELLS - len(r"\r\n"))
    assert excerpt_of(block) == [
        r"      6 | !END\n",
        r"     11 | !MITSPIELER\n",
        r"     23 | A\n",
        f"     25 | {shown}…",
        f"        | {'^' * len(shown)}",
        r"2000026 | C\n",
        "        | ^",
        r"2000028 | D\n",
        "        | ^",
        r"2000030 | !END\n",
        "        | ^^^^",
        r"2000035 | !DRAN\n",
        r"2000041 | 0\n",
        r"2000043 | !END\n",
        "        = parsing resumed: at byte 2000035, with DRAN",
    ]
    [row] = kiebitz("check", database, "--json").json
    assert row["bytes"] == "x" * 256
    assert row["hex"] == "78" * 256


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


def _on_a_terminal(*arguments: str, **environment: str) -> str:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kiebitz", *arguments]
    process = subprocess.Popen(
        command, stdout=theirs, cwd=ROOT, env={**os.environ, "COLUMNS": "80", **environment}
    )
    os.close(theirs)
    written = b""
    try:
        while piece := os.read(ours, 4096):
            written += piece
    except OSError:
        # Linux reports a closed other end like this.
        pass
    os.close(ours)
    process.wait(60)
    return written.decode().replace("\r\n", "\n")


@pytest.mark.full
def test_on_a_terminal_nothing_is_wider_than_it(tmp_path: Path) -> None:
    database = record(tmp_path / "x.db", [ID, b"!MODUS\n" + b"SOLO" * 50 + b"\n!END\n", DRAN])
    plain = _on_a_terminal("check", database, NO_COLOR="1")
    assert "\x1b" not in plain
    assert all(len(line) <= 80 for line in plain.splitlines()[1:])
    assert "   = expected: Modus = " in plain
    coloured = _on_a_terminal("check", database)
    assert click.unstyle(coloured) == plain
    assert coloured != plain


@pytest.mark.parametrize("protocol", [dissector.protocol for dissector in BUILT_IN])
def test_the_reference_fits_80_columns(protocol: str) -> None:
    done = kiebitz("protocols", protocol)
    assert done.status == 0
    names = done.out.index("Names for filters")
    assert all(len(line) <= 80 for line in done.out[:names].splitlines())
