"""The records that the packages exchange.

A *source* (relay, sniff, capture file) emits `Item`s, in order per stream and direction: `Chunk`, `Gap`,
`Fault`, `Altered` and `End`. The inspector turns them into *findings*: `Message`, `Diagnostic`, `Event`,
`Game` and `TableInfo`. All are msgspec structs: typed, slotted, and cheap enough for a million of them.

Times are integer nanoseconds since 1970 UTC. Offsets and lengths are bytes; an offset counts from the first
byte that was seen in that direction of the stream.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kiebitz.dissectors.suggestions import suggestion_in

Direction = Literal["c2s", "s2c"]
DIRECTIONS: tuple[Direction, Direction] = ("c2s", "s2c")
OPPOSITE: dict[Direction, Direction] = {"c2s": "s2c", "s2c": "c2s"}
Transport = Literal["tcp", "udp"]
Severity = Literal["note", "warning", "error"]
Group = Literal["malformed", "sequence", "rule", "state", "network"]
Blame = Literal["client", "server", "network", "kiebitz", "unknown"]
"""The side at fault; `kiebitz` if Kiebitz altered the message."""

PUBLIC = "public"
"""The label of the view that shows what all players at a table may know; no player has it."""


def port_of(endpoint: str) -> int:
    """Return the port of an endpoint that is written `ip:port`."""
    return int(endpoint.rpartition(":")[2])


class Stream(msgspec.Struct, eq=False):
    """A TCP connection, or the datagrams of one client and server. Compared by identity.

    `client` and `server` are written `ip:port`, with an IPv6 address in brackets. `id` is the number in the
    database. `protocol` is None until a dissector has recognised the traffic; `player` is the latest name
    that the client gave itself, as far as its messages were stored.
    """

    id: int
    transport: Transport
    client: str
    server: str
    opened_ns: int
    protocol: str | None = None
    closed_ns: int | None = None
    close_reason: str | None = None
    player: str | None = None

    @property
    def ending(self) -> str | None:
        """The reason for its end without a text, one of `ENDINGS`; None while it is open."""
        return None if self.close_reason is None else ending_of(self.close_reason)


class Chunk(msgspec.Struct, eq=False, gc=False):
    """Bytes as received: one datagram, or one piece of a byte stream, at `offset` of its direction.

    `missing` is the number of bytes that the capture cut off this datagram (snap length); the next chunk of
    that direction starts at `offset + len(data) + missing`.
    """

    stream: Stream
    direction: Direction
    ts_ns: int
    offset: int
    data: bytes
    missing: int = 0


class Gap(msgspec.Struct, eq=False, gc=False):
    """Bytes that were sent but are not in the capture; `length` is None if unknown."""

    stream: Stream
    direction: Direction
    ts_ns: int
    offset: int
    length: int | None


class Fault(msgspec.Struct, eq=False, gc=False):
    """A fault of a stream that the traffic source detects, as the bytes do not show it.

    Usually a network fault: an ICMP error for a datagram, a retransmission with other content. `length` is 0
    if no particular bytes are affected. `quotes` is True if `text` or `expected` quotes a peer, which
    anonymizing removes. A database has no such column: there, faults of the group `network` contain no quote.
    """

    stream: Stream
    direction: Direction
    ts_ns: int
    offset: int
    code: str
    text: str
    length: int = 0
    group: Group = "network"
    blame: Blame = "network"
    expected: str | None = None
    severity: Severity = "warning"
    quotes: bool = False


Action = Literal["drop", "change", "insert", "double", "hold", "delay", "reorder", "cut", "reset"]
"""An alteration of a message by Kiebitz; if there are several, the first in this list."""


class Altered(msgspec.Struct, eq=False, gc=False):
    """An alteration of a message by Kiebitz itself; `rule` is the alteration rule's text.

    It precedes the `length` bytes at `offset` that were forwarded instead of the original; 0 if none were.
    `original` are the bytes received, at `sent_ns`; None for an inserted message. `name` and `fields_json`
    are their content, None if they could not be decoded.
    """

    stream: Stream
    direction: Direction
    ts_ns: int
    offset: int
    length: int
    action: Action
    rule: str
    sent_ns: int | None
    original: bytes | None
    name: str | None
    fields_json: str | None


LOST = "connection lost"
ENDINGS = frozenset({"closed", "reset", "refused", "idle", "evicted", "end", LOST})
"""Reasons for the end of a connection: closed by a side, idle, evicted for lack of room, or end of recording.

`LOST` is reported by a server about a connection that may not be in the capture.
"""


def close_reason(ending: str, text: str) -> str:
    """Return the reason for the end of a stream, with the diagnostic text of its RST (RFC 9293, 3.5.3)."""
    return f"{ending}: {text}" if text else ending


def ending_of(reason: str) -> str:
    """Return a close reason without the text of a RST."""
    return reason.partition(": ")[0]


class End(msgspec.Struct, eq=False, gc=False):
    """The end of a stream; `reason` is one of `ENDINGS` other than `LOST`, and the text of a RST."""

    stream: Stream
    ts_ns: int
    reason: str


Item = Chunk | Gap | Fault | Altered | End


class Message(msgspec.Struct, eq=False, gc=False):
    """A decoded frame; `name` is `unreadable` if decoding failed.

    `fields` maps field names to JSON values; `fields_json` is the same as JSON text. `event_id` is the event
    that the message reports, `game_id` the game it belongs to; both may be None. `altered` is its alteration
    by Kiebitz.
    """

    id: int
    stream: Stream
    direction: Direction
    ts_ns: int
    name: str
    fields: dict[str, Any]
    fields_json: str
    offset: int
    length: int
    game_id: int | None = None
    event_id: int | None = None
    altered: Action | None = None


class Diagnostic(msgspec.Struct, eq=False, gc=False):
    """A diagnostic of a message, with its position (`offset` and `length` in that direction of the stream).

    `code` is a short constant such as `unknown-message`; `clause` is the violated clause of the
    specification.
    """

    stream: Stream
    direction: Direction
    ts_ns: int
    severity: Severity
    group: Group
    code: str
    text: str
    offset: int
    length: int
    expected: str | None = None
    clause: str | None = None
    blame: Blame = "unknown"
    message_id: int | None = None

    @property
    def suggestion(self) -> str | None:
        """Suggestion for the intended word."""
        return suggestion_in(self.group, self.text)


Change = tuple[list[str], Any]
"""A change of a table's state: the new value at a path; None removes the path."""


class Event(msgspec.Struct, eq=False, gc=False):
    """An event in a game; several messages may report it.

    `seq` counts per table from 1. `actor` is the acting player, or None. `changes` lead from the state before
    to the state after.
    """

    id: int
    table_id: int
    game_id: int | None
    seq: int
    ts_ns: int
    kind: str
    actor: str | None
    data: dict[str, Any]
    changes: list[Change]


class TableInfo(msgspec.Struct, frozen=True):
    """A game table: one server endpoint that speaks one protocol."""

    id: int
    protocol: str
    server: str


class Game(msgspec.Struct):
    """A game at a table; the protocol decides when games begin and end."""

    id: int
    table_id: int
    protocol: str
    label: str
    started_ns: int
    ended_ns: int | None = None
    result: dict[str, Any] | None = None


class Snapshot(msgspec.Struct, eq=False):
    """A table's whole state after its event number `seq`, as JSON text."""

    table_id: int
    seq: int
    ts_ns: int
    state_json: str


class Ids(msgspec.Struct):
    """The last number of each kind of record, so that numbers are known before anything is stored."""

    table: int = 0
    game: int = 0
    message: int = 0
    event: int = 0


class Findings(msgspec.Struct, eq=False):
    """The findings since the last call. Changed streams, tables and games occur again."""

    streams: list[Stream] = []
    tables: list[TableInfo] = []
    games: list[Game] = []
    messages: list[Message] = []
    diagnostics: list[Diagnostic] = []
    events: list[Event] = []
    snapshots: list[Snapshot] = []
    altered: list[Altered] = []
