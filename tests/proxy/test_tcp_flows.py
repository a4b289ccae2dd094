"""TCP conversations: what is one connection, who is the client, what is missing, and how it ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times
from tcp_segments import (
    CLIENT,
    MILLISECOND,
    RUBBISH,
    SECOND,
    SERVER,
    TIMES,
    Sent,
    by_word,
    cases,
    check_order,
    handshake,
    sent,
    told,
)

from kiebitz.dissectors.model import Chunk, Direction, End, Fault, Item
from kiebitz.proxy.capture.packets import Segment, endpoints
from kiebitz.proxy.flows import tcp as tcp_conversations
from kiebitz.proxy.flows.server_detection import DirectionDetector
from kiebitz.proxy.flows.tcp import TcpFlows

END_MS = 10_000_000


def cannot_tell(data: bytes, source: str, destination: str) -> Direction | None:
    return None


def conversations(
    orient: DirectionDetector = cannot_tell, ports: Iterable[int] = (), streams: int = 100
) -> TcpFlows:
    return TcpFlows(itertools.count(1), orient, frozenset(ports), max_streams=streams)


def items_of(
    segments: Iterable[Sent],
    orient: DirectionDetector = cannot_tell,
    ports: Iterable[int] = (),
    streams: int = 100,
) -> list[Item]:
    sorter = conversations(orient, ports, streams)
    items: list[Item] = []
    for ts_ns, segment in segments:
        sorter.feed(segment, ts_ns, items)
    sorter.close(END_MS * MILLISECOND, items)
    assert sorter._waiting_bytes == 0
    return items


HELLO = sent(1, "c", "PA", b"hello")
CASES: list[tuple[str, list[Sent], list[str]]] = cases(
    r"""
a whole connection
    handshake; 1 s PA 'welcome'; 2 c A ack=7; 3 c PA ack=7 'hi'; 4 s A at=7 ack=2; 5 c FA at=2 ack=7;
    6 s FA at=7 ack=3; 7 c A at=3 ack=8
    => 1 s2c @0 welcome | 1 c2s @0 hi | 1 closed 6
an answer to what is missing comes after the gap
    handshake; 1 s PA 'he'; 2 s PA at=7 'e?'; 3 c A ack=9; 4 c PA ack=9 'I am'; 5 s PA at=9 ack=4 '!'
    => 1 s2c @0 he | 1 s2c @2 gap 5 | 1 s2c @7 e? | 1 c2s @0 I am | 1 s2c @9 ! | 1 end END
FIN with data, half-close
    handshake; 1 c FPA 'bye'; 2 s A ack=4; 60000 s PA ack=4 'still here'; 60001 s FA at=10 ack=4
    => 1 c2s @0 bye | 1 s2c @0 still here | 1 closed 60001
both FINs at once
    handshake; 1 c FA; 1 s FA; 2 c A at=1 ack=1
    => 1 closed 1
FIN before the data it follows
    handshake; 1 s FA; 2 c FA at=5; 1 c PA 'hello'
    => 1 c2s @0 hello | 1 closed 1
FIN sent again, late data and a RST after the end
    handshake; 1 c FPA 'a'; 2 s FA ack=2; 3 c FPA 'a'; 4 s PA at=1 'late'; 5 c R at=2
    => 1 c2s @0 a | 1 closed 2
reset
    handshake; 1 c PA 'hello'; 2 s RA ack=5
    => 1 c2s @0 hello | 1 reset 2
reset by who has been acknowledged
    handshake; 1 c PA 'hello'; 2 s A ack=5; 3 c R at=5
    => 1 c2s @0 hello | 1 reset 3
a RST out of the window
    handshake; 1 c PA 'hello'; 2 s A ack=5 window=100; 3 c R at=106; 3 c R at=3; 4 c PA at=5 '!'
    => 1 c2s @0 hello | 1 c2s @5 ! | 1 end END
a RST in a scaled window
    0 c S scale=7; 0 s SA scale=2; 1 c PA 'hello'; 2 s A ack=5 window=100; 3 c R at=406; 4 c R at=405
    => 1 c2s @0 hello | 1 reset 4
refused
    0 c S; 1 s RA
    => 1 c2s @0 refused 0 | 1 refused 1
refused again and again, then taken
    0 c S; 1 s RA; 2 c S; 3 s RA; 4 c S; 5 s SA; 6 c PA 'in'
    => 1 c2s @0 refused 0 | 1 refused 1 | 2 c2s @0 in | 2 end END
a refusal of something else
    0 c S; 1 s RA ack=70000
    =>
half open
    0 c S; 1000 c S; 3000 s SA
    =>
half open, taken back
    0 c S; 1 s SA; 2 c R
    =>
nothing said
    handshake
    => 1 end END
data with the SYN
    0 c S 'early'; 1 s SA ack=5; 2 c A at=5; 3 c PA at=5 'later'
    => 1 c2s @0 early | 1 c2s @5 later | 1 end END
data with the SYN, sent again
    0 c S 'early'; 1 s SA; 2 c PA 'early'
    => 1 c2s @0 early | 1 end END
SYN and SYN-ACK sent again
    0 c S; 1 c S; 2 s SA; 3 s SA; 1 c PA 'hello'; 4 s SA
    => 1 c2s @0 hello | 1 end END
the SYN comes late
    0 s SA; 1 c PA 'hello'; 2 c S; 3 s PA ack=5 'hi'
    => 1 c2s @0 hello | 1 s2c @0 hi | 1 end END
the SYN-ACK tells where the client began
    0 s SA; 1 c PA at=3 'lo'; 2 s A ack=5
    => 1 c2s @0 gap 3 | 1 c2s @3 lo | 1 end END
without the SYN-ACK
    0 c S; 1 c A; 2 s PA 'hi'; 1 c PA 'hello'
    => 1 s2c @0 gap ? | 1 s2c @0 hi | 1 c2s @0 hello | 1 end END
from the middle
    0 c PA at=3 'lo'; 1 s PA at=5 'me'; 9000 s A at=7
    => 1 c2s @0 gap ? | 1 c2s @0 lo | 1 s2c @0 gap ? | 1 s2c @0 me | 1 end END
from after the end
    0 c A at=3; 1 s FA; 2 c R
    =>
keep-alives
    handshake; 1 c PA 'hello'; 2 s A ack=5; 75000 c A at=4 ack=0; 75001 c A at=4 '\x00';
    75002 s A at=-1 ack=5 '\x00'; 75003 c PA at=5 '!'
    => 1 c2s @0 hello | 1 c2s @5 ! | 1 end END
zero-window probes
    handshake; 1 c PA 'hello'; 2 s A ack=5 window=0; 3 c A at=5 'w'; 4 s A ack=5 window=0;
    5 c A at=5 'w'; 6 s A ack=5 window=500; 7 c PA at=5 'world'
    => 1 c2s @0 hello | 1 c2s @5 w | 1 c2s @6 orld | 1 end END
reordered
    handshake; 1 c PA at=2 'c'; 2 c PA at=1 'b'; 3 c A 'a'
    => 1 c2s @0 a | 1 c2s @1 b | 1 c2s @2 c | 1 end END
sent again with other content
    handshake; 1 c PA 'hello'; 2 c PA 'heLLo'; 3 c PA at=5 '!'
    => 1 c2s @0 hello | 1 c2s @2 retransmission-differs 2 | 1 c2s @5 ! | 1 end END
lost, and sent again much later
    handshake; 1 c PA at=5 'world'; 2 s A; 9000 s A; 20000 c PA 'hello'
    => 1 c2s @0 hello | 1 c2s @5 world | 1 end END
