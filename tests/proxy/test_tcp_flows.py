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
    check_order,
    handshake,
    sent,
    told,
)

from kiebitz.dissectors.model import Chunk, Direction, End, Fault, Item
from kiebitz.proxy.capture.packets import Segment, endpoints
from kiebitz.proxy.flows import tcp as tcp_conversations
from kiebitz.proxy.flows.server_detection import Orient
from kiebitz.proxy.flows.tcp import TcpConversations

END_MS = 10_000_000


def cannot_tell(data: bytes, source: str, destination: str) -> Direction | None:
    return None


def conversations(
    orient: Orient = cannot_tell, ports: Iterable[int] = (), streams: int = 100
) -> TcpConversations:
    return TcpConversations(itertools.count(1), orient, frozenset(ports), max_streams=streams)


def items_of(
    segments: Iterable[Sent], orient: Orient = cannot_tell, ports: Iterable[int] = (), streams: int = 100
) -> list[Item]:
    """What comes of segments, up to an end at END_MS."""
    sorter = conversations(orient, ports, streams)
    items: list[Item] = []
    for ts_ns, segment in segments:
        sorter.feed(segment, ts_ns, items)
    sorter.close(END_MS * MILLISECOND, items)
    assert sorter._waiting_bytes == 0
    return items


c, s = "c", "s"
HELLO = sent(1, "c", "PA", b"hello")
CASES: list[tuple[str, list[Sent], list[str]]] = [
    (
        "a whole connection",
        [
            *handshake(),
            sent(1, "s", "PA", b"welcome"),
            sent(2, "c", "A", ack=7),
            sent(3, "c", "PA", b"hi", ack=7),
            sent(4, "s", "A", at=7, ack=2),
            sent(5, "c", "FA", at=2, ack=7),
            sent(6, "s", "FA", at=7, ack=3),
            sent(7, "c", "A", at=3, ack=8),
        ],
        ["1 s2c @0 welcome", "1 c2s @0 hi", "1 closed 6"],
    ),
    (
        "an answer to what is missing comes after the gap",
        [
            *handshake(),
            sent(1, "s", "PA", b"he"),
            sent(2, "s", "PA", b"e?", at=7),
            sent(3, "c", "A", ack=9),
            sent(4, "c", "PA", b"I am", ack=9),
            sent(5, "s", "PA", b"!", at=9, ack=4),
        ],
        [
            "1 s2c @0 he",
            "1 s2c @2 gap 5",
            "1 s2c @7 e?",
            "1 c2s @0 I am",
            "1 s2c @9 !",
            f"1 end {END_MS}",
        ],
    ),
    (
        "FIN with data, half-close",
        [
            *handshake(),
            sent(1, "c", "FPA", b"bye"),
            sent(2, "s", "A", ack=4),
            sent(60_000, "s", "PA", b"still here", ack=4),
            sent(60_001, "s", "FA", at=10, ack=4),
        ],
        ["1 c2s @0 bye", "1 s2c @0 still here", "1 closed 60001"],
    ),
    (
        "both FINs at once",
        [*handshake(), sent(1, "c", "FA"), sent(1, "s", "FA"), sent(2, "c", "A", at=1, ack=1)],
        ["1 closed 1"],
    ),
    (
        "FIN before the data it follows",
        [*handshake(), sent(1, "s", "FA"), sent(2, "c", "FA", at=5), HELLO],
        ["1 c2s @0 hello", "1 closed 1"],
    ),
    (
        "FIN sent again, late data and a RST after the end",
        [
            *handshake(),
            sent(1, "c", "FPA", b"a"),
            sent(2, "s", "FA", ack=2),
            sent(3, "c", "FPA", b"a"),
            sent(4, "s", "PA", b"late", at=1),
            sent(5, "c", "R", at=2),
        ],
        ["1 c2s @0 a", "1 closed 2"],
    ),
    ("reset", [*handshake(), HELLO, sent(2, "s", "RA", ack=5)], ["1 c2s @0 hello", "1 reset 2"]),
    (
        "reset by who has been acknowledged",
        [*handshake(), HELLO, sent(2, "s", "A", ack=5), sent(3, "c", "R", at=5)],
        ["1 c2s @0 hello", "1 reset 3"],
    ),
    (
        "a RST out of the window",
        [
            *handshake(),
            HELLO,
            sent(2, "s", "A", ack=5, window=100),
            sent(3, "c", "R", at=106),
            sent(3, "c", "R", at=3),
            sent(4, "c", "PA", b"!", at=5),
        ],
        ["1 c2s @0 hello", "1 c2s @5 !", f"1 end {END_MS}"],
    ),
    (
        "a RST in a scaled window",
        [
            sent(0, "c", "S", scale=7),
            sent(0, "s", "SA", scale=2),
            HELLO,
            sent(2, "s", "A", ack=5, window=100),
            sent(3, "c", "R", at=5 + 401),
            sent(4, "c", "R", at=5 + 400),
        ],
        ["1 c2s @0 hello", "1 reset 4"],
    ),
    ("refused", [sent(0, "c", "S"), sent(1, "s", "RA")], ["1 c2s @0 refused 0", "1 refused 1"]),
    (
        "refused again and again, then taken",
        [
            sent(0, "c", "S"),
            sent(1, "s", "RA"),
            sent(2, "c", "S"),
            sent(3, "s", "RA"),
            sent(4, "c", "S"),
            sent(5, "s", "SA"),
            sent(6, "c", "PA", b"in"),
        ],
        ["1 c2s @0 refused 0", "1 refused 1", "2 c2s @0 in", f"2 end {END_MS}"],
    ),
    ("a refusal of something else", [sent(0, "c", "S"), sent(1, "s", "RA", ack=70_000)], []),
    ("half open", [sent(0, "c", "S"), sent(1000, "c", "S"), sent(3000, "s", "SA")], []),
    ("half open, taken back", [sent(0, "c", "S"), sent(1, "s", "SA"), sent(2, "c", "R")], []),
    ("nothing said", handshake(), [f"1 end {END_MS}"]),
    (
        "data with the SYN",
        [
            sent(0, "c", "S", b"early"),
            sent(1, "s", "SA", ack=5),
            sent(2, "c", "A", at=5),
            sent(3, "c", "PA", b"later", at=5),
        ],
        ["1 c2s @0 early", "1 c2s @5 later", f"1 end {END_MS}"],
    ),
    (
        "data with the SYN, sent again",
        [sent(0, "c", "S", b"early"), sent(1, "s", "SA"), sent(2, "c", "PA", b"early")],
        ["1 c2s @0 early", f"1 end {END_MS}"],
    ),
    (
        "SYN and SYN-ACK sent again",
        [
            sent(0, "c", "S"),
            sent(1, "c", "S"),
            sent(2, "s", "SA"),
            sent(3, "s", "SA"),
            HELLO,
            sent(4, "s", "SA"),
        ],
        ["1 c2s @0 hello", f"1 end {END_MS}"],
    ),
    (
        "the SYN comes late",
        [sent(0, "s", "SA"), HELLO, sent(2, "c", "S"), sent(3, "s", "PA", b"hi", ack=5)],
        ["1 c2s @0 hello", "1 s2c @0 hi", f"1 end {END_MS}"],
    ),
    (
        "the SYN-ACK tells where the client began",
        [sent(0, "s", "SA"), sent(1, "c", "PA", b"lo", at=3), sent(2, "s", "A", ack=5)],
        ["1 c2s @0 gap 3", "1 c2s @3 lo", f"1 end {END_MS}"],
    ),
    (
        "without the SYN-ACK",
        [sent(0, "c", "S"), sent(1, "c", "A"), sent(2, "s", "PA", b"hi"), HELLO],
        ["1 s2c @0 gap ?", "1 s2c @0 hi", "1 c2s @0 hello", f"1 end {END_MS}"],
    ),
    (
        "from the middle",
        [sent(0, "c", "PA", b"lo", at=3), sent(1, "s", "PA", b"me", at=5), sent(9000, "s", "A", at=7)],
        ["1 c2s @0 gap ?", "1 c2s @0 lo", "1 s2c @0 gap ?", "1 s2c @0 me", f"1 end {END_MS}"],
    ),
    ("from after the end", [sent(0, "c", "A", at=3), sent(1, "s", "FA"), sent(2, "c", "R")], []),
    (
        "keep-alives",
        [
            *handshake(),
            HELLO,
            sent(2, "s", "A", ack=5),
            sent(75_000, "c", "A", at=4, ack=0),
            sent(75_001, "c", "A", b"\0", at=4),
            sent(75_002, "s", "A", b"\0", at=-1, ack=5),
            sent(75_003, "c", "PA", b"!", at=5),
        ],
        ["1 c2s @0 hello", "1 c2s @5 !", f"1 end {END_MS}"],
    ),
    (
        "zero-window probes",
        [
            *handshake(),
            HELLO,
            sent(2, "s", "A", ack=5, window=0),
            sent(3, "c", "A", b"w", at=5),
            sent(4, "s", "A", ack=5, window=0),
            sent(5, "c", "A", b"w", at=5),
            sent(6, "s", "A", ack=5, window=500),
            sent(7, "c", "PA", b"world", at=5),
        ],
        ["1 c2s @0 hello", "1 c2s @5 w", "1 c2s @6 orld", f"1 end {END_MS}"],
    ),
    (
        "reordered",
        [
            *handshake(),
            sent(1, "c", "PA", b"c", at=2),
            sent(2, "c", "PA", b"b", at=1),
            sent(3, "c", "A", b"a"),
        ],
        ["1 c2s @0 a", "1 c2s @1 b", "1 c2s @2 c", f"1 end {END_MS}"],
    ),
    (
        "sent again with other content",
        [*handshake(), HELLO, sent(2, "c", "PA", b"heLLo"), sent(3, "c", "PA", b"!", at=5)],
        ["1 c2s @0 hello", "1 c2s @2 retransmission-differs 2", "1 c2s @5 !", f"1 end {END_MS}"],
    ),
    (
        "lost, and sent again much later",
        [
            *handshake(),
            sent(1, "c", "PA", b"world", at=5),
            sent(2, "s", "A"),
            sent(9000, "s", "A"),
            sent(20_000, "c", "PA", b"hello"),
        ],
        ["1 c2s @0 hello", "1 c2s @5 world", f"1 end {END_MS}"],
    ),
    (
        "lost by the capture",
        [
            *handshake(),
            sent(1, "c", "PA", b"world", at=5),
            sent(2, "s", "A", ack=10),
            sent(100, "c", "PA", b"!", at=10),
            sent(203, "s", "PA", b"ok", ack=11),
            sent(300, "c", "PA", b"hello"),
        ],
        ["1 c2s @0 gap 5", "1 c2s @5 world", "1 c2s @10 !", "1 s2c @0 ok", f"1 end {END_MS}"],
    ),
    (
        "merely captured late",
        [
            *handshake(),
            sent(1, "c", "PA", b"world", at=5),
            sent(2, "s", "A", ack=10),
            sent(200, "c", "PA", b"hello"),
        ],
        ["1 c2s @0 hello", "1 c2s @5 world", f"1 end {END_MS}"],
    ),
    (
        "lost in a one-sided capture",
        [
            sent(0, "c", "S"),
            sent(1, "c", "PA", b"a"),
            sent(2, "c", "PA", b"c", at=2),
            sent(5001, "c", "PA", b"d", at=3),
            sent(5002, "c", "PA", b"e", at=4),
        ],
        ["1 c2s @0 a", "1 c2s @1 gap 1", "1 c2s @2 c", "1 c2s @3 d", "1 c2s @4 e", f"1 end {END_MS}"],
    ),
    (
        "lost at the end",
        [*handshake(), HELLO, sent(2, "s", "A", ack=25), sent(3, "s", "R", ack=25)],
        ["1 c2s @0 hello", "1 c2s @5 gap 20", "1 reset 3"],
    ),
    (
        "lost before the FIN",
        [*handshake(), sent(1, "c", "FA", at=5), sent(2, "s", "FA", ack=6), sent(300, "c", "A", at=6, ack=1)],
        ["1 c2s @0 gap 5", "1 closed 300"],
    ),
    (
        "a one-sided end",
        [
            sent(0, "c", "S"),
            sent(1, "c", "FPA", b"bye"),
            sent(5000, "c", "S", client="10.0.0.2:1"),
            sent(5051, "c", "S", client="10.0.0.3:1"),
        ],
        ["1 c2s @0 bye", "1 closed 5051"],
    ),
    (
        "one side cut by the snap length",
        [
            *handshake(),
            sent(1, "c", "PA", b"he", missing=3),
            sent(2, "c", "PA", b"", at=5, missing=9),
            sent(3, "c", "FA", at=14),
        ],
        ["1 c2s @0 he", "1 c2s @2 gap 3", "1 c2s @5 gap 9", f"1 end {END_MS}"],
    ),
    (
        "the same ports again",
        [
            *handshake(),
            HELLO,
            sent(2, "c", "FA", at=5),
            sent(3, "s", "FA", ack=6),
            sent(4, "c", "S", isn=3_000_000),
            sent(5, "s", "SA", isn=7, peer_isn=3_000_000),
            sent(6, "c", "PA", b"again", isn=3_000_000, peer_isn=7),
        ],
        ["1 c2s @0 hello", "1 closed 3", "2 c2s @0 again", f"2 end {END_MS}"],
    ),
    (
        "the same ports again without an end",
        [
            *handshake(),
            HELLO,
            sent(4, "c", "S", isn=3_000_000),
            sent(5, "s", "SA", isn=7, peer_isn=3_000_000),
            sent(6, "c", "PA", b"again", isn=3_000_000, peer_isn=7),
        ],
        ["1 c2s @0 hello", "1 reused 4", "2 c2s @0 again", f"2 end {END_MS}"],
    ),
    (
        "the same ports again, of which only the answer is seen",
        [
            *handshake(),
            HELLO,
            sent(5, "s", "SA", isn=7, peer_isn=3_000_000),
            sent(6, "c", "PA", b"again", isn=3_000_000, peer_isn=7),
        ],
        ["1 c2s @0 hello", "1 reused 5", "2 c2s @0 again", f"2 end {END_MS}"],
    ),
    (
        "the client has forgotten, the server has not (RFC 9293, 3.5.1)",
        [
            *handshake(),
            HELLO,
            sent(3000, "c", "S", isn=3_000_000),
            sent(3001, "s", "A", ack=5),
            sent(3002, "c", "R", at=5),
            sent(4000, "c", "S", isn=3_000_000),
            sent(4001, "s", "SA", isn=7, peer_isn=3_000_000),
            sent(4002, "c", "PA", b"again", isn=3_000_000, peer_isn=7),
        ],
        ["1 c2s @0 hello", "1 reused 3000", "2 c2s @0 again", f"2 end {END_MS}"],
    ),
    (
        "flags that nobody sends",
        [
            sent(0, "c", "SF"),
            sent(0, "c", "SR"),
            *handshake(),
            sent(1, "c", "SFA", isn=9),
            sent(1, "c", ""),
            HELLO,
        ],
        ["1 c2s @0 hello", f"1 end {END_MS}"],
    ),
]


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
ORIENTATIONS: list[tuple[str, list[Sent], Orient, tuple[int, ...], list[tuple[str, str]]]] = [
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
    segments: list[Sent], orient: Orient, ports: tuple[int, ...], expected: list[tuple[str, str]]
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


def test_what_waits_is_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
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
