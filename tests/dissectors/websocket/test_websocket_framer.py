"""The framer of WebSocket: what wsproto sends is read, and whatever is wrong is named with its clause."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

import pytest
from file_conversations import dissector_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    Request,
    TextMessage,
)
from wsproto.extensions import Extension, PerMessageDeflate

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, Ids, Stream
from kiebitz.dissectors.websocket.encapsulation import WebSocketEncapsulation
from kiebitz.dissectors.websocket.framer import WebSocketFramer
from kiebitz.dissectors.websocket.frames import BINARY, CONTINUATION, FIN, PING, RSV1, TEXT, write_frame
from kiebitz.dissectors.websocket.handshake import KEY, REQUEST, response_to

MASK = b"\x01\x02\x03\x04"
CLOSE_1000 = write_frame(8, b"\x03\xe8", MASK)


def connected(deflates: bool) -> tuple[WSConnection, WSConnection, bytes, bytes]:
    """Return the client and the server of a connection, and the bytes of their handshakes."""
    client, server = WSConnection(ConnectionType.CLIENT), WSConnection(ConnectionType.SERVER)
    extensions: list[Extension] = [PerMessageDeflate()] if deflates else []
    request = client.send(Request(host="localhost", target="/game", extensions=extensions))
    server.receive_data(request)
    [*server.events()]
    response = server.send(AcceptConnection(extensions=[PerMessageDeflate()] if deflates else []))
    client.receive_data(response)
    [*client.events()]
    return client, server, request, response


def feed(framer: WebSocketFramer, data: bytes, sizes: Sequence[int] = ()) -> list[Frame]:
    """Return the frames of bytes from offset 0 that come in pieces of these sizes."""
    frames: list[Frame] = []
    at = 0
    while at < len(data):
        size = sizes[len(frames) % len(sizes)] if sizes else len(data)
        frames += framer.feed(at, data[at : at + size])
        at += size
    return [*frames, *framer.eof()]


def codes(frames: Iterable[Frame]) -> list[tuple[str, str | None]]:
    """Return the codes and clauses of all violations."""
    return [(each.code, each.clause) for frame in frames for each in frame.violations]


MESSAGES = st.lists(
    st.tuples(
        st.one_of(st.text(max_size=300), st.binary(max_size=300), st.just("x" * 70_000)),
        st.lists(st.integers(0, 200), max_size=4),
        st.booleans(),
    ),
    max_size=8,
)


@pytest.mark.full
@settings(max_examples=times(600), deadline=None)
@given(MESSAGES, st.sampled_from(["c2s", "s2c"]), st.booleans(), st.lists(st.integers(1, 90), max_size=4))
def test_what_a_library_sends_is_read(
    messages: list[tuple[str | bytes, list[int], bool]],
    direction: Direction,
    deflates: bool,
    sizes: list[int],
) -> None:
    client, server, request, response = connected(deflates)
    sender, sent = (client, request) if direction == "c2s" else (server, response)
    expected: list[bytes] = []
    for content, cuts, is_pinged in messages:
        kind: Any = TextMessage if isinstance(content, str) else BytesMessage
        places = sorted({0, *(cut for cut in cuts if cut < len(content)), len(content)})
        pieces = [content[a:b] for a, b in pairwise(places)] or [content]
        for number, piece in enumerate(pieces, 1):
            sent += sender.send(kind(data=piece, message_finished=number == len(pieces)))
            if is_pinged and number == 1:
                sent += sender.send(Ping(payload=b"hello"))
                expected.append(write_frame(PING, b"hello"))
        whole = content.encode() if isinstance(content, str) else content
        expected.append(write_frame(TEXT if isinstance(content, str) else BINARY, whole))
        if is_pinged and len(pieces) == 1:
            # It follows the message.
            expected[-2:] = expected[-1], expected[-2]
    sent += sender.send(CloseConnection(code=1000, reason="bye"))
    expected.append(write_frame(8, b"\x03\xe8bye"))
    framer = WebSocketFramer(direction)
    frames = feed(framer, sent, sizes)
    assert codes(frames) == []
    assert [frame.data for frame in frames[1:]] == expected
    assert not framer.is_unfinished
    carried = WebSocketEncapsulation()
    for frame in frames:
        recorded = sent[frame.offset : frame.offset + frame.size]
        if not carried.needs_history(recorded):
            found = carried.unwrap(recorded, direction)
            assert found is not None
            assert (found.data, found.size) == (frame.data, frame.size)
        again = carried.unwrap(carried.wrap(frame.data, direction), direction)
        assert again is not None
        assert again.data == frame.data


def client_sends(*frames: bytes) -> list[Frame]:
    return feed(WebSocketFramer("c2s"), REQUEST + b"".join(frames))[1:]


def text(content: bytes = b"{}", bits: int = FIN, mask: bytes = MASK, opcode: int = TEXT) -> bytes:
    return write_frame(opcode, content, mask, bits)


@pytest.mark.parametrize(
    ("sent", "code", "section"),
    [
        (text(mask=b""), "not-masked", "RFC 6455, 5.1"),
        (text(bits=FIN | 0x20), "reserved-bits", "RFC 6455, 5.2"),
        (text(bits=FIN | RSV1), "reserved-bits", "RFC 6455, 5.2"),
        (text(opcode=3), "reserved-opcode", "RFC 6455, 5.2"),
        (text(opcode=11), "reserved-opcode", "RFC 6455, 5.2"),
        (text(opcode=PING, bits=0), "fragmented-control", "RFC 6455, 5.5"),
        (text(b"x" * 126, opcode=PING), "long-control", "RFC 6455, 5.5"),
        (text(opcode=CONTINUATION), "lone-continuation", "RFC 6455, 5.4"),
        (text(bits=0) + text(), "interrupted-message", "RFC 6455, 5.4"),
        (CLOSE_1000 + text(), "after-close", "RFC 6455, 5.5.1"),
        (b"\x81\xfe\x00\x02" + MASK + b"{}", "bad-length", "RFC 6455, 5.2"),
        (b"\x81\xff" + bytes(7) + b"\x02" + MASK + b"{}", "bad-length", "RFC 6455, 5.2"),
    ],
)
def test_violations_have_their_clause(sent: bytes, code: str, section: str) -> None:
    frames = client_sends(text(), sent, text(b'{"after": 1}'))
    assert (code, section) in codes(frames)
    assert frames[0].violations == ()
    # What follows is read.
    assert frames[-1].data == write_frame(TEXT, b'{"after": 1}')


def test_a_pong_may_follow_a_close_frame() -> None:
    assert codes(client_sends(CLOSE_1000, write_frame(10, b"", MASK))) == []


def test_a_server_may_not_mask() -> None:
    frames = feed(WebSocketFramer("s2c"), response_to(KEY) + text())
    assert codes(frames) == [("masked", "RFC 6455, 5.1")]


def compressed(*contents: bytes) -> list[bytes]:
    """Return the frames of a client's compressed messages, each of which may refer to those before."""
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return [
        text((stream.compress(each) + stream.flush(zlib.Z_SYNC_FLUSH))[:-4], FIN | RSV1) for each in contents
    ]


