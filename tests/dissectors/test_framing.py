"""Streams of bytes, cut into frames: in whatever pieces they come, and without end."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from conversation_files import blocks
from single_direction import frames, single, split
from snapshots import DATA, as_bytes
from strength import every, times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.registry import dissector_of


def streams() -> Iterator[Any]:
    """Yield the protocol, the frames and the unfinished rest of each stream in tests/data/frames.txt."""
    for block in blocks(DATA / "frames.txt").values():
        text, _, rest = block.text.partition("¦¦")
        cut = [as_bytes(frame) for frame in text.split("¦") if frame]
        yield pytest.param(block.title.partition(":")[0], cut, as_bytes(rest), id=block.title)


@pytest.mark.full(but=16)
@pytest.mark.parametrize(("protocol", "cut", "rest"), [*streams()])
def test_frames_of_a_stream_cut_anywhere(protocol: str, cut: list[bytes], rest: bytes) -> None:
    dissector = dissector_of(protocol)
    assert dissector is not None
    data = b"".join(cut) + rest
    expected = []
    at = 100
    for frame in cut:
        expected.append(Frame(at, frame, len(frame)))
        at += len(frame)
    if rest:
        expected.append(Frame(at, rest, len(rest), "end"))
    assert frames(dissector, "c2s", [data], 100) == expected
    assert frames(dissector, "c2s", single(data), 100) == expected
    for place in range(1, min(len(data), 400), times(1, 5)):
        assert frames(dissector, "c2s", split(data, [place]), 100) == expected


HELD = {CATAN: 2, CGML: 3, OKEY: 2, SCHAFKOPF: 1}
"""Maximum memory for an endless message, as a multiple of `FRAME_LIMIT`."""


ENDLESS = [
    *((CATAN, b"x", part) for part in (b"x", b"{", b'{"a":', b'{"Hallo"' + b" " * 99, b' {"Hall', b" ")),
    *((CGML, begin, b"y") for begin in (b"<cancelgame>", b"x", b"<!--", b'<pause type="', b"<![CDATA[")),
    *((CGML, b"</a>", b"y"), (OKEY, b"CATC b ", b"x")),
    *((SCHAFKOPF, b"x", part) for part in (b"x" * 100, b"x" * 99 + b"\n")),
]


@pytest.mark.full(but=6)
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


def test_reading_continues_after_an_endless_element() -> None:
    ask = b'<playcard type="ask"></playcard>\r\n\r\n'
    found = frames(CGML, "s2c", [b"<cancelgame>", *[b"y" * 50_000] * 80, b"\r\n\r\n", ask])
    assert [frame.cut for frame in found] == ["limit", None]
    assert found[1].data == ask
    assert found[0].size == 12 + 4_000_000 + 4
