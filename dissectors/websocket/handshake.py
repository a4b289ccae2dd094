"""The opening handshake of WebSocket: an HTTP/1.1 upgrade, RFC 6455, section 4."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping

import msgspec

from kiebitz.dissectors.grammar.grammar import Violation, error_at
from kiebitz.dissectors.model import Direction

MAX_HEAD = 64 << 10
"""Maximum length of a head in bytes."""

_END = re.compile(rb"\r?\n\r?\n")
_REQUEST = re.compile(r"([A-Z]{1,20}) (\S{1,8000}) HTTP/(\d\.\d)")
_RESPONSE = re.compile(r"HTTP/(\d\.\d) (\d{3})(?: .*)?")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_BEGINNINGS = {"c2s": re.compile(rb"[A-Z]{3,10} [/*h]"), "s2c": re.compile(rb"HTTP/1\.")}
_LONGEST_BEGINNING = 12

_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""Suffix that a server appends to the key: RFC 6455, section 1.3."""

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
"""The example of a key in RFC 6455, section 1.3."""

REQUEST = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
).encode()
"""A request without extensions."""

CLIENT_CLAUSE = "RFC 6455, 4.1"
SERVER_CLAUSE = "RFC 6455, 4.2.2"


class Head(msgspec.Struct, frozen=True):
    """The head of an HTTP request or response.

    Attributes:
        text: Its lines, decoded as Latin-1.
        target: Path of a request; empty in a response.
        method: Method of a request; empty in a response.
        status: Status of a response; None in a request.
        version: Version of HTTP.
        fields: Values by name in small letters; several of one name are joined by commas.
    """

    text: str
    target: str
    method: str
    status: int | None
    version: str
    fields: Mapping[str, str]

    def tokens(self, name: str) -> list[str]:
        """Return the comma-separated values of a field in small letters."""
        return [token.strip().lower() for token in self.fields.get(name, "").split(",") if token.strip()]

    @property
    def is_upgrade(self) -> bool:
        """True if the sender switches to WebSocket, or asks for it."""
        if self.status is not None:
            return self.status == 101
        return "websocket" in self.tokens("upgrade")

    @property
    def body_length(self) -> int | None:
        """Length of the body in bytes; None if it is not stated."""
        if "transfer-encoding" in self.fields:
            return None
        length = self.fields.get("content-length", "")
        if length.isdigit() and len(length) < 16:
            return int(length)
        return 0 if self.status in (None, 101, 204, 304) else None

    @property
    def deflates(self) -> bool:
        """True if it offers or accepts permessage-deflate: RFC 7692."""
        return any(token.partition(";")[0] == "permessage-deflate" for token in self._extensions())

    def _extensions(self) -> Iterator[str]:
        for token in self.tokens("sec-websocket-extensions"):
            yield token.replace(" ", "")


def may_begin(data: bytes | bytearray, direction: Direction) -> bool:
    """Return True if bytes begin with a head of HTTP, as far as they reach."""
    beginning = bytes(data[:_LONGEST_BEGINNING])
    if _BEGINNINGS[direction].match(beginning):
        return True
    if direction == "s2c":
        return b"HTTP/1.".startswith(beginning)
    return len(beginning) < _LONGEST_BEGINNING and re.fullmatch(rb"[A-Z]{1,10} ?", beginning) is not None


def head_end(data: bytes | bytearray, searched: int = 0) -> int | None:
    """Return the length of the head at the start of bytes; None if it is incomplete."""
    found = _END.search(data, max(0, searched - 3))
    return None if found is None else found.end()


