"""Detection of which side of a flow is the server: by its port, earlier streams, or the bytes sent.

A flow is source address, destination address, source port, destination port, as in `proxy.capture.packets`.
"""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.dissectors.model import Direction

DirectionDetector = Callable[[bytes, str, str], Direction | None]
"""Function from bytes, their source and their destination (`ip:port`) to their direction; None if unknown."""

# Maximum number of servers remembered for later streams.
_MAX_SERVERS = 16_384


class ServerRegistry:
    """The known servers of one transport; `ports` are known server ports."""

    def __init__(self, ports: frozenset[int], detect_direction: DirectionDetector) -> None:
        self._ports = ports
        self._detect_direction = detect_direction
        self._endpoints: set[bytes] = set()

    def known_direction(self, flow: bytes) -> Direction | None:
        """Return a flow's direction if only one end is a server port, or else a remembered server."""
        source_port, destination_port = ports(flow)
        from_server, to_server = source_port in self._ports, destination_port in self._ports
        if from_server == to_server:
            from_server, to_server = sender(flow) in self._endpoints, receiver(flow) in self._endpoints
        if from_server == to_server:
            return None
        return "s2c" if from_server else "c2s"

    def detect(self, flow: bytes, data: bytes, source: str, destination: str) -> Direction | None:
        """Return a flow's direction as detected from its bytes, and remember the server."""
        direction = self._detect_direction(data, source, destination)
        if direction is not None:
            self.remember(sender(flow) if direction == "s2c" else receiver(flow))
        return direction

    def remember(self, endpoint: bytes) -> None:
        """Remember a `sender` or `receiver` of a flow as a server."""
        if len(self._endpoints) < _MAX_SERVERS:
            self._endpoints.add(endpoint)


def reverse(flow: bytes) -> bytes:
    """Return the flow of the opposite direction."""
    size = (len(flow) - 4) // 2
    return flow[size : 2 * size] + flow[:size] + flow[-2:] + flow[-4:-2]


def sender(flow: bytes) -> bytes:
    """Return the source address and port of a flow."""
    return flow[: (len(flow) - 4) // 2] + flow[-4:-2]


def receiver(flow: bytes) -> bytes:
    """Return the destination address and port of a flow."""
    return flow[(len(flow) - 4) // 2 : -4] + flow[-2:]


def ports(flow: bytes) -> tuple[int, int]:
    """Return the source and destination port of a flow."""
    return int.from_bytes(flow[-4:-2], "big"), int.from_bytes(flow[-2:], "big")