DEFLATING = REQUEST.replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n")


def test_compressed_data_that_are_none() -> None:
    frames = feed(WebSocketFramer("c2s"), DEFLATING + text(b"\xff\xff\xff", FIN | RSV1) + text())
    assert codes(frames) == [("bad-deflate", "RFC 7692, 7.2.2")]
    assert frames[-1].data == write_frame(TEXT, b"{}")


@pytest.mark.full(but=1)
@pytest.mark.parametrize("size", [FRAME_LIMIT + 1, 30 << 20])
def test_a_message_that_decompresses_to_much_is_bounded(size: int) -> None:
    frames = feed(WebSocketFramer("c2s"), DEFLATING + b"".join(compressed(bytes(size))) + text())
    assert [(frame.cut, len(frame.data)) for frame in frames[1:]] == [("limit", 0), (None, 4)]


def test_many_messages_that_decompress_to_much_are_made_one_by_one() -> None:
    # 50 KB in one segment have 50 messages of nearly a mebibyte each.
    framer = WebSocketFramer("c2s")
    data = DEFLATING + b"".join(compressed(*[b"a" * (FRAME_LIMIT - 100)] * 50))
    tracemalloc.start()
    try:
        lengths = [len(frame.data) for frame in chain(framer.feed(0, data), framer.eof())]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(lengths) == 51
    assert min(lengths[1:]) > FRAME_LIMIT - 100
    assert peak < 10 * FRAME_LIMIT


