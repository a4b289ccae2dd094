"""One game of dice spoken in unknown protocols by simulated players, as conversations in memory."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from kiebitz.dissectors.drafting.traffic import Conversation, Piece
from kiebitz.dissectors.model import Direction, Transport
from kiebitz.dissectors.websocket.frames import CONTINUATION, FIN, RSV1, TEXT, write_frame
from kiebitz.dissectors.websocket.handshake import KEY, REQUEST, response_to

SERVER = "10.0.0.1:4711"
NAMES = ("alice", "boran", "Zoë", "dora_7")
_MS = 1_000_000

FIELDS: dict[tuple[Direction, str], tuple[str, ...]] = {
    ("c2s", "JOIN"): ("name", "color"),
    ("s2c", "WELCOME"): ("id", "version"),
    ("s2c", "JOINED"): ("id", "name", "color"),
    ("c2s", "READY"): (),
    ("s2c", "STARTED"): ("game", "rounds"),
    ("s2c", "TURN"): ("id",),
    ("c2s", "ROLL"): (),
    ("s2c", "ROLLED"): ("pips",),
    ("s2c", "MOVED"): ("id", "pips", "square"),
    ("c2s", "CHAT"): ("text",),
    ("s2c", "SAID"): ("id", "text"),
    ("s2c", "ERROR"): ("code", "text"),
    ("s2c", "PING"): (),
    ("c2s", "PONG"): (),
    ("s2c", "WON"): ("id", "name"),
    ("c2s", "QUIT"): (),
    ("s2c", "BYE"): (),
}
"""All messages with their fields."""

ANSWERS = {("WELCOME", "JOIN"), ("ROLLED", "ROLL"), ("PONG", "PING"), ("BYE", "QUIT")}
"""Pairs of an answer and the message that it answers."""

NEUTRAL = {("SAID", "CHAT"), ("MOVED", "ROLL"), ("JOINED", "JOIN"), ("ROLL", "TURN"), ("STARTED", "READY")}
"""Pairs that are neither right nor wrong."""

BROADCASTS = {"JOINED", "STARTED", "TURN", "MOVED", "SAID", "WON"}
HEARTBEATS = {"PING", "PONG"}

Encode = Callable[[Direction, str, dict[str, Any]], bytes]


class Wire(NamedTuple):
    """How a protocol sends a message."""

    name: str
    transport: Transport
    encode: Encode
    websocket: str = ""
    """Kind of frames of WebSocket: plain, deflated, or fragments; empty if there are none."""


def in_websocket(messages: Sequence[Piece], kind: str) -> list[Piece]:
    """Return a connection's messages in frames of WebSocket, behind a handshake: see `Wire.websocket`."""
    deflates = kind == "deflated"
    extension = b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
    sent: dict[Direction, bytes] = {"c2s": REQUEST, "s2c": response_to(KEY)}
    packers = {each: zlib.compressobj(wbits=-15) for each in sent}
    start = messages[0].ts_ns - 2 if messages else 0
    found: list[Piece] = []
    offsets: dict[Direction, int] = {"c2s": 0, "s2c": 0}
    for direction, head in sent.items():
        head = head.removesuffix(b"\r\n") + extension if deflates else head
        found.append(Piece(direction, start, 0, head))
        offsets[direction] = len(head)
    for number, message in enumerate(messages):
        data = message.data
        mask = number.to_bytes(4, "little") if message.direction == "c2s" else b""
        if deflates:
            packer = packers[message.direction]
            data = (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)).removesuffix(b"\0\0\xff\xff")
        parts = [write_frame(TEXT, data, mask, FIN | (RSV1 if deflates else 0))]
        if kind == "fragments":
            parts = [write_frame(TEXT, data[:3], mask, 0), write_frame(CONTINUATION, data[3:], mask)]
        framed = b"".join(parts)
        found.append(Piece(message.direction, message.ts_ns, offsets[message.direction], framed))
        offsets[message.direction] += len(framed)
    return found


