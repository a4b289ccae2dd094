"""Catan's framer and its scanner: whatever is sent, in whatever pieces, each object comes out once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, cycle
from typing import Any

import pytest
from conversation import Conversation
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import Case, cases
from single_direction import single, split
from strength import every, times

from kiebitz.dissectors.grammar import framing
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame
from kiebitz.dissectors.grammar.json import framer as json_framer
from kiebitz.dissectors.grammar.json.framer import JsonFraming
from kiebitz.dissectors.grammar.json.scanner import Scanner, first_error, parse_places
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.catan.grammar import CODEC

Step = str | int
Path = tuple[Step, ...]


def cut(pieces: Iterable[bytes | None], start: int = 0) -> list[Frame]:
    framer = CATAN.framer("c2s")
    frames: list[Frame] = []
    for piece in pieces:
        if piece is None:
            frames += framer.gap(start, 7)
            start += 7
        else:
            frames += framer.feed(start, piece)
            start += len(piece)
    unfinished = framer.is_unfinished
    rest = framer.eof()
    assert unfinished == bool(rest)
    assert not framer.is_unfinished
    return [*frames, *rest]


# Framing.

HALLO = b'{"Hallo":{"Version":"1.0"}}'
SPIELER = b'{"Spieler":{"Name":"Anna"}}'
UPDATE = b'{"Statusupdate":{"Spieler":{"id":1,"Status":"Warten"}}}'
ANY = b'{"Etwas":{"x":[1,{"y":null}]}}'


@pytest.mark.parametrize(
    ("before", "after", "skipped"),
    [
        (b"", HALLO + b"\n", 0),
        (HALLO[:5], HALLO + b"\n", 0),
        (HALLO, SPIELER + b"\n", 0),
        (HALLO[:5], b'1.0"}}\n' + ANY + b"\n", 7),
        (HALLO[:5], b'1.0"}}\n\n' + ANY + b"\n", 8),
        (HALLO[:5], b'1.0"}} ' + HALLO + b"\n", 7),
        (b"", b'"a\nb"}}\n' + SPIELER + b"\n", 8),
        (UPDATE[:10], b'atus":' + SPIELER + b"}\n" + UPDATE + b"\n", 6 + len(SPIELER) + 2),
        (b"", b"", 0),
        (b"x", b"y", 1),
        (b"x", b"y\n", 2),
        (b"x", b"{", 1),
    ],
)
def test_after_a_gap_it_continues_where_a_message_can_begin(
    before: bytes, after: bytes, skipped: int
) -> None:
    at = 7 + len(before)
    expected = [Frame(0, b"", len(before), "gap")] if before else []
    if skipped:
        expected.append(Frame(at, b"", skipped, "gap"))
    if len(after) > skipped:
        expected.append(Frame(at + skipped, after[skipped:], len(after) - skipped))
    assert cut([before, None, after]) == expected
    assert cut([*single(before), None, *single(after)]) == expected


def test_an_unknown_name_after_a_gap_begins_no_message() -> None:
    assert cut([None, ANY + b"\n", HALLO + b"\n"])[0] == Frame(7, b"", len(ANY) + 1, "gap")
    assert cut([HALLO, None]) == [Frame(0, b"", len(HALLO), "gap")]


assert CODEC.framing is not None
MESSAGE_NAMES = {name for names in CODEC.layout.names.values() for name in names}
NAMES = st.sampled_from(sorted(MESSAGE_NAMES))
CLEAR_NAMES = st.sampled_from(sorted(MESSAGE_NAMES & {*CODEC.framing.wire()["starts"]}))
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=6),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["x", "Spieler", "Monopol", "a{", '"', "ä"]), inner, max_size=3),
    ),
    max_leaves=6,
)


def text_of(value: Any, style: int) -> bytes:
    """Compact, with blanks, or over several lines, with and without escapes."""
    separators = ((",", ":"), (", ", " : "), None)[style % 3]
    indent = 2 if separators is None else None
    text = json.dumps(value, ensure_ascii=style < 3, separators=separators, indent=indent)
    return text.encode("utf-8", "replace")


def messages(names: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    return st.builds(
        lambda name, value, style: text_of({name: value}, style), names, VALUES, st.integers(0, 5)
    )


SNIPPETS = [
    *(b"{", b"}", b"[", b"]", b":", b",", b'"', b"\\", b"\n", b" ", b"\r\n", b"\t", b"1", b"-", b"0."),
    *(b'"Hallo"', b'"Spieler"', b'"x"', b'{"Hallo":', b'{"Spieler":', b'{\n"Monopol" :', b'{"x":'),
    *(b"null", b"nul", b"\\u12", b"\xc3", b"\0", HALLO, SPIELER, UPDATE),
    *(HALLO + b"\n", SPIELER + b"\n", UPDATE + b"\n"),
]
PARTS = st.one_of(
    st.sampled_from(SNIPPETS),
    st.sampled_from(SNIPPETS),
    messages(NAMES),
    st.builds(lambda message, at: message[:at], messages(NAMES), st.integers(0, 40)),
    st.builds(lambda message, at: message[at:], messages(NAMES), st.integers(0, 40)),
    st.binary(max_size=6),
)
TRAFFIC = st.lists(PARTS, max_size=25).map(b"".join)
PLACES = st.lists(st.integers(0, 600), max_size=12)


@given(TRAFFIC, PLACES)
@settings(max_examples=times(500, 12), deadline=None)
def test_any_cut_of_any_bytes_gives_the_same_frames(data: bytes, places: list[int]) -> None:
    frames = cut([data] if data else [])
    assert b"".join(frame.data for frame in frames) == data
    assert cut(split(data, places)) == frames
    assert cut(single(data)) == frames
    assert frames == placed(frames)
    assert all(frame.cut is None for frame in frames[:-1])
    with pytest.MonkeyPatch.context() as patch:
        # What is taken as a whole line is what the scanner would have come to.
        patch.setattr(JsonFraming, "is_frame", lambda self, line: False)
        assert cut([data] if data else []) == frames


def placed(frames: Sequence[Frame]) -> list[Frame]:
    """Return these frames one after another, with no byte twice and none left out."""
    ends = [0, *(frame.offset + frame.size for frame in frames)]
    return [
        Frame(end, frame.data, len(frame.data), frame.cut) for end, frame in zip(ends, frames, strict=False)
    ]


@pytest.mark.full
@given(st.lists(st.one_of(st.none(), TRAFFIC), max_size=6), PLACES)
@settings(max_examples=times(300), deadline=None)
def test_any_cut_next_to_gaps_gives_the_same_frames(items: list[bytes | None], places: list[int]) -> None:
    whole: list[bytes | None] = []
    for item in items:
        # Bytes with no gap between them are the same bytes cut.
        if item is not None and whole and whole[-1] is not None:
            whole[-1] += item
        else:
            whole.append(item)
    frames = cut(whole)
    pieces = [[None] if item is None else split(item, places) for item in whole]
    assert cut(chain.from_iterable(pieces)) == frames
    bytewise = [[None] if item is None else single(item) for item in whole]
    assert cut(chain.from_iterable(bytewise)) == frames
    at = 0
    covered = [place for frame in frames for place in range(frame.offset, frame.offset + frame.size)]
    sent: list[int] = []
    for item in whole:
        size = 7 if item is None else len(item)
        sent += range(at, at + size) if item is not None else ()
        at += size
    assert covered == sent


@pytest.mark.full
@given(
    st.one_of(TRAFFIC.map(lambda data: data.replace(b"\n", b" ") + b"\n"), st.just(b"")),
    st.lists(
        st.tuples(messages(CLEAR_NAMES), st.sampled_from([b"\n", b"\r\n", b"", b"  ", b"\t\n"])), min_size=1
    ),
    PLACES,
)
@settings(max_examples=times(300), deadline=None)
def test_valid_messages_come_out_whole_whatever_line_precedes(
    junk: bytes, sent: list[tuple[bytes, bytes]], places: list[int]
) -> None:
    expected = [message + end for message, end in sent]
    frames = cut(split(junk + b"".join(expected), places), 0)
    assert [frame.data for frame in frames[-len(sent) :]] == expected
    assert frames[-1].cut == (None if expected[-1].endswith(b"\n") else "end")


@pytest.mark.full
@given(TRAFFIC, PLACES, st.integers(1, 120))
@settings(max_examples=times(500), deadline=None)
def test_any_cut_gives_the_same_frames_over_the_limit(data: bytes, places: list[int], limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (json_framer, framing):
            patch.setattr(module, "FRAME_LIMIT", limit)
        frames = cut([data] if data else [])
        assert cut(split(data, places)) == frames
        assert cut(single(data)) == frames
        assert cut([None, *single(data)]) == cut([None, data])
    assert [frame.offset for frame in frames] == [0, *(f.offset + f.size for f in frames)][: len(frames)]
    assert sum(frame.size for frame in frames) == len(data)
    for frame in frames:
        assert frame.place <= frame.size
        assert frame.size <= limit or frame.cut == "limit"
        assert frame.data == (b"" if frame.cut == "limit" else data[frame.offset : frame.offset + frame.size])


LONG = FRAME_LIMIT + 100


@pytest.mark.parametrize(
    ("data", "size", "place"),
    [
        (b' {"a":"' + b"x" * LONG + b'"}\n', LONG + 10, 1),
        (b' {"a":"' + b"x" * LONG + b" ", LONG + 8, 1),
        (b"x" * LONG + b"\n", LONG + 1, 0),
        (b" " * LONG + b"\n", LONG + 1, 0),
        (b"{}" + b" " * LONG + b"\n", LONG + 3, 0),
        (b'{"a":[' + b"\n" * LONG, FRAME_LIMIT + 1, 0),
    ],
)
@pytest.mark.parametrize("piece", [1 << 30, 1000])
def test_an_overlong_message_ends_at_a_line_feed_or_a_message_start(
    data: bytes, size: int, place: int, piece: int
) -> None:
    data += HALLO + b"\n"
    frames = cut(data[at : at + piece] for at in range(0, len(data), piece))
    assert frames[0] == Frame(0, b"", size, "limit", place)
    assert frames[-1].data == HALLO + b"\n"


# The scanner.

JUNK = st.sampled_from([*SNIPPETS, b"NaN", b"Infinity", b"9" * 5000, b"00", b"1e5"])


def is_json(data: bytes) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(data.decode("utf-8", "surrogateescape"), parse_constant=refuse, parse_int=str)
    except ValueError:
        return False
    return True


TEXTS = st.builds(text_of, VALUES, st.integers(0, 5))
MUTATED = st.builds(
    lambda data, at, length, junk: data[:at] + junk + data[at + length :],
    TEXTS,
    st.integers(0, 30),
    st.integers(0, 3),
    st.one_of(
        st.sampled_from([*SNIPPETS, b"NaN", b"Infinity", b"9" * 5000, b"00", b"1e5"]), st.binary(max_size=2)
    ),
)


@pytest.mark.full
@given(st.one_of(TEXTS, MUTATED, TRAFFIC))
@settings(max_examples=times(1000), deadline=None)
def test_the_scanner_accepts_what_a_parser_accepts(data: bytes) -> None:
    error = first_error(data)
    assert (error is None) == is_json(data)
    if error is not None:
        assert 0 <= error.offset <= error.offset + error.length <= len(data)
        # What comes before is not wrong: with it and nothing else, something is missing, or nothing.
        before = first_error(data[: error.offset])
        assert before is None or before.offset == error.offset


@pytest.mark.full
@given(st.one_of(TEXTS, MUTATED, TRAFFIC), PLACES, st.booleans())
@settings(max_examples=times(500), deadline=None)
def test_the_scanner_keeps_its_place(data: bytes, places: list[int], raw_controls: bool) -> None:
    whole, cut_up = Scanner(0, raw_controls), Scanner(0, raw_controls)
    whole.scan(data, len(data))
    for end in sorted({*(place for place in places if place < len(data)), len(data)}):
        # Not one byte beyond the end is looked at.
        cut_up.scan(data[:end], end)
    for at in range(len(data) + 1):
        assert cut_up.expects_value(at) == whole.expects_value(at)
    assert (cut_up.at, cut_up.is_complete, cut_up.is_broken) == (whole.at, whole.is_complete, whole.is_broken)


Tree = Any
"""A scalar, a list of trees, or a tuple of pairs of a name and a tree."""

KEYS = st.sampled_from(["x", "y", "ä", '"', "\n", "\ud800", ""])
TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(st.tuples(KEYS, inner), max_size=4).map(tuple)
    ),
    max_leaves=12,
)
OBJECTS = st.lists(st.tuples(KEYS, TREES), max_size=4).map(tuple)


def write(
    tree: Tree,
    path: Path,
    blanks: Iterator[bytes],
    out: bytearray,
    places: dict[Path, tuple[tuple[int, int] | None, tuple[int, int]]],
    name: tuple[int, int] | None = None,
) -> None:
    start = len(out)
    if isinstance(tree, tuple | list):
        is_object = isinstance(tree, tuple)
        out += (b"{" if is_object else b"[") + next(blanks)
        for number, item in enumerate(tree):
            out += b"," + next(blanks) if number else b""
            step: Step = number
            inner_name = None
            if is_object:
                step, item = item
                text = json.dumps(step, ensure_ascii=bool(next(blanks)) or step == "\ud800").encode()
                inner_name = len(out), len(text)
                out += text + next(blanks) + b":" + next(blanks)
                # A later member with the same name counts.
                for old in [old for old in places if old[: len(path) + 1] == (*path, step)]:
                    del places[old]
            write(item, (*path, step), blanks, out, places, inner_name)
            out += next(blanks)
        out += b"}" if is_object else b"]"
    else:
        out += json.dumps(tree).encode()
    places[path] = name, (start, len(out) - start)


@pytest.mark.full
@given(
    OBJECTS,
    st.lists(st.sampled_from([b"", b"", b" ", b"\n\t"]), min_size=1, max_size=9),
    st.lists(st.one_of(KEYS, st.integers(0, 3)), max_size=4),
)
@settings(max_examples=times(500), deadline=None)
def test_places_are_those_of_the_values(tree: Tree, blanks: list[bytes], missing: list[Step]) -> None:
    out = bytearray(blanks[0])
    places: dict[Path, tuple[tuple[int, int] | None, tuple[int, int]]] = {}
    write(tree, (), cycle(blanks), out, places)
    data = bytes(out + blanks[-1])
    for path, (name, value) in places.items():
        assert parse_places(data).place_of(path=path) == value
        assert parse_places(data).place_of(of_key=True, path=path) == (name or value)
        elsewhere = (*path, *missing)
        while elsewhere not in places:
            elsewhere = elsewhere[:-1]
        expected = places[elsewhere][1]
        assert parse_places(data).place_of(path=(*path, *missing)) == expected
        if elsewhere != (*path, *missing):
            assert parse_places(data).place_of(of_key=True, path=(*path, *missing)) == expected


@pytest.mark.full
def test_places_in_what_is_nested_deeply_or_long() -> None:
    depth = 5000
    data = b'{"a":' * depth + b"1" + b"}" * depth
    assert parse_places(data).place_of(path=("a",)) == (5, len(data) - 6)
    assert parse_places(data).place_of(of_key=True, path=("a", "b")) == (5, len(data) - 6)
    data = b'{"a":"' + b"\\n" * 500_000 + b'","b":[' + b"1," * 300_000 + b"2]}"
    assert parse_places(data).place_of(path=("b", 300_000)) == (len(data) - 3, 1)


# Messages that break off.

BROKEN_OFF = list(
    {(case.direction, case.name): case for case in cases(CATAN, "sound") if len(case.data) < 90}.values()
)
CLEAR = {"c2s": '{"Zug beenden":{}}\n', "s2c": '{"OK":{}}\n'}
UNCLEAR = {"c2s": '{"Spieler":{"Name":"Anna"}}\n', "s2c": '{"Monopol":{"Spieler":1,"Rohstoff":"Holz"}}\n'}


def a_value_comes(data: bytes, cut: int) -> bool:
    return data[cut - 1] in b":[" or (data[cut - 1] in b"," and data[cut] not in b'"')


@pytest.mark.full(but=4)
@pytest.mark.parametrize("between", ["", "\n"])
@pytest.mark.parametrize("following", [CLEAR, UNCLEAR])
@pytest.mark.parametrize("case", every(10, BROKEN_OFF), ids=lambda case: f"{case.direction} {case.name}")
def test_a_message_that_breaks_off_before_the_next_one(
    case: Case, following: dict[Direction, str], between: str
) -> None:
    """The diagnostic is at the break, and the next message is read.

    The exception is where a value would come next, and the next message can be one.
    """
    next_one = following[case.direction].encode()
    next_name = next_one.decode().split('"')[1]
    for cut in range(1, len(case.data) - 1):
        kept = case.data[:cut] + between.encode()
        wire = Conversation(CATAN, 1000)
        wire.say("a", case.direction, kept + next_one)
        found = wire.close()
        (violation,) = (violation for violation in found.diagnostics if violation.severity != "note")
        if following is UNCLEAR and a_value_comes(case.data, cut):
            assert violation.code == "truncated"
            continue
        assert (violation.code, violation.offset, violation.length) == ("broken-json", cut, 0)
        assert violation.text == "the message ends too early"
        assert violation.expected
        assert [(message.name, message.length) for message in found.messages] == [
            ("unreadable", len(kept)),
            (next_name, len(next_one)),
        ]