lost by the capture
    handshake; 1 c PA at=5 'world'; 2 s A ack=10; 100 c PA at=10 '!'; 203 s PA ack=11 'ok';
    300 c PA 'hello'
    => 1 c2s @0 gap 5 | 1 c2s @5 world | 1 c2s @10 ! | 1 s2c @0 ok | 1 end END
merely captured late
    handshake; 1 c PA at=5 'world'; 2 s A ack=10; 200 c PA 'hello'
    => 1 c2s @0 hello | 1 c2s @5 world | 1 end END
lost in a one-sided capture
    0 c S; 1 c PA 'a'; 2 c PA at=2 'c'; 5001 c PA at=3 'd'; 5002 c PA at=4 'e'
    => 1 c2s @0 a | 1 c2s @1 gap 1 | 1 c2s @2 c | 1 c2s @3 d | 1 c2s @4 e | 1 end END
lost at the end
    handshake; 1 c PA 'hello'; 2 s A ack=25; 3 s R ack=25
    => 1 c2s @0 hello | 1 c2s @5 gap 20 | 1 reset 3
lost before the FIN
    handshake; 1 c FA at=5; 2 s FA ack=6; 300 c A at=6 ack=1
    => 1 c2s @0 gap 5 | 1 closed 300
a one-sided end
    0 c S; 1 c FPA 'bye'; 5000 c S client=10.0.0.2:1; 5051 c S client=10.0.0.3:1
    => 1 c2s @0 bye | 1 closed 5051
one side cut by the snap length
    handshake; 1 c PA missing=3 'he'; 2 c PA at=5 missing=9; 3 c FA at=14
    => 1 c2s @0 he | 1 c2s @2 gap 3 | 1 c2s @5 gap 9 | 1 end END
the same ports again
    handshake; 1 c PA 'hello'; 2 c FA at=5; 3 s FA ack=6; 4 c S isn=3000000;
    5 s SA isn=7 peer_isn=3000000; 6 c PA isn=3000000 peer_isn=7 'again'
    => 1 c2s @0 hello | 1 closed 3 | 2 c2s @0 again | 2 end END
the same ports again without an end
    handshake; 1 c PA 'hello'; 4 c S isn=3000000; 5 s SA isn=7 peer_isn=3000000;
    6 c PA isn=3000000 peer_isn=7 'again'
    => 1 c2s @0 hello | 1 reused 4 | 2 c2s @0 again | 2 end END
the same ports again, of which only the answer is seen
    handshake; 1 c PA 'hello'; 5 s SA isn=7 peer_isn=3000000; 6 c PA isn=3000000 peer_isn=7 'again'
    => 1 c2s @0 hello | 1 reused 5 | 2 c2s @0 again | 2 end END
the client has forgotten, the server has not (RFC 9293, 3.5.1)
    handshake; 1 c PA 'hello'; 3000 c S isn=3000000; 3001 s A ack=5; 3002 c R at=5;
    4000 c S isn=3000000; 4001 s SA isn=7 peer_isn=3000000; 4002 c PA isn=3000000 peer_isn=7 'again'
    => 1 c2s @0 hello | 1 reused 3000 | 2 c2s @0 again | 2 end END
flags that nobody sends
    0 c SF; 0 c SR; handshake; 1 c SFA isn=9; 1 c -; 1 c PA 'hello'
    => 1 c2s @0 hello | 1 end END