class Game:
    """Plays games and records the conversations."""

    def __init__(self, wire: Wire, seed: int = 1, games: int = 4) -> None:
        self._wire = wire
        self._random = random.Random(seed)
        self._now = 1_700_000_000_000_000_000
        self._pieces: list[list[Piece]] = [[] for _ in NAMES]
        self._offsets: list[dict[Direction, int]] = [{"c2s": 0, "s2c": 0} for _ in NAMES]
        self._squares = [0] * len(NAMES)
        self._beat = self._now
        for player, name in enumerate(NAMES):
            color = ("red", "blue", "green", "yellow")[player]
            self._wait(300)
            if player == 2:
                self._client(player, "JOIN", name=name, color="blue")
                self._server(player, "ERROR", code=409, text="this color is taken")
            self._client(player, "JOIN", name=name, color=color)
            self._server(player, "WELCOME", id=player + 1, version="2.1")
            self._all("JOINED", player + 1, id=player + 1, name=name, color=color)
        for number in range(games):
            self._play(number)
        for player in range(len(NAMES)):
            self._client(player, "QUIT")
            self._server(player, "BYE")

    def conversations(self) -> list[Conversation]:
        """Return what was said on each connection."""
        wrapped = in_websocket if self._wire.websocket else lambda pieces, kind: pieces
        return [
            Conversation(
                f"10.0.0.{player + 2}:{50000 + player}",
                SERVER,
                self._wire.transport,
                wrapped(pieces, self._wire.websocket),
            )
            for player, pieces in enumerate(self._pieces)
        ]

    def _play(self, number: int) -> None:
        self._squares = [0] * len(NAMES)
        for player in range(len(NAMES)):
            self._wait(120)
            self._client(player, "READY")
        self._wait(300)
        self._all("STARTED", len(NAMES), game=self._random.randrange(10_000, 1_000_000), rounds=5)
        for _ in range(5):
            for player in range(len(NAMES)):
                self._all("TURN", len(NAMES), id=player + 1)
                self._wait(self._random.randrange(200, 900))
                self._client(player, "ROLL")
                pips = self._random.randrange(1, 7)
                self._squares[player] += pips
                self._server(player, "ROLLED", pips=pips)
                self._all("MOVED", len(NAMES), id=player + 1, pips=pips, square=self._squares[player])
                if self._random.random() < 0.2:
                    text = self._random.choice(
                        ("well done", "oh no", "what a lucky roll", "hm", "next time I win")
                    )
                    self._client(player, "CHAT", text=text)
                    self._all("SAID", len(NAMES), id=player + 1, text=text)
        winner = max(range(len(NAMES)), key=lambda player: self._squares[player])
        self._all("WON", len(NAMES), id=winner + 1, name=NAMES[winner])

    def _wait(self, milliseconds: int) -> None:
        """Let time pass, with a heartbeat every two seconds."""
        end = self._now + milliseconds * _MS
        while self._beat + 2000 * _MS <= end:
            self._beat += 2000 * _MS
            self._now = max(self._now, self._beat)
            for player, pieces in enumerate(self._pieces):
                if pieces:
                    self._server(player, "PING")
            for player, pieces in enumerate(self._pieces):
                if pieces:
                    self._client(player, "PONG")
        self._now = max(self._now, end)

    def _client(self, player: int, name: str, /, **fields: Any) -> None:
        self._send(player, "c2s", name, fields)
        self._now += _MS

    def _server(self, player: int, name: str, /, **fields: Any) -> None:
        self._send(player, "s2c", name, fields)
        self._now += _MS // 10

    def _all(self, name: str, number: int, /, **fields: Any) -> None:
        for player in range(number):
            self._server(player, name, **fields)

    def _send(self, player: int, direction: Direction, name: str, fields: dict[str, Any]) -> None:
        data = self._wire.encode(direction, name, fields)
        offset = self._offsets[player][direction]
        self._offsets[player][direction] = offset + len(data)
        self._pieces[player].append(Piece(direction, self._now, offset, data))


_CODES = {name: number for number, (_, name) in enumerate(FIELDS, 1)}


