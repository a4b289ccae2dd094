"""Datagrams that were captured twice: on a mirror port, on two interfaces, or as the network repeats them.

An IP packet that comes again within milliseconds is the same one: its sender gives the next another
identification (RFC 6864, 4.1), whatever happens to its link header and its time to live on the way. IPv6 and
some senders give none. Then nobody can tell whether the same was sent twice, and it counts as one: for a
while if nothing else came on its flow meanwhile, for a moment otherwise, and for a shorter one if it is
something that is said again and again, as "alice rolls" is, and may be news.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from kiebitz.proxy.packets import Datagram

REPEATED_NS = 50_000_000
"""So long after a packet the same one may come again."""

ALIKE_NS = 5_000_000
"""So long after a datagram without an identification one that is equal counts as the same."""

OFTEN_ALIKE_NS = 2_000_000
"""So long if such datagrams are sent again and again."""

MOST_REMEMBERED = 4096
"""So many datagrams are remembered."""

_Key = tuple[bytes, int, int]
_Name = TypeVar("_Name")
_Value = TypeVar("_Value")


class Repeats:
    """Remembers the latest datagrams."""

    def __init__(self) -> None:
        self._first_ns: OrderedDict[_Key, int] = OrderedDict()
        self._latest: OrderedDict[bytes, _Key] = OrderedDict()
        """Of each flow its latest datagram."""
        self._sent_often: OrderedDict[_Key, None] = OrderedDict()
        """Without an identification, and surely sent more than once."""

    def is_repeated(self, datagram: Datagram, ts_ns: int) -> bool:
        """Whether a datagram that comes at `ts_ns` is one that came before; else it is remembered."""
        flow, payload, _, identification = datagram
        key = (flow, identification, hash(payload))
        first_ns = self._first_ns.pop(key, None)
        if first_ns is not None:
            # Clocks of two captures need not agree, so that the copy may have the earlier time.
            if abs(ts_ns - first_ns) < self._limit_ns(key):
                self._first_ns[key] = first_ns
                return True
            if not identification:
                _remember(self._sent_often, key, None)
        _remember(self._first_ns, key, ts_ns)
        _remember(self._latest, flow, key)
        return False

    def _limit_ns(self, key: _Key) -> int:
        """How long after a datagram another one with its key is the same."""
        flow, identification, _ = key
        if identification or self._latest.get(flow) == key:
            return REPEATED_NS
        return OFTEN_ALIKE_NS if key in self._sent_often else ALIKE_NS


def _remember(known: OrderedDict[_Name, _Value], name: _Name, value: _Value) -> None:
    """Put a name last into what is known, and forget the oldest if that is too much."""
    known[name] = value
    known.move_to_end(name)
    if len(known) > MOST_REMEMBERED:
        # A plain dict would look through all places of those forgotten before.
        known.popitem(last=False)
