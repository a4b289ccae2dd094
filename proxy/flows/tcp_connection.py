"""One TCP connection as seen in a capture: its two sides, their roles, and its items.

The stream is created immediately, with the sender of the first segment as the client. Items are held until
the roles are known; then they are swapped if necessary.
"""

from __future__ import annotations

from collections.abc import Iterator

from kiebitz.dissectors.model import OPPOSITE, Chunk, Direction, End, Gap, Item, Stream
from kiebitz.proxy.capture.packets import ACK, Segment, endpoints
from kiebitz.proxy.flows.server_detection import ServerRegistry, ports, reverse
from kiebitz.proxy.flows.tcp_reassembly import Reassembler, RecentBytes, unwrap

MAX_UNDECIDED_BYTES = 64 << 10
MAX_UNDECIDED_ITEMS = 256
"""Maximum number of items held for a connection whose server is unknown."""

_NEAR = 0xFFFF
_LARGEST_SCALE = 14  # RFC 7323, 2.3


class Side:
    """One end of a connection, and the bytes that it sends.

    Attributes:
        isn: Sequence number of its SYN, None if that was not seen.
        sent_syn: True if its SYN had no ACK.
        answered_syn: True if its SYN had an ACK.
        last_ns: Time of its latest segment, None if none was seen.
        window: Window of its latest segment, unscaled.
        scale: Window scale of its SYN, None without that option.
        tried_bytes: Number of bytes already examined without finding the server.
    """

    __slots__ = (
        "answered_syn",
        "assembly",
        "connection",
        "flow",
        "isn",
        "last_ns",
        "peer",
        "scale",
        "sent_syn",
        "tried_bytes",
        "window",
    )

    peer: Side

    def __init__(self, connection: Connection, flow: bytes, assembly: Reassembler) -> None:
        self.connection = connection
        self.flow = flow
        self.assembly = assembly
        self.isn: int | None = None
        self.sent_syn = False
        self.answered_syn = False
        self.last_ns: int | None = None
        self.window = 0
        self.scale: int | None = None
        self.tried_bytes = 0

    def handle_syn(self, segment: Segment) -> None:
        """Process the SYN of this side; its first byte has the next sequence number (RFC 9293, 3.4)."""
        answers = bool(segment.flags & ACK)
        self.isn = segment.seq
        self.scale = segment.scale
        self.answered_syn = answers
        self.sent_syn = not answers
        if not self.assembly.has_begun or self.is_silent:
            self.assembly.begin((segment.seq + 1) % (1 << 32))
        if answers and not self.peer.assembly.has_begun:
            self.peer.assembly.begin(segment.ack)

    @property
    def is_silent(self) -> bool:
        """True if no byte of this side has been delivered."""
        return self.assembly.next == self.assembly.start

    def acks_beginning(self, segment: Segment) -> bool:
        """Return True if a segment acknowledges a number near the beginning of the other side's bytes."""
        return (segment.ack - self.peer.assembly.start) % (1 << 32) <= _NEAR

    def may_reset(self, seq: int) -> bool:
        """Return True if a RST of this side with this number is in its peer's window (RFC 9293, 3.10.7.4).

        Also True if that cannot be judged. Some systems reset with a number one below the window.
        """
        assembly = self.assembly
        if not assembly.has_begun or assembly.acked is None:
            return True
        position = unwrap(seq, assembly.next)
        if position in (assembly.next, assembly.sent_end):
            return True
        if self.isn is None or self.peer.isn is None:
            scale = _LARGEST_SCALE
        elif self.scale is None or self.peer.scale is None:
            scale = 0
        else:
            scale = self.peer.scale
        return assembly.acked - 1 <= position <= assembly.acked + (self.peer.window << scale)


