"""Items with messages taken out, changed and put in: all else stays as it was, however the bytes are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from inspected_captures import bytewise
from strength import times

from kiebitz.dissectors.editing.item_edits import Splice, apply_splices
from kiebitz.dissectors.model import DIRECTIONS, Chunk, Direction, End, Fault, Gap, Item, Stream, Transport

OTHER = Stream(2, "tcp", "127.0.0.1:5", "127.0.0.1:9", 0)


class Said(msgspec.Struct, frozen=True):
    """A message of a made-up stream; in the end `becomes` stands in its place."""

    direction: Direction
    data: bytes
    splice: Splice | None
    becomes: bytes


class Talk(msgspec.Struct, frozen=True):
    """All that was said on a stream, and the items that it came in."""

    said: list[Said]
    items: list[Item]

    @property
    def splices(self) -> list[Splice]:
        return [said.splice for said in self.said if said.splice is not None]


def _told(items: Iterable[Item]) -> list[tuple[object, ...]]:
    return [msgspec.structs.astuple(item) for item in items]


def _bytes(items: Iterable[Item], direction: Direction) -> bytes:
    """What goes one way; each chunk must stand where the one before it ends."""
    sent = bytearray()
    for item in items:
        if isinstance(item, Chunk) and item.stream.id == 1 and item.direction == direction:
            assert item.offset == len(sent)
            sent += item.data
    return bytes(sent)


@st.composite
def talks(draw: st.DrawFn, transport: Transport, both_ways: bool) -> Talk:
    """A stream on which each message is left, dropped, or changed, and may be followed by others."""
    stream = Stream(1, transport, "127.0.0.1:4", "127.0.0.1:9", 0)
    least = 0 if transport == "udp" else 1
    sent: dict[Direction, int] = {"c2s": 0, "s2c": 0}
    said: list[Said] = []
    items: list[Item] = []
    for number in range(draw(st.integers(1, 6))):
        direction = draw(st.sampled_from(DIRECTIONS))
        data = draw(st.binary(min_size=least, max_size=5))
        instead = draw(st.none() | st.just(b"") | st.binary(min_size=1, max_size=5))
        ways = st.sampled_from(DIRECTIONS) if both_ways else st.just(direction)
        added = draw(st.lists(st.tuples(ways, st.binary(min_size=1, max_size=4)), max_size=2))
        offset, ts_ns = sent[direction], number * 10
        is_left = instead is None and not added
        splice = Splice(1, direction, offset, len(data), ts_ns, instead, tuple(added))
        behind = b"".join(more for way, more in added if way == direction)
        said.append(
            Said(
                direction,
                data,
                None if is_left else splice,
                (data if instead is None else instead) + behind,
            )
        )
        items.append(Chunk(stream, direction, ts_ns, offset, data))
        sent[direction] += len(data)
        items.append(Chunk(OTHER, direction, ts_ns, number, b"x"))
    items.append(End(stream, 1000, "closed"))
    return Talk(said, items)


def _recut(items: Sequence[Item], data: st.DataObject) -> list[Item]:
    """The same bytes of a stream, in other pieces: what follows each other one way, joined and cut anew."""
    pieces: list[Item] = []
    for item in items:
        last = pieces[-1] if pieces else None
        if isinstance(item, Chunk) and isinstance(last, Chunk) and item.direction == last.direction:
            pieces[-1] = msgspec.structs.replace(last, data=last.data + item.data)
        else:
            pieces.append(item)
    found: list[Item] = []
    for item in pieces:
        if isinstance(item, Chunk) and len(item.data) > 1:
            at = data.draw(st.integers(1, len(item.data) - 1))
            found.append(msgspec.structs.replace(item, data=item.data[:at]))
            found.append(msgspec.structs.replace(item, data=item.data[at:], offset=item.offset + at))
        else:
            found.append(item)
    return found


@given(st.one_of(talks("tcp", True), talks("udp", True)))
def test_without_a_splice_the_items_are_the_same(talk: Talk) -> None:
    assert _told(apply_splices(talk.items, [])) == _told(talk.items)
    # And with splices that change nothing.
    idle = [msgspec.structs.replace(splice, instead=None, added=()) for splice in talk.splices]
    assert _told(apply_splices(talk.items, idle)) == _told(talk.items)


@given(st.data(), st.sampled_from(["tcp", "udp"]))
def test_each_message_becomes_what_it_should(data: st.DataObject, transport: Transport) -> None:
    talk = data.draw(talks(transport, both_ways=False))
    items = [item for item in talk.items if item.stream is not OTHER]
    if transport == "tcp":
        items = _recut(items, data)
    found = [*apply_splices(items, talk.splices)]
    for direction in DIRECTIONS:
        expected = b"".join(said.becomes for said in talk.said if said.direction == direction)
        assert _bytes(found, direction) == expected


@given(talks("udp", both_ways=True))
def test_datagrams_come_one_by_one(talk: Talk) -> None:
    expected: list[tuple[int, Direction, bytes]] = []
    for number, said in enumerate(talk.said):
        splice = said.splice
        instead = said.data if splice is None or splice.instead is None else splice.instead
        # An empty datagram may be left, but none is made.
        if instead or splice is None or splice.instead is None:
            expected.append((number * 10, said.direction, instead))
        expected += [(number * 10, *added) for added in (splice.added if splice is not None else ())]
    found = [
        (item.ts_ns, item.direction, item.data)
        for item in apply_splices(talk.items, talk.splices)
        if isinstance(item, Chunk) and item.stream is not OTHER
    ]
    assert found == expected


@settings(max_examples=times(200))
@given(talks("tcp", both_ways=True), st.data())
def test_any_cut_gives_the_same_bytes(talk: Talk, data: st.DataObject) -> None:
    items = [item for item in talk.items if item.stream is not OTHER]
    whole = [*apply_splices(items, talk.splices)]
    cut = [*apply_splices(bytewise(_recut(items, data)), talk.splices)]
    for direction in DIRECTIONS:
        assert _bytes(cut, direction) == _bytes(whole, direction)


@given(talks("tcp", both_ways=True))
def test_other_streams_are_left_alone(talk: Talk) -> None:
    before = [item for item in talk.items if item.stream is OTHER]
    assert [item for item in apply_splices(talk.items, talk.splices) if item.stream is OTHER] == before


def test_what_follows_moves_and_keeps_its_time() -> None:
    stream = Stream(1, "tcp", "127.0.0.1:4", "127.0.0.1:9", 0)
    items: list[Item] = [
        Chunk(stream, "c2s", 1, 0, b"aaBB"),
        Fault(stream, "c2s", 2, 1, "odd", "before it"),
        Chunk(stream, "s2c", 3, 0, b"12"),
        Chunk(stream, "c2s", 4, 4, b"BBcc"),
        Gap(stream, "c2s", 5, 8, 10),
        Chunk(stream, "c2s", 6, 18, b"dd"),
        Fault(stream, "c2s", 7, 1, "odd", "before it"),
        Fault(stream, "c2s", 8, 18, "odd", "behind it"),
        Chunk(stream, "s2c", 9, 2, b"34"),
    ]
    splices = [Splice(1, "c2s", 2, 4, 4, b"bbb", (("s2c", b"!!!"), ("c2s", b"?")))]
    told = [
        (item.direction, item.ts_ns, item.offset, item.data if isinstance(item, Chunk) else item.length)
        for item in apply_splices(items, splices)
        if not isinstance(item, End)
    ]
    assert told == [
        ("c2s", 1, 0, b"aa"),
        ("c2s", 2, 1, 0),
        ("s2c", 3, 0, b"12"),
        # All of it comes when its last byte came, and what is said in reply right behind it.
        ("c2s", 4, 2, b"bbb"),
        ("s2c", 4, 2, b"!!!"),
        ("c2s", 4, 5, b"?cc"),
        ("c2s", 5, 8, 10),
        ("c2s", 6, 18, b"dd"),
        ("c2s", 7, 1, 0),
        ("c2s", 8, 18, 0),
        ("s2c", 9, 5, b"34"),
    ]


def test_what_the_capture_cut_off_still_counts() -> None:
    stream = Stream(1, "udp", "127.0.0.1:4", "127.0.0.1:9", 0)
    items = [
        Chunk(stream, "c2s", 1, 0, b"ab"),
        Chunk(stream, "c2s", 2, 2, b"cd", missing=7),
        Chunk(stream, "c2s", 3, 11, b"ef"),
    ]
    found = [*apply_splices(items, [Splice(1, "c2s", 0, 2, 1, b"")])]
    assert [(item.offset, item.data) for item in found if isinstance(item, Chunk)] == [(0, b"cd"), (9, b"ef")]


def test_an_empty_datagram_is_told_from_the_one_behind_it() -> None:
    stream = Stream(1, "udp", "127.0.0.1:4", "127.0.0.1:9", 0)
    items = [Chunk(stream, "c2s", 1, 0, b""), Chunk(stream, "c2s", 1, 0, b"a")]
    found = [*apply_splices(items, [Splice(1, "c2s", 0, 1, 1, b"")])]
    assert [item.data for item in found if isinstance(item, Chunk)] == [b""]
    found = [*apply_splices(items, [Splice(1, "c2s", 0, 0, 1, b"")])]
    assert [item.data for item in found if isinstance(item, Chunk)] == [b"a"]
