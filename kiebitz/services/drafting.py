"""Conversations of captures and databases for drafting a protocol file."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import count, islice

import msgspec

from kiebitz.dissectors.drafting.draft import Draft, draft
from kiebitz.dissectors.drafting.fields import identifier_of
from kiebitz.dissectors.drafting.traffic import MAX_BYTES, Conversation, Piece
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import OPPOSITE, Chunk, Item, Stream, Transport, port_of
from kiebitz.dissectors.protocol_file.reading.reader import problem_of_name
from kiebitz.dissectors.registry import installed
from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.capture.packets import RawPacket
from kiebitz.proxy.flows.packet_flows import PacketFlows
from kiebitz.services.importing.losses import losses
from kiebitz.services.progress import OnProgress
from kiebitz.services.sessions import is_database, load, session_of, split_number
from kiebitz.services.wording import counted
from kiebitz.storage.read.recorded_items import RecordedItems

_BATCH = 2000
"""Number of packets between two progress updates."""

_MAX_LISTED = 12
"""Maximum number of servers in an error message."""

_MAX_STREAMS = 20_000


class DraftError(KiebitzError):
    """No protocol file can be drafted from the given traffic."""


class Server(msgspec.Struct, frozen=True, order=True):
    """A server port with its traffic."""

    transport: Transport
    port: int


class Traffic(msgspec.Struct):
    """The conversations of captures by server port.

    Attributes:
        servers: Conversations by server port, in order of time.
        losses: Clauses about packets that could not be read, each with its capture.
        is_cut: True if there were more bytes than a draft is made from.
    """

    servers: dict[Server, list[Conversation]]
    losses: list[tuple[str, str]]
    is_cut: bool = False


def read_traffic(
    captures: Sequence[str],
    ports: Collection[int],
    progress: Callable[[str], OnProgress],
) -> Traffic:
    """Return the conversations of captures and databases.

    Args:
        captures: Capture files, databases, or `DB:N`.
        ports: Ports of servers; empty if unknown.
        progress: Function from a capture's name to the display of its progress.

    Raises:
        CaptureError: A capture cannot be read.
        StorageError: A database cannot be read.
    """
    traffic = Traffic({}, [])
    for capture, name in enumerate(captures):
        collected = _Collected(frozenset(ports), MAX_BYTES // len(captures))
        path, number = split_number(name)
        if is_database(path):
            connection, _ = load(path)
            with closing(connection):
                timeline, _ = session_of(connection, path, number)
                collected.take(RecordedItems(timeline).items())
        else:
            traffic.losses += ((name, loss) for loss in _read_capture(path, collected, progress(name)))
        traffic.is_cut |= collected.is_full
        for conversation in collected.conversations(capture):
            server = Server(conversation.transport, port_of(conversation.server))
            traffic.servers.setdefault(server, []).append(conversation)
    return traffic


def draft_from(
    traffic: Traffic,
    ports: Collection[int],
    captures: Sequence[str],
    protocol: str = "draft",
    on_progress: OnProgress = lambda done, total: None,
) -> Draft:
    """Return the draft of the protocol of the server.

    Args:
        traffic: The conversations.
        ports: Ports of the servers that speak the protocol; empty if there is only one.
        captures: Names of the captures.
        protocol: Name of the protocol.
        on_progress: Called with the number of steps done, and of all.

    Raises:
        DraftError: There is no traffic, or that of several servers, or it cannot be read.
    """
    source = source_name(captures)
    wanted = {server: found for server, found in traffic.servers.items() if not ports or server.port in ports}
    wanted = {
        server: found
        for server, found in wanted.items()
        if any(piece.data for conversation in found for piece in conversation.pieces)
    }
    if not wanted:
        if ports and traffic.servers:
            raise DraftError(
                f"{source}: no traffic of a server at port {', '.join(map(str, sorted(ports)))};"
                f" there is {_listed(traffic.servers)}"
            )
        raise DraftError(f"{source}: no TCP or UDP traffic with content in it")
    if len(wanted) > 1 and not ports:
        raise DraftError(
            f"{source}: traffic of {len(wanted)} server ports; select those of the protocol with --server:"
            f" {_listed(wanted)}"
        )
    transports = {server.transport for server in wanted}
    if len(transports) > 1:
        raise DraftError(
            f"{source}: the selected servers use TCP and UDP; a protocol file describes one of them"
        )
    conversations = [conversation for found in wanted.values() for conversation in found]
    # The same in any order of the captures.
    conversations.sort(
        key=lambda one: (one.pieces[0].ts_ns if one.pieces else 0, one.client, one.server, one.pieces)
    )
    return draft(conversations, sorted({server.port for server in wanted}), source, protocol, on_progress)


def _listed(servers: dict[Server, list[Conversation]]) -> str:
    """Return the servers with their counts, the busiest first."""
    sizes = Counter(
        {server: sum(len(one.pieces) for one in conversations) for server, conversations in servers.items()}
    )
    found = [
        f"{server.port} ({server.transport}, {counted(len(servers[server]), 'connection')},"
        f" {counted(pieces, 'packet')})"
        for server, pieces in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    ]
    more = f", and {len(found) - _MAX_LISTED} more" if len(found) > _MAX_LISTED else ""
    return ", ".join(found[:_MAX_LISTED]) + more


class _Collected:
    """The chunks of one capture by stream."""

    def __init__(self, ports: frozenset[int], room: int) -> None:
        self.ports = ports
        self._room = room
        self._pieces: dict[Stream, list[Piece]] = defaultdict(list)

    @property
    def is_full(self) -> bool:
        return self._room < 0 or len(self._pieces) >= _MAX_STREAMS

    def take(self, items: Iterable[Item]) -> None:
        for item in items:
            if not isinstance(item, Chunk) or self.is_full or item.missing:
                continue
            if item.data or item.stream.transport == "udp":
                self._room -= len(item.data)
                piece = Piece(item.direction, item.ts_ns, item.offset, item.data)
                self._pieces[item.stream].append(piece)

    def conversations(self, capture: int) -> Iterator[Conversation]:
        """Yield the conversations; a side with several peers is their server."""
        peers: dict[tuple[str, str], set[str]] = defaultdict(set)
        for stream in self._pieces:
            peers[stream.transport, stream.client].add(stream.server)
            peers[stream.transport, stream.server].add(stream.client)
        for stream, pieces in self._pieces.items():
            client, server = stream.client, stream.server
            of_client, of_server = (len(peers[stream.transport, side]) for side in (client, server))
            is_turned = of_client > max(1, of_server)
            if (port_of(client) in self.ports) != (port_of(server) in self.ports):
                is_turned = port_of(client) in self.ports
            if is_turned:
                client, server = server, client
                pieces = [
                    msgspec.structs.replace(piece, direction=OPPOSITE[piece.direction]) for piece in pieces
                ]
            yield Conversation(client, server, stream.transport, pieces, capture)


def _read_capture(
    path: str, collected: _Collected, on_progress: Callable[[int, int | None], None]
) -> list[str]:
    """Read a capture and return its losses."""
    # The protocol, and so the direction of bytes, is unknown.
    flows = PacketFlows(
        count(1), lambda *_: None, lambda transport: collected.ports, collected.take, from_file=True
    )
    with open_capture(path) as capture:
        packets: Iterator[RawPacket] = iter(capture)
        while (batch := list(islice(packets, _BATCH))) and not collected.is_full:
            flows.take(batch)
            on_progress(capture.position, capture.size)
        flows.end()
        return losses(flows.decoder, capture, not collected.is_full, flows.late)


def source_name(captures: Sequence[str]) -> str:
    """Return the names of captures for a message or a comment, in an order of their own."""
    names = sorted(os.path.basename(name) or name for name in captures)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def protocol_name(output: str | None, captures: Sequence[str]) -> str:
    """Return a name for the protocol that no installed one has, from the name of the file or of a capture."""
    path = min(captures) if output in (None, "-") else str(output)
    stem = identifier_of(os.path.basename(path).partition(".")[0]) or "draft"
    name = stem if stem[0].isalpha() else f"p{stem}"
    is_taken = name in installed().dissectors or problem_of_name(name) is not None
    return f"{name}_draft" if is_taken else name