class Connection:
    """A connection's two sides and their stream.

    Attributes:
        stream: The stream; its id is assigned once the roles are known.
        held: Items held until then.
        is_heard: True once there was more than a handshake.
        is_over: True after its end.
        reset_by: The side whose RST ended it.
        has_id: True once the stream has its id.
        cost: Approximate memory of waiting bytes and items, in bytes.
    """

    __slots__ = ("cost", "first", "has_id", "held", "is_heard", "is_over", "reset_by", "second", "stream")

    def __init__(self, flow: bytes, ts_ns: int, recent: RecentBytes) -> None:
        source, destination = endpoints(flow)
        self.stream = Stream(0, "tcp", source, destination, ts_ns)
        self.first = Side(self, flow, Reassembler(self.stream, "c2s", recent))
        self.second = Side(self, reverse(flow), Reassembler(self.stream, "s2c", recent))
        self.first.peer, self.second.peer = self.second, self.first
        self.held: list[Item] = []
        self.is_heard = False
        self.is_over = False
        self.reset_by: Side | None = None
        self.has_id = False
        self.cost = 0

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides, the first one before the second."""
        return self.first, self.second

    @property
    def last_ns(self) -> int:
        """Time of the latest segment of either side."""
        return max(self.first.last_ns or 0, self.second.last_ns or 0)

    @property
    def is_closed(self) -> bool:
        """True if both sides have sent everything up to their FIN."""
        return self.first.assembly.is_done and self.second.assembly.is_done

    @property
    def is_closed_as_far_as_heard(self) -> bool:
        """True if each side of which the capture has any segment has sent everything up to its FIN."""
        return all(side.assembly.is_done for side in self.sides if side.last_ns is not None)

    @property
    def is_waiting(self) -> bool:
        """True if a decision is due should nothing more arrive: about a hole, the roles or the end."""
        return (
            bool(self.held)
            or self.first.assembly.hole_end is not None
            or self.second.assembly.hole_end is not None
            or self.is_closed_as_far_as_heard
        )

    def release(
        self, servers: ServerRegistry, stream_ids: Iterator[int], items: list[Item], force: bool
    ) -> None:
        """Append held items to `items` once the roles are known; `force` decides them now."""
        if not self.has_id:
            direction = self._direction(servers, force)
            if direction is None:
                return
            if direction == "s2c":
                self._swap_roles()
            self.stream.id = next(stream_ids)
            self.has_id = True
        items.extend(self.held)
        self.held.clear()

    def end(self, ts_ns: int, reason: str) -> None:
        """Turn missing bytes into gaps, and hold an End."""
        for side in self.sides:
            side.assembly.finish(ts_ns, self.held)
        self.held.append(End(self.stream, ts_ns, reason))
        self.is_over = True

    def _direction(self, servers: ServerRegistry, force: bool) -> Direction | None:
        """Return the direction of the first side's bytes; None if undecided."""
        first, second = self.sides
        from_client = first.sent_syn or second.answered_syn
        from_server = second.sent_syn or first.answered_syn
        if from_client != from_server:
            return "c2s" if from_client else "s2c"
        known = servers.known_direction(first.flow)
        if known is not None:
            return known
        chunks = [item for item in self.held if isinstance(item, Chunk)]
        size = sum(len(chunk.data) for chunk in chunks)
        force = force or size > MAX_UNDECIDED_BYTES or len(self.held) > MAX_UNDECIDED_ITEMS
        for side in self.sides:
            data = self._held_bytes(side)
            # Examined again after growing by a quarter, so that the cost is not quadratic.
            if data and (len(data) * 4 >= side.tried_bytes * 5 or force):
                side.tried_bytes = len(data)
                direction = servers.detect(side.flow, data, *endpoints(side.flow))
                if direction is not None:
                    return direction if side is first else OPPOSITE[direction]
        if not force:
            return None
        source_port, destination_port = ports(first.flow)
        return "s2c" if source_port < destination_port else "c2s"

    def _held_bytes(self, side: Side) -> bytes:
        """Return the held bytes of a side, from its last gap on."""
        data: list[bytes] = []
        for item in self.held:
            if isinstance(item, Chunk) and item.direction == side.assembly.direction:
                data.append(item.data)
            elif isinstance(item, Gap) and item.direction == side.assembly.direction:
                data.clear()
        return b"".join(data)

    def _swap_roles(self) -> None:
        """Swap client and server, as the first side is the server."""
        stream = self.stream
        stream.client, stream.server = stream.server, stream.client
        for side in self.sides:
            side.assembly.direction = OPPOSITE[side.assembly.direction]
        for item in self.held:
            if not isinstance(item, End):
                item.direction = OPPOSITE[item.direction]
