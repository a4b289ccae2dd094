"""The gates of transparent mode: what the firewall redirects goes on to where its sender meant it to go.

Linux only. TCP may be redirected in two ways: REDIRECT changes the destination, and the kernel remembers it
(SO_ORIGINAL_DST); TPROXY leaves it as it is, and the accepted socket has it as its own address. UDP needs
TPROXY: the listener is told each datagram's destination (IP_RECVORIGDSTADDR), and answers go out from there.
The rules that redirect are the user's; `proxy.relay.firewall_rules` words them.
"""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Callable, Hashable
from contextlib import ExitStack, suppress
from struct import Struct
from typing import NamedTuple

from kiebitz.dissectors.model import Transport
from kiebitz.proxy.relay.endpoints import (
    EVERYWHERE,
    Address,
    Notice,
    RelayError,
    bind,
    endpoint_text,
    enlarge_buffers,
    is_local,
)
from kiebitz.proxy.relay.listeners import MAX_DATAGRAM, OwnConnections, Refused, TcpGate, UdpGate, Way
from kiebitz.proxy.relay.modes import Transparent
from kiebitz.proxy.system.sudo import sudo_command

OWN_MARK = 0x4B
"""On all that the relay sends to servers, so that rules can exempt it."""

# From linux/in.h, linux/in6.h and linux/netfilter_ipv4.h; the socket module has no names for them.
_IP_TRANSPARENT = {socket.AF_INET: (socket.SOL_IP, 19), socket.AF_INET6: (socket.IPPROTO_IPV6, 75)}
_RECEIVE_DESTINATION = {socket.AF_INET: (socket.SOL_IP, 20), socket.AF_INET6: (socket.IPPROTO_IPV6, 74)}
_RECEIVE_INTERFACE = {socket.AF_INET: (socket.SOL_IP, 8), socket.AF_INET6: (socket.IPPROTO_IPV6, 49)}
_INTERFACE = {(socket.SOL_IP, 8): Struct("=i8x"), (socket.IPPROTO_IPV6, 50): Struct("=16xi")}
"""The control message that names the interface a datagram came in by: in_pktinfo, in6_pktinfo."""
_ORIGINAL_DESTINATION = {socket.AF_INET: socket.SOL_IP, socket.AF_INET6: socket.IPPROTO_IPV6}
_SO_ORIGINAL_DST = 80
_SOCKADDR_IN = Struct("=2s2s4s8x")
_SOCKADDR_IN6 = Struct("=2s2sI16sI")
_CONTROL_BYTES = 256
_LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}

_UNANSWERED = (
    " With --keep-source the server's answers must come by way of this machine, and the rules must exempt "
    "what the relay itself sends."
)


def transparent_gates(
    mode: Transparent, own: OwnConnections, keep_source: bool, on_notice: Notice
) -> tuple[list[TcpGate], list[UdpGate]]:
    """The gates of a transparent mode, for each of its addresses and both transports.

    With `keep_source` servers see the clients' addresses. Without the rights that it takes to be transparent
    there are only gates for TCP, which then need REDIRECT. Raises RelayError if it cannot listen.
    """
    if sys.platform != "linux":
        raise RelayError(
            f"{mode}: Kiebitz's own transparent mode needs Linux. "
            "Here mitmproxy's modes serve: -m transparent, -m local or -m wireguard."
        )
    terms = _Terms(_may_be_transparent(), keep_source, own, on_notice)
    if keep_source and not terms.privileged:
        raise RelayError(f"--keep-source needs the right to send from other addresses: run {sudo_command()}.")
    if not terms.privileged:
        on_notice(
            "rights",
            f"{mode}: without the right to be transparent there is no UDP and no TPROXY, only TCP that "
            f"REDIRECT leads here. For the rest run {sudo_command()}.",
        )
    tcp: list[TcpGate] = []
    udp: list[UdpGate] = []
    port = mode.listen_port
    try:
        for family, host in _addresses(mode):
            gate = TransparentTcp(family, (host, port), terms)
            tcp.append(gate)
            port = gate.listener.getsockname()[1]
            if terms.privileged:
                udp.append(TransparentUdp(family, (host, port), terms))
    except BaseException:
        for opened in (*tcp, *udp):
            opened.listener.close()
        raise
    return tcp, udp


