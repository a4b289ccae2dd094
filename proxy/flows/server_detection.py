"""Which side of a conversation is the server: by its port, from before, or by what is said.

A flow is source address, destination address, source port, destination port, as in `proxy.capture.packets`.
"""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.dissectors.model import Direction

Orient = Callable[[bytes, str, str], Direction | None]
"""Tells from bytes, their source and their destination (`ip:port`) which way they went; None if it cannot."""

# Servers are remembered for the streams to come; beyond this no new ones are.
_MAX_SERVERS = 16_384


class Servers:
    """The servers of one transport. `ports` are known to be servers'."""

    def __init__(self, ports: frozenset[int], orient: Orient) -> None:
        self._ports = ports
        self._orient = orient
        self._endpoints: set[bytes] = set()

    def known(self, flow: bytes) -> Direction | None:
        """Which way a flow goes by what is known of its ends: a server's port, else a server from before."""
        source_port, destination_port = ports(flow)
        from_server, to_server = source_port in self._ports, destination_port in self._ports
        if from_server == to_server:
            from_server, to_server = sender(flow) in self._endpoints, receiver(flow) in self._endpoints
        if from_server == to_server:
            return None
        return "s2c" if from_server else "c2s"

    def recognise(self, flow: bytes, data: bytes, source: str, destination: str) -> Direction | None:
        """Which way a flow goes by what it says; the server is remembered."""
        direction = self._orient(data, source, destination)
        if direction is not None:
            self.remember(sender(flow) if direction == "s2c" else receiver(flow))
        return direction

    def remember(self, endpoint: bytes) -> None:
        """This `sender` of a flow is a server."""
        if len(self._endpoints) < _MAX_SERVERS:
            self._endpoints.add(endpoint)


def reverse(flow: bytes) -> bytes:
    """The flow of what goes the other way."""
    size = (len(flow) - 4) // 2
    return flow[size : 2 * size] + flow[:size] + flow[-2:] + flow[-4:-2]


def sender(flow: bytes) -> bytes:
    """Address and port of who sends a flow."""
    return flow[: (len(flow) - 4) // 2] + flow[-4:-2]


def receiver(flow: bytes) -> bytes:
    """Address and port of who gets a flow."""
    return flow[(len(flow) - 4) // 2 : -4] + flow[-2:]


def ports(flow: bytes) -> tuple[int, int]:
    """Source and destination port."""
    return int.from_bytes(flow[-4:-2], "big"), int.from_bytes(flow[-2:], "big")
