from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times
from tcp_segments import check_order, told

from kiebitz.dissectors.model import Chunk, End, Fault, Gap, Item, Stream
from kiebitz.proxy.flows import tcp_reassembly
from kiebitz.proxy.flows.tcp_reassembly import Reassembler, RecentBytes, unwrap

TEXT = bytes(range(65, 91)) + bytes(range(97, 123))


def assembly(seq: int | None = 0) -> Reassembler:
    made = Reassembler(Stream(1, "tcp", "c", "s", 0), "c2s", RecentBytes())
    if seq is not None:
        made.begin(seq)
    return made


def put(direction: Reassembler, seq: int, data: bytes, items: list[Item], missing: int = 0) -> None:
    """Bytes go the quick way if they can, as in a capture."""
    if missing or not direction.take_next(seq % (1 << 32), data, 0, items):
        direction.add(seq % (1 << 32), data, missing, 0, items)


def assembled(pieces: Iterable[tuple[int, bytes]], begin: int | None = 0) -> list[str]:
    direction, items = assembly(begin), list[Item]()
    for seq, data in pieces:
        put(direction, seq, data, items)
    direction.finish(0, items)
    return [line.removeprefix("1 c2s ") for line in told(items)]


# What; sequence numbers and bytes, where that of offset 0 is 0; what comes of them.
CASES: list[tuple[str, list[tuple[int, bytes]], list[str]]] = [
    ("in order", [(0, b"ab"), (2, b"c")], ["@0 ab", "@2 c"]),
    ("reordered", [(2, b"c"), (3, b"d"), (0, b"ab")], ["@0 ab", "@2 c", "@3 d"]),
    ("sent again", [(0, b"ab"), (0, b"ab"), (2, b"c"), (1, b"bc")], ["@0 ab", "@2 c"]),
    ("sent again with more", [(0, b"ab"), (0, b"abcd")], ["@0 ab", "@2 cd"]),
    (
        "sent again with more while it waits",
        [(4, b"ef"), (3, b"defg"), (0, b"abc")],
        ["@0 abc", "@3 d", "@4 ef", "@6 g"],
    ),
    ("a hole", [(0, b"a"), (2, b"c")], ["@0 a", "@1 gap 1", "@2 c"]),
    ("two holes", [(4, b"e"), (2, b"c")], ["@0 gap 2", "@2 c", "@3 gap 1", "@4 e"]),
    (
        "differs",
        [(0, b"abcdef"), (1, b"bXdYf"), (6, b"g")],
        ["@0 abcdef", "@2 retransmission-differs 3", "@6 g"],
    ),
    (
        "differs over two",
        [(0, b"ab"), (2, b"cd"), (0, b"aXYd")],
        ["@0 ab", "@2 cd", "@1 retransmission-differs 2"],
    ),
    (
        "differs while it waits",
        [(2, b"c"), (1, b"bX"), (0, b"a")],
        ["@2 retransmission-differs 1", "@0 a", "@1 b", "@2 c"],
    ),
    (
        "differs and has more",
        [(0, b"ab"), (1, b"Xc")],
        ["@0 ab", "@1 retransmission-differs 1", "@2 c"],
    ),
    ("keep-alive", [(0, b"ab"), (1, b"\0"), (2, b"c")], ["@0 ab", "@2 c"]),
    (
        "too early for a keep-alive",
        [(0, b"ab"), (0, b"\0"), (2, b"c")],
        ["@0 ab", "@0 retransmission-differs 1", "@2 c"],
    ),
    ("zero-window probe", [(0, b"ab"), (2, b"c"), (2, b"cd")], ["@0 ab", "@2 c", "@3 d"]),
    ("from before the beginning", [(0, b"ab"), (-2, b"yz"), (-1, b"zabc")], ["@0 ab", "@2 c"]),
]