def _addresses(mode: Transparent) -> list[tuple[socket.AddressFamily, str]]:
    if mode.listen_host is None:
        families = [socket.AF_INET]
        if is_local(socket.AF_INET6, (_LOOPBACK[socket.AF_INET6], 0)):
            families.append(socket.AF_INET6)
        return [(family, _LOOPBACK[family]) for family in families]
    family = socket.AF_INET6 if ":" in mode.listen_host else socket.AF_INET
    try:
        socket.inet_pton(family, mode.listen_host.partition("%")[0])
    except OSError as error:
        raise RelayError(
            f"{mode}: it takes an address, not a name, as in transparent@0.0.0.0:9001."
        ) from error
    return [(family, mode.listen_host)]


def _may_be_transparent() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.setsockopt(*_IP_TRANSPARENT[socket.AF_INET], 1)
        except PermissionError:
            return False
    return True


class _Terms(NamedTuple):
    """What holds for all gates of a mode."""

    privileged: bool
    keep_source: bool
    own: OwnConnections
    on_notice: Notice


class _Transparent:
    """What both transports' gates share."""

    def __init__(
        self, transport: Transport, family: socket.AddressFamily, address: Address, terms: _Terms
    ) -> None:
        self._transport: Transport = transport
        self._family = family
        self._terms = terms
        options = [_IP_TRANSPARENT[family]] if terms.privileged else []
        self.listener = bind(family, address, transport, options)
        self._bound: Address = self.listener.getsockname()
        self.address = endpoint_text(self._bound)
        self.says = f"{transport} {self.address}, for what is redirected to it"

    def _checked(self, client: Address, destination: Address) -> Address:
        """A client's destination. Raises Refused if that is the relay, or the client is."""
        name = f"{self._transport} {endpoint_text(client)}"
        if self._terms.own.has(self._transport, client, destination):
            raise self._loop(destination)
        if destination[1] == self._bound[1] and (
            destination[0] == self._bound[0]
            or (self._bound[0] in EVERYWHERE and is_local(self._family, destination))
        ):
            raise Refused(
                "not-redirected",
                f"{name} was turned away: it came to the relay's own address, {endpoint_text(destination)}, "
                "and only what is redirected has a server to go to. --print-rules words rules for that.",
            )
        return destination

    def _loop(self, destination: Address) -> Refused:
        return Refused(
            "loop",
            f"The relay's own traffic to {self._transport} {endpoint_text(destination)} was led back to it, "
            f"and refused. Exempt it in the rules: it has the mark {OWN_MARK:#x}, if the relay has the right "
            "to set one, and else only its user tells it. --print-rules words such rules.",
        )

    def upstream(self, client: Address, destination: Address) -> socket.socket:
        """A socket to send from to `destination`; in the client's name, if that is asked for."""
        sock = _socket(self._family, self._transport)
        try:
            if self._terms.keep_source:
                self._lend(sock, client, destination)
        except OSError:
            sock.close()
            raise
        return sock

    def _lend(self, sock: socket.socket, client: Address, destination: Address) -> None:
        """Give `sock` its client's address, as far as answers to that will come here."""
        if is_local(self._family, client):
            # His port is his; and what matters, the address, is the same.
            sock.bind((client[0], 0, *client[2:]))
            return
        if is_local(self._family, destination):
            self._terms.on_notice(
                "keep-source",
                f"{self._transport} {endpoint_text(destination)} is on this machine, and would answer "
                f"{endpoint_text(client)} directly: here --keep-source does not hold.",
            )
            return
        sock.setsockopt(*_IP_TRANSPARENT[self._family], 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(client)


class TransparentTcp(_Transparent):
    """Lets TCP connections in that are redirected to its address."""

    def __init__(self, family: socket.AddressFamily, address: Address, terms: _Terms) -> None:
        super().__init__("tcp", family, address, terms)
        self.advice = _UNANSWERED if terms.keep_source else ""

    def destination(self, client: socket.socket, address: Address) -> Address:
        return self._checked(address, original_destination(client))


class TransparentUdp(_Transparent):
    """Lets datagrams in that TPROXY leads to its address.

    Keys are the client's address, the destination, and whether it came in by the loopback interface.
    """

    def __init__(self, family: socket.AddressFamily, address: Address, terms: _Terms) -> None:
        super().__init__("udp", family, address, terms)
        for option in (_RECEIVE_DESTINATION[family], _RECEIVE_INTERFACE[family]):
            self.listener.setsockopt(*option, 1)
        self._loopback = socket.if_nametoindex("lo")
        self.receive: Callable[[], tuple[bytes, Hashable]] = self._receive

    def _receive(self) -> tuple[bytes, Hashable]:
        data, control, _, client = self.listener.recvmsg(MAX_DATAGRAM, _CONTROL_BYTES)
        destination: Address = self._bound
        inside = False
        for level, kind, value in control:
            if (level, kind) == _RECEIVE_DESTINATION[self._family]:
                destination = _address(self._family, value)
            elif (level, kind) in _INTERFACE:
                inside = _INTERFACE[level, kind].unpack_from(value)[0] == self._loopback
        return data, (client, destination, inside)

    def open(self, key: Hashable) -> Way:
        assert isinstance(key, tuple)
        client, destination, inside = key
        self._checked(client, destination)
        if inside and not is_local(self._family, client):
            # Nobody else's datagrams come in there, but ours that bear a client's address.
            raise self._loop(destination)
        if is_local(self._family, destination):
            raise Refused(
                "local-server",
                f"udp {endpoint_text(destination)} is on this machine, where only the server can answer from "
                "its port. Relay it with -m reverse:udp://… instead.",
            )
        with ExitStack() as unless_whole:
            upstream = unless_whole.enter_context(self.upstream(client, destination))
            upstream.setblocking(False)
            enlarge_buffers(upstream)
            upstream.connect(destination)
            answering = unless_whole.enter_context(_socket(self._family, "udp"))
            answering.setblocking(False)
            answering.setsockopt(*_IP_TRANSPARENT[self._family], 1)
            # Each client of one server gets answers by a socket of his own.
            answering.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            answering.bind(destination)
            unless_whole.pop_all()
        return Way(client, destination, upstream, answering)


def original_destination(sock: socket.socket) -> Address:
    """Where an accepted connection was meant to go before REDIRECT or TPROXY led it here."""
    family = sock.family
    size = (_SOCKADDR_IN if family == socket.AF_INET else _SOCKADDR_IN6).size
    try:
        raw = sock.getsockopt(_ORIGINAL_DESTINATION[family], _SO_ORIGINAL_DST, size)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOPROTOOPT, errno.EOPNOTSUPP):
            raise
        # Where connections are not tracked nothing was changed: it is TPROXY.
        address: Address = sock.getsockname()
        return address
    return _address(family, raw)


def _socket(family: socket.AddressFamily, transport: Transport) -> socket.socket:
    """A socket of the relay's own, marked as such if that may be."""
    sock = socket.socket(family, socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM)
    with suppress(PermissionError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, OWN_MARK)
    return sock


def _address(family: int, raw: bytes) -> Address:
    """The address in a sockaddr_in or sockaddr_in6, as the socket module has it."""
    if family == socket.AF_INET:
        _, port, host = _SOCKADDR_IN.unpack_from(raw)
        return socket.inet_ntop(socket.AF_INET, host), int.from_bytes(port, "big")
    _, port, flow, host, scope = _SOCKADDR_IN6.unpack_from(raw)
    return socket.inet_ntop(socket.AF_INET6, host), int.from_bytes(port, "big"), flow, scope
