"""The format of items in JetStream: each message is a MessagePack array, a `Batch`.

docs/taps.md describes it byte for byte. All records are arrays; the first element of an item's record is its
kind. A batch names the streams of its items, so each can be read without the ones before it. Batches are
untrusted: anything that no tap writes is rejected.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import (
    DIRECTIONS,
    ENDINGS,
    Action,
    Altered,
    Blame,
    Chunk,
    End,
    Fault,
    Gap,
    Group,
    Item,
    Severity,
    Stream,
    Transport,
    ending_of,
)

VERSION = 1
"""The first element of every batch."""

MAX_ITEMS = 512
"""Maximum number of items in a batch."""

MAX_DATA = 256 << 10
"""Maximum length of an item's bytes or text; `TeeJournal` splits longer pieces of byte streams."""

FULL_BATCH = 256 << 10
"""Bytes after which a batch is complete, so that it stays below 1 MiB, NATS's usual limit."""

_MAX_TEXT = 4096
"""Maximum number of characters published of a text."""

_MOST = 1 << 62
"""Largest number that a database is given."""

_Number = Annotated[int, Meta(ge=1, lt=1 << 32)]
_Count = Annotated[int, Meta(ge=0, le=_MOST)]
_Nanoseconds = Annotated[int, Meta(ge=0, le=_MOST)]
_DirectionCode = Literal[0, 1]
_Code = Annotated[str, Meta(pattern=r"\A[a-z0-9-]{1,64}\Z")]
_Text = Annotated[str, Meta(max_length=_MAX_TEXT)]
_Data = Annotated[bytes, Meta(max_length=MAX_DATA)]
_Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9-]{1,64}\Z")]
_Json = Annotated[str, Meta(max_length=MAX_DATA)]

_ADDRESS = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]{2,45})\]|(?P<v4>[0-9.]{7,15})):(?P<port>[0-9]{1,5})", re.A)

_LOOPBACK = {"127.0.0.1": 1, "::1": 6}
"""Loopback addresses -> the last byte of the address that replaces them on other machines."""


class TapError(KiebitzError):
    """A tap's message is unusable, or cannot be published; the text says why."""


class StreamRecord(Struct, array_like=True, frozen=True):
    """A stream of a run: its number there, its endpoints, and its time of opening."""

    number: _Number
    transport: Transport
    client: str
    server: str
    opened_ns: _Nanoseconds


class ChunkRecord(Struct, array_like=True, tag=1, frozen=True):
    """Received bytes; `direction` is 0 from the client, 1 from the server."""

    stream: _Number
    direction: _DirectionCode
    ts_ns: _Nanoseconds
    offset: _Count
    data: _Data
    missing: _Count = 0


class GapRecord(Struct, array_like=True, tag=2, frozen=True):
    """Missing bytes; a length of nil means unknown."""

    stream: _Number
    direction: _DirectionCode
    ts_ns: _Nanoseconds
    offset: _Count
    length: _Count | None


class FaultRecord(Struct, array_like=True, tag=3, frozen=True):
    """A fault of a stream that only the source can know."""

    stream: _Number
    direction: _DirectionCode
    ts_ns: _Nanoseconds
    offset: _Count
    code: _Code
    text: _Text
    length: _Count
    group: Group
    blame: Blame
    expected: _Text | None
    severity: Severity
    quotes: bool = False


class AlteredRecord(Struct, array_like=True, tag=4, frozen=True):
    """An alteration of a message by Kiebitz."""

    stream: _Number
    direction: _DirectionCode
    ts_ns: _Nanoseconds
    offset: _Count
    length: _Count
    action: Action
    rule: _Text
    sent_ns: _Nanoseconds | None
    original: _Data | None
    name: _Text | None
    fields_json: _Json | None


class EndRecord(Struct, array_like=True, tag=5, frozen=True):
    """The end of a stream."""

    stream: _Number
    ts_ns: _Nanoseconds
    reason: _Text


class RunEndRecord(Struct, array_like=True, tag=6, frozen=True):
    """The end of the run and of all its streams."""

    ts_ns: _Nanoseconds


Record = ChunkRecord | GapRecord | FaultRecord | AlteredRecord | EndRecord | RunEndRecord


class Batch(Struct, array_like=True, frozen=True):
    """Items of one run of a tap, in order; `first` is the number of the first one in the run, from 0.

    `sent_ns` is the tap's time of day at publication. This batch and those before it contain all items
    recorded by `until_ns`; 0 means unknown. A batch without items only reports these times.
    """

    version: int
    tap: _Name
    run: _Name
    first: _Count
    sent_ns: _Nanoseconds
    until_ns: _Nanoseconds
    streams: Annotated[list[StreamRecord], Meta(max_length=MAX_ITEMS)]
    items: Annotated[list[Record], Meta(max_length=MAX_ITEMS)]


