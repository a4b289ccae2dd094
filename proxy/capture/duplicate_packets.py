"""Datagrams that were captured twice: on a mirror port, on two interfaces, or as the network repeats them.

An IP packet that comes again within milliseconds is the same one: its sender gives the next another
identification (RFC 6864, 4.1), whatever happens to its link header and its time to live on the way. IPv6 and
some senders give none. Others give all packets the same one, as they may where these cannot be fragmented.
Then nobody can tell whether the same was sent twice, and it counts as one: for a while if nothing else came
on its flow meanwhile, for a moment otherwise, and for a shorter one if it is something that is said again and
again, as "alice rolls" is, and may be news.

Where the clocks of two captures differ, each copy is that much later: see `capture_order`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kiebitz.proxy.capture.packets import Datagram

REPEATED_NS = 50_000_000
"""So long after a packet the same one may come again."""

ALIKE_NS = 5_000_000
"""So long after a datagram without an identification one that is equal counts as the same."""

OFTEN_ALIKE_NS = 2_000_000
"""So long if such datagrams are sent again and again."""

JITTER_NS = 10_000_000
"""Largest deviation of a copy from the difference between the clocks of two captures."""

MOST_SKEWS = 4
"""Maximum number of differences between clocks to remember."""

MOST_REMEMBERED = 4096
"""At least so many datagrams are remembered, and no more than twice as many; and so many flows."""


class Repeats:
    """Remembers the latest datagrams, each by one number that stands for all of it."""

    def __init__(self) -> None:
        self._first_ns: dict[int, int] = {}
        self._first_before_ns: dict[int, int] = {}
        """When those that came lately came first, and those before them: when there are too many, the latter
        are forgotten."""
        self._latest: dict[bytes, int] = {}
        """Of each flow its latest datagram."""
        self._sent_often: OrderedDict[int, None] = OrderedDict()
        """Without an identification, and surely sent more than once."""
        self._identifications: dict[bytes, int] = {}
        """Of each flow the latest one."""
        self._unidentified: set[bytes] = set()
        """Flows that gave two packets in succession the same identification."""
        self._skews_ns: list[int] = []

    def expect_copies(self, skew_ns: int) -> None:
        """Take equal datagrams for copies from now on if their times differ by `skew_ns`, about."""
        if not any(abs(skew_ns - known_ns) < JITTER_NS // 2 for known_ns in self._skews_ns):
            self._skews_ns = [*self._skews_ns[1 - MOST_SKEWS :], skew_ns]

    def is_repeated(self, datagram: Datagram, ts_ns: int) -> bool:
        """Whether a datagram that comes at `ts_ns` is one that came before; else it is remembered."""
        flow, payload, _, identification = datagram
        # One number in place of all three: it is looked up again and again.
        key = hash((flow, identification, payload))
        known, latest = self._first_ns, self._latest
        first_ns = known.get(key)
        if first_ns is None:
            first_ns = self._first_before_ns.get(key)
        if first_ns is not None:
            # Clocks of two captures need not agree, so that the copy may have the earlier time.
            age_ns = abs(ts_ns - first_ns)
            is_identified = identification and flow not in self._unidentified
            if age_ns < (REPEATED_NS if is_identified else self._limit_ns(flow, key)) or any(
                abs(age_ns - skew_ns) < JITTER_NS for skew_ns in self._skews_ns
            ):
                return True
            if not is_identified:
                self._remember_as_often(key)
        elif identification and identification == self._identifications.get(flow):
            self._unidentified.add(flow)
            if len(self._unidentified) > MOST_REMEMBERED:
                self._unidentified = {flow}
        known[key] = ts_ns
        self._identifications[flow] = identification
        if len(known) >= MOST_REMEMBERED:
            self._first_before_ns, self._first_ns = known, {}
        latest[flow] = key
        if len(latest) > MOST_REMEMBERED:
            self._latest = {flow: key}
            self._identifications = {flow: identification}
        return False

    def _limit_ns(self, flow: bytes, key: int) -> int:
        """Return how long another datagram of a flow with this key is the same, without an identification."""
        if self._latest.get(flow) == key:
            return REPEATED_NS
        return OFTEN_ALIKE_NS if key in self._sent_often else ALIKE_NS

    def _remember_as_often(self, key: int) -> None:
        known = self._sent_often
        known[key] = None
        known.move_to_end(key)
        if len(known) > MOST_REMEMBERED:
            known.popitem(last=False)
