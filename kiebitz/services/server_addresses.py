"""Current addresses of a recorded session's servers: `ADDR`, or `RECORDED=ADDR` for one of several."""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import port_of
from kiebitz.dissectors.replay.script import StreamRole
from kiebitz.proxy.relay.modes import parse_endpoint

Address = tuple[str, int]
"""Host and port."""

_LOOPBACK = "127.0.0.1"
_HIGHEST = 65_535


class AddressError(KiebitzError):
    """An address that is malformed, missing or ambiguous."""

    is_usage = True


def addresses_of(given: Sequence[str], servers: Sequence[StreamRole]) -> dict[StreamRole, Address]:
    """Return each server's current address, by its first role.

    A single address is for the server with the lowest port; the other ports keep their recorded distance from
    it, as with CGML's 7001 to 7003. Raises AddressError.
    """
    lowest = min(port_of(server.server) for server in servers)
    named: dict[StreamRole, Address] = {}
    base: Address | None = None
    for text in given:
        recorded, equals, address = text.rpartition("=")
        place = parse_address(address)
        if not equals:
            if base is not None:
                raise AddressError(f"two addresses without a server: write {_example(servers)}")
            base = place
        else:
            named[_server(recorded, servers)] = place
    places = dict(named)
    for server in servers:
        if server not in places:
            if base is None:
                raise AddressError(f"no address for {server.server}: add {_example([server])}")
            port = base[1] + port_of(server.server) - lowest if base[1] else 0
            if not 0 <= port <= _HIGHEST:
                raise AddressError(f"there is no port {port} for {server.server}: add {_example([server])}")
            places[server] = (base[0], port)
    return places


def parse_address(text: str) -> Address:
    """Return host and port of `[HOST:]PORT`; the host defaults to this machine. Raises AddressError."""
    try:
        host, port = parse_endpoint(text)
    except ValueError as error:
        raise AddressError(f"{error}, as in 127.0.0.1:9000") from error
    return host or _LOOPBACK, port


def _server(text: str, servers: Sequence[StreamRole]) -> StreamRole:
    """Return the recorded server with an address, or with a port that only it has."""
    found = [server for server in servers if text in (server.server, str(port_of(server.server)))]
    if len(found) != 1:
        known = ", ".join(server.server for server in servers)
        raise AddressError(f"the recording has no unique server {text}; it has {known}")
    return found[0]


def _example(servers: Sequence[StreamRole]) -> str:
    return " and ".join(f"{server.server}=127.0.0.1:PORT" for server in servers[:2])
