"""Framers of all protocols: streams in whatever pieces, with gaps, and with messages that are too long."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import pytest
from conversation_files import Block, blocks, check
from file_conversations import dissector_of
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import DATA, as_bytes, as_text
from strength import every, times

from kiebitz.dissectors import registry
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar import framing, packet_framer
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, DatagramFramer, Frame, LineFramer
from kiebitz.dissectors.grammar.json import framer as json_framer
from kiebitz.dissectors.grammar.xml import framer as xml_framer
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file import framers
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF

FRAMINGS = blocks(DATA / "framings.txt")
WITH_LIMIT = (framing, framers, json_framer, xml_framer, packet_framer)


@cache
def framed_by(block: Block) -> tuple[Dissector, Direction]:
    """Return the protocol of a block, and the direction of its streams."""
    lines = [step for step in block.steps if not step.startswith(("parts ", "stream ", "limit ", "# "))]
    if not (built_in := re.fullmatch("protocol (\\w+)( s2c)?", lines[0])):
        return dissector_of("\n".join(['protocol = "p"', *lines, ""])), "c2s"
    dissector = registry.dissector_of(built_in[1])
    assert dissector is not None
    return dissector, "s2c" if built_in[2] else "c2s"


class Run(NamedTuple):
    """Bytes, and the length of the gap after them; None if that is unknown, -1 if there is no gap."""

    data: bytes
    gap: int | None


def framed(block: Block, runs: Sequence[Run], sizes: Sequence[int]) -> list[Frame]:
    """Return the frames of a stream that comes in pieces of these sizes."""
    dissector, direction = framed_by(block)
    framer = dissector.framer(direction)
    found: list[Frame] = []
    offset = number = 0
    for data, gap in runs:
        at = 0
        while at < len(data):
            size = sizes[number % len(sizes)]
            number += 1
            found += framer.feed(offset + at, data[at : at + size])
            at += size
        offset += len(data)
        if gap != -1:
            found += framer.gap(offset, gap)
            offset += gap or 0
    unfinished = framer.is_unfinished
    rest = framer.eof()
    assert unfinished <= bool(rest)
    assert not framer.is_unfinished
    return [*found, *rest]


@contextmanager
def limited(limit: int | None) -> Iterator[None]:
    """Let no frame be longer than this."""
    with pytest.MonkeyPatch.context() as patch:
        for module in WITH_LIMIT if limit is not None else ():
            patch.setattr(module, "FRAME_LIMIT", limit)
        yield


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", every(3, FRAMINGS))
@settings(max_examples=times(150, 20), deadline=None)
@given(data=st.data())
def test_any_cut_gives_the_same_frames(name: str, data: st.DataObject) -> None:
    block = FRAMINGS[name]
    (parts,) = (step for step in block.steps if step.startswith("parts "))
    some = st.lists(st.sampled_from([as_bytes(part) for part in parts[6:].split(" ¦ ")]), max_size=12)
    gaps = st.sampled_from([-1, None, 0, 1, 5])
    runs = data.draw(st.lists(st.builds(Run, some.map(b"".join), gaps), min_size=1, max_size=3))
    limit = data.draw(st.none() | st.integers(20, 60))
    with limited(limit):
        whole = framed(block, runs, [1 << 30])
        assert framed(block, runs, data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))) == whole
        with pytest.MonkeyPatch.context() as patch:
            # A line that is taken as a whole is what the scanner would have come to.
            patch.setattr(json_framer.JsonFraming, "is_frame", lambda self, line: False)
            assert framed(block, runs, [1 << 30]) == whole
    # Each byte is in one frame, in their order.
    starts = accumulate((len(run.data) + max(run.gap or 0, 0) for run in runs), initial=0)
    sent = {
        start + at: byte for start, run in zip(starts, runs, strict=False) for at, byte in enumerate(run.data)
    }
    assert [place for frame in whole for place in range(frame.offset, frame.offset + frame.size)] == [*sent]
    for frame in whole:
        is_kept = frame.cut in (None, "end")
        places = range(frame.offset, frame.offset + frame.size)
        assert frame.data == bytes(sent[place] for place in places if is_kept)
        assert limit is not None or frame.place <= frame.size
        assert limit is None or frame.size <= limit or frame.cut in ("limit", "gap", "end")


def runs_of(text: str) -> list[Run]:
    """Return the runs of a stream with gaps such as ⟨7⟩ and ⟨?⟩."""
    pieces = [*re.split("⟨(.*?)⟩", text), "-1"]
    gaps = [None if gap == "?" else int(gap) for gap in pieces[1::2]]
    return [Run(as_bytes(data), gap) for data, gap in zip(pieces[::2], gaps, strict=True)]


def shown(frame: Frame) -> str:
    if frame.cut is None:
        return as_text(frame.data)
    begun = f", begun at {frame.place}" if frame.place else ""
    return (
        f"unfinished {as_text(frame.data)}" if frame.cut == "end" else f"{frame.cut} of {frame.size}{begun}"
    )


@pytest.mark.parametrize("block", FRAMINGS.values(), ids=lambda block: block.title)
def test_frames_of_a_stream_however_it_comes(block: Block) -> None:
    lines, limit = [], None
    for step in block.steps:
        lines.append(step)
        if step.startswith("limit "):
            limit = int(step.removeprefix("limit "))
        if step.startswith("stream "):
            runs = runs_of(step.removeprefix("stream "))
            longest = max(len(run.data) for run in runs)
            with limited(limit):
                whole = framed(block, runs, [1 << 30])
                cuts = [[place, 1 << 30] for place in range(1, min(longest, 400), times(1, 5))]
                assert [framed(block, runs, sizes) for sizes in ([1], *cuts)] == [whole] * (len(cuts) + 1)
            lines.append(f"    {' ¦ '.join(map(shown, whole))}".rstrip())
    check(block, "\n".join(lines))


HELD = {CATAN: 2, CGML: 3, OKEY: 2, SCHAFKOPF: 1}
"""Maximum memory for an endless message, as a multiple of `FRAME_LIMIT`."""


ENDLESS = [
    *((CATAN, b"x", part) for part in (b"x", b"{", b'{"a":', b'{"Hallo"' + b" " * 99, b' {"Hall', b" ")),
    *((CGML, begin, b"y") for begin in (b"<cancelgame>", b"x", b"<!--", b'<pause type="', b"<![CDATA[")),
    *((CGML, b"</a>", b"y"), (OKEY, b"CATC b ", b"x")),
    *((SCHAFKOPF, b"x", part) for part in (b"x" * 100, b"x" * 99 + b"\n")),
]


@pytest.mark.full(but=2)
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize(("dissector", "begin", "part"), every(2, ENDLESS))
def test_endless_messages_are_not_held(dissector: Dissector, begin: bytes, part: bytes, gap: bool) -> None:
    framer = dissector.framer("s2c")
    framer.feed(0, begin)
    if gap:
        framer.gap(len(begin), 1)
    piece = part * (100_000 // len(part))
    tracemalloc.start()
    try:
        for offset in range(len(begin) + gap, 4 * FRAME_LIMIT, len(piece)):
            framer.feed(offset, piece)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < HELD[dissector] * FRAME_LIMIT
    assert peak < (HELD[dissector] + 2) * FRAME_LIMIT


def test_a_message_is_complete_with_its_last_byte() -> None:
    for name, data, after in (
        *(("json", b"{}", b"\n"), ("xml", b"<a/>", b"\r\n"), ("xml of known names", b"\n<a></a>", b"\n")),
        ("xml in an envelope", b"<e><a/></e>", b" "),
    ):
        framer = framed_by(FRAMINGS[name])[0].framer("c2s")
        assert [frame.data for frame in framer.feed(0, data)] == [data]
        framer.feed(len(data), after)
        assert not framer.is_unfinished


def test_datagrams_are_whole_messages() -> None:
    messages = '[messages]\nA = "c:"\n'
    assert dissector_of(f'protocol = "p"\nframing = "datagrams"\n{messages}').framer is DatagramFramer
    assert dissector_of(f'protocol = "p"\ntransport = "udp"\n{messages}').framer is DatagramFramer
    assert dissector_of(f'protocol = "p"\n{messages}').framer is LineFramer
