"""Datagrams that were captured twice: on a mirror port, on two interfaces, or as the network repeats them.

An IP packet that comes again within milliseconds is the same one: its sender gives the next another
identification (RFC 6864, 4.1), whatever happens to its link header and its time to live on the way. IPv6 and
some senders give none. Then nobody can tell whether the same was sent twice, and it counts as one.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proxy.packets import Datagram

REPEATED_NS = 50_000_000
"""So long after a packet the same one may come again."""

ALIKE_NS = 2_000_000
"""So long after a datagram without an identification one that is equal counts as the same."""

MOST_REMEMBERED = 4096
"""So many datagrams are remembered."""

_Key = tuple[bytes, int, int]


class Repeats:
    """Remembers the latest datagrams."""

    def __init__(self) -> None:
        self._first_ns: dict[_Key, int] = {}
        self._order: deque[tuple[int, _Key]] = deque()

    def is_repeated(self, datagram: Datagram, ts_ns: int) -> bool:
        """Whether a datagram that comes at `ts_ns` is one that came before; else it is remembered."""
        flow, payload, _, identification = datagram
        key = (flow, identification, hash(payload))
        first_ns = self._first_ns.get(key)
        if first_ns is not None:
            limit_ns = REPEATED_NS if identification else ALIKE_NS
            # Clocks of two captures need not agree, so that the copy may have the earlier time.
            if abs(ts_ns - first_ns) < limit_ns:
                return True
        self._first_ns[key] = ts_ns
        order = self._order
        order.append((ts_ns, key))
        while order[0][0] + REPEATED_NS < ts_ns or len(order) > MOST_REMEMBERED:
            oldest_ns, oldest = order.popleft()
            # It may have come again much later.
            if self._first_ns.get(oldest) == oldest_ns:
                del self._first_ns[oldest]
        return False
