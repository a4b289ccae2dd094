"""The engine that alters messages: no socket, no clock. Bytes of a direction in, what is passed on out.

Compressed messages in the relay's queues: their plain size counts, and what has no room passes unread.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import pytest
from file_conversations import dissector_of
from hypothesis import given
from hypothesis import strategies as st
from websocket_dice import DICE

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Direction, Transport
from kiebitz.dissectors.websocket.frames import FIN, RSV1, TEXT, write_frame
from kiebitz.dissectors.websocket.handshake import KEY, REQUEST, response_to
from kiebitz.proxy.alterer import Delivery
from kiebitz.services.alteration import delivery_queue, rules
from kiebitz.services.alteration.delivery_queue import INCOMPLETE_TIMEOUT_NS, SETTLE_NS
from kiebitz.services.alteration.engine import Engine
from kiebitz.services.alteration.rule_values import ALL, RuleError, Selector, parse_impairment, split_selector
from kiebitz.services.alteration.rules import Impair, Rule

BEGAN = 1_700_000_000_000_000_000
MS = 1_000_000

ROLLED = b"ROLLED;5,4;7d3c-token"
TURN = b"YOUR TURN;11aa-token"


class Table:
    def __init__(
        self, *what: Rule, transport: Transport = "udp", streams: int = 1, drops_held: bool = False
    ) -> None:
        self.notices: list[str] = []
        self.now = BEGAN
        self.engine = Engine(
            what,
            started_ns=BEGAN,
            on_notice=lambda code, sentence: self.notices.append(sentence),
            drops_held=drops_held,
        )
        for number in range(1, streams + 1):
            self.engine.stream_opened(
                number, transport, f"127.0.0.1:{4000 + number}", "127.0.0.1:9000", BEGAN
            )

    def came(self, direction: Direction, *data: bytes, stream: int = 1) -> list[Delivery]:
        return [one for part in data for one in self.engine.data_received(stream, direction, self.now, part)]

    def later(self, nanoseconds: int) -> list[Delivery]:
        self.now += nanoseconds
        return list(self.engine.due(self.now))


def passed(deliveries: Iterable[Delivery]) -> list[bytes]:
    return [one.data for one in deliveries if one.data is not None]


def marks(deliveries: Iterable[Delivery]) -> list[str]:
    return [one.mark.action for one in deliveries if one.mark is not None]


def impair(how: str) -> Impair:
    return Impair(text=how, impairment=parse_impairment(how))


def test_a_message_is_dropped_and_what_was_sent_is_kept() -> None:
    table = Table(rules.drop('msg == "ROLLED"'))
    (gone,) = table.came("s2c", ROLLED)
    assert gone.data is None
    assert gone.mark is not None
    assert gone.mark.original == ROLLED
    assert (gone.mark.name, gone.mark.sent_ns) == ("ROLLED", BEGAN)
    assert gone.mark.fields_json == '{"dice":"5,4","token":"7d3c-token"}'
    assert gone.mark.rule == """--drop 'msg == "ROLLED"'"""
    assert passed(table.came("s2c", TURN)) == [TURN]


CHANGES = [
    ("dice=2,1", b"ROLLED;2,1;7d3c-token"),
    ("dice=6,6 token=x", b"ROLLED;6,6;x"),
    ("dice=6,6,token=x", b"ROLLED;6,6;x"),
    ('dice="6,6"', b"ROLLED;6,6;7d3c-token"),
]


@pytest.mark.parametrize(("values", "written"), CHANGES)
def test_a_message_is_given_other_values(values: str, written: bytes) -> None:
    (one,) = Table(rules.change('msg == "ROLLED"', values, is_forced=False)).came("s2c", ROLLED)
    assert one.data == written
    assert one.mark is not None
    assert (one.mark.action, one.mark.original) == ("change", ROLLED)


def test_a_forced_value_need_not_fit() -> None:
    table = Table(rules.change('msg == "ROLLED"', "dice=9,9", is_forced=True))
    assert passed(table.came("s2c", ROLLED)) == [b"ROLLED;9,9;7d3c-token"]


def test_inapplicable_changes_pass_unchanged_and_are_reported() -> None:
    table = Table(rules.change("udp", "dice=2,1", is_forced=False))
    assert passed(table.came("s2c", TURN)) == [TURN]
    assert table.notices == [
        "--change udp dice=2,1: YOUR TURN has no field dice; it has token. Now it has token=11aa-token. "
        "The message is forwarded unchanged."
    ]


def test_a_message_passes_twice() -> None:
    first, second = Table(rules.double('msg == "ROLLED"')).came("s2c", ROLLED)
    assert (first.data, first.mark) == (ROLLED, None)
    assert second.data == ROLLED
    assert second.mark is not None
    assert (second.mark.action, second.mark.original) == ("double", None)


def test_a_message_is_put_in_on_either_way() -> None:
    table = Table(rules.insert('msg == "ROLLED"', "REGISTERED", is_forced=False))
    assert passed(table.came("s2c", ROLLED)) == [ROLLED, b"REGISTERED"]
    table = Table(rules.insert('msg == "ROLLED"', "ROLL token=x", is_forced=False))
    given = table.came("s2c", ROLLED) + table.later(0)
    assert [(one.direction, one.data) for one in given] == [("s2c", ROLLED), ("c2s", b"ROLL;x")]


def test_a_delayed_message_delays_those_behind_it() -> None:
    table = Table(rules.delay('msg == "ROLLED"', "500ms"))
    assert table.came("s2c", ROLLED, TURN) == []
    # The other direction, and other streams, continue.
    assert passed(table.came("c2s", b"ROLL;x")) == [b"ROLL;x"]
    assert table.later(499 * MS) == []
    late = table.later(1 * MS)
    assert passed(late) == [ROLLED, TURN]
    assert marks(late) == ["delay"]


def test_with_reorder_it_does_not() -> None:
    table = Table(rules.delay('msg == "ROLLED"', "500ms, reorder"))
    assert passed(table.came("s2c", ROLLED, TURN)) == [TURN]
    assert passed(table.later(500 * MS)) == [ROLLED]


def test_rules_are_followed_in_their_order() -> None:
    change = rules.change('msg == "ROLLED"', "dice=2,1", is_forced=False)
    drop = rules.drop('dice == "2,1"')
    assert passed(Table(change, drop).came("s2c", ROLLED)) == []
    assert passed(Table(drop, change).came("s2c", ROLLED)) == [b"ROLLED;2,1;7d3c-token"]


PICKS = [
    ("[2nd]", [2]),
    ("[first]", [1]),
    ("[first 2]", [1, 2]),
    ("[every 3rd]", [3, 6, 9]),
    ("[100%]", [*range(1, 11)]),
    ("[0%]", []),
]


@pytest.mark.parametrize(("text", "meant"), PICKS)
def test_which_messages_are_meant(text: str, meant: list[int]) -> None:
    asked, pick = split_selector(f'msg == "ROLLED" {text}')
    assert asked == 'msg == "ROLLED"'
    assert [count for count in range(1, 11) if pick.takes(count, "1 s2c")] == meant


def test_each_direction_of_each_stream_is_counted_by_itself() -> None:
    table = Table(rules.drop("udp [2nd]"), streams=2)
    assert passed(table.came("s2c", b"REGISTERED", TURN, ROLLED)) == [b"REGISTERED", ROLLED]
    assert passed(table.came("c2s", b"REGISTER;a", b"ROLL;x")) == [b"REGISTER;a"]
    assert passed(table.came("s2c", b"REGISTERED", TURN, stream=2)) == [b"REGISTERED"]


def test_a_seed_makes_a_run_repeatable() -> None:
    pick = Selector(share=0.5, seed=7)
    twice = [[count for count in range(100) if pick.takes(count, "1 s2c")] for _ in range(2)]
    assert twice[0] == twice[1]
    assert 30 < len(twice[0]) < 70
    assert twice[0] != [count for count in range(100) if pick.takes(count, "2 s2c")]


@pytest.mark.parametrize("text", ["udp [2]x", "Wurf[0]", 'dice matches "[2nd]"', "udp"])
def test_not_every_bracket_is_a_pick(text: str) -> None:
    assert split_selector(text) == (text, ALL)


@pytest.mark.parametrize("text", ["udp [0th]", "udp [every]", "udp [120%]", "udp [2nd, seed 7]", "udp [x]"])
def test_a_wrong_pick_is_reported(text: str) -> None:
    with pytest.raises(RuleError, match=r"is not a selector: write \[2nd\], \[first 2\]"):
        split_selector(text)


def test_the_state_may_be_asked_for() -> None:
    table = Table(rules.drop('state.turn == "bob" && msg == "ROLLED"'), streams=2)
    for stream, name in ((1, b"alice"), (2, b"bob")):
        table.came("c2s", b"REGISTER;" + name, stream=stream)
        table.came("s2c", b"REGISTERED", stream=stream)
    for stream in (1, 2):
        table.came("s2c", b"ROUND STARTED;1;alice,bob", stream=stream)
    table.came("s2c", TURN, stream=1)
    assert passed(table.came("s2c", ROLLED, stream=1)) == [ROLLED]
    table.came("s2c", b"YOUR TURN;22", stream=2)
    assert passed(table.came("s2c", ROLLED, stream=2)) == []


IS_ROLLED = 'msg == "ROLLED"'
REFUSED: list[tuple[Callable[[], Rule], str]] = [
    (
        lambda: rules.drop('msg == "ROLED"'),
        '--drop: no message of any protocol can match msg == "ROLED"; did you mean ROLLED?',
    ),
    (lambda: rules.drop(""), "--drop: give a filter; udp or tcp selects all messages"),
    (
        lambda: rules.drop('kind == "rolled"'),
        "--drop: kind is not known while a message is forwarded; use msg, dir, stream, who, client, "
        "server, time, a field, or state.FIELD",
    ),
    (
        lambda: rules.change(IS_ROLLED, "dice=9,1", is_forced=False),
        "--change: dice=9,1 does not fit: a die does not show 9; expected two dice 1 to 6, higher first, "
        "such as 5,3",
    ),
    (
        lambda: rules.change(IS_ROLLED, "dyce=2,1", is_forced=False),
        "--change: ROLLED has no field dyce; did you mean dice?",
    ),
    (
        lambda: rules.change(IS_ROLLED, "", is_forced=False),
        "--change: give at least one FIELD=VALUE, such as dice=2,1",
    ),
    (
        lambda: rules.insert("udp", "PLYER LOST names=bob", is_forced=False),
        "--insert: maexchen has no message PLYER LOST; did you mean PLAYER LOST?",
    ),
    (
        lambda: rules.insert("udp", "PLAYER LOST names=bob", is_forced=False),
        "--insert: PLAYER LOST needs a value for reason, too",
    ),
    (
        lambda: rules.delay("udp", "500"),
        "--delay: '500' is not a duration: write 500ms, 2s or 500ms±100ms",
    ),
    (
        lambda: rules.delay("udp", "500ms, later"),
        "--delay: 'later' is unknown here: write 500ms, or '500ms, reorder'",
    ),
]


@pytest.mark.parametrize(("rule", "sentence"), REFUSED)
def test_a_rule_that_cannot_be_followed_is_refused_beforehand(
    rule: Callable[[], Rule], sentence: str
) -> None:
    with pytest.raises(KiebitzError) as refused:
        rule()
    assert str(refused.value) == sentence


LINES = b"HELO alice\r\nSTAT 1\r\nMSG hello\r\n"


def cuts(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(ends)]


@given(st.lists(st.integers(0, 10_000)), st.sampled_from(["c2s", "s2c"]), st.binary(max_size=200))
def test_unmatched_data_passes_byte_by_byte(places: list[int], direction: Direction, rubbish: bytes) -> None:
    for data in (LINES * 3, rubbish, LINES + rubbish):
        table = Table(rules.drop('msg == "ROLLED"'), transport="tcp")
        got = table.came(direction, *cuts(data, places))
        got += (
            table.later(SETTLE_NS) + table.later(INCOMPLETE_TIMEOUT_NS) + list(table.engine.finish(table.now))
        )
        assert b"".join(passed(got)) == data
        assert marks(got) == []


def test_half_a_message_waits_a_second_and_then_passes_as_it_is() -> None:
    table = Table(rules.drop('msg == "NAME"'), transport="tcp")
    assert passed(table.came("c2s", b"LOGI alice\r\n")) == [b"LOGI alice\r\n"]
    assert table.came("c2s", b"NAME al") == []
    assert passed(table.later(INCOMPLETE_TIMEOUT_NS - 1)) == []
    assert passed(table.later(1)) == [b"NAME al"]
    # Its rest cannot be altered any more; the next one can.
    assert passed(table.came("c2s", b"ice\r\n")) == [b"ice\r\n"]
    assert passed(table.came("c2s", b"NAME alice\r\n")) == []


def test_half_messages_of_all_streams_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_queue, "MAX_INCOMPLETE_BYTES", 1000)
    table = Table(rules.drop('msg == "NAME"'), transport="tcp", streams=3)
    table.came("c2s", b"LOGI alice\r\n")
    half = b"NAME " + b"a" * 395
    assert passed(table.came("c2s", half)) == []
    assert passed(table.came("c2s", half, stream=2)) == []
    assert passed(table.came("c2s", half, stream=3)) == [half]
    # Released messages make room for others.
    assert passed(table.came("c2s", b"\r\n")) == []
    assert passed(table.came("c2s", half)) == []


def test_impairments_over_udp() -> None:
    assert passed(Table(impair("loss 100%")).came("s2c", ROLLED, b"no game at all")) == []
    assert passed(Table(impair("double 100%")).came("s2c", ROLLED)) == [ROLLED, ROLLED]
    table = Table(impair("reorder 50%, seed 3"))
    sent = [b"REGISTERED", TURN, ROLLED, b"SCORE;a:1", b"SCORE;a:2", b"SCORE;a:3"]
    got = passed(table.came("s2c", *sent)) + passed(table.later(1000 * MS))
    assert got != sent
    assert sorted(got) == sorted(sent)


def test_a_slow_line_takes_its_time() -> None:
    table = Table(impair("rate 8kbit/s"), transport="tcp")
    assert passed(table.came("s2c", b"x" * 100, b"y" * 50)) == []
    assert passed(table.later(100 * MS)) == [b"x" * 100]
    assert passed(table.later(50 * MS)) == [b"y" * 50]


def test_a_stream_is_cut_into_pieces_and_reset() -> None:
    table = Table(impair("cut 100%"), transport="tcp")
    pieces = table.came("s2c", b"abcdef") + table.later(10 * MS) + table.later(10 * MS)
    assert passed(pieces) == [b"ab", b"cd", b"ef"]
    (reset,) = Table(impair("reset 100%"), transport="tcp").came("s2c", b"abcdef")
    assert reset.resets
    assert reset.data is None


def test_the_end_of_a_direction_comes_behind_what_waits() -> None:
    table = Table(impair("delay 100ms"), transport="tcp")
    assert table.came("c2s", b"bye") == []
    assert list(table.engine.eof_received(1, "c2s", table.now)) == []
    last = table.later(100 * MS)
    assert [(one.data, one.ends) for one in last] == [(b"bye", False), (None, True)]


@pytest.mark.parametrize("drops", [False, True])
def test_held_messages_wait_for_a_decision(drops: bool) -> None:
    table = Table(rules.hold('msg == "ROLLED"'), drops_held=drops)
    assert table.came("s2c", ROLLED, TURN) == []
    assert table.later(3600_000 * MS) == []
    (ticket,) = table.engine.broker.held
    table.engine.broker.let_go(ticket.number)
    given = table.later(0)
    assert passed(given) == [ROLLED, TURN]
    assert marks(given) == ["hold"]
    table.came("s2c", ROLLED, TURN)
    last = [*table.engine.finish(table.now)]
    assert passed(last) == ([TURN] if drops else [ROLLED, TURN])
    assert marks(last) == ["drop" if drops else "hold"]
    # Some may come while the relay ends.
    assert passed(table.came("s2c", ROLLED, TURN)) == ([TURN] if drops else [ROLLED, TURN])


@pytest.mark.parametrize("rule", [rules.delay("udp", "3600s"), impair("rate 1bit/s"), impair("reorder 100%")])
def test_messages_during_shutdown_are_not_held(rule: Rule) -> None:
    table = Table(rule)
    table.came("s2c", TURN)
    assert passed(table.engine.finish(table.now)) == [TURN]
    assert passed(table.came("s2c", ROLLED, TURN)) == [ROLLED, TURN]
    assert passed(table.came("c2s", b"ROLL;x")) == [b"ROLL;x"]
    assert passed(table.engine.stream_closed(1, table.now)) == []


def test_queue_overflow_over_udp_is_lost_and_reported() -> None:
    table = Table(rules.hold("udp"))
    table.came("s2c", ROLLED)
    lost = table.came("s2c", *[b"SCORE;a:1"] * 5_000)
    assert 800 < len(lost) < 2_000
    assert {one.mark.rule for one in lost if one.mark} == {"too much is queued: over 1 MiB or 4096 messages"}


def test_a_stream_that_is_over_passes_nothing_on() -> None:
    table = Table(rules.delay("udp", "1s"))
    table.came("s2c", ROLLED)
    (gone,) = table.engine.stream_closed(1, table.now)
    assert gone.data is None
    assert gone.mark is not None
    assert (gone.mark.action, gone.mark.original) == ("drop", ROLLED)
    assert table.later(2000 * MS) == []


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
    queued = engine._bytes
    found += engine.due(2 * 10**12)
    assert b"".join(one.data or b"" for one in found) == data
    if waits:
        # Eight of 40 are read; the others follow them in order.
        assert 4 * SIZE < queued < 10 * SIZE
        assert len([one for one in found if one.mark is not None]) == 8
        assert "8 MiB of decompressed messages are queued" in notices[0]
    else:
        assert queued < SIZE
        assert notices == []
    assert engine._bytes == 0


@pytest.mark.parametrize("number", [1, 6, 60])
def test_the_originals_of_altered_messages_are_bounded(number: int) -> None:
    engine = relay(rules.drop("tcp"), [])
    found = engine.data_received(1, "c2s", 10**12, bomb() * number)
    marks = [one.mark for one in found if one.mark is not None]
    assert [mark.original for mark in marks] == [bomb()] * number
    kept = [mark.fields_json for mark in marks if mark.fields_json is not None]
    assert len(kept) == min(number, 8)
    assert [mark.name for mark in marks] == ["join"] * number
