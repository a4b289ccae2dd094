"""Addresses and sockets: name resolution and binding, with errors that users can act on."""

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
"""A socket address as in the socket module: host, port and, for IPv6, flow info and scope ID."""

Notice = Callable[[str, str], None]
"""Callback for non-fatal problems: a short constant code and a sentence for the user."""

NETWORK_FAULTS = {
    errno.EHOSTUNREACH: ("host-unreachable", "the host cannot be reached"),
    errno.ENETUNREACH: ("network-unreachable", "there is no route to that network"),
    errno.EPERM: ("prohibited", "a firewall on this machine blocked the packet"),
    errno.EACCES: ("prohibited", "a firewall on the route blocked the packet"),
}
"""Network errors of any transport: error number to a short constant code and a description."""

UNSPECIFIED_ADDRESSES = ("0.0.0.0", "::")
"""Addresses that listen on all interfaces of this machine."""

BUFFER_BYTES = 4 << 20
"""Requested size of kernel socket buffers; the system may grant less."""

_TYPES = {"udp": socket.SOCK_DGRAM, "tcp": socket.SOCK_STREAM}


class RelayError(KiebitzError):
    """The relay cannot start; the text says what failed, where, and what to do about it."""


def endpoint_text(address: Address) -> str:
    """Return `ip:port`, with an IPv6 address in brackets."""
    return endpoint(address[0], address[1])


def resolve(
    host: str, port: int, transport: Transport, prefer: socket.AddressFamily | None = None
) -> tuple[socket.AddressFamily, Address]:
    """Resolve a host name or literal address to an address family and a socket address; blocks on DNS.

    If the name has several addresses, the first one of the family `prefer` is chosen, if there is one: a
    client that connects without the relay would have used that family as well.

    Raises:
        RelayError: the name cannot be resolved.
        Interrupted: a deferred signal arrived during the lookup.
    """
    try:
        found = interruptible(socket.getaddrinfo, host, port, type=_TYPES[transport])
    except (OSError, UnicodeError) as error:
        # UnicodeError: a name with a label that is too long or empty.
        reason = error.strerror if isinstance(error, OSError) else "it is not a valid name"
        raise RelayError(
            f"The host {host} cannot be resolved: {reason}. Check its name, or give its address."
        ) from error
    family, _, _, _, address = min(found, key=lambda info: info[0] != prefer)
    return family, address


def bind_reverse(mode: Reverse) -> tuple[socket.socket, socket.AddressFamily, Address]:
    """Bind the listening socket of a reverse mode and resolve its server.

    Names are resolved only here, once: later DNS changes affect neither the forwarding nor the loop check.

    Returns:
        The non-blocking listening socket, and the server's address family and address.

    Raises:
        RelayError: the socket cannot be bound, or the server's name cannot be resolved.
    """
    family, address = resolve(mode.listen_host, mode.listen_port, mode.transport)
    server_family, server = resolve(mode.host, mode.port, mode.transport, prefer=family)
    listener = bind(family, address, mode.transport)
    return listener, server_family, server


class Route(NamedTuple):
    """A forwarding route: traffic to `bound` goes to `server`; both are addresses, not names."""

    transport: Transport
    bound: Address
    server: Address


def reject_loops(routes: Sequence[Route]) -> None:
    """Raise RelayError if traffic of a route would return to it, directly or through other routes.

    A route that only leads into another route is valid, as it ends at a server.
    """
    for start in routes:
        way = [start]
        while (onward := next((route for route in routes if _leads_to(way[-1], route)), None)) is not None:
            if onward is start:
                raise RelayError(_loop_text(way))
            if onward in way:
                # This route only leads into a cycle, which is reported for one of the cycle's own routes.
                break
            way.append(onward)


def _loop_text(way: Sequence[Route]) -> str:
    transport, bound, _ = way[0]
    if len(way) == 1:
        own = f"{transport} {endpoint_text(bound)}"
        return f"The relay on {own} would be its own server. Listen on another port."
    stations = " to ".join(endpoint_text(route.bound) for route in (*way, way[0]))
    return (
        f"The relay would forward {transport} traffic to itself in a loop: from {stations}. "
        "Name the game server in one of these modes."
    )


def _leads_to(route: Route, other: Route) -> bool:
    """Return True if traffic to the server of `route` arrives where `other` listens."""
    (host, port), (own, own_port) = route.server[:2], other.bound[:2]
    if port != own_port or route.transport != other.transport:
        return False
    server, bound = _parse_address(host), _parse_address(own)
    if server.is_unspecified:
        # Connecting to the unspecified address reaches this machine.
        server = ipaddress.ip_address("127.0.0.1" if server.version == 4 else "::1")
    if not bound.is_unspecified:
        return server == bound
    family = socket.AF_INET if server.version == 4 else socket.AF_INET6
    return server.version == bound.version and is_local(family, (str(server), 0))


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Parse an address; an IPv4-mapped IPv6 address becomes IPv4, as it is sent over IPv4."""
    address = ipaddress.ip_address(host)
    return getattr(address, "ipv4_mapped", None) or address


def bind(
    family: socket.AddressFamily,
    address: Address,
    transport: Transport,
    options: Sequence[tuple[int, int]] = (),
) -> socket.socket:
    """Return a non-blocking socket bound to an address.

    Args:
        family: Address family of the socket.
        address: Address to bind to.
        transport: TCP or UDP.
        options: Socket options as (level, number) that are switched on before binding.

    Raises:
        RelayError: the socket cannot be bound.
    """
    listener = socket.socket(family, _TYPES[transport])
    try:
        listener.setblocking(False)
        if transport == "udp":
            enlarge_buffers(listener)
        else:
            # Otherwise the connections of a relay that just ended would block its port for a minute.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # A client's address should read the same everywhere; IPv4 needs a mode of its own.
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
        return failed + "the port is in use. Stop the program that uses it, or choose another port."
    if error.errno == errno.EACCES:
        return failed + "this port is reserved for the administrator. Choose one from 1024 up."
    if error.errno == errno.EADDRNOTAVAIL:
        return failed + "this machine does not have that address. Choose one of its own, such as 127.0.0.1."
    return failed + f"{error.strerror}. Try another address or port."


def is_local(family: socket.AddressFamily, address: Address) -> bool:
    """Return True if the address belongs to this machine."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address[0], 0, *address[2:]))
        except OSError:
            return False
    return True


def enlarge_buffers(sock: socket.socket) -> None:
    """Request kernel buffers that can hold a burst."""
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        # Some systems reject a size that Linux would reduce; the default must do then.
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)


def allow_open_files(count: int) -> int:
    """Raise this process's limit of open files towards `count`; return the result, at most `count`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return count
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted
