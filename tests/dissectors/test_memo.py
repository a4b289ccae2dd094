from __future__ import annotations

import pytest

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import CACHE_SIZE, MAX_CACHED_LENGTH
from kiebitz.dissectors.grammar.json.framer import JsonFraming
from kiebitz.dissectors.grammar.xml.framer import XmlFraming
from kiebitz.dissectors.inspection import memo as remembered
from kiebitz.dissectors.inspection.memo import (
    MAX_BYTES,
    MAX_FRAME_SIZE,
    MAX_FRAMES,
    FrameCache,
    decode_cached,
)
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.catan.grammar import CODEC as CATAN_CODEC
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.cgml.grammar import CODEC
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN


def rolled(number: int, name_length: int = 3) -> bytes:
    """Return a datagram that no other number has."""
    return b"PLAYER ROLLS;" + b"%0*d" % (name_length, number)


def test_a_copy_is_decoded_once() -> None:
    memo = FrameCache()
    first = decode_cached(memo, MAEXCHEN, rolled(1), "s2c")
    assert first.row is not None
    assert first.row.name == "PLAYER ROLLS"
    assert decode_cached(memo, MAEXCHEN, rolled(1), "s2c") is first
    assert decode_cached(memo, MAEXCHEN, rolled(2), "s2c") is not first


def test_one_that_is_fresh_or_long_is_not_remembered() -> None:
    memo = FrameCache()
    decode_cached(memo, MAEXCHEN, b"YOUR TURN;0f7d0b8e", "s2c")
    decode_cached(memo, MAEXCHEN, rolled(1, MAX_FRAME_SIZE), "s2c")
    assert not memo.recent


@pytest.mark.parametrize(
    ("name_length", "most"),
    [(6, MAX_FRAMES), (2000, MAX_BYTES // len(rolled(0, 2000)))],
    ids=["short", "long"],
)
def test_so_many_and_so_many_bytes_are_remembered(
    name_length: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if most == MAX_FRAMES:
        most = 64
        monkeypatch.setattr(remembered, "MAX_FRAMES", most)
    memo = FrameCache()
    kept = decode_cached(memo, MAEXCHEN, rolled(0, name_length), "s2c")
    for number in range(1, 3 * most):
        decode_cached(memo, MAEXCHEN, rolled(number, name_length), "s2c")
        assert max(len(memo.recent), len(memo.older)) <= most
        # What comes again and again stays, whatever comes between.
        assert decode_cached(memo, MAEXCHEN, rolled(0, name_length), "s2c") is kept
    assert len(memo.older) == most
    assert rolled(1, name_length) not in memo.recent | memo.older


@pytest.mark.parametrize(
    ("dissector", "framing", "message"),
    [
        (CATAN, CATAN_CODEC.framing, b'{"Chatnachricht": {"Absender": 1, "Nachricht": "%0*d"}}\n'),
        (
            CGML,
            CODEC.framing,
            b'<newgroup status="init">\r\n  <game>%0*d</game>\r\n</newgroup>\r\n\r\n',
        ),
    ],
    ids=["catan", "cgml"],
)
def test_so_many_short_pieces_are_remembered_and_none_that_is_long(
    dissector: Dissector, framing: JsonFraming | XmlFraming, message: bytes
) -> None:
    ends, framer, offset = framing.ends.short, dissector.framer("s2c"), 0
    ends.cache_clear()
    for number in range(CACHE_SIZE + 10):
        piece = message % (MAX_CACHED_LENGTH if number % 2 else 6, number)
        (frame,) = framer.feed(offset, piece)
        assert (frame.offset, frame.data) == (offset, piece)
        offset += len(piece)
    assert ends.cache_info().currsize == CACHE_SIZE // 2 + 5
    for number in range(2 * CACHE_SIZE):
        framer.feed(offset, piece := message % (5, number))
        offset += len(piece)
    assert ends.cache_info().currsize == CACHE_SIZE
