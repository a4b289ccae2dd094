"""One TCP connection as a capture shows it: its two sides, who of them is the server, and what it gives.

The stream is made up at once, with whoever sent the first segment as the client. As long as it is not known
which side is the server, items are held back; then they are turned round if need be.
"""

from __future__ import annotations

from collections.abc import Iterator

from kiebitz.dissectors.model import OPPOSITE, Chunk, Direction, End, Gap, Item, Stream
from kiebitz.proxy.capture.packets import ACK, Segment, endpoints
from kiebitz.proxy.flows.server_detection import Servers, ports, reverse
from kiebitz.proxy.flows.tcp_reassembly import Assembly, Recent, unwrap

MAX_UNDECIDED_BYTES = 64 << 10
MAX_UNDECIDED_ITEMS = 256
"""How much is held back of a connection of which nobody knows the server."""

_NEAR = 0xFFFF
_LARGEST_SCALE = 14  # RFC 7323, 2.3


class Side:
    """One end of a connection, and the bytes that it sends.

    `isn` is the sequence number of its SYN, None if that was not seen; `sent_syn` and `answered_syn` tell
    whether it was a SYN alone or one with an ACK. `last_ns` is when it sent its latest segment, None if it
    was never heard.
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
        "tried",
        "window",
    )

    peer: Side

    def __init__(self, connection: Connection, flow: bytes, assembly: Assembly) -> None:
        self.connection = connection
        self.flow = flow
        self.assembly = assembly
        self.isn: int | None = None
        self.sent_syn = False
        self.answered_syn = False
        self.last_ns: int | None = None
        self.window = 0
        self.scale: int | None = None
        # How many bytes have been looked at in vain for what they say.
        self.tried = 0

    def synchronise(self, segment: Segment) -> None:
        """Take the SYN of this side: its first byte has the next sequence number (RFC 9293, 3.4)."""
        answers = bool(segment.flags & ACK)
        self.isn = segment.seq
        self.scale = segment.scale
        self.answered_syn = answers
        self.sent_syn = not answers
        if not self.assembly.begun or self.is_silent:
            self.assembly.begin((segment.seq + 1) % (1 << 32))
        if answers and not self.peer.assembly.begun:
            self.peer.assembly.begin(segment.ack)

    @property
    def is_silent(self) -> bool:
        """Whether no byte of this side has been given."""
        return self.assembly.next == self.assembly.start

    def acks_beginning(self, segment: Segment) -> bool:
        """Whether a segment of this side acknowledges about the beginning of what the other side sends."""
        return (segment.ack - self.peer.assembly.start) % (1 << 32) <= _NEAR

    def may_reset(self, seq: int) -> bool:
        """Whether a RST of this side with this number is in its peer's window (RFC 9293, 3.10.7.4).

        What cannot be judged is believed. A number one below the window is what some systems reset with.
        """
        assembly = self.assembly
        if not assembly.begun or assembly.acked is None:
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
    """Two sides and their stream. `is_heard` once there was more than a handshake; `is_over` after its end.
    `reset_by` is the side whose RST has ended it.

    `flows` once the stream has its number, so that items need not be `held` back any more. `cost` is what
    waits in it, in bytes of memory, about.
    """

    __slots__ = ("cost", "first", "flows", "held", "is_heard", "is_over", "reset_by", "second", "stream")

    def __init__(self, flow: bytes, ts_ns: int, recent: Recent) -> None:
        source, destination = endpoints(flow)
        self.stream = Stream(0, "tcp", source, destination, ts_ns)
        self.first = Side(self, flow, Assembly(self.stream, "c2s", recent))
        self.second = Side(self, reverse(flow), Assembly(self.stream, "s2c", recent))
        self.first.peer, self.second.peer = self.second, self.first
        self.held: list[Item] = []
        self.is_heard = False
        self.is_over = False
        self.reset_by: Side | None = None
        self.flows = False
        self.cost = 0

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.first, self.second

    @property
    def last_ns(self) -> int:
        """When the latest segment of either side came."""
        return max(self.first.last_ns or 0, self.second.last_ns or 0)

    @property
    def is_closed(self) -> bool:
        """Whether both sides have sent all that they had to send."""
        return self.first.assembly.is_done and self.second.assembly.is_done

    @property
    def is_closed_as_far_as_heard(self) -> bool:
        """Whether each side that is in the capture at all has sent all."""
        return all(side.assembly.is_done for side in self.sides if side.last_ns is not None)

    @property
    def waits(self) -> bool:
        """Whether something has to be decided if nothing more comes: a hole, the roles, the end."""
        return (
            bool(self.held)
            or self.first.assembly.hole_end is not None
            or self.second.assembly.hole_end is not None
            or self.is_closed_as_far_as_heard
        )

    def release(self, servers: Servers, stream_ids: Iterator[int], items: list[Item], force: bool) -> None:
        """Append what is held back to `items`, if it is known, or has to be, which side is the server."""
        if not self.flows:
            direction = self._direction(servers, force)
            if direction is None:
                return
            if direction == "s2c":
                self._turn_round()
            self.stream.id = next(stream_ids)
            self.flows = True
        items.extend(self.held)
        self.held.clear()

    def end(self, ts_ns: int, reason: str) -> None:
        """Give up what is missing, and hold an End."""
        for side in self.sides:
            side.assembly.finish(ts_ns, self.held)
        self.held.append(End(self.stream, ts_ns, reason))
        self.is_over = True

    def _direction(self, servers: Servers, force: bool) -> Direction | None:
        """Which way the first side's bytes go; None if that is to be seen."""
        first, second = self.sides
        from_client = first.sent_syn or second.answered_syn
        from_server = second.sent_syn or first.answered_syn
        if from_client != from_server:
            return "c2s" if from_client else "s2c"
        known = servers.known(first.flow)
        if known is not None:
            return known
        chunks = [item for item in self.held if isinstance(item, Chunk)]
        size = sum(len(chunk.data) for chunk in chunks)
        force = force or size > MAX_UNDECIDED_BYTES or len(self.held) > MAX_UNDECIDED_ITEMS
        for side in self.sides:
            said = self._said(side)
            # Looked at again when there is a quarter more, so that the cost does not grow with the square.
            if said and (len(said) * 4 >= side.tried * 5 or force):
                side.tried = len(said)
                direction = servers.recognise(side.flow, said, *endpoints(side.flow))
                if direction is not None:
                    return direction if side is first else OPPOSITE[direction]
        if not force:
            return None
        source_port, destination_port = ports(first.flow)
        return "s2c" if source_port < destination_port else "c2s"

    def _said(self, side: Side) -> bytes:
        """What is held of a side's bytes, from its last gap on."""
        said: list[bytes] = []
        for item in self.held:
            if isinstance(item, Chunk) and item.direction == side.assembly.direction:
                said.append(item.data)
            elif isinstance(item, Gap) and item.direction == side.assembly.direction:
                said.clear()
        return b"".join(said)

    def _turn_round(self) -> None:
        """The first side is the server after all."""
        stream = self.stream
        stream.client, stream.server = stream.server, stream.client
        for side in self.sides:
            side.assembly.direction = OPPOSITE[side.assembly.direction]
        for item in self.held:
            if not isinstance(item, End):
                item.direction = OPPOSITE[item.direction]