def test_findings_of_messages_that_decompress_to_much_are_drained_within_a_segment() -> None:
    dissector = dissector_of(
        'protocol = "small"\nframing = "websocket"\nname = "t"\n[messages]\na = "c: x=text"\n'
    )
    inspector = Inspector([dissector], Ids(), {("tcp", 9000): dissector})
    drained: list[int] = []
    inspector.on_full = lambda: drained.append(len(inspector.drain().messages))
    plain = b'{"t":"a","x":"' + b"a" * (FRAME_LIMIT - 100) + b'"}'
    stream = Stream(1, "tcp", "127.0.0.1:40000", "127.0.0.1:9000", 0)
    tracemalloc.start()
    try:
        inspector.feed(Chunk(stream, "c2s", 0, 0, DEFLATING + b"".join(compressed(*[plain] * 50))))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(drained) > 10
    assert sum(drained) + len(inspector.drain().messages) == 51
    assert peak < 40 * FRAME_LIMIT


@pytest.mark.parametrize("is_fragmented", [False, True])
def test_a_message_that_is_too_long_is_not_kept(is_fragmented: bool) -> None:
    piece = b"x" * (FRAME_LIMIT // 2 + 10)
    long = text(piece, 0) + text(piece, FIN, opcode=CONTINUATION) if is_fragmented else text(piece * 2)
    framer = WebSocketFramer("c2s")
    frames = feed(framer, REQUEST + long + text(), [1000])
    assert [(frame.cut, len(frame.data), frame.size) for frame in frames[1:]] == [
        ("limit", 0, len(long)),
        (None, 4, len(text())),
    ]


def test_a_long_message_that_is_not_compressed_leaves_compression_alone() -> None:
    first, second = compressed(b"abcdefgh" * 40, b"abcdefgh" * 40)
    frames = feed(WebSocketFramer("c2s"), DEFLATING + first + text(b"x" * (FRAME_LIMIT + 1)) + second)
    assert frames[-1].data == write_frame(TEXT, b"abcdefgh" * 40)
    assert codes(frames) == []


@pytest.mark.full
def test_fragments_without_end_are_bounded() -> None:
    framer = WebSocketFramer("c2s")
    framer.feed(0, REQUEST + text(b"", 0))
    # Neither empty fragments nor their violations are kept one by one.
    piece = write_frame(CONTINUATION, b"", b"", 0) * 10_000
    at = len(REQUEST) + len(text(b""))
    sizes = []
    tracemalloc.start()
    for _ in range(6):
        framer.feed(at, piece)
        at += len(piece)
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sizes[-1] - sizes[1] < 10_000
    (frame,) = framer.feed(at, text(b"end", FIN, opcode=CONTINUATION))
    assert frame.data == write_frame(TEXT, b"end")
    assert 0 < len(frame.violations) <= 100


@pytest.mark.parametrize(
    ("missing", "read"),
    [
        # Within a frame: the next one begins where that one ends.
        ((6, 3), [b"two", b"three"]),
        # The header, too.
        ((0, 12), [b"three"]),
    ],
)
def test_it_resumes_after_missing_bytes(missing: tuple[int, int], read: list[bytes]) -> None:
    frames = [text(b"number one"), text(b"two"), text(b"three"), text(b"four")]
    data = b"".join(frames)
    begin, length = missing
    framer = WebSocketFramer("c2s")
    found = [*framer.feed(0, REQUEST), *framer.feed(len(REQUEST), data[:begin])]
    at = len(REQUEST) + begin
    found += [*framer.gap(at, length), *framer.feed(at + length, data[begin + length :]), *framer.eof()]
    contents = [frame.data[2:] for frame in found[1:] if frame.cut is None]
    assert contents[-len(read) - 1 :] == [*read, b"four"]
    assert all(code in ("after-gap",) for code, _ in codes(found))


def test_a_fragment_whose_beginning_is_missing_is_no_violation() -> None:
    framer = WebSocketFramer("c2s")
    framer.gap(0, None)
    data = text(b"end", FIN, opcode=CONTINUATION) + text(b"next")
    frames = [*framer.feed(0, data), *framer.eof()]
    assert codes(frames) == [("after-gap", None)]
    assert frames[-1].data == write_frame(TEXT, b"next")


def test_a_compressed_message_is_not_blamed_for_what_is_missing_before_it() -> None:
    first, second, third = compressed(b"abcdefgh" * 40, b"abcdefgh" * 40, b"abcdefgh" * 40)
    framer = WebSocketFramer("c2s")
    framer.feed(0, DEFLATING)
    framer.gap(len(DEFLATING), len(first))
    frames = [*framer.feed(len(DEFLATING) + len(first), second + third), *framer.eof()]
    assert {code for code, _ in codes(frames)} == {"after-gap"}


REQUEST_WITHOUT = [
    (b"Connection: Upgrade", b"Connection: close", "no Connection: Upgrade"),
    (b"Host: localhost\r\n", b"", "no Host"),
    (b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Version: 8", "no Sec-WebSocket-Version: 13"),
    (KEY.encode(), b"abc", "not 16 bytes in base64"),
    (b"HTTP/1.1", b"HTTP/1.0", "GET in HTTP/1.0"),
]


@pytest.mark.parametrize(("part", "other", "problem"), REQUEST_WITHOUT)
def test_a_wrong_request(part: bytes, other: bytes, problem: str) -> None:
    (frame, message) = feed(WebSocketFramer("c2s"), REQUEST.replace(part, other) + text())
    (violation,) = frame.violations
    assert problem in violation.text
    assert violation.clause == "RFC 6455, 4.1"
    assert message.violations == ()


def test_a_wrong_answer_to_the_key() -> None:
    client, server = WebSocketFramer("c2s"), WebSocketFramer("s2c")
    server.meet(client)
    client.feed(0, REQUEST)
    (frame,) = server.feed(0, response_to("another key"))
    (violation,) = frame.violations
    assert violation.expected == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert violation.clause == "RFC 6455, 4.2.2"


def test_compression_that_the_server_has_not_accepted() -> None:
    client, server = WebSocketFramer("c2s"), WebSocketFramer("s2c")
    server.meet(client)
    client.feed(0, DEFLATING)
    server.feed(0, response_to(KEY))
    (frame,) = client.feed(len(DEFLATING), text(bits=FIN | RSV1))
    assert codes([frame]) == [("reserved-bits", "RFC 6455, 5.2")]
    assert frame.data == write_frame(TEXT, b"{}")


def test_pages_on_the_same_connection_are_no_violation() -> None:
    page = b"GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    requests = feed(WebSocketFramer("c2s"), page + REQUEST + text())
    answers = feed(WebSocketFramer("s2c"), answer + response_to(KEY) + text(mask=b""))
    assert [codes([each]) for each in requests] == [[("no-upgrade", None)], [], []]
    # The body is bytes of its own.
    assert [codes([each]) for each in answers] == [[("no-upgrade", None)], [("no-upgrade", None)], [], []]
    assert [(each.offset, each.size) for each in answers[:2]] == [(0, len(answer) - 5), (len(answer) - 5, 5)]
    assert requests[-1].data == answers[-1].data == write_frame(TEXT, b"{}")


@pytest.mark.parametrize(
    "data", [b'{"type": "join"}\n', b"\x16\x03\x01\x02\x00\x01\x00", b"GET " + b"x" * 70_000]
)
def test_a_stream_that_is_no_websocket(data: bytes) -> None:
    frames = feed(WebSocketFramer("c2s"), data, [7])
    assert sum(frame.size for frame in frames) == len(data)
    assert codes(frames)[0] in [("bad-handshake", "RFC 6455, 1.3"), ("no-upgrade", None)]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("cut", range(0, 40, 3))
@pytest.mark.parametrize("length", [None, 0, 2, 9])
def test_each_byte_is_in_one_frame(cut: int, length: int | None) -> None:
    page = b"GET /x HTTP/1.1\r\nContent-Length: 9\r\n\r\nabcdefghi"
    for begin in (REQUEST, page, page + REQUEST):
        data = begin + text(b"number one") + text(b"two") + text(b"x" * 70_000)
        framer = WebSocketFramer("c2s")
        at = place = len(begin) - 5 + cut
        found = [*framer.feed(0, data[:place])]
        # A second gap may begin in the rest of a frame that the first one interrupted.
        for piece in (data[place + 3 : place + 5], data[place + 5 :]):
            found += framer.gap(at, length)
            at += length or 0
            found += framer.feed(at, piece)
            at += len(piece)
        found += framer.eof()
        covered = sorted((frame.offset, frame.offset + frame.size) for frame in found)
        assert all(before[1] <= after[0] for before, after in pairwise(covered))
        assert sum(frame.size for frame in found) == place + 2 + len(data[place + 5 :])