def _binary(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    parts = [bytes([_CODES[name]])]
    for key, value in fields.items():
        if isinstance(value, str):
            encoded = value.encode()
            parts.append(struct.pack(">B", len(encoded)) + encoded)
        elif key == "game":
            parts.append(struct.pack(">I", value))
        elif key in ("code", "square"):
            parts.append(struct.pack(">H", value))
        else:
            parts.append(bytes([value]))
    body = b"".join(parts)
    return struct.pack(">H", len(body)) + body


def _little(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    parts = [bytes([_CODES[name]])]
    for key, value in fields.items():
        if isinstance(value, str):
            encoded = value.encode()
            parts.append(struct.pack("<H", len(encoded)) + encoded)
        else:
            parts.append(struct.pack("<I" if key == "game" else "<H", value))
    body = b"".join(parts)
    return struct.pack("<I", len(body) + 4) + body


def _pairs(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    return ";".join([f"cmd={name}", *(f"{key}={value}" for key, value in fields.items())]).encode()


def _xml(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    attributes = "".join(f" {key}={quoteattr(str(value))}" for key, value in fields.items() if key != "text")
    text = f"<text>{escape(fields['text'])}</text>" if "text" in fields else ""
    return f"<{name.lower()}{attributes}>{text}</{name.lower()}>\n".encode()


def _block(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    return "\n".join([name, *(f"{key}: {value}" for key, value in fields.items()), ".", ""]).encode()


def _words(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    words = [
        f'"{value}"' if isinstance(value, str) and (" " in value or key == "text") else str(value)
        for key, value in fields.items()
    ]
    sign = "" if direction == "c2s" else "- " if name == "ERROR" else "+ "
    return (sign + " ".join([name, *words]) + "\r\n").encode()


def _json_body(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    body = json.dumps({"cmd": name, **fields}).encode()
    return struct.pack(">I", len(body)) + body


def _nul(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    return "|".join([name, *map(str, fields.values())]).encode() + b"\0"


def _datagram(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    return _binary(direction, name, fields)[2:]


def _coded(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    return json.dumps({"t": _CODES[name], "d": fields or None}).encode() + b"\n"


def _header(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    return json.dumps({"head": {"kind": name.lower(), "seq": 1}, **fields}, indent=1).encode()


def _first(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    return (
        " ".join([name.lower(), *(f"{key}={str(value).replace(' ', '_')}" for key, value in fields.items())])
        + "\n"
    ).encode()


def _mail(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    return "".join(f"{line}\r\n" for line in [name, *map(str, fields.values()), ""]).encode()


def _varint(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    body = ":".join([name, *map(str, fields.values())]).encode() * (3 if name == "STARTED" else 1)
    body = body.ljust(200, b"-") if name == "STARTED" else body
    size = bytes([len(body)]) if len(body) < 128 else bytes([len(body) & 127 | 128, len(body) >> 7])
    return size + body


def _typed(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    body = ";".join(map(str, fields.values())).encode()
    return struct.pack(">BI", _CODES[name], len(body)) + body


def _magic(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    body = _binary(direction, name, fields)[3:]
    return b"MX" + struct.pack("<HBH", _CODES[name], 2, len(body) + 7) + body


def _sized(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    parts = [
        struct.pack("24s", value.encode()) if isinstance(value, str) else struct.pack("<i", value)
        for value in fields.values()
    ]
    return b"".join([struct.pack("<i", _CODES[name]), *parts]).ljust(64, b"\0")


def _plain_json(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    return json.dumps({"type": name.lower(), "data": fields}).encode()


def _camel(direction: Direction, name: str, fields: dict[str, Any]) -> bytes:
    return (",".join([f"{name.title()}Msg", *map(str, fields.values())]) + "\n").encode()


WIRES: Sequence[Wire] = (
    Wire("binary", "tcp", _binary),
    Wire("little", "tcp", _little),
    Wire("pairs", "udp", _pairs),
    Wire("xml", "tcp", _xml),
    Wire("block", "tcp", _block),
    Wire("words", "tcp", _words),
    Wire("json", "tcp", _json_body),
    Wire("nul", "tcp", _nul),
    Wire("datagram", "udp", _datagram),
    Wire("coded", "tcp", _coded),
    Wire("header", "tcp", _header),
    Wire("first", "tcp", _first),
    Wire("mail", "tcp", _mail),
    Wire("varint", "tcp", _varint),
    Wire("camel", "tcp", _camel),
    Wire("typed", "tcp", _typed),
    Wire("magic", "tcp", _magic),
    Wire("sized", "tcp", _sized),
    Wire("socket", "tcp", _plain_json, "plain"),
    Wire("deflated", "tcp", _plain_json, "deflated"),
    Wire("fragments", "tcp", lambda *message: _words(*message).rstrip(), "fragments"),
)


SOCKET_FILE = """
protocol = "socketgame"
framing = "websocket"
name = "type"
fields = "data"

[messages]
join = "c: name=player color=red|blue|green|yellow"
welcome = "s: id=id version=text < join"
joined = "s*: id=id name=player color=red|blue|green|yellow"
ready = "c:"
started = "s*: game=integer rounds=integer"
turn = "s*: id=id"
roll = "c:"
rolled = "s: pips=1..6 < roll"
moved = "s*: id=id pips=1..6 square=integer"
chat = "c: text=text"
said = "s*: id=id text=text"
error = "s: code=integer text=text"
ping = "s~:"
pong = "c~:"
won = "s*: id=id name=player"
quit = "c:"
bye = "s:"
"""
"""The protocol of the wire `socket`, as a file."""


def merged(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Return the same bytes in other pieces: two that follow at once come in one, and long ones in two."""
    found: list[Conversation] = []
    for conversation in conversations:
        pieces: list[Piece] = []
        for piece in conversation.pieces:
            last = pieces[-1] if pieces else None
            if (
                last is not None
                and last.direction == piece.direction
                and piece.ts_ns - last.ts_ns < 2 * _MS
                and conversation.transport == "tcp"
            ):
                pieces[-1] = Piece(last.direction, last.ts_ns, last.offset, last.data + piece.data)
            else:
                pieces.append(piece)
        found.append(Conversation(conversation.client, conversation.server, conversation.transport, pieces))
    return found