""",
    END_MS,
)


@pytest.mark.parametrize(
    ("segments", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_cases(segments: list[Sent], expected: list[str]) -> None:
    items = items_of(segments)
    assert told(items) == expected
    check_order(items)
    assert all(
        (i.stream.client, i.stream.server, i.stream.transport) == (CLIENT, SERVER, "tcp") for i in items
    )


LOW, HIGH = "10.0.0.1:700", "10.0.0.9:9000"
WORDS = b"...HELLO..."
ORIENTATIONS: list[tuple[str, list[Sent], DirectionDetector, tuple[int, ...], list[tuple[str, str]]]] = [
    # The client's port is lower here, so that nothing but evidence makes the higher one the server's.
    ("the lower port", [sent(0, "c", "A", b"x", client=LOW)], cannot_tell, (), [(HIGH, LOW)]),
    (
        "equal ports: who sends first asks",
        [sent(0, "c", "A", b"x", client="10.0.0.1:9000")],
        cannot_tell,
        (),
        [("10.0.0.1:9000", HIGH)],
    ),
    (
        "who sent the SYN",
        [*handshake(client=LOW), sent(0, "s", "A", b"x", client=LOW)],
        by_word,
        (700,),
        [(LOW, HIGH)],
    ),
    (
        "the SYN alone",
        [sent(0, "c", "S", client=LOW), sent(0, "c", "A", b"x", client=LOW)],
        by_word,
        (700,),
        [(LOW, HIGH)],
    ),
    (
        "the SYN-ACK alone",
        [sent(0, "s", "SA", client=LOW), sent(0, "c", "A", b"x", client=LOW)],
        by_word,
        (700,),
        [(LOW, HIGH)],
    ),
    ("known port", [sent(0, "s", "A", b"x", client=LOW)], cannot_tell, (9000,), [(LOW, HIGH)]),
    ("both ports known", [sent(0, "s", "A", b"x", client=LOW)], cannot_tell, (9000, 700), [(HIGH, LOW)]),
    ("known port is stronger", [sent(0, "c", "A", b"WELCOME", client=LOW)], by_word, (9000,), [(LOW, HIGH)]),
    ("what the client says", [sent(0, "c", "A", b"HELLO", client=LOW)], by_word, (), [(LOW, HIGH)]),
    ("what the server says", [sent(0, "s", "A", b"WELCOME", client=LOW)], by_word, (), [(LOW, HIGH)]),
    (
        "what is said byte by byte",
        [sent(i, "c", "A", WORDS[i : i + 1], at=i, client=LOW) for i in range(len(WORDS))],
        by_word,
        (),
        [(LOW, HIGH)],
    ),
    (
        "what the other side says",
        [sent(0, "c", "A", b"x", client=LOW), sent(1, "s", "A", b"WELCOME", client=LOW)],
        by_word,
        (),
        [(LOW, HIGH)],
    ),
    (
        "a server from before, by its SYN-ACK",
        [
            *handshake(client=LOW),
            sent(0, "c", "A", client=LOW),
            sent(1, "s", "A", b"x", client="10.0.0.2:600"),
        ],
        cannot_tell,
        (),
        [("10.0.0.2:600", HIGH), (LOW, HIGH)],
    ),
    (
        "a server from before, by what it said",
        [sent(0, "s", "A", b"WELCOME", client=LOW), sent(1, "s", "A", b"x", client="10.0.0.2:600")],
        by_word,
        (),
        [(LOW, HIGH), ("10.0.0.2:600", HIGH)],
    ),
    (
        "simultaneous open: as if there were no SYN",
        [
            sent(0, "c", "S", client=LOW),
            sent(0, "s", "S", client=LOW),
            sent(1, "c", "SA", client=LOW),
            sent(1, "s", "SA", client=LOW),
            sent(2, "c", "A", b"HELLO", client=LOW),
        ],
        by_word,
        (),
        [(LOW, HIGH)],
    ),
]


@pytest.mark.parametrize(
    ("segments", "orient", "ports", "expected"),
    [case[1:] for case in ORIENTATIONS],
    ids=[case[0] for case in ORIENTATIONS],
)
def test_orientation(
    segments: list[Sent], orient: DirectionDetector, ports: tuple[int, ...], expected: list[tuple[str, str]]
) -> None:
    items = items_of(segments, orient, ports)
    streams = {item.stream.id: (item.stream.client, item.stream.server) for item in items}
    assert list(streams.values()) == expected
    # The items were turned round with the stream.
    senders = {endpoints(segment.flow)[0] for _, segment in segments}
    for item in items:
        if isinstance(item, Chunk):
            assert (item.stream.client if item.direction == "c2s" else item.stream.server) in senders
    check_order(items)


def test_items_are_held_back_until_the_server_is_known() -> None:
    sorter, items = conversations(by_word), list[Item]()
    for ms, data in ((0, b"who "), (1, b"are ")):
        ts_ns, segment = sent(ms, "s", "A", data, at=ms * 4)
        sorter.feed(segment, ts_ns, items)
        assert items == []
    ts_ns, segment = sent(2, "s", "A", b"WELCOME", at=8)
    sorter.feed(segment, ts_ns, items)
    expected = ["1 s2c @0 gap ?", "1 s2c @0 who ", "1 s2c @4 are ", "1 s2c @8 WELCOME"]
    assert told(items) == expected
    assert [item.ts_ns for item in items] == [0, 0, MILLISECOND, 2 * MILLISECOND]
    assert items[0].stream.opened_ns == 0


def test_undecided_for_long() -> None:
    # By time, by the number of segments, by their size.
    sorter, items = conversations(), list[Item]()
    sorter.feed(sent(0, "c", "A", b"x")[1], 0, items)
    sorter.expire(5 * SECOND - 1, items)
    assert items == []
    sorter.expire(5 * SECOND, items)
    assert told(items) == ["1 c2s @0 gap ?", "1 c2s @0 x"]
    for size, most in ((1, 300), (1000, 70)):
        sorter, items = conversations(), []
        for number in range(most):
            sorter.feed(sent(0, "c", "A", bytes(size), at=number * size)[1], 0, items)
        assert len(items) == most + 1


def test_a_socket_connected_to_itself() -> None:
    me = "10.0.0.1:700"
    segments = [
        sent(0, "c", "S", client=me, server=me),
        sent(0, "c", "SA", client=me, server=me, peer_isn=1000),
        sent(1, "c", "A", b"ab", client=me, server=me, peer_isn=1000),
        sent(2, "c", "A", b"c", at=2, ack=2, client=me, server=me, peer_isn=1000),
        sent(3, "c", "FA", at=3, ack=3, client=me, server=me, peer_isn=1000),
    ]
    expected = ["1 c2s @0 ab", "1 c2s @2 c", f"1 closed {END_MS}"]
    assert told(items_of(segments)) == expected


def test_silence_ends_a_stream_and_what_follows_is_another() -> None:
    hour_ms = 3_600_000
    segments = [
        *handshake(),
        sent(0, "c", "A", b"a"),
        sent(2 * hour_ms, "s", "A", b"b", ack=1),
    ]
    last_ms = 4 * hour_ms + 600_000
    last = sent(last_ms, "c", "A", b"c", at=1, ack=1)
    others = [
        sent(2 * hour_ms + minutes * 60_000, "c", "S", client="10.0.0.2:40000")
        for minutes in range(10, 121, 10)
    ]
    assert told(items_of([*segments, *others, last])) == [
        "1 c2s @0 a",
        "1 s2c @0 b",
        f"1 idle {last_ms}",
        "2 c2s @0 gap ?",
        "2 c2s @0 c",
        f"2 end {END_MS}",
    ]
    # Where no packet at all came meanwhile, the clock may have been set.
    assert told(items_of([*segments, last])) == [
        "1 c2s @0 a",
        "1 s2c @0 b",
        "1 c2s @1 c",
        f"1 end {END_MS}",
    ]


def test_expire_gives_up_without_traffic() -> None:
    sorter, items = conversations(), list[Item]()
    for ts_ns, segment in [*handshake(), sent(1, "c", "A", b"b", at=1), sent(2, "s", "A", ack=2)]:
        sorter.feed(segment, ts_ns, items)
    sorter.expire(201 * MILLISECOND, items)
    assert items == []
    sorter.expire(202 * MILLISECOND, items)
    assert told(items) == ["1 c2s @0 gap 1", "1 c2s @1 b"]


def test_the_refusal_is_a_sentence() -> None:
    fault = items_of([sent(0, "c", "S"), sent(1, "s", "RA")])[0]
    assert isinstance(fault, Fault)
    assert fault.text == "the server refused the connection"


@pytest.mark.full
def test_half_open_connections_go_first_and_make_no_stream() -> None:
    sorter, items = conversations(streams=40), list[Item]()
    for ts_ns, segment in [*handshake(), HELLO]:
        sorter.feed(segment, ts_ns, items)
    for number in range(10_000):
        client = f"10.{number >> 8}.{number & 255}.1:2000"
        sorter.feed(sent(2, "c", "S", client=client)[1], 2 * MILLISECOND, items)
        assert len(sorter._open) <= 40
        assert len(sorter._sides) <= 80
    sorter.feed(sent(3, "c", "A", b"!", at=5)[1], 3 * MILLISECOND, items)
    sorter.close(4 * MILLISECOND, items)
    assert told(items) == ["1 c2s @0 hello", "1 c2s @5 !", "1 end 4"]


def test_open_connections_are_bounded_and_those_silent_longest_end() -> None:
    segments = [sent(n, "c", "A", b"x", client=f"10.1.{n % 250}.1:{30_000 + n}") for n in range(1, 300)]
    segments[20:20] = [sent(20, "s", "A", b"still here", client="10.1.1.1:30001")]
    items = items_of(segments, ports=(9000,), streams=40)
    alive, most, ended = set[int](), 0, list[int]()
    for item in items:
        if isinstance(item, End):
            ended.append(item.stream.id)
            assert item.reason in ("evicted", "end")
            alive.remove(item.stream.id)
        else:
            alive.add(item.stream.id)
            most = max(most, len(alive))
    assert most <= 40
    assert ended[:3] == [2, 3, 4]
    check_order(items)


@pytest.mark.full
def test_connections_that_are_over_are_bounded() -> None:
    sorter, items = conversations(), list[Item]()
    for number in range(2 * tcp_conversations.MAX_ENDED):
        client = f"10.{number >> 8}.{number & 255}.1:2000"
        for ts_ns, segment in [*handshake(client=client), sent(1, "s", "A", b"x", client=client)]:
            sorter.feed(segment, ts_ns, items)
        sorter.feed(sent(1, "s", "R", at=1, client=client)[1], MILLISECOND, items)
        assert len(sorter._sides) <= 2 * tcp_conversations.MAX_ENDED + 2
    items.clear()
    sorter.expire(100 * SECOND, items)
    assert (items, sorter._sides, sorter._ended) == ([], {}, {})


def test_the_queue_is_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_conversations, "MAX_WAITING_BYTES", 100_000)
    sorter, items = conversations(streams=1000), list[Item]()
    for number in range(500):
        client = f"10.{number >> 8}.{number & 255}.1:2000"
        # A hole in every second one, and no server known in the others.
        server = f"10.200.0.1:{number}"
        start = handshake(client=client, server=server) if number % 2 else []
        for ts_ns, segment in [*start, sent(1, "c", "A", bytes(1000), at=1, client=client, server=server)]:
            sorter.feed(segment, ts_ns, items)
        assert sorter._waiting_bytes <= 100_000
    # The oldest did not wait any longer.
    assert "10.0.0.1:2000" in (items[0].stream.client, items[0].stream.server)
    sorter.close(2 * MILLISECOND, items)
    assert sum(check_order(items).values()) == 500 * 1000 + 250


@given(st.lists(st.tuples(TIMES, RUBBISH), max_size=40), st.sampled_from([1, 3, 100]))
@settings(max_examples=times(300, quick=10), deadline=None)
def test_any_segments(segments: list[tuple[int, Segment]], streams: int) -> None:
    items = items_of(((ms * MILLISECOND, segment) for ms, segment in segments), by_word, streams=streams)
    check_order(items)
