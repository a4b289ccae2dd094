"""Detection of datagrams captured twice: on a mirror port, on two interfaces, or by the network.

An IP packet that is repeated within milliseconds is the same one: its sender gives the next packet another
identification (RFC 6864, 4.1), however its link header and time to live change on the way. IPv6 and some
senders give none. Others give all packets the same one, as they may if these cannot be fragmented. Then a
packet sent twice cannot be distinguished from one captured twice, and it counts as one. The limit is long if
nothing else arrived on its flow meanwhile, short otherwise, and shortest for content that is repeated often,
as "alice rolls" is, and may be new.

If the clocks of two captures differ, each copy is late by the difference: see `packet_flows`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kiebitz.proxy.capture.packets import Datagram

DUPLICATE_NS = 50_000_000
"""Time after a packet in which an equal one counts as its copy."""

UNIDENTIFIED_DUPLICATE_NS = 5_000_000
"""The same time for datagrams without an identification."""

FREQUENT_DUPLICATE_NS = 2_000_000
"""The same time for such datagrams if they are sent repeatedly."""

JITTER_NS = 10_000_000
"""Largest deviation of a copy from the difference between the clocks of two captures."""

MAX_SKEWS = 4
"""Maximum number of clock differences to remember."""

MAX_REMEMBERED = 4096
"""Minimum number of datagrams to remember, half of their maximum; also the maximum number of flows."""


class DuplicateDetector:
    """A detector that remembers the latest datagrams by their hashes."""

    def __init__(self) -> None:
        self._first_ns: dict[int, int] = {}
        self._first_before_ns: dict[int, int] = {}
        """Times of first arrival by hash, of the latest datagrams and of those before, which are dropped when
        there are too many.
        """
        self._latest: dict[bytes, int] = {}
        """Hash of the latest datagram of each flow."""
        self._frequent: OrderedDict[int, None] = OrderedDict()
        """Hashes of datagrams without an identification that were certainly sent more than once."""
        self._identifications: dict[bytes, int] = {}
        """Latest identification of each flow."""
        self._unidentified: set[bytes] = set()
        """Flows with the same identification in two successive packets."""
        self._skews_ns: list[int] = []

    def expect_copies(self, skew_ns: int) -> None:
        """Treat equal datagrams as copies from now on if their times differ by about `skew_ns`."""
        if not any(abs(skew_ns - known_ns) < JITTER_NS // 2 for known_ns in self._skews_ns):
            self._skews_ns = [*self._skews_ns[1 - MAX_SKEWS :], skew_ns]

    def is_duplicate(self, datagram: Datagram, ts_ns: int) -> bool:
        """Return True if a datagram at `ts_ns` is a copy of an earlier one; otherwise remember it."""
        flow, _, _, identification = datagram
        # One hash in place of its parts, as it is looked up repeatedly.
        key = hash(datagram)
        known, latest = self._first_ns, self._latest
        first_ns = known.get(key)
        if first_ns is None:
            first_ns = self._first_before_ns.get(key)
        if first_ns is not None:
            # The clocks of two captures may differ, so the copy may have the earlier time.
            age_ns = abs(ts_ns - first_ns)
            is_identified = identification and flow not in self._unidentified
            if age_ns < (DUPLICATE_NS if is_identified else self._limit_ns(flow, key)) or any(
                abs(age_ns - skew_ns) < JITTER_NS for skew_ns in self._skews_ns
            ):
                return True
            if not is_identified:
                self._remember_frequent(key)
        elif identification and identification == self._identifications.get(flow):
            self._unidentified.add(flow)
            if len(self._unidentified) > MAX_REMEMBERED:
                self._unidentified = {flow}
        known[key] = ts_ns
        self._identifications[flow] = identification
        if len(known) >= MAX_REMEMBERED:
            self._first_before_ns, self._first_ns = known, {}
        latest[flow] = key
        if len(latest) > MAX_REMEMBERED:
            self._latest = {flow: key}
            self._identifications = {flow: identification}
        return False

    def _limit_ns(self, flow: bytes, key: int) -> int:
        """Return how long an equal datagram without an identification counts as a copy."""
        if self._latest.get(flow) == key:
            return DUPLICATE_NS
        return FREQUENT_DUPLICATE_NS if key in self._frequent else UNIDENTIFIED_DUPLICATE_NS

    def _remember_frequent(self, key: int) -> None:
        known = self._frequent
        known[key] = None
        known.move_to_end(key)
        if len(known) > MAX_REMEMBERED:
            known.popitem(last=False)