def read_head(data: bytes) -> Head | None:
    """Return the head in these bytes; None if it is none of HTTP/1."""
    lines = data.decode("latin-1").replace("\r\n", "\n").split("\n")
    request, response = _REQUEST.fullmatch(lines[0]), _RESPONSE.fullmatch(lines[0])
    if request is None and response is None:
        return None
    fields: dict[str, str] = {}
    for line in lines[1:]:
        found = _FIELD.fullmatch(line)
        if found is not None:
            name = found[1].lower()
            fields[name] = f"{fields[name]}, {found[2]}" if name in fields else found[2]
    text = "\n".join(lines)
    if request is not None:
        return Head(text, request[2], request[1], None, request[3], fields)
    assert response is not None
    return Head(text, "", "", int(response[2]), response[1], fields)


def accept_of(key: str) -> str:
    """Return the value of Sec-WebSocket-Accept for a client's key: RFC 6455, section 4.2.2, item 5.4."""
    return base64.b64encode(
        hashlib.sha1(key.encode("latin-1") + _SUFFIX, usedforsecurity=False).digest()
    ).decode()


def response_to(key: str) -> bytes:
    """Return the response that accepts a request with this key, without extensions."""
    return (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept_of(key)}\r\n\r\n"
    ).encode("latin-1")


def fitted(response: bytes, request: Head) -> bytes:
    """Return a response as that to another request: with its key, without what it does not offer."""
    accepted = accept_of(request.fields.get("sec-websocket-key", "")).encode()
    response = re.sub(rb"(?i)(sec-websocket-accept:[ \t]*)[^\r\n]*", rb"\g<1>" + accepted, response)
    if not request.deflates:
        response = re.sub(rb"(?i)sec-websocket-extensions:[^\r\n]*\r?\n", b"", response)
    return response


def violations(head: Head, data: bytes, key: str | None) -> Iterator[Violation]:
    """Yield the errors of a handshake that upgrades; `key` is the client's, None if it is unknown."""
    if not head.is_upgrade:
        return
    clause = CLIENT_CLAUSE if head.status is None else SERVER_CLAUSE
    for name, problem, expected in _problems(head, key):
        yield error_at("bad-handshake", problem, _place(data, name), expected, clause)


def _problems(head: Head, key: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield the name of the field at fault, the problem, and what is expected."""
    if "upgrade" not in head.tokens("connection"):
        yield "connection", "the handshake has no Connection: Upgrade", "Connection: Upgrade"
    if head.status is not None:
        if "websocket" not in head.tokens("upgrade"):
            yield "upgrade", "the handshake has no Upgrade: websocket", "Upgrade: websocket"
        accepted = head.fields.get("sec-websocket-accept")
        if accepted is None:
            yield "", "the handshake has no Sec-WebSocket-Accept", "Sec-WebSocket-Accept"
        elif key is not None and accepted != accept_of(key):
            problem = "Sec-WebSocket-Accept does not belong to the client's Sec-WebSocket-Key"
            yield "sec-websocket-accept", problem, accept_of(key)
        return
    if head.method != "GET" or head.version < "1.1":
        yield "", f"the handshake is {head.method} in HTTP/{head.version}", "GET in HTTP/1.1"
    if "host" not in head.fields:
        yield "", "the handshake has no Host", "Host"
    if head.fields.get("sec-websocket-version") != "13":
        yield "sec-websocket-version", "the handshake has no Sec-WebSocket-Version: 13", "13"
    if not _is_key(head.fields.get("sec-websocket-key", "")):
        problem = "Sec-WebSocket-Key is not 16 bytes in base64"
        yield "sec-websocket-key", problem, "16 random bytes in base64"


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text.encode("latin-1"), validate=True)) == 16
    except (binascii.Error, ValueError):
        return False


def _place(data: bytes, name: str) -> tuple[int, int]:
    """Return the line of a field, or the first line."""
    pattern = re.escape(name.encode()) + rb":[^\r\n]*" if name else rb"[^\r\n]+"
    found = re.search(rb"^" + pattern, data, re.IGNORECASE | re.MULTILINE) or re.search(rb"[^\r\n]+", data)
    return (found.start(), found.end() - found.start()) if found is not None else (0, len(data))
