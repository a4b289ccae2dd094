"""Every framing and format of protocol files: the properties of all protocols, and places of fields."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from file_formats import (
    COUNTED,
    COUNTED_FRAMES,
    PAIRS,
    READ_IN_ORDER,
    USUAL,
    frames,
    messages,
    protocol,
    values_of,
)
from strength import a_few, times

from kiebitz.dissectors.anonymizing.frames import anonymized
from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame
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


@cache
def ordered(name: str = "words") -> Dissector:
    return dissector_from(read_specification(READ_IN_ORDER[name][0]))


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", READ_IN_ORDER)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_properties_of_messages_with_counts(check: Check, name: str) -> None:
    check(ordered(name), [*READ_IN_ORDER[name][1]], times(60, quick=2))


@pytest.mark.parametrize("name", READ_IN_ORDER)
def test_values_are_read_as_the_message_counts_them(name: str) -> None:
    codec = ordered(name).codec
    for frame, fields in READ_IN_ORDER[name][1].items():
        decoded = codec.decode(frame, "s2c")
        assert (decoded.fields, decoded.valid, decoded.violations) == (fields, True, ()), frame
        assert decoded.row is not None
        assert codec.encode(decoded.row.name, "s2c", fields) == frame
        for name, value in fields.items():
            # Each field can be changed alone, or is refused as one that the others contradict.
            other = {**fields, name: value[:-1] if isinstance(value, list) else value}
            with suppress(ValueError):
                changed = codec.patch(frame, decoded.row, fields, other)
                again = codec.decode(changed, "s2c")
                assert again.fields == other or not again.valid


@pytest.mark.parametrize("name", READ_IN_ORDER)
def test_an_anonymous_copy_keeps_what_is_no_name(name: str) -> None:
    dissector = ordered(name)
    pseudonyms = Pseudonyms([dissector])
    for frame in READ_IN_ORDER[name][1]:
        copy = anonymized(frame, "s2c", dissector, pseudonyms)
        before, after = (dissector.codec.decode(each, "s2c") for each in (frame, copy))
        assert (after.row, after.valid) == (before.row, True), copy
        assert b"ann" not in copy
        assert b"bob" not in copy


@pytest.mark.parametrize("name", READ_IN_ORDER)
def test_messages_of_several_lines_are_framed_however_they_arrive(name: str) -> None:
    frames = [*READ_IN_ORDER[name][1]]
    data = b"".join(frames)
    for text in (data, data.replace(b"\n", b"\r\n")):
        for size in (1, 7, len(text)):
            framer = ordered(name).framer("s2c")
            found: list[Frame] = []
            for at in range(0, len(text), size):
                found += framer.feed(at, text[at : at + size])
            assert [each.data.replace(b"\r", b"") for each in found] == frames


@pytest.mark.parametrize(
    ("name", "data", "frames"),
    [
        # Lines that are missing: a line that cannot belong to the message, and begins like another one.
        (
            "lines after words",
            "UPDATE 3\n#1: a: b\nQUIT\nQUIT\n",
            ["UPDATE 3\n#1: a: b\n", "QUIT\n", "QUIT\n"],
        ),
        ("lines after words", "TOP TEN\na\nEND\nann 3\nQUIT\n", ["TOP TEN\na\nEND\nann 3\n", "QUIT\n"]),
        # The number of lines is not known.
        ("lines after words", "UPDATE x\n#1: a: b\nQUIT\n", ["UPDATE x\n", "#1: a: b\n", "QUIT\n"]),
        ("lines after words", "TWO 3 ab\ncd\nQUIT\n", ["TWO 3 ab\n", "cd\n", "QUIT\n"]),
        # After missing bytes, a message begins at the next line with a name.
        ("lines after words", "UPDATE 2\n#1: a: b\n⟨9⟩ c: d\n7\nQUIT\n7\n", ["", "", "QUIT\n", "7\n"]),
        ("lines after words", "⟨9⟩#1: a: b\nQUIT\n", ["", "QUIT\n"]),
        ("lines", "!UPDATE\n2\nann\n⟨3⟩\n1\n7\nx\n!QUIT\n", ["", "", "!QUIT\n"]),
    ],
)
def test_lines_that_are_missing(name: str, data: str, frames: list[str]) -> None:
    framer, at = ordered(name).framer("s2c"), 0
    found: list[Frame] = []
    for number, part in enumerate(re.split("[⟨⟩]", data)):
        if number % 2:
            found += framer.gap(at, int(part))
            at += int(part)
        else:
            found += framer.feed(at, part.encode())
            at += len(part)
    assert [each.data.decode() for each in found] == frames


@pytest.mark.parametrize(
    ("frame", "problem", "place"),
    [
        (b"NAME ann\n", "ann must be on a line of its own", (5, 3)),
        (b"UPDATE 2\n#1: a: b\n", "seats has fewer items than its number says", (17, 0)),
        (b"UPDATE 1\n#1 a: b\n", '"#1" has another form', (9, 2)),
        (b"TWO 3\nab\nc1\n= 5\n", '"c1" has another form', (9, 2)),
        (b"TWO\n3\nab\ncd\n= 5\n", "3 must be on the first line", (4, 1)),
        (b"TOP TEN\na\nb\n", "there is no END after the last of these", (11, 0)),
    ],
)
def test_lines_that_contradict_their_numbers(frame: bytes, problem: str, place: tuple[int, int]) -> None:
    (violation,) = ordered("lines after words").codec.decode(frame, "s2c").violations
    assert problem in violation.text
    assert (violation.offset, violation.length) == place


@pytest.mark.parametrize(
    ("frame", "problem", "place"),
    [
        (b"END bob 3 ann 3 bob 5\n", "scores has fewer items than its number says", (21, 0)),
        (b"END bob 999999999 ann 3\n", "scores has fewer items than its number says", (23, 0)),
        (b"END bob 1 ann 3 bob 5\n", "END has 3 fields", (15, 6)),
        (b"END bob 2 ann x bob 5\n", 'scores: "x" is not a whole number', (14, 1)),
        (b"LIST 1 7 r1 OPEN 0\n", 'rooms: "OPEN" is not known here', (12, 4)),
        (b"DEALT 1 ann 2 10H\n", "cards has fewer items than its number says", (17, 0)),
        (b"UPTO ann bob 3\n", "there is no STOP after the last of these", (14, 0)),
        (b"BOARD -wbx\n", '"-wbx" has another form', (6, 4)),
        (b"HAND 2C10HQX\n", '"Q" has another form', (10, 1)),
        (b"OVER Player bob ann <3>\n", '"ann" has another form', (16, 3)),
        (b"OVER Pl bob (ann) <3>\n", '"Pl" is not Player', (5, 2)),
        (b"OVER Player bob (ann) <3,x>\n", '"x" is not a whole number', (25, 1)),
    ],
)
def test_words_that_contradict_their_numbers(frame: bytes, problem: str, place: tuple[int, int]) -> None:
    (violation,) = ordered().codec.decode(frame, "s2c").violations
    assert problem in violation.text
    assert (violation.offset, violation.length) == place


def test_messages_end_where_their_fields_do() -> None:
    codec = counted().codec
    decoded = [codec.decode(frame, direction) for direction, frame in COUNTED_FRAMES]
    rows = [{"name": "ann", "m": 2, "dice": [1, 6]}, {"name": "bo", "m": 0, "dice": []}]
    assert decoded[1].fields == {"round": 1, "n": 2, "rows": rows, "hand": [1, 2]}
    move, row = decoded[2].fields, decoded[2].row
    assert row is not None
    assert move["way"] is None
    changed = codec.patch(COUNTED_FRAMES[2][1], row, move, {**move, "way": "up"})
    assert changed == b"MX\1\3\0\1\2\1\0\0"
    assert [each.valid for each in decoded] == [True] * 4 + [False] * 3
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


@pytest.mark.full(but=2)
@some_formats
def test_each_beginning_of_a_frame_has_its_pieces(framing: str, of: str) -> None:
    dissector = protocol(framing, of)
    for frame in frames(framing, of):
        for direction in DIRECTIONS:
            for end in range(len(frame) + 1):
                check_anatomy(dissector, frame[:end], direction)
                # In XML, that may be in the value of an attribute.
                check_anatomy(dissector, frame[:end] + b">\r\n" + frame[end:], direction)
            check_anatomy(dissector, frame + b' ""', direction)


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
            place = dissector.codec.text_place(frame, row, field.name)
            if field.name not in fields:
                assert place is None
                continue
            value = fields[field.name]
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
