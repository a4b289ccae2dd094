"""Pseudonyms for IP addresses, from the ranges reserved for documentation, then from other unused ones.

Each has the length of the original, as protocols include addresses in their messages; if there is none of
that length, it has another. Loopback addresses (127.0.0.1, ::1) are kept, as they identify no person.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from itertools import count, product

_ANY_IPV4 = len("255.255.255.255")
_ANY_IPV6 = len("2001:db8::1000")

_DOCUMENTATION = ("192.0.2.", "198.51.100.", "203.0.113.")
"""RFC 5737."""

_LOCAL_NAME = "localhost"


class AddressPseudonyms:
    """A one-to-one mapping of addresses to pseudonyms.

    Args:
        most: Maximum number of remembered addresses; then the oldest is evicted, as clients can invent any
            number.
        other_length: Length of IPv4 pseudonyms if there are none of the original's length.
    """

    def __init__(self, most: int = 1 << 17, other_length: int = _ANY_IPV4) -> None:
        self._most, self._other_length = most, other_length
        self._found: dict[str, str] = {}
        self._free: dict[tuple[int, int], Iterator[str]] = {}
        """Unused pseudonyms, by IP version and length."""

    def pseudonym(self, address: str) -> str | None:
        """Return the pseudonym of an address; a loopback address itself; None if the text is no address."""
        known = self._found.get(address)
        if known is not None:
            return known
        try:
            ip = ip_address(address)
        except ValueError:
            return address if address == _LOCAL_NAME else None
        if ip.is_loopback or ip.is_unspecified:
            return address
        if len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[address] = other = self._next(ip.version, len(address))
        return other

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each address and its pseudonym, in order of appearance."""
        yield from self._found.items()

    def _next(self, version: int, length: int) -> str:
        """Return an unused pseudonym, of this length as long as there are any."""
        make, other_length = (_ipv4, self._other_length) if version == 4 else (_ipv6, _ANY_IPV6)
        while True:
            for wanted in (length, other_length):
                free = self._free.setdefault((version, wanted), make(wanted))
                for address in free:
                    if address not in self._found:
                        return address
            # All have been used. They outnumber the remembered ones, so the first are free again.
            del self._free[version, other_length]


def _ipv4(length: int) -> Iterator[str]:
    """Yield all IPv4 pseudonyms of this length."""
    for network in _DOCUMENTATION:
        places = length - len(network)
        if 1 <= places <= 3:
            yield from (f"{network}{host}" for host in range(10 ** (places - 1), min(10**places, 255)))
    # 0.0.0.0/8 and 240.0.0.0/4 are unassigned, and 10.0.0.0/8 is private.
    first = {7: "0", 8: "10"}.get(length, "240")
    places = length - len(first) - 3
    for sizes in product((1, 2, 3), repeat=3):
        if sum(sizes) == places:
            numbers = (range(10 ** (size - 1), min(10**size, 256)) for size in sizes)
            for octets in product(*numbers):
                yield ".".join((first, *map(str, octets)))


def _ipv6(length: int) -> Iterator[str]:
    """Yield all IPv6 pseudonyms of this length in the notation of RFC 5952; a few lengths have none."""
    # RFC 3849, and for short ones RFC 6666. Two colons replace at least two groups.
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
    """Yield addresses of a network whose groups have these numbers of hexadecimal digits."""
    ranges = [(16 ** (size - 1), 16**size) for size in sizes]
    for number in count():
        values = []
        for low, high in reversed(ranges):
            number, value = divmod(number, high - low)
            values.append(f"{low + value:x}")
        if number:
            return
        yield network + ":".join(reversed(values))
