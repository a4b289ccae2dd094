"""Addresses and sockets: names resolved, listening sockets bound, and said plainly when that fails."""

from __future__ import annotations

import errno
import ipaddress
import resource
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Transport
from kiebitz.proxy.relay.modes import Reverse, endpoint
from kiebitz.proxy.system.deferred_signals import interruptible

Address = tuple[Any, ...]
"""A socket address as the socket module has it: host, port and, with IPv6, flow and scope."""

Notice = Callable[[str, str], None]
"""Told of trouble that stops nothing: a short constant code, and a sentence for people."""

NETWORK_FAULTS = {
    errno.EHOSTUNREACH: ("host-unreachable", "the host cannot be reached"),
    errno.ENETUNREACH: ("network-unreachable", "there is no way to that network"),
    errno.EPERM: ("prohibited", "a firewall on this machine does not let it out"),
    errno.EACCES: ("prohibited", "a firewall on the way does not let it through"),
}
"""What the network says of any transport: error number to a short constant code and words for people."""

EVERYWHERE = ("0.0.0.0", "::")
"""To listen there is to listen on all of this machine's addresses."""

BUFFER_BYTES = 4 << 20
"""What is asked for as kernel buffers; the system gives what it allows."""

_TYPES = {"udp": socket.SOCK_DGRAM, "tcp": socket.SOCK_STREAM}


class RelayError(KiebitzError):
    """The relay cannot start; the text says what failed, where, and what to do about it."""


def endpoint_text(address: Address) -> str:
    """`ip:port`, with an IPv6 address in brackets."""
    return endpoint(address[0], address[1])


def resolve(
    host: str, port: int, transport: Transport, prefer: socket.AddressFamily | None = None
) -> tuple[socket.AddressFamily, Address]:
    """The address family and address of a name or a written address. Asks the name service, and waits for it.

    Where a name has several addresses, the first of the family `prefer` is taken, if there is one: a client
    that could not see the relay would have come by that family, too. Raises RelayError if there is none, and
    Interrupted if a signal that is held comes meanwhile.
    """
    try:
        found = interruptible(socket.getaddrinfo, host, port, type=_TYPES[transport])
    except (OSError, UnicodeError) as error:
        # UnicodeError: a name with a label too long or empty.
        reason = error.strerror if isinstance(error, OSError) else "it is not a valid name"
        raise RelayError(
            f"The host {host} cannot be resolved: {reason}. Check its name, or give its address."
        ) from error
    family, _, _, _, address = min(found, key=lambda info: info[0] != prefer)
    return family, address


def meet(mode: Reverse) -> tuple[socket.socket, socket.AddressFamily, Address]:
    """A non-blocking socket bound to where the clients come, and the server's address family and address.

    Names are asked for here and never again: whatever a name means later, this is where traffic goes, and
    what is checked. Raises RelayError if it cannot be bound, or the server is not found.
    """
    family, address = resolve(mode.listen_host, mode.listen_port, mode.transport)
    server_family, server = resolve(mode.host, mode.port, mode.transport, prefer=family)
    listener = bind(family, address, mode.transport)
    return listener, server_family, server


class Route(NamedTuple):
    """What comes in at `bound` goes on to `server`; both are addresses, not names."""

    transport: Transport
    bound: Address
    server: Address


def refuse_circles(routes: Sequence[Route]) -> None:
    """Raise RelayError if what comes in by one of the routes would be led back there, through any others.

    A route that only leads into another one is well: it ends somewhere.
    """
    for start in routes:
        way = [start]
        while (onward := next((route for route in routes if _leads(way[-1], route)), None)) is not None:
            if onward is start:
                raise RelayError(_circle(way))
            if onward in way:
                # A circle that this route only leads into: it is found from one of its own.
                break
            way.append(onward)


def _circle(way: Sequence[Route]) -> str:
    transport, bound, _ = way[0]
    if len(way) == 1:
        own = f"{transport} {endpoint_text(bound)}"
        return f"The relay on {own} would be its own server. Listen on another port."
    stations = " to ".join(endpoint_text(route.bound) for route in (*way, way[0]))
    return (
        f"The relay would pass on to itself for ever what it gets over {transport}: from {stations}. "
        "Name the game server in one of these modes."
    )


def _leads(route: Route, other: Route) -> bool:
    """Whether what is sent to the server of one route comes in where the other one begins."""
    (host, port), (own, own_port) = route.server[:2], other.bound[:2]
    if port != own_port or route.transport != other.transport:
        return False
    server, bound = _plain(host), _plain(own)
    if server.is_unspecified:
        # Who connects to everywhere reaches this machine.
        server = ipaddress.ip_address("127.0.0.1" if server.version == 4 else "::1")
    if not bound.is_unspecified:
        return server == bound
    family = socket.AF_INET if server.version == 4 else socket.AF_INET6
    return server.version == bound.version and is_local(family, (str(server), 0))


def _plain(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """A written address; an IPv4 address in IPv6's clothes as what it is, since that is how it travels."""
    address = ipaddress.ip_address(host)
    return getattr(address, "ipv4_mapped", None) or address


def bind(
    family: socket.AddressFamily,
    address: Address,
    transport: Transport,
    options: Sequence[tuple[int, int]] = (),
) -> socket.socket:
    """A non-blocking socket bound to an address, with the `options` (level, number) switched on before.

    Raises RelayError if that cannot be.
    """
    listener = socket.socket(family, _TYPES[transport])
    try:
        listener.setblocking(False)
        if transport == "udp":
            enlarge_buffers(listener)
        else:
            # Else the connections of a relay just ended would keep its port for a minute.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # A client's address should read the same wherever it is seen; IPv4 has a mode of its own.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        for option in options:
            listener.setsockopt(*option, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise RelayError(_bind_failure(error, transport, address)) from error
    return listener


def _bind_failure(error: OSError, transport: Transport, address: Address) -> str:
    failed = f"Cannot listen on {transport} {endpoint_text(address)}: "
    if error.errno == errno.EADDRINUSE:
        return failed + "the port is in use. Stop what listens there, or take another port."
    if error.errno == errno.EACCES:
        return failed + "this port is reserved for the administrator. Take one from 1024 up."
    if error.errno == errno.EADDRNOTAVAIL:
        return failed + "this machine does not have that address. Take one of its own, such as 127.0.0.1."
    return failed + f"{error.strerror}. Try another address or port."


def is_local(family: socket.AddressFamily, address: Address) -> bool:
    """Whether the address is one of this machine's."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address[0], 0, *address[2:]))
        except OSError:
            return False
    return True


def enlarge_buffers(sock: socket.socket) -> None:
    """Ask for kernel buffers that hold a burst."""
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        # Some systems refuse what Linux cuts down; the default then has to do.
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)


def allow_open_files(count: int) -> int:
    """Raise this process's limit of open files to `count`, as far as that may be; how many it has then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return count
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted
