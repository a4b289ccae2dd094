"""Every framing and format of protocol files: counts, missing lines, changes, and places of fields."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from file_conversations import dissector_named
from file_formats import (
    IN_ORDER,
    PAIRS,
    USUAL,
    frames,
    messages,
    protocol,
    sent_by,
)
from strength import a_few

from kiebitz.dissectors.anonymizing.frames import anonymized
from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.dissectors.testing import check_anatomy

each_format = pytest.mark.parametrize(("framing", "of"), PAIRS)
some_formats = pytest.mark.parametrize(("framing", "of"), a_few(PAIRS, USUAL))


@pytest.mark.parametrize("name", IN_ORDER)
def test_each_counted_value_can_be_changed(name: str) -> None:
    codec = dissector_named(name).codec
    for direction, frame in sent_by(name):
        decoded = codec.decode(frame, direction)
        fields = decoded.fields
        assert decoded.row is not None
        for name, value in fields.items():
            # Each field can be changed alone, or is refused as one that the others contradict.
            other = {**fields, name: value[:-1] if isinstance(value, list) else value}
            with suppress(ValueError):
                changed = codec.patch(frame, decoded.row, fields, other)
                again = codec.decode(changed, "s2c")
                assert again.fields == other or not again.valid


@pytest.mark.parametrize("name", IN_ORDER)
def test_each_beginning_of_a_message_is_one_or_has_an_error(name: str) -> None:
    codec = dissector_named(name).codec
    for direction, frame in sent_by(name):
        for end in range(1, len(frame)):
            decoded = codec.decode(frame[:end] + frame[-1:], direction)
            assert decoded.valid != any(found.severity == "error" for found in decoded.violations)
            codec.truncated(frame[:end], direction)


@pytest.mark.parametrize("name", IN_ORDER)
def test_an_anonymous_copy_keeps_what_is_no_name(name: str) -> None:
    dissector = dissector_named(name)
    pseudonyms = Pseudonyms([dissector])
    for _, frame in sent_by(name):
        copy = anonymized(frame, "s2c", dissector, pseudonyms)
        before, after = (dissector.codec.decode(each, "s2c") for each in (frame, copy))
        assert (after.row, after.valid) == (before.row, True), copy
        assert b"ann" not in copy
        assert b"bob" not in copy


@pytest.mark.parametrize("name", IN_ORDER)
def test_messages_of_several_lines_are_framed_however_they_arrive(name: str) -> None:
    frames = [frame for _, frame in sent_by(name)]
    data = b"".join(frames)
    for text in (data, data.replace(b"\n", b"\r\n")):
        for size in (1, 7, len(text)):
            framer = dissector_named(name).framer("s2c")
            found: list[Frame] = []
            for at in range(0, len(text), size):
                found += framer.feed(at, text[at : at + size])
            assert [each.data.replace(b"\r", b"") for each in found] == frames


@pytest.mark.parametrize(
    ("name", "data", "frames"),
    [
        # Lines that are missing: a line that cannot belong to the message, and begins like another one.
        (
            "lines_after_words",
            "UPDATE 3\n#1: a: b\nQUIT\nQUIT\n",
            ["UPDATE 3\n#1: a: b\n", "QUIT\n", "QUIT\n"],
        ),
        ("lines_after_words", "TOP TEN\na\nEND\nann 3\nQUIT\n", ["TOP TEN\na\nEND\nann 3\n", "QUIT\n"]),
        # The number of lines is not known.
        ("lines_after_words", "UPDATE x\n#1: a: b\nQUIT\n", ["UPDATE x\n", "#1: a: b\n", "QUIT\n"]),
        ("lines_after_words", "TWO 3 ab\ncd\nQUIT\n", ["TWO 3 ab\n", "cd\n", "QUIT\n"]),
        # After missing bytes, a message begins at the next line with a name.
        ("lines_after_words", "UPDATE 2\n#1: a: b\n⟨9⟩ c: d\n7\nQUIT\n7\n", ["", "", "QUIT\n", "7\n"]),
        ("lines_after_words", "⟨9⟩#1: a: b\nQUIT\n", ["", "QUIT\n"]),
        ("counted_lines", "!UPDATE\n2\nann\n⟨3⟩\n1\n7\nx\n!QUIT\n", ["", "", "!QUIT\n"]),
    ],
)
def test_lines_that_are_missing(name: str, data: str, frames: list[str]) -> None:
    framer, at = dissector_named(name).framer("s2c"), 0
    found: list[Frame] = []
    for number, part in enumerate(re.split("[⟨⟩]", data)):
        if number % 2:
            found += framer.gap(at, int(part))
            at += int(part)
        else:
            found += framer.feed(at, part.encode())
            at += len(part)
    assert [each.data.decode() for each in found] == frames


def test_messages_end_where_their_fields_do() -> None:
    dissector = dissector_named("counted")
    for direction in DIRECTIONS:
        sent = [frame for way, frame in sent_by("counted", "sound", "malformed") if way == direction]
        assert [frame.data for frame in dissector.framer(direction).feed(0, b"".join(sent))] == sent
    frame = sent_by("counted")[2][1]
    fields = dissector.codec.decode(frame, "c2s").fields
    assert dissector.codec.rewrite(frame, "c2s", {**fields, "way": "up"}) == frame[:-1] + b"\0"


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
