"""Drafts of traffic that is no protocol, or that was made to do harm."""

from __future__ import annotations

import json
import random
import tomllib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strength import times

from kiebitz.dissectors.drafting.draft import DraftingError, draft
from kiebitz.dissectors.drafting.traffic import Conversation, Piece
from kiebitz.dissectors.drafting.writer import MAX_TEXT, comment, quoted
from kiebitz.dissectors.model import Direction, Transport
from kiebitz.dissectors.protocol_file.reading.reader import read_specification


def _conversation(messages: list[bytes], transport: Transport = "tcp") -> Conversation:
    pieces: list[Piece] = []
    offsets: dict[Direction, int] = {"c2s": 0, "s2c": 0}
    for number, data in enumerate(messages):
        direction: Direction = "s2c" if number % 2 else "c2s"
        pieces.append(Piece(direction, number * 1_000_000, offsets[direction], data))
        offsets[direction] += len(data)
    return Conversation("10.0.0.2:50000", "10.0.0.1:4711", transport, pieces)


@settings(max_examples=times(60, 12), deadline=None)
@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=12),
    st.sampled_from(("tcp", "udp")),
    st.sampled_from((b"", b"\n", b"\0", b"]}\n")),
)
def test_any_bytes(messages: list[bytes], transport: Transport, end: bytes) -> None:
    try:
        drafted = draft([_conversation([message + end for message in messages], transport)], [4711], "odd")
    except DraftingError:
        return
    read_specification(drafted.text)


@pytest.mark.full
@settings(max_examples=times(60, 12), deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=12), st.sampled_from((" ", ";", "=", ":", "\t")))
def test_any_words(words: list[str], between: str) -> None:
    lines = [between.join((word, "x", word[::-1])) + "\n" for word in words] * 3
    data = [line.encode("utf-8", "replace") for line in lines]
    try:
        drafted = draft([_conversation(data)], [4711], "odd")
    except DraftingError:
        return
    read_specification(drafted.text)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.full
@settings(max_examples=times(60, 12), deadline=None)
@example([{"": []}, {"": {"": 0}}])
@example([{"\0": []}, {"\0": "x", "": {"\0": 0}}])
@given(st.lists(st.dictionaries(st.text(max_size=6), _VALUES, max_size=4), min_size=1, max_size=8))
def test_any_objects(objects: list[dict[str, object]]) -> None:
    lines = [
        json.dumps(dict(each, type=f"t{number % 3}")).encode() + b"\n" for number, each in enumerate(objects)
    ]
    try:
        drafted = draft([_conversation(lines * 3)], [4711], "odd")
    except DraftingError:
        return
    read_specification(drafted.text)


@pytest.mark.parametrize(
    "text",
    ['"', "\\", "a\nb", "\x1b[31m", "\x7f", "\u202e", "\ud800", "\U000e0001", "'''", "]\n[types]\nx = 1"],
)
def test_words_from_the_network_stay_words(text: str) -> None:
    line = f"x = {quoted(text)}{comment(text)}"
    assert "\n" not in line
    assert line.isprintable()
    assert list(tomllib.loads(line)) == ["x"]


@pytest.mark.full
def test_many_names_make_no_large_file() -> None:
    lines = [f"N{number // 3:05d}{'x' * 40} {'y' * 2000}\n".encode() for number in range(9000)]
    drafted = draft([_conversation(lines)], [4711], "many")
    assert len(drafted.text.encode()) <= MAX_TEXT + 10_000
    read_specification(drafted.text)


@pytest.mark.full
def test_deep_and_wide_objects() -> None:
    deep = b'{"type":"deep","x":' + b"[" * 400 + b"]" * 400 + b"}\n"
    wide = json.dumps({"type": "wide"} | {f"k{number}": number for number in range(5000)}).encode() + b"\n"
    drafted = draft([_conversation([deep, wide] * 20)], [4711], "deep")
    assert len(drafted.text) < 50_000
    read_specification(drafted.text)


@pytest.mark.parametrize(
    ("messages", "seen"),
    [
        ([random.Random(number).randbytes(number + 9) for number in range(30)], "without a length"),
        ([b"NAME\nann\n", b"NAMES\nann\nbob\n", b"CARD\nH10\n"] * 9, "belong to the message before"),
        ([b"MOVE%d5 a\n" % number for number in range(30)], "differ in their digits only"),
        ([bytes((32 + number % 25, number, 7)) + b"\0\1" for number in range(40)], "hardly recur"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_draft_says_what_was_seen(messages: list[bytes], seen: str) -> None:
    try:
        said = draft([_conversation(messages)], [4711], "odd").seen
    except DraftingError as error:
        said = str(error)
    assert seen in said


@pytest.mark.parametrize(
    ("begin", "reason"),
    [
        (b"\x16\x03\x01\x02\x00", "TLS"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (b"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", "encrypted or compressed"),
        (b"", "encrypted or compressed"),
    ],
)
def test_what_cannot_be_read_is_said(begin: bytes, reason: str) -> None:
    noise = random.Random(5).randbytes(times(20_000, 4_000))
    with pytest.raises(DraftingError, match=reason):
        draft([_conversation([begin + noise, noise])], [443], "noise")
