from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import CASES, each_protocol
from mutated_traffic import Spoilt
from mutation import Choices
from snapshots import DATA, unmarked
from strength import a_few, times

from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
from kiebitz.dissectors.anonymizing.frames import anonymized
from kiebitz.dissectors.anonymizing.pseudonyms import AddressPseudonyms, Pseudonyms
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import DIRECTIONS, Chunk, Direction, Item, Stream
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.registry import BUILT_IN

OTHER_DIAGNOSTICS = (
    # A slip in a word of the protocol's own: who could know that it is none of a person's?
    b'"Farb"',
    b'"Nachrict"',
    b'"Handelid"',
    # Characters that are written as numbers, and bytes that are no text.
    b"&#80;ASS",
    b"&#xD800;",
    b"\xff\x81\xfe",
)


def stand_ins() -> Pseudonyms:
    return Pseudonyms(BUILT_IN)


# Words.


def test_a_word_has_one_pseudonym_in_all_places_and_spellings() -> None:
    found = stand_ins()
    alice = found.text("alice")
    assert found.text("Alice, alice and ALICE2!") == re.sub(
        "and", found.text("and"), f"{alice.capitalize()}, {alice} and {alice.upper()}{found.text('2')}!"
    )


@settings(max_examples=times(300))
@given(st.lists(st.text(max_size=8), max_size=60, unique=True))
def test_pseudonyms_keep_length_and_distinctness(texts: list[str]) -> None:
    found = stand_ins()
    others = [found.text(text) for text in texts]
    for text, other in zip(texts, others, strict=True):
        for charset in ("utf-8", "utf-16", "cp1252", "iso-8859-2"):
            assert len(text.encode(charset, "replace")) == len(other.encode(charset, "replace"))
        assert found.text(text) == other
    words = {word for text in texts for word in re.findall("[A-Za-z]+|[0-9]+", text)}
    assert len({found.text(word) for word in words}) == len(words)


@pytest.mark.parametrize("words", ["abcdefghijklmnopqrstuvwxyz", "0123456789", "äöüÄÖÜßéèêàáâ"])
def test_there_are_enough_for_names_of_one_letter(words: str) -> None:
    found = stand_ins()
    assert len({found.text(word) for word in words}) == len(words)
    assert sum(found.text(word) == word for word in words) <= 1


# Addresses.


@pytest.mark.parametrize(
    "addresses",
    [
        [f"10.0.{one}.{two}" for one in (0, 7, 250) for two in range(256)],
        [f"1.2.3.{last}" for last in range(10)],
        [f"fe80::{last:x}" for last in range(1, 300)],
        [f"2003:e1:af12::{last:x}:{last:x}" for last in range(1, 300)],
    ],
    ids=lambda addresses: str(addresses[0]),
)
def test_addresses_have_pseudonyms_of_their_length(addresses: list[str]) -> None:
    found = stand_ins()
    others = [found.endpoint(f"[{one}]:9000" if ":" in one else f"{one}:9000") for one in addresses]
    assert len({*others}) == len(addresses)
    assert not {*addresses} & {other.rpartition(":")[0].strip("[]") for other in others}
    for one, other in zip(addresses, others, strict=True):
        bare = other.removesuffix(":9000").strip("[]")
        assert (len(bare), str(ip_address(bare))) == (len(one), bare)


def test_the_oldest_pseudonyms_are_evicted() -> None:
    found = AddressPseudonyms(100, other_length=len("0.1.1.1"))
    made_up = [".".join(str(number)) for number in range(1000, 4000)]
    others = [found.pseudonym(one) for one in made_up]
    assert len({*others[-100:]}) == 100
    assert len({*others}) < len(made_up)


@pytest.mark.parametrize("endpoint", ["127.0.0.1:9000", "[::1]:9000", "localhost:7002", "0.0.0.0:1"])
def test_loopback_addresses_stay(endpoint: str) -> None:
    assert stand_ins().endpoint(endpoint) == endpoint


def test_host_names_have_pseudonyms() -> None:
    other = stand_ins().endpoint("alices-pc.school.example:7002")
    assert re.fullmatch(r"[a-z]{6}-[a-z]{2}\.[a-z]{6}\.[a-z]{7}:7002", other)
    assert "alice" not in other


# Messages.


