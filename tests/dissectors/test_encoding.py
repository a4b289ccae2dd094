"""Messages of all rows of the built-in protocols, made from the types of their fields."""

from __future__ import annotations

import json

import pytest
from field_values import fields_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.okey.grammar import CODEC, WORDS
from kiebitz.dissectors.registry import BUILT_IN

ROWS = [
    pytest.param(dissector, row, id=f"{dissector.protocol} {row.direction} {row.name} {number}")
    for dissector in BUILT_IN
    for number, row in enumerate(dissector.grammar.rows)
]


@pytest.mark.full(but=40)
@pytest.mark.parametrize(("dissector", "row"), ROWS)
@given(data=st.data())
@settings(max_examples=times(60, 2), deadline=None)
def test_decode_after_encode_is_the_identity_for_every_row(
    dissector: Dissector, row: MessageType, data: st.DataObject
) -> None:
    fields = data.draw(fields_of(row))
    frames = [dissector.codec.encode(row.name, row.direction, fields)]
    if dissector == OKEY:
        frames = [CODEC.encode_padded(row.name, row.direction, fields, pad) for pad in WORDS.pads]
    for frame in frames:
        decoded = dissector.codec.decode(frame, row.direction)
        assert decoded.valid
        assert decoded.row is not None
        assert (decoded.row.name, decoded.fields) == (row.name, fields)
        assert json.loads(decoded.fields_json) == fields
        if dissector.transport == "tcp":
            framer = dissector.framer(row.direction)
            assert [*framer.feed(0, frame), *framer.eof()] == [Frame(0, frame, len(frame))]
