"""The engine that alters messages: no socket, no clock. Bytes of a direction in, what is passed on out.

Most of it is in two texts; `test_alteration_live.py` plays the same through real relays.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import pytest
from alteration_files import CONVERSATIONS, Table, cases, played
from conversation_files import Block, blocks, check
from file_conversations import dissector_of
from hypothesis import given
from hypothesis import strategies as st
from snapshots import DATA
from websocket_dice import DICE

from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.websocket.frames import FIN, RSV1, TEXT, write_frame
from kiebitz.dissectors.websocket.handshake import KEY, REQUEST, response_to
from kiebitz.proxy.alterer import Delivery
from kiebitz.services.alteration import delivery_queue, rules
from kiebitz.services.alteration.delivery_queue import INCOMPLETE_TIMEOUT_NS, SETTLE_NS
from kiebitz.services.alteration.engine import Engine
from kiebitz.services.alteration.rule_values import ALL, Selector, split_selector

ROLLED = b"ROLLED;5,4;7d3c-token"


@pytest.mark.parametrize("block", blocks(DATA / "alterations.txt").values(), ids=lambda block: block.title)
def test_what_is_forwarded(block: Block) -> None:
    check(block, "\n".join(played(block)))


@pytest.mark.parametrize("block", blocks(CONVERSATIONS).values(), ids=lambda block: block.title)
def test_messages_of_recorded_conversations(block: Block) -> None:
    def made() -> Iterator[str]:
        for case in cases(block.title):
            yield case.text
            yield from (f"    {line}" for line in case.altered("--force" if "forced" in block.title else ""))

    check(block, "\n".join(made()))


def passed(deliveries: Iterable[Delivery]) -> list[bytes]:
    return [one.data for one in deliveries if one.data is not None]


def test_a_seed_makes_a_run_repeatable() -> None:
    pick = Selector(share=0.5, seed=7)
    twice = [[count for count in range(100) if pick.takes(count, "1 s2c")] for _ in range(2)]
    assert twice[0] == twice[1]
    assert 30 < len(twice[0]) < 70
    assert twice[0] != [count for count in range(100) if pick.takes(count, "2 s2c")]


@pytest.mark.parametrize("text", ["udp [2]x", "Wurf[0]", 'dice matches "[2nd]"', "udp"])
def test_not_every_bracket_is_a_pick(text: str) -> None:
    assert split_selector(text) == (text, ALL)


LINES = b"HELO alice\r\nSTAT 1\r\nMSG hello\r\n"


def cuts(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(ends)]


@given(st.lists(st.integers(0, 10_000)), st.sampled_from(["c2s", "s2c"]), st.binary(max_size=200))
def test_unmatched_data_passes_byte_by_byte(places: list[int], direction: Direction, rubbish: bytes) -> None:
    for data in (LINES * 3, rubbish, LINES + rubbish):
        table = Table("--drop 'msg == \"ROLLED\"'", "tcp")
        got = table.came(direction, *cuts(data, places))
        got += table.later(SETTLE_NS) + table.later(INCOMPLETE_TIMEOUT_NS) + table.take("relay ends")
        assert b"".join(passed(got)) == data
        assert not any(one.mark for one in got)


def test_half_messages_of_all_streams_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_queue, "MAX_INCOMPLETE_BYTES", 1000)
    table = Table("--drop 'msg == \"NAME\"'", "tcp", streams=3)
    table.came("c2s", b"LOGI alice\r\n")
    half = b"NAME " + b"a" * 395
    assert passed(table.came("c2s", half)) == []
    assert passed(table.came("c2s", half, stream=2)) == []
    assert passed(table.came("c2s", half, stream=3)) == [half]
    # Released messages make room for others.
    assert passed(table.came("c2s", b"\r\n")) == []
    assert passed(table.came("c2s", half)) == []


def test_queue_overflow_over_udp_is_lost_and_reported() -> None:
    table = Table("--hold udp")
    table.came("s2c", ROLLED)
    lost = table.came("s2c", *[b"SCORE;a:1"] * 5_000)
    assert 800 < len(lost) < 2_000
    assert {one.mark.rule for one in lost if one.mark} == {"too much is queued: over 1 MiB or 4096 messages"}


SIZE = 1_000_000
EXTENSION = b"\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"


def bomb() -> bytes:
    """Return a client's message of a kilobyte that decompresses to a megabyte."""
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    plain = b'{"type":"join","name":"' + b"a" * SIZE + b'"}'
    packed = (stream.compress(plain) + stream.flush(zlib.Z_SYNC_FLUSH))[:-4]
    return write_frame(TEXT, packed, b"\0\0\0\0", FIN | RSV1)


def relay(rule: rules.Rule, notices: list[str]) -> Engine:
    engine = Engine(
        [rule],
        started_ns=0,
        on_notice=lambda code, sentence: notices.append(sentence),
        decode_as={("tcp", 9000): dissector_of(DICE)},
    )
    engine.stream_opened(1, "tcp", "127.0.0.1:4001", "127.0.0.1:9000", 0)
    engine.data_received(1, "c2s", 0, REQUEST.replace(b"\r\n\r\n", EXTENSION))
    engine.data_received(1, "s2c", 0, response_to(KEY).replace(b"\r\n\r\n", EXTENSION))
    engine.due(10**12)
    return engine


@pytest.mark.parametrize("waits", [True, False])
def test_messages_that_decompress_to_much(waits: bool) -> None:
    notices: list[str] = []
    engine = relay(rules.delay("tcp", "1s" if waits else "0ms"), notices)
    data = bomb() * 40
    found = [*engine.data_received(1, "c2s", 10**12, data)]
    assert engine.is_full(1, "c2s") == waits
    found += engine.due(2 * 10**12)
    assert b"".join(one.data or b"" for one in found) == data
    if waits:
        # Eight of 40 are read; the others follow them in order.
        assert len([one for one in found if one.mark is not None]) == 8
        assert "8 MiB of decompressed messages are queued" in notices[0]
    else:
        assert notices == []
    assert not engine.is_full(1, "c2s")


@pytest.mark.parametrize("number", [1, 6, 60])
def test_the_originals_of_altered_messages_are_bounded(number: int) -> None:
    engine = relay(rules.drop("tcp"), [])
    found = engine.data_received(1, "c2s", 10**12, bomb() * number)
    marks = [one.mark for one in found if one.mark is not None]
    assert [mark.original for mark in marks] == [bomb()] * number
    kept = [mark.fields_json for mark in marks if mark.fields_json is not None]
    assert len(kept) == min(number, 8)
    assert [mark.name for mark in marks] == ["join"] * number
