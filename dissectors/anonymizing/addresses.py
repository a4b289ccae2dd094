"""Stand-ins for IP addresses: of the ranges that are kept for documentation, then of others that nobody has.

Each is as long as what it stands for, as protocols have addresses in their messages; where there is none of
that length, one of another. This machine's own addresses (127.0.0.1, ::1) name nobody, and stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from itertools import count, product

_MAX_ADDRESSES = 1 << 17
"""So many addresses are remembered; then the oldest is forgotten, as clients can make up any number."""

_MAX_IPV4_LENGTH = len("255.255.255.255")
_ANY_IPV6 = len("2001:db8::1000")

_DOCUMENTATION = ("192.0.2.", "198.51.100.", "203.0.113.")
"""RFC 5737."""

_LOCAL_NAME = "localhost"


class Addresses:
    """Addresses and what stands in for each, one to one."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._free: dict[tuple[int, int], Iterator[str]] = {}
        """By IP's version and length, those that stand for nothing yet."""

    def stand_in(self, address: str) -> str | None:
        """What stands in for an address, which may be this machine's own; None if it is none."""
        known = self._found.get(address)
        if known is not None:
            return known
        try:
            ip = ip_address(address)
        except ValueError:
            return address if address == _LOCAL_NAME else None
        if ip.is_loopback or ip.is_unspecified:
            return address
        if len(self._found) >= _MAX_ADDRESSES:
            del self._found[next(iter(self._found))]
        self._found[address] = other = self._next(ip.version, len(address))
        return other

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each address and its stand-in, in the order in which they came."""
        yield from self._found.items()

    def _next(self, version: int, length: int) -> str:
        """One that is free, of this length as long as there are any."""
        make, other_length = (_ipv4, _MAX_IPV4_LENGTH) if version == 4 else (_ipv6, _ANY_IPV6)
        while True:
            for wanted in (length, other_length):
                free = self._free.setdefault((version, wanted), make(wanted))
                for address in free:
                    if address not in self._found:
                        return address
            # Each has had its turn. There are more of them than are remembered, so the first are free again.
            del self._free[version, other_length]


def _ipv4(length: int) -> Iterator[str]:
    """All IPv4 addresses of this length that stand for others."""
    for network in _DOCUMENTATION:
        places = length - len(network)
        if 1 <= places <= 3:
            yield from (f"{network}{host}" for host in range(10 ** (places - 1), min(10**places, 255)))
    # 0.0.0.0/8 and 240.0.0.0/4 are nobody's, and 10.0.0.0/8 is everybody's.
    first = {7: "0", 8: "10"}.get(length, "240")
    places = length - len(first) - 3
    for sizes in product((1, 2, 3), repeat=3):
        if sum(sizes) == places:
            numbers = (range(10 ** (size - 1), min(10**size, 256)) for size in sizes)
            for octets in product(*numbers):
                yield ".".join((first, *map(str, octets)))


def _ipv6(length: int) -> Iterator[str]:
    """The same of IPv6, written as RFC 5952 has it; none for the few lengths that there are none of."""
    # RFC 3849, and for short ones RFC 6666. Two colons stand for at least two groups.
    for network, most_groups, exactly in (
        ("2001:db8::", 4, False),
        ("2001:db8:", 6, True),
        ("100::", 1, False),
    ):
        rest = length - len(network)
        groups = most_groups if exactly else (rest + 5) // 5
        places = rest - (groups - 1)
        if 1 <= groups <= most_groups and groups <= places <= 4 * groups:
            sizes = [places // groups + (number < places % groups) for number in range(groups)]
            yield from _groups(network, sizes)
            return


def _groups(network: str, sizes: list[int]) -> Iterator[str]:
    """Addresses with groups of so many hexadecimal digits behind a network."""
    ranges = [(16 ** (size - 1), 16**size) for size in sizes]
    for number in count():
        values = []
        for low, high in reversed(ranges):
            number, value = divmod(number, high - low)
            values.append(f"{low + value:x}")
        if number:
            return
        yield network + ":".join(reversed(values))
