"""From captured packets to the items of streams: decoding, time order, UDP flows, TCP reassembly.

The order of packets in a capture file, and differences between the clocks that stamped them.

Some files contain one direction after the other, blocks of one interface each, or files joined end to end.
Then the times give the order. If a clock was set during the capture, or two clocks differ, the times are
wrong, and the file gives the order. The sequence numbers of TCP decide (RFC 9293, 3.4). Without TCP the times
are right unless they go back within one flow, since one interface captures a flow in order.

Captures of the same traffic at two places, merged by time, contain each packet twice. The copies have the
same order and are late by the difference of the two clocks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from operator import gt, itemgetter

from kiebitz.dissectors.model import Direction, Item, Transport
from kiebitz.proxy.capture.duplicate_packets import DUPLICATE_NS, JITTER_NS, MAX_REMEMBERED, MAX_SKEWS
from kiebitz.proxy.capture.packets import ACK, FIN, RST, SYN, Datagram, PacketDecoder, RawPacket, Segment
from kiebitz.proxy.flows.server_detection import reverse
from kiebitz.proxy.flows.tcp import TcpFlows
from kiebitz.proxy.flows.tcp_order import REORDER_TIMEOUT_NS, RESET_TIMEOUT_NS, SegmentReorderer
from kiebitz.proxy.flows.udp import UdpFlows

Sent = tuple[int, Datagram | Segment]
"""A packet: its time in ns since 1970, and its datagram or segment."""

_Copy = tuple[int, int, int, bytes]
# An equal datagram: its delay in ns, the time of the first one, its hash, its flow.

LOOKAHEAD = 4000
"""Maximum number of packets to read before the first of them is processed."""

LOOKAHEAD_BYTES = 2 << 20
"""Approximate maximum of payload bytes in these packets."""

DISORDER_NS = 1_000_000_000
"""Largest disorder without a warning, as it is usual between interfaces of one capture."""

MAX_SKEW_NS = 10_000_000_000
"""Largest difference between two clocks for which copies are found."""

MIN_COPIES, MIN_IDENTIFIED = 3, 8
"""Minimum number of copies with the same delay that prove a second capture: with different payloads, or else
with different identifications.
"""

_MIN_DIFFERENT = 0.9
# Minimum ratio of different identifications to different datagrams.

_time = itemgetter(0)
_MODULUS = 1 << 32
_MAX_DISTANCE = 1 << 24


class PacketReorderer:
    """A bounded queue that puts the packets of a file in order.

    `late` counts packets that are over a second too late to be put in order, or whose order cannot be known.
    `skews_ns` lists the delays of copies among the packets that were returned last.
    """

    def __init__(self) -> None:
        self.late = 0
        self.skews_ns: list[int] = []
        self._waiting: list[Sent] = []
        self._bytes = 0
        self._is_in_order = True
        self._passed_on_ns = 0
        # Time of the first datagram by hash: of the latest packets, and of those before them.
        self._first_ns: dict[int, int] = {}
        self._first_before_ns: dict[int, int] = {}
        self._copies: list[_Copy] = []
        self._copies_before: list[_Copy] = []

    def add(self, sent: list[Sent], size: int) -> list[Sent]:
        """Return the packets to process now. `size` is the number of bytes in the packets added."""
        times = [ts_ns for ts_ns, _ in (*self._waiting[-1:], *sent)]
        self._is_in_order = self._is_in_order and not any(map(gt, times, times[1:]))
        self._waiting += sent
        self._bytes += size
        self._note_copies(sent)
        count = len(self._waiting)
        if count <= LOOKAHEAD and self._bytes <= LOOKAHEAD_BYTES:
            return []
        kept = min(count, LOOKAHEAD) // 2
        self._bytes = self._bytes * kept // count
        return self._pass_on(count - kept)

    def close(self) -> list[Sent]:
        """Return the remaining packets."""
        return self._pass_on(len(self._waiting))

    def _pass_on(self, count: int) -> list[Sent]:
        if not self._is_in_order:
            self._put_in_order()
        self.skews_ns = self._skews()
        self._copies, self._copies_before = [], self._copies
        ready, self._waiting = self._waiting[:count], self._waiting[count:]
        if ready:
            self._passed_on_ns = ready[-1][0]
        return ready

    def _put_in_order(self) -> None:
        """Choose between the order of the file and that of the times."""
        in_file, in_time = self._waiting, sorted(self._waiting, key=_time)
        faults_in_file, faults_in_time = _count_contradictions(in_file), _count_contradictions(in_time)
        if faults_in_file < faults_in_time:
            return
        if faults_in_time < faults_in_file or _is_ordered_by_time(in_file):
            earliest_ns = self._passed_on_ns - DISORDER_NS
            self.late += sum(ts_ns < earliest_ns for ts_ns, _ in in_time)
            self._waiting = in_time
            self._is_in_order = True
        else:
            times = [ts_ns for ts_ns, _ in in_file]
            self.late += sum(ts_ns - next_ns > DISORDER_NS for ts_ns, next_ns in pairwise(times))

    def _note_copies(self, sent: list[Sent]) -> None:
        """Note the datagrams that equal an earlier one with the same identification."""
        first, before = self._first_ns, self._first_before_ns
        for ts_ns, datagram in sent:
            if type(datagram) is not tuple or not datagram[3]:
                continue
            key = hash(datagram)
            first_ns = first.get(key) or before.get(key)
            if first_ns is None:
                first[key] = ts_ns
            elif DUPLICATE_NS <= abs(ts_ns - first_ns) <= MAX_SKEW_NS:
                self._copies.append((abs(ts_ns - first_ns), first_ns, key, datagram[0]))
        if len(first) > MAX_REMEMBERED:
            self._first_ns, self._first_before_ns = {}, first

    def _skews(self) -> list[int]:
        """Return the delays shared by so many datagrams that these must be copies."""
        noted = self._copies_before + self._copies
        if len(noted) < MIN_COPIES:
            return []
        datagrams: dict[bytes, dict[int, int]] = defaultdict(dict)
        identifications: dict[bytes, set[int]] = defaultdict(set)
        payloads: dict[int, int] = {}
        occurrences: Counter[int] = Counter()
        for ts_ns, datagram in self._waiting:
            if type(datagram) is tuple and datagram[3]:
                flow, payload, _, identification = datagram
                key = hash(datagram)
                datagrams[flow].setdefault(key, ts_ns)
                identifications[flow].add(identification)
                payloads[key] = hash(payload)
                occurrences[key] += 1
        # RFC 6864, 4.1: an identification may have any value if a packet cannot be fragmented. It proves
        # something if it differs from packet to packet; random ones coincide now and then.
        proving = {
            flow
            for flow, keys in datagrams.items()
            if len(identifications[flow]) >= max(2, _MIN_DIFFERENT * len(keys))
        }
        # Each capture has a packet once; one that occurs more often was really sent again.
        copies = sorted(
            copy for copy in noted if copy[3] in proving and occurrences[copy[2]] <= MAX_SKEWS + 1
        )
        skews_ns: list[int] = []
        while len(skews_ns) < MAX_SKEWS:
            begin, end = _largest_cluster(copies)
            cluster = copies[begin:end]
            keys = {key for _, _, key, _ in cluster}
            differ = len({payloads.get(key) for key in keys}) >= MIN_COPIES or len(keys) >= MIN_IDENTIFIED
            if len(keys) < max(MIN_COPIES, len(cluster)) or not differ:
                break
            # Both captures contain the same packets, so most of those between have a copy, too.
            begin_ns, end_ns = (choose(copy[1] for copy in cluster) for choose in (min, max))
            eligible = sum(
                begin_ns <= ts_ns <= end_ns
                for flow in {copy[3] for copy in cluster}
                for ts_ns in datagrams[flow].values()
            )
            if 2 * len(cluster) < eligible:
                break
            skews_ns.append(cluster[len(cluster) // 2][0])
            del copies[begin:end]
        return skews_ns


def _largest_cluster(copies: list[_Copy]) -> tuple[int, int]:
    """Return the index range of most copies with the same delay; `copies` is sorted by delay."""
    largest = begin = 0
    place = (0, 0)
    for end, copy in enumerate(copies, 1):
        while copy[0] - copies[begin][0] > JITTER_NS:
            begin += 1
        if end - begin > largest:
            largest, place = end - begin, (begin, end)
    return place


def _count_contradictions(packets: list[Sent]) -> int:
    """Return how many segments skip bytes or acknowledge bytes that appear later in this order."""
    ends: dict[bytes, int] = {}
    count = 0
    for _, segment in packets:
        if not isinstance(segment, Segment) or segment.flags & RST:
            continue
        flow, flags = segment.flow, segment.flags
        size = len(segment.payload) + segment.missing + bool(flags & FIN) + bool(flags & SYN)
        end = ends.get(flow)
        if end is None or flags & SYN:
            ends[flow] = (segment.seq + size) % _MODULUS
        else:
            count += 0 < (segment.seq - end) % _MODULUS <= _MAX_DISTANCE
            if 0 < (segment.seq + size - end) % _MODULUS <= _MAX_DISTANCE:
                ends[flow] = (segment.seq + size) % _MODULUS
        if flags & ACK:
            peer = reverse(flow)
            end = ends.get(peer)
            if end is None:
                count += 1
            elif 0 < (segment.ack - end) % _MODULUS <= _MAX_DISTANCE:
                count += 1
                ends[peer] = segment.ack
    return count


def _is_ordered_by_time(packets: list[Sent]) -> bool:
    """Return True if the times of each flow never go back, copies of another capture excepted."""
    latest_ns: dict[bytes, int] = {}
    seen = set()
    for ts_ns, sent in packets:
        if isinstance(sent, Segment):
            flow, key = sent.flow, hash((sent.flow, sent.seq, sent.ack, sent.flags, sent.payload))
        else:
            flow, key = sent[0], hash(sent)
        if key in seen:
            continue
        seen.add(key)
        if ts_ns < latest_ns.get(flow, 0):
            return False
        latest_ns[flow] = ts_ns
    return True


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
