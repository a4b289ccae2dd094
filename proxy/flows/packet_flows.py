"""From captured packets to the items of streams: decoding, time order, UDP flows, TCP reassembly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from kiebitz.dissectors.model import Direction, Item, Transport
from kiebitz.proxy.capture.packets import PacketDecoder, RawPacket, Segment
from kiebitz.proxy.flows.capture_order import PacketReorderer, Sent
from kiebitz.proxy.flows.tcp import TcpFlows
from kiebitz.proxy.flows.tcp_order import REORDER_TIMEOUT_NS, RESET_TIMEOUT_NS, SegmentReorderer
from kiebitz.proxy.flows.udp import UdpFlows

Orient = Callable[[Transport, bytes, str, str], Direction | None]
"""Returns the direction of bytes from one endpoint to another, None if it is unknown."""

_BATCH = 2000
"""Number of packets after which items are emitted, if many get their place in time order at once."""


class PacketFlows:
    """Turns packets into items, and calls `emit` with each list of them, which is reused afterwards.

    Args:
        stream_ids: Numbers of new streams.
        orient: Returns the direction of the first bytes of a stream.
        server_ports: Ports of servers by transport.
        emit: Receives the items.
        from_file: True if packets are put in time order first.
    """

    def __init__(
        self,
        stream_ids: Iterator[int],
        orient: Orient,
        server_ports: Callable[[Transport], frozenset[int]],
        emit: Callable[[list[Item]], None],
        from_file: bool,
    ) -> None:
        self.packets = 0
        self.decoder = PacketDecoder()
        self._udp = UdpFlows(stream_ids, partial(orient, "udp"), server_ports("udp"))
        self._tcp = SegmentReorderer(
            TcpFlows(stream_ids, partial(orient, "tcp"), server_ports("tcp")),
            RESET_TIMEOUT_NS if from_file else REORDER_TIMEOUT_NS,
        )
        self._order = PacketReorderer() if from_file else None
        self._emit = emit
        self._items: list[Item] = []
        self._latest_ns = 0

    def take(self, packets: Iterable[RawPacket]) -> None:
        """Process packets (time in ns, link type, bytes, length on the wire)."""
        decode = self.decoder.decode
        rest = self.decoder.rest
        order = self._order
        all_sent: list[Sent] = []
        size = 0
        ts_ns = None
        for ts_ns, linktype, data, wirelen in packets:
            self.packets += 1
            sent = decode(linktype, data, wirelen, ts_ns)
            if sent is not None:
                all_sent.append((ts_ns, sent))
                size += len(data)
                if rest:
                    all_sent += ((ts_ns, other) for other in rest)
                    rest.clear()
        if order is None:
            self._feed(all_sent)
            # Any packet advances the clock. Without one the time of the last is long ago, perhaps: to repeat
            # it between two calls of `expire` would be a clock that jumps back each time.
            if ts_ns is not None:
                self._tcp.expire(ts_ns, self._items)
            self._release()
        else:
            self._add_in_order(order, order.add(all_sent, size))

    def _add_in_order(self, order: PacketReorderer, ready: list[Sent]) -> None:
        for skew_ns in order.skews_ns:
            self._udp.expect_copies(skew_ns)
        for begin in range(0, len(ready), _BATCH):
            self._feed(ready[begin : begin + _BATCH])
            self._tcp.expire(self._latest_ns, self._items)
            self._release()

    def _feed(self, all_sent: list[Sent]) -> None:
        feed_udp, feed_tcp = self._udp.feed, self._tcp.feed
        items = self._items
        for ts_ns, sent in all_sent:
            if isinstance(sent, Segment):
                feed_tcp(sent, ts_ns, items)
            else:
                feed_udp(sent, ts_ns, items)
        if all_sent:
            self._latest_ns = all_sent[-1][0]

    @property
    def late(self) -> int:
        """Number of packets that could not be put in time order."""
        return self._order.late if self._order is not None else 0

    def expire(self, now_ns: int) -> None:
        """Time out missing data of a live source, whose clock is not advanced by packets alone."""
        self._udp.expire(now_ns, self._items)
        self._tcp.expire(now_ns, self._items)
        self._release()

    def end(self) -> None:
        """End all streams."""
        self.decoder.close()
        if self._order is not None:
            self._add_in_order(self._order, self._order.close())
        self._udp.close(self._latest_ns, self._items)
        self._tcp.close(self._latest_ns, self._items)
        self._release()

    def _release(self) -> None:
        self._emit(self._items)
        self._items.clear()
