"""The order of packets in a capture file, and differences between the clocks that stamped them.

Some files contain one direction after the other, blocks of one interface each, or files joined end to end.
Then the times give the order. If a clock was set during the capture, or two clocks differ, the times are
wrong, and the file gives the order. The sequence numbers of TCP decide (RFC 9293, 3.4). Without TCP the times
are right unless they go back within one flow, since one interface captures a flow in order.

Captures of the same traffic at two places, merged by time, contain each packet twice. The copies have the
same order and are late by the difference of the two clocks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from operator import gt, itemgetter

from kiebitz.proxy.capture.duplicate_packets import DUPLICATE_NS, JITTER_NS, MAX_REMEMBERED, MAX_SKEWS
from kiebitz.proxy.capture.packets import ACK, FIN, RST, SYN, Datagram, Segment
from kiebitz.proxy.flows.server_detection import reverse

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
