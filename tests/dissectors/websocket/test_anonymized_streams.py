"""Anonymized copies of streams over WebSocket: masks, compression, fragments, control frames, gaps."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from drafted_protocols import NAMES, SOCKET_FILE, WIRES, Game

from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
from kiebitz.dissectors.grammar.framing import Framer
from kiebitz.dissectors.model import DIRECTIONS, Chunk, Direction, Gap, Item, Stream
from kiebitz.dissectors.protocol_file.dissector import FileDissector, dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.websocket.frames import CLOSE, PING, write_frame

KINDS = {wire.websocket: wire for wire in WIRES if wire.name in ("socket", "deflated")}
TEXTS = ("well done", "lucky", "ida-laptop", "secret")


@pytest.fixture
def dissector() -> FileDissector:
    return dissector_from(read_specification(SOCKET_FILE))


def _items(kind: str, sizes: random.Random, lost: int = 0) -> Iterator[Item]:
    """Yield a game's items, in pieces of any size; `lost` bytes of the server are missing in mid-stream."""
    wire = KINDS.get(kind, KINDS["plain"])._replace(websocket=kind)
    for number, conversation in enumerate(Game(wire, games=1).conversations(), 1):
        stream = Stream(number, "tcp", conversation.client, conversation.server, 0)
        pieces = [*conversation.pieces]
        head = pieces[0].data.replace(b"Host: localhost", b"Host: ida-laptop:8080\r\nX-secret: secret")
        shift = dict.fromkeys(DIRECTIONS, 0) | {"c2s": len(head) - len(pieces[0].data)}
        skipped = False
        for piece in pieces:
            data = head if piece is pieces[0] else piece.data
            at = piece.offset + (0 if piece is pieces[0] else shift[piece.direction])
            if lost and piece.direction == "s2c" and at > 3000 and not skipped:
                skipped = True
                yield Gap(stream, piece.direction, piece.ts_ns, at, lost)
                data, at = data[lost:], at + lost
            while data:
                size = sizes.choice((1, 3, 20, 1000))
                yield Chunk(stream, piece.direction, piece.ts_ns, at, data[:size])
                data, at = data[size:], at + size
        last: dict[Direction, bytes] = {
            "c2s": write_frame(PING, b"ida-laptop", b"abcd"),
            "s2c": write_frame(CLOSE, b"\x03\xe8lucky"),
        }
        for direction, frame in last.items():
            at = sum(len(p.data) for p in pieces if p.direction == direction) + shift[direction]
            yield Chunk(stream, direction, pieces[-1].ts_ns, at, frame)


def _messages(items: Sequence[Item], dissector: FileDissector) -> list[tuple[Any, ...]]:
    """Return stream, direction, time, name and fields of all messages, with the codes of diagnostics."""
    found: list[tuple[Any, ...]] = []
    framers: dict[tuple[int, Direction], Framer] = {}
    for item in items:
        if not isinstance(item, Chunk | Gap):
            continue
        key = item.stream.id, item.direction
        framer = framers.setdefault(key, dissector.framer(item.direction))
        frames = (
            framer.feed(item.offset, item.data)
            if isinstance(item, Chunk)
            else framer.gap(item.offset, item.length)
        )
        for frame in frames:
            decoded = dissector.codec.decode(frame.data, item.direction) if frame.cut is None else None
            name = decoded.row.name if decoded is not None and decoded.row is not None else frame.cut
            codes = [each.code for each in (*frame.violations, *(decoded.violations if decoded else ()))]
            fields = decoded.fields if decoded is not None else {}
            found.append((*key, item.ts_ns, name, fields, codes))
    return found


@pytest.mark.full(but=2)
@pytest.mark.parametrize("kind", ["plain", "fragments", "deflated"])
@pytest.mark.parametrize("lost", [0, 50])
def test_a_copy_dissects_like_the_original_without_names(
    kind: str, lost: int, dissector: FileDissector
) -> None:
    items = [*_items(kind, random.Random(3), lost)]
    anonymizer = Anonymizer([dissector], {}, Pseudonyms([dissector]))
    copy = [found for item in items for found in anonymizer.feed(item)] + anonymizer.finish()
    before, after = (_messages(each, dissector) for each in (items, copy))
    assert len(before) > 300
    assert [(*message[:4], message[5]) for message in before] == [
        (*message[:4], message[5]) for message in after
    ]
    pseudonyms: dict[str, Any] = {}
    for (*_, name, old, _), (*_, new, _) in zip(before, after, strict=True):
        if str(name).startswith("websocket"):
            continue
        assert old.keys() == new.keys()
        for key, value in old.items():
            if key in ("name", "text", "version"):
                assert pseudonyms.setdefault(value, new[key]) == new[key] != value
            else:
                assert new[key] == value
    shown = json.dumps([message[4] for message in after], ensure_ascii=False)
    shown += b"".join(item.data for item in copy if isinstance(item, Chunk)).decode("latin-1")
    assert not [word for word in (*NAMES, *TEXTS) if word in shown]
