"""Compressed messages in the relay's queues: their plain size counts, and what has no room passes unread."""

from __future__ import annotations

import zlib

import pytest
from file_conversations import dissector_of
from websocket_dice import DICE

from kiebitz.dissectors.websocket.frames import FIN, RSV1, TEXT, write_frame
from kiebitz.dissectors.websocket.handshake import KEY, REQUEST, response_to
from kiebitz.services.alteration import rules
from kiebitz.services.alteration.engine import Engine

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