@pytest.mark.parametrize("begin", [0, 1 << 31, (1 << 32) - 1, (1 << 32) - 3])
@pytest.mark.parametrize(
    ("pieces", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_cases(pieces: list[tuple[int, bytes]], expected: list[str], begin: int) -> None:
    assert assembled([(begin + seq, data) for seq, data in pieces], begin) == expected


def test_from_the_middle() -> None:
    pieces = [(7, b"ab"), (5, b"xx"), (9, b"c")]
    assert assembled(pieces, None) == ["@0 gap ?", "@0 ab", "@2 c"]


def test_abandoned_data_that_arrives_late() -> None:
    direction, items = assembly(), list[Item]()
    put(direction, 0, b"ab", items)
    put(direction, 4, b"ef", items)
    direction.give_up(0, items)
    put(direction, 2, b"cd", items)
    put(direction, 1, b"bcdefg", items)
    assert told(items) == ["1 c2s @0 ab", "1 c2s @2 gap 2", "1 c2s @4 ef", "1 c2s @6 g"]


def test_cut_by_the_snap_length() -> None:
    direction, items = assembly(), list[Item]()
    put(direction, 0, b"ab", items, missing=3)
    put(direction, 9, b"", items, missing=1)
    put(direction, 5, b"fghi", items)
    assert told(items) == ["1 c2s @0 ab", "1 c2s @2 gap 3", "1 c2s @5 fghi", "1 c2s @9 gap 1"]


def test_acknowledged_but_unseen_data_becomes_a_gap_at_the_end() -> None:
    for ack, expected in ((2, []), (3, []), (4, ["1 c2s @2 gap 2"]), (9, ["1 c2s @2 gap 7"])):
        direction, items = assembly(), list[Item]()
        put(direction, 0, b"ab", items)
        direction.acknowledge(ack)
        direction.finish(0, items)
        assert told(items[1:]) == expected


def test_the_end_of_the_sender() -> None:
    direction, items = assembly(), list[Item]()
    put(direction, 2, b"cd", items)
    direction.end_at(4)
    assert not direction.is_done
    put(direction, 0, b"ab", items)
    assert direction.is_done
    # Nothing follows a FIN.
    put(direction, 3, b"dX", items)
    put(direction, 4, b"X", items)
    assert told(items) == ["1 c2s @0 ab", "1 c2s @2 cd"]


def test_a_hole_before_the_fin_is_a_gap() -> None:
    direction, items = assembly(), list[Item]()
    put(direction, 0, b"ab", items)
    direction.end_at(5)
    assert direction.hole_end == 5
    # The last byte is missing, and is no keep-alive.
    put(direction, 4, b"e", items)
    assert not direction.acknowledge(3)
    assert direction.acknowledge(4)
    direction.finish(0, items)
    assert told(items) == ["1 c2s @0 ab", "1 c2s @2 gap 2", "1 c2s @4 e"]


def test_a_keep_alive_for_a_byte_that_is_missing() -> None:
    direction, items = assembly(), list[Item]()
    put(direction, 0, b"ab", items)
    direction.acknowledge(10)
    put(direction, 9, b"\0", items)
    put(direction, 10, b"k", items)
    direction.finish(0, items)
    assert told(items) == ["1 c2s @0 ab", "1 c2s @2 gap 8", "1 c2s @10 k"]


def test_the_fault_says_how_many_bytes_differ_and_where() -> None:
    direction, items = assembly(), list[Item]()
    put(direction, 0, b"abcdef", items)
    put(direction, 0, b"aXcYef", items)
    fault = items[-1]
    assert isinstance(fault, Fault)
    assert fault.text == "2 bytes from offset 1 retransmitted with other content; the first version is kept"


def test_remembered_state_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_reassembly, "MAX_RECENT_BYTES", 10_000)
    recent, items = RecentBytes(), list[Item]()
    directions = [Reassembler(Stream(n, "tcp", "c", "s", 0), "c2s", recent) for n in range(30)]
    for direction in directions:
        direction.begin(0)
        for seq in range(0, 100, 10):
            put(direction, seq, bytes(10), items)
    assert sum(len(direction._delivered or ()) for direction in directions) < 10
    items.clear()
    put(directions[0], 0, b"other", items)
    assert items == []
    put(directions[-1], 80, b"other", items)
    assert told(items) == ["29 c2s @80 retransmission-differs 5"]


def test_the_queue_can_be_bounded() -> None:
    direction, items = assembly(), list[Item]()
    for seq in range(2, 2 * tcp_reassembly.MAX_AHEAD_PIECES + 2, 2):
        put(direction, seq, b"x", items)
        assert not direction.is_overfull
    put(direction, seq + 2, b"x", items)
    assert direction.is_overfull
    direction.give_up(0, items)
    assert not direction.is_overfull
    assert told(items) == ["1 c2s @0 gap 2", "1 c2s @2 x"]


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 1 << 40))
def test_unwrap(distance: int, near: int) -> None:
    assert unwrap((near + distance) % (1 << 32), near) == near + distance


@st.composite
def cuts(draw: st.DrawFn) -> tuple[bytes, int, list[tuple[int, int]]]:
    """Return a text, the number before its first byte, and overlapping pieces of it in any order."""
    text = draw(st.binary(min_size=1, max_size=120))
    edges = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=20))})
    pieces = list(pairwise(edges))
    twice = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    pieces += [(min(two), max(two)) for two in draw(st.lists(twice, max_size=8)) if two[0] != two[1]]
    begin = draw(st.sampled_from([0, 5, (1 << 31) - 20, (1 << 32) - 60, (1 << 32) - 1]))
    return text, begin, draw(st.permutations(pieces))


@given(cuts())
@settings(max_examples=times(300))
def test_any_cut_gives_the_same_bytes(case: tuple[bytes, int, list[tuple[int, int]]]) -> None:
    text, begin, pieces = case
    direction, items = assembly(begin), list[Item]()
    for start, end in pieces:
        put(direction, begin + start, text[start:end], items)
    direction.finish(0, items)
    assert all(isinstance(item, Chunk) for item in items)
    items.append(End(direction.stream, 0, "end"))
    assert check_order(items) == {(1, "c2s"): len(text)}
    assert b"".join(item.data for item in items if isinstance(item, Chunk)) == text
    assert direction.cost == 0


@given(cuts(), st.data())
@settings(max_examples=times(300))
def test_bytes_and_gaps_cover_all(
    case: tuple[bytes, int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    """With segments lost, cut and given up at any time, each byte is correct or missing."""
    text, begin, pieces = case
    direction, items = assembly(begin), list[Item]()
    seen = 0
    for start, end in pieces:
        fate = data.draw(st.sampled_from(["lost", "snapped", "whole", "whole", "whole"]))
        if fate == "lost":
            continue
        seen = max(seen, end)
        cut = data.draw(st.integers(0, end - start)) if fate == "snapped" else 0
        put(direction, begin + start, text[start : end - cut], items, cut)
        if direction.hole_end is not None and data.draw(st.booleans()):
            direction.give_up(0, items)
    direction.finish(0, items)
    items.append(End(direction.stream, 0, "end"))
    assert check_order(items).get((1, "c2s"), 0) == seen
    for item in items:
        if isinstance(item, Chunk):
            assert text[item.offset :].startswith(item.data)
    assert not any(isinstance(item, Fault) for item in items)
    lost = sum(item.length or 0 for item in items if isinstance(item, Gap))
    assert lost + sum(len(item.data) for item in items if isinstance(item, Chunk)) == seen