class _Head(Struct, array_like=True):
    version: int


_HEAD = msgspec.msgpack.Decoder(_Head)
_BATCH = msgspec.msgpack.Decoder(Batch)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def encode(batch: Batch) -> bytes:
    """Encode a batch as the bytes of a message."""
    return msgspec.msgpack.encode(batch)


def decode(data: bytes) -> Batch:
    """Decode the batch of a message. Raises TapError for anything that no tap of this version writes."""
    try:
        version = _HEAD.decode(data).version
        if version != VERSION:
            raise TapError(
                f"it is in version {version} of the format, and this Kiebitz reads version {VERSION}: "
                "use the same Kiebitz on all machines"
            )
        batch = _BATCH.decode(data)
        _check(batch)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise TapError(f"it is not a batch of items: {error}") from error
    return batch


def _check(batch: Batch) -> None:
    """Raise ValueError or MsgspecError for invalid values that the types allow."""
    known = set()
    for stream in batch.streams:
        _host(stream.client)
        _host(stream.server)
        known.add(stream.number)
    for item in batch.items:
        if isinstance(item, RunEndRecord):
            continue
        if item.stream not in known:
            raise ValueError(f"stream {item.stream} is not described")
        if isinstance(item, EndRecord) and ending_of(item.reason) not in ENDINGS:
            raise ValueError("a stream ends for an unknown reason")
        if isinstance(item, AlteredRecord) and item.fields_json is not None:
            _FIELDS.decode(item.fields_json)


def _host(address: str) -> tuple[str, int]:
    """Return the host and the port of `ip:port`. Raises ValueError."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise ValueError("an address is invalid")
    host, port = match["v6"] or match["v4"], int(match["port"])
    ipaddress.ip_address(host)
    if port > 65_535:
        raise ValueError("a port is invalid")
    return host, port


def rewrite_loopback(address: str, machine: int) -> str:
    """Return an `ip:port` of a machine, with loopback replaced by an address that differs between machines.

    On machine 3, counted from 0, 127.0.0.1 becomes 127.0.3.1, and ::1 becomes 127.0.3.6; machine 0 keeps its
    own.
    """
    if machine == 0:
        return address
    host, port = _host(address)
    last = _LOOPBACK.get(host)
    return address if last is None else f"127.{machine >> 8 & 255}.{machine & 255}.{last}:{port}"


def to_record(item: Item, number: int) -> Record:
    """Return the record of an item whose stream has this number in its run."""
    if isinstance(item, End):
        return EndRecord(number, _time(item.ts_ns), item.reason)
    direction: _DirectionCode = 1 if item.direction == "s2c" else 0
    where = number, direction, _time(item.ts_ns), item.offset
    if isinstance(item, Chunk):
        if len(item.data) > MAX_DATA:
            return GapRecord(*where, len(item.data) + item.missing)
        return ChunkRecord(*where, item.data, item.missing)
    if isinstance(item, Gap):
        return GapRecord(*where, item.length)
    _, _, _, _, *values = msgspec.structs.astuple(item)
    if isinstance(item, Fault):
        return FaultRecord(*where, *(_cut(value, _MAX_TEXT) for value in values))
    length, action, rule, sent_ns, original, name, fields = values
    return AlteredRecord(
        *where,
        length,
        action,
        _cut(rule, _MAX_TEXT),
        sent_ns,
        _cut(original, MAX_DATA),
        _cut(name, _MAX_TEXT),
        None if fields is None or len(fields) > MAX_DATA // 4 else fields,
    )


def _cut(value: Any, most: int) -> Any:
    return value[:most] if isinstance(value, str | bytes) else value


_ITEMS: dict[type[Record], Callable[..., Gap | Chunk | Fault | Altered]] = {
    ChunkRecord: Chunk,
    GapRecord: Gap,
    FaultRecord: Fault,
    AlteredRecord: Altered,
}


def to_item(record: Record, stream: Stream, clock_ns: int) -> Item:
    """Return the item of a record, with `clock_ns` added to its times."""
    assert not isinstance(record, RunEndRecord)
    ts_ns = shift_time(record.ts_ns, clock_ns)
    if isinstance(record, EndRecord):
        return End(stream, ts_ns, record.reason)
    _, direction, _, *values = msgspec.structs.astuple(record)
    item = _ITEMS[type(record)](stream, DIRECTIONS[direction], ts_ns, *values)
    if isinstance(item, Altered) and item.sent_ns is not None:
        item.sent_ns = shift_time(item.sent_ns, clock_ns)
    return item


def shift_time(ts_ns: int, clock_ns: int) -> int:
    """Return a time shifted by `clock_ns`, within the range of a database."""
    return max(0, min(ts_ns + clock_ns, _MOST))


def _time(ts_ns: int) -> int:
    """Clip times before 1970, which captures may contain."""
    return max(0, ts_ns)