@pytest.mark.full(but=1)
@each_protocol
def test_anonymized_cases_have_the_same_meaning_and_diagnostics(dissector: Dissector) -> None:
    found = stand_ins()
    for case in CASES[dissector]:
        other = anonymized(case.data, case.direction, dissector, found)
        assert len(other) == len(case.data)
        before, after = (dissector.codec.decode(frame, case.direction) for frame in (case.data, other))
        if not any(spoilt in case.data for spoilt in OTHER_DIAGNOSTICS):
            assert after.row == before.row
            assert [
                (violation.severity, violation.code, violation.place(other)) for violation in after.violations
            ] == [
                (violation.severity, violation.code, violation.place(case.data))
                for violation in before.violations
            ], case.data


PERSONAL = (DATA / "personal_values.txt").read_text().splitlines()[2:]


@pytest.mark.parametrize("line", PERSONAL, ids=lambda line: line[:40])
def test_personal_values_in_messages_are_replaced(line: str) -> None:
    protocol, way, sent = line.split(" ", 2)
    (dissector,) = (dissector for dissector in BUILT_IN if dissector.protocol == protocol)
    frame, places = unmarked(sent)
    other = anonymized(frame, DIRECTIONS[way == "s2c"], dissector, stand_ins())
    assert len(other) == len(frame)
    for start, length in places:
        assert other[start : start + length] != frame[start : start + length]
        other = other[:start] + frame[start : start + length] + other[start + length :]
    assert other == frame


# Conversations.


def given_again(items: Iterable[Item], anonymizer: Anonymizer) -> list[Item]:
    found: list[Item] = []
    for item in items:
        found += anonymizer.feed(item)
    return found + anonymizer.finish()


def whole(items: Iterable[Item]) -> dict[tuple[int, Direction], dict[int, int]]:
    found: dict[tuple[int, Direction], dict[int, int]] = {}
    for item in items:
        if isinstance(item, Chunk):
            way = found.setdefault((item.stream.id, item.direction), {})
            way.update(enumerate(item.data, item.offset))
    return found


@pytest.mark.full
@pytest.mark.parametrize(
    "dissector", a_few(BUILT_IN, [MAEXCHEN, SCHAFKOPF]), ids=lambda dissector: dissector.protocol
)
@settings(max_examples=times(300, 3))
@given(data=st.binary(max_size=400))
def test_no_traffic_breaks_it_and_none_of_it_is_lost(dissector: Dissector, data: bytes) -> None:
    spoilt = Spoilt(dissector, Choices(data))
    items = [*spoilt.items]
    again = given_again(items, Anonymizer(BUILT_IN, spoilt.forced, stand_ins()))
    before, after = whole(items), whole(again)
    assert {way: [*places] for way, places in before.items()} == {
        way: [*places] for way, places in after.items()
    }
    kinds = [type(item) for item in items if not isinstance(item, Chunk)]
    assert sorted(map(str, kinds)) == sorted(str(type(item)) for item in again if not isinstance(item, Chunk))


@pytest.mark.full(but=1)
@each_protocol
@settings(max_examples=times(100))
@given(cuts=st.lists(st.integers(1, 60), max_size=30), data=st.data())
def test_pieces_may_be_cut_anywhere(dissector: Dissector, cuts: list[int], data: st.DataObject) -> None:
    if dissector.transport == "udp":
        return
    direction = data.draw(st.sampled_from(DIRECTIONS))
    sent = b"".join(
        case.data for case in CASES[dissector] if case.direction == direction and not case.diagnostics
    )[:2000]
    pieces, at = [], 0
    for size in (*cuts, len(sent)):
        pieces.append((at, sent[at : at + size]))
        at += size
    results = []
    for cut in (pieces, [(0, sent)]):
        stream = Stream(1, "tcp", "10.0.0.1:5", "10.0.0.2:4000", 0)
        items = [Chunk(stream, direction, 0, offset, part) for offset, part in cut if part]
        forced = {("tcp", 4000): dissector}
        results.append(whole(given_again(items, Anonymizer(BUILT_IN, forced, stand_ins()))))
    assert results[0] == results[1]


def test_an_undetected_server_leaves_no_state() -> None:
    stream = Stream(1, "tcp", "10.0.0.1:5", "10.0.0.2:22", 0)
    items = [Chunk(stream, "c2s", 0, 0, b"user alice\r\npass \xff\0x\n")]
    (chunk,) = given_again(items, Anonymizer(BUILT_IN, {("tcp", 22): None}, stand_ins()))
    assert isinstance(chunk, Chunk)
    assert chunk.data == b"??????????\r\n????????\n"
    assert not chunk.stream.client.startswith("10.0.0.1")
