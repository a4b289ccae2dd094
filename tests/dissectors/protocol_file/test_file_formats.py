"""Every framing and format of protocol files: the properties of all protocols, and places of fields."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from file_formats import COUNTED, COUNTED_FRAMES, PAIRS, USUAL, frames, messages, protocol, values_of
from strength import a_few, times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.dissectors.protocol_file.dissector import dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.testing import CHECKS, Check, check_anatomy, decode_after_encode_is_the_identity

each_format = pytest.mark.parametrize(("framing", "of"), PAIRS)


@cache
def counted() -> Dissector:
    return dissector_from(read_specification(COUNTED))


some_formats = pytest.mark.parametrize(("framing", "of"), a_few(PAIRS, USUAL))


@pytest.mark.full(but=2)
@some_formats
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_properties_of_all_protocols(check: Check, framing: str, of: str) -> None:
    check(protocol(framing, of), frames(framing, of), times(60, quick=2))


@pytest.mark.full(but=1)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_properties_of_messages_that_end_with_their_fields(check: Check) -> None:
    check(counted(), [frame for _, frame in COUNTED_FRAMES], times(60, quick=2))


def test_messages_end_where_their_fields_do() -> None:
    codec = counted().codec
    decoded = [codec.decode(frame, direction) for direction, frame in COUNTED_FRAMES]
    rows = [{"name": "ann", "m": 2, "dice": [1, 6]}, {"name": "bo", "m": 0, "dice": []}]
    assert decoded[1].fields == {"round": 1, "n": 2, "rows": rows, "hand": [1, 2]}
    assert [each.valid for each in decoded] == [True] * 4 + [False] * 2
    for direction in DIRECTIONS:
        sent = [frame for way, frame in COUNTED_FRAMES if way == direction]
        framer = counted().framer(direction)
        assert [frame.data for frame in framer.feed(0, b"".join(sent))] == sent


@pytest.mark.full(but=2)
@some_formats
def test_decode_after_encode_is_the_identity(framing: str, of: str) -> None:
    decode_after_encode_is_the_identity(protocol(framing, of), values_of, times(120))


@pytest.mark.full(but=15)
@each_format
def test_framers_find_encoded_messages(framing: str, of: str) -> None:
    dissector = protocol(framing, of)
    for direction in ("c2s", "s2c"):
        sent = [dissector.codec.encode(*each) for each in messages(of) if each[1] == direction]
        framer = dissector.framer(direction)
        if framer.depends_on_segments:
            continue
        carried = dissector.encapsulation
        if carried is not None:
            framer.feed(0, carried.opening(direction))
            sent = [carried.wrap(frame, direction) for frame in sent]
        found = [*framer.feed(0, b"".join(sent)), *framer.eof()]
        decoded = [dissector.codec.decode(frame.data, direction) for frame in found if frame.cut is None]
        names = [each.row.name for each in decoded if each.row is not None]
        assert names == [each[0] for each in messages(of) if each[1] == direction]
        assert [each.violations for each in decoded] == [()] * len(decoded)


def _changed(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case float():
            return value + 1
        case int():
            return value % 5 + 1
        case [*_]:
            return [*value[:-1], _changed(value[-1])]
        case dict():
            return {**value, "x": _changed(value["x"])}
        case "red":
            return "red"
        case "00ff":
            return "ff00"
    return f"{value}b"


@pytest.mark.full(but=15)
@each_format
def test_only_the_bytes_of_changed_values_are_replaced(framing: str, of: str) -> None:
    dissector = protocol(framing, of)
    for name, direction, fields in messages(of):
        frame = dissector.codec.encode(name, direction, fields)
        for key, value in fields.items():
            wanted = {**fields, key: _changed(value)}
            written = dissector.codec.rewrite(frame, direction, wanted)
            decoded = dissector.codec.decode(written, direction)
            assert (decoded.valid, decoded.fields_json) == (True, to_json(wanted))
            assert written == dissector.codec.encode(name, direction, wanted)


@pytest.mark.full(but=15)
@each_format
def test_each_field_has_its_place(framing: str, of: str) -> None:
    dissector = protocol(framing, of)
    for name, direction, fields in messages(of):
        frame = dissector.codec.encode(name, direction, fields)
        row = dissector.codec.decode(frame, direction).row
        assert row is not None
        pieces = check_anatomy(dissector, frame, direction)
        assert all(piece.kind in ("name", "field", "markup") for piece in pieces)
        for field in row.fields:
            if field.name not in fields:
                continue
            value = fields[field.name]
            place = dissector.codec.text_place(frame, row, field.name)
            if place is None:
                assert isinstance(value, list | dict), field.name
                continue
            start, length = place
            text = field.type.encode(value)
            if isinstance(value, str | int | float) and of not in ("struct", "struct-little"):
                written = dissector.codec.as_text(frame, row, field, text)
                assert frame[start : start + length] == written
            _assert_whole(dissector, frame, direction, field.name)


def _assert_whole(dissector: Dissector, frame: bytes, direction: Any, name: str) -> None:
    decoded = dissector.codec.decode(frame, direction)
    assert decoded.row is not None
    place = dissector.codec.whole_place(frame, decoded.row, name)
    assert place is not None
    start, length = place
    envelope = getattr(dissector.codec, "envelope", None)
    if envelope is None:
        # The bytes are right for the header of another length only.
        return
    begin, end = envelope.body(frame)
    without = envelope.rewrap(frame, frame[begin:start] + frame[start + length : end])
    again = dissector.codec.decode(without, direction)
    codes = [each.code for each in again.violations]
    assert "broken-json" not in codes
    assert "broken-xml" not in codes
    if again.valid:
        assert to_json(again.fields) != decoded.fields_json
