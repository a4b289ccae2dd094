"""Datagrams that were captured twice: on a mirror port, on two interfaces, or as the network repeats them.

An IP packet that comes again within milliseconds is the same one: its sender gives the next another
identification (RFC 6864, 4.1), whatever happens to its link header and its time to live on the way. IPv6 and
some senders give none. Then nobody can tell whether the same was sent twice, and it counts as one: for a
while if nothing else came on its flow meanwhile, for a moment otherwise, and for a shorter one if it is
something that is said again and again, as "alice rolls" is, and may be news.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kiebitz.proxy.packets import Datagram

REPEATED_NS = 50_000_000
"""So long after a packet the same one may come again."""

ALIKE_NS = 5_000_000
"""So long after a datagram without an identification one that is equal counts as the same."""

OFTEN_ALIKE_NS = 2_000_000
"""So long if such datagrams are sent again and again."""

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
            if abs(ts_ns - first_ns) < self._limit_ns(flow, identification, key):
                return True
            if not identification:
                self._remember_as_often(key)
        known[key] = ts_ns
        if len(known) >= MOST_REMEMBERED:
            self._first_before_ns, self._first_ns = known, {}
        latest[flow] = key
        if len(latest) > MOST_REMEMBERED:
            self._latest = {flow: key}
        return False

    def _limit_ns(self, flow: bytes, identification: int, key: int) -> int:
        """How long after a datagram another one with its key is the same."""
        if identification or self._latest.get(flow) == key:
            return REPEATED_NS
        return OFTEN_ALIKE_NS if key in self._sent_often else ALIKE_NS

    def _remember_as_often(self, key: int) -> None:
        known = self._sent_often
        known[key] = None
        known.move_to_end(key)
        if len(known) > MOST_REMEMBERED:
            known.popitem(last=False)
