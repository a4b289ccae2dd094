"""The form in which items go through JetStream, and how they are put together: without a server."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any, get_args

import msgspec
import pytest
from command import ROOT
from conversation_files import Block, blocks, check_below
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import DATA
from strength import times
from tcp_segments import plain

from kiebitz.dissectors.model import Altered, Chunk, End, Fault, Gap, Item, Stream
from kiebitz.proxy.taps.jetstream import MessagePosition, ReceivedMessage
from kiebitz.proxy.taps.merger import MAX_HELD, WAIT_NS, Merger
from kiebitz.proxy.taps.publisher import BatchBuilder
from kiebitz.proxy.taps.wire_format import (
    VERSION,
    Batch,
    Record,
    TapError,
    decode,
    encode,
    rewrite_loopback,
    to_item,
)

NOON_NS = 1_795_000_000_000_000_000

TIMES = st.integers(0, 1 << 61)
OFFSETS = st.integers(0, 1 << 61)
TEXTS = st.text(max_size=20)
DIRECTIONS = st.sampled_from(["c2s", "s2c"])
ADDRESSES = st.sampled_from(["127.0.0.1:9000", "[::1]:9000", "192.168.1.5:65535", "[fe80::1]:1"])
STREAMS = st.builds(Stream, st.integers(1, 9), st.sampled_from(["tcp", "udp"]), ADDRESSES, ADDRESSES, TIMES)


def _items(stream: Stream) -> st.SearchStrategy[Item]:
    where: tuple[Any, ...] = (st.just(stream), DIRECTIONS, TIMES, OFFSETS)
    fields = st.sampled_from([None, "{}", '{"dice":"2,1"}'])
    return st.one_of(
        st.builds(Chunk, *where, st.binary(max_size=50), OFFSETS),
        st.builds(Gap, *where, st.none() | OFFSETS),
        st.builds(
            Fault,
            *where,
            st.from_regex(r"\A[a-z-]{1,20}\Z"),
            TEXTS,
            OFFSETS,
            st.sampled_from(["network", "state"]),
            st.sampled_from(["network", "client"]),
            st.none() | TEXTS,
            st.sampled_from(["note", "warning", "error"]),
            st.booleans(),
        ),
        st.builds(
            Altered,
            *where,
            OFFSETS,
            st.sampled_from(["drop", "change"]),
            TEXTS,
            st.none() | TIMES,
            st.none() | st.binary(max_size=50),
            st.none() | TEXTS,
            fields,
        ),
        st.builds(End, st.just(stream), TIMES, st.sampled_from(["closed", "reset", "idle", "end"])),
    )


@pytest.mark.full
@settings(max_examples=times(1000, quick=25))
@given(STREAMS.flatmap(lambda stream: st.lists(_items(stream), min_size=1, max_size=8)))
def test_each_item_comes_out_as_it_went_in(items: list[Item]) -> None:
    (batch,) = BatchBuilder("lab", "r1", 5).batches(items)
    read = decode(encode(batch))
    assert read == batch
    assert read.first == 5
    stream = items[0].stream
    assert [plain(to_item(record, stream, 0)) for record in read.items] == [plain(item) for item in items]


def test_a_text_of_any_length_is_taken_as_far_as_it_is_published() -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:9", NOON_NS)
    fault = Fault(stream, "c2s", NOON_NS, 0, "odd", "t" * 5000, expected="e" * 5000)
    (batch,) = BatchBuilder("lab", "r1", 0).batches([fault])
    (record,) = decode(encode(batch)).items
    assert plain(to_item(record, stream, 0)) == plain(
        Fault(stream, "c2s", NOON_NS, 0, "odd", "t" * 4096, expected="e" * 4096)
    )


@pytest.mark.full
@settings(max_examples=times(3000, quick=60))
@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text() | st.binary(),
        lambda inner: st.lists(inner, max_size=8),
        max_leaves=20,
    ).map(msgspec.msgpack.encode)
)
def test_whatever_comes_nothing_but_a_tap_error_is_raised(data: bytes) -> None:
    try:
        decode(data)
    except TapError:
        return


SOUND: list[Any] = [
    *(VERSION, "lab", "r1", 0, NOON_NS, 0),
    [[1, "udp", "127.0.0.1:5", "127.0.0.1:9", NOON_NS]],
    [[1, 1, 0, NOON_NS, 0, b"ROLL", 0]],
]
"""A batch as docs/taps.md has it."""


def changed(*way: Any) -> bytes:
    """Return the sound batch with what is at a path replaced by the last value."""
    *path, last, value = way
    batch = msgspec.msgpack.decode(msgspec.msgpack.encode(SOUND))
    place = batch
    for step in path:
        place = place[step]
    place[last] = value
    return msgspec.msgpack.encode(batch)


def test_the_form_is_what_is_documented() -> None:
    batch = decode(msgspec.msgpack.encode(SOUND))
    assert msgspec.msgpack.decode(encode(batch)) == SOUND


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (changed(0, 2), "version 2 of the form"),
        (changed(1, "lab.other"), "not a batch"),
        (changed(1, "\x1b[2J"), "not a batch"),
        (changed(3, -1), "not a batch"),
        (changed(3, 1 << 63), "not a batch"),
        (changed(6, 0, 2, "localhost:5"), "an address is invalid"),
        (changed(6, 0, 2, "999.0.0.1:5"), "not a batch"),
        (changed(6, 0, 3, "127.0.0.1:99999"), "a port is invalid"),
        (changed(6, []), "stream 1 is not described"),
        (changed(6, [SOUND[6][0]] * 513), "not a batch"),
        (changed(7, SOUND[7] * 513), "not a batch"),
        (changed(7, 0, 0, 9), "not a batch"),
        (changed(7, 0, 5, b"x" * ((256 << 10) + 1)), "not a batch"),
        (changed(7, 0, [5, 1, NOON_NS, "bored"]), "a stream ends for an unknown reason"),
        (changed(7, 0, [5, 1, NOON_NS, "reset: " + "x" * 100_000]), "not a batch"),
        (changed(7, 0, [3, 1, 0, 1, 0, "NO CODE", "", 0, "network", "network", None, "note"]), "not a batch"),
        (changed(7, 0, [4, 1, 0, 1, 0, 0, "drop", "r", None, None, None, "[1]"]), "not a batch"),
        (b"\x91" * 100_000, "not a batch"),
    ],
)
def test_messages_that_no_tap_writes_are_rejected(data: bytes, words: str) -> None:
    with pytest.raises(TapError, match=words):
        decode(data)


def test_loopback_is_another_one_on_each_machine() -> None:
    assert rewrite_loopback("127.0.0.1:9000", 0) == "127.0.0.1:9000"
    assert rewrite_loopback("127.0.0.1:9000", 3) == "127.0.3.1:9000"
    assert rewrite_loopback("[::1]:9000", 300) == "127.1.44.6:9000"
    assert rewrite_loopback("192.168.1.5:9000", 3) == "192.168.1.5:9000"


# Putting together.


class Desk:
    def __init__(self, **known: Any) -> None:
        self.told: list[str] = []
        self.merger = Merger(count(1), {}, [], lambda _, sentence: self.told.append(sentence))
        self.sequence = 0

    def take(self, batch: Batch, at_ms: float, ahead_ms: float = 0, tap: str | None = None) -> None:
        self.sequence += 1
        stored_ns = NOON_NS + round(at_ms * 1e6)
        sent = msgspec.structs.replace(batch, sent_ns=stored_ns + round(ahead_ms * 1e6))
        position = MessagePosition(1, self.sequence)
        self.merger.feed(ReceivedMessage(position, tap or batch.tap, encode(sent), stored_ns, 0))

    def ready(self, at_ms: float) -> list[str]:
        return shown(self.merger.ready(NOON_NS + round(at_ms * 1e6)))


def shown(items: Iterable[Item]) -> list[str]:
    return [item.data.decode() if isinstance(item, Chunk) else type(item).__name__.lower() for item in items]


def said(tap: str, first: int, *words: tuple[float, str], until_ms: float = 0, offset: int = 0) -> Batch:
    """Return a batch of words of one client, each at a time."""
    stream = Stream(1, "udp", "10.0.0.1:1", "10.0.0.9:9", NOON_NS)
    items: list[Item] = []
    for at_ms, word in words:
        items.append(Chunk(stream, "c2s", NOON_NS + round(at_ms * 1e6), offset, word.encode()))
        offset += len(word)
    until_ns = NOON_NS + round(until_ms * 1e6) if until_ms else 0
    (batch,) = BatchBuilder(tap, "r1", first).batches(items, until_ns)
    return batch


def merged(steps: Iterable[str]) -> list[str]:
    """Return what a merger gives out and reports, as in taps.txt."""
    desk, lines = Desk(), list[str]()
    for step in "; ".join(steps).split("; "):
        at_ms, *rest = step.removeprefix("ready ").split()
        if rest:
            tap, first, *parts = rest
            named = {name: float(value) for name, value in (part.split("=") for part in parts if "=" in part)}
            words = [(float(ms), word) for word, ms in (part.split("@") for part in parts if "@" in part)]
            until_ms, offset = named.get("until", 0), int(named.get("offset", 0))
            batch = said(tap, int(first), *words, until_ms=until_ms, offset=offset)
            desk.take(batch, float(at_ms), named.get("ahead", 0))
            continue
        given = []
        for item in desk.merger.ready(NOON_NS + round(float(at_ms) * 1e6)):
            what = f"gap of {item.length} at {item.offset}" if isinstance(item, Gap) else shown([item])[0]
            given.append(f"{what}@{(item.ts_ns - NOON_NS) / 1e6:g}")
        lines.append(f"{', '.join(given) or '-'}; recorded to {desk.merger.recorded_to().sequence}")
        lines += [f"! {sentence}" for sentence in desk.told]
        desk.told.clear()
    return lines


@pytest.mark.parametrize("block", blocks(DATA / "taps.txt").values(), ids=lambda block: block.title)
def test_cases(block: Block) -> None:
    check_below(block, merged(block.steps))


def test_little_waits_for_what_never_comes() -> None:
    desk = Desk()
    for number in range(MAX_HELD + 1):
        desk.take(said("a", 2 * number + 1, (number, "x"), offset=2 * number + 1), 10)
    assert desk.ready(20) == ["gap", "x"]


def test_a_tap_cannot_publish_for_another() -> None:
    desk = Desk()
    with pytest.raises(TapError, match="it names another tap, a"):
        desk.take(said("a", 0, (1, "one")), 10, tap="mallory")


@settings(max_examples=times(300, quick=20))
@given(st.data())
def test_however_batches_come_each_item_is_given_out_once_and_in_order(data: st.DataObject) -> None:
    """Cut anywhere, sent again from anywhere, with others' in between: each run comes out as it went in."""
    words = {tap: [f"{tap}{number:03}" for number in range(data.draw(st.integers(1, 20)))] for tap in "abc"}
    pending: list[Batch] = []
    for tap, run in words.items():
        first = 0
        while first < len(run):
            size = data.draw(st.integers(1, 5))
            start = max(0, first - data.draw(st.integers(0, 3)))
            part = [(number, run[number]) for number in range(start, min(len(run), first + size))]
            pending.append(said(tap, start, *part, offset=4 * start))
            first += size
    desk = Desk()
    given_out: list[str] = []
    for at_ms, batch in enumerate(data.draw(st.permutations(pending))):
        desk.take(batch, at_ms)
        given_out += desk.ready(at_ms)
    given_out += desk.ready(WAIT_NS / 1e6 + 1000)
    for tap, run in words.items():
        assert [word for word in given_out if word[0] == tap] == run


def test_the_page_documents_each_record_and_its_parts() -> None:
    page = (ROOT / "docs" / "taps.md").read_text().partition("## Wire format")[2]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    batch = [row for row in rows if row[1] in ("integer", "text", "array")]
    assert len(batch) == len(Batch.__struct_fields__)
    told = {int(row[0]): len(row[2].split(", ")) for row in rows if row[0].isdecimal() and row not in batch}
    kinds = {kind.__struct_config__.tag: kind for kind in get_args(Record)}
    assert told == {tag: len(kind.__struct_fields__) for tag, kind in kinds.items()}
