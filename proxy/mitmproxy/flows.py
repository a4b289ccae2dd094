"""The addon that journals plain TCP and UDP flows of a mitmproxy that a user runs.

It records what the receiver gets. So injected messages are recorded like all others, and changed ones as the
preceding addons have left them. Only edits made while mitmproxy intercepts a flow are not recorded, as addons
are not informed of them. The flows themselves are the user's, and are not changed.

A silent connection is no flow, and so no stream; nor is one that mitmproxy takes for HTTP or the like. Flows
read from a file are ignored.
"""

from __future__ import annotations

from mitmproxy.tcp import TCPFlow
from mitmproxy.udp import UDPFlow

from kiebitz.dissectors.model import Direction, Transport
from kiebitz.proxy.mitmproxy.streams import StreamJournal


class FlowJournal:
    """A mitmproxy addon that journals flows in `streams`; all its methods are hooks."""

    def __init__(self, streams: StreamJournal) -> None:
        self._streams = streams

    def tcp_message(self, flow: TCPFlow) -> None:
        """Journal a message (mitmproxy hook)."""
        self._message(flow, "tcp")

    def udp_message(self, flow: UDPFlow) -> None:
        """Journal a message (mitmproxy hook)."""
        self._message(flow, "udp")

    def tcp_end(self, flow: TCPFlow) -> None:
        """Journal the end of a flow (mitmproxy hook)."""
        self._streams.end(flow.id)

    def udp_end(self, flow: UDPFlow) -> None:
        """Journal the end of a flow (mitmproxy hook)."""
        self._streams.end(flow.id)

    def tcp_error(self, flow: TCPFlow) -> None:
        """Journal a reset or an unreachable server (mitmproxy hook)."""
        self._error(flow, "tcp")

    def udp_error(self, flow: UDPFlow) -> None:
        """Journal a reset or an unreachable server (mitmproxy hook)."""
        self._error(flow, "udp")

    def _message(self, flow: TCPFlow | UDPFlow, transport: Transport) -> None:
        if not flow.live:
            return
        message = flow.messages[-1]
        direction: Direction = "c2s" if message.from_client else "s2c"
        self._streams.journal_data(
            flow.id, transport, flow.client_conn, flow.server_conn, direction, message.content
        )

    def _error(self, flow: TCPFlow | UDPFlow, transport: Transport) -> None:
        if not self._streams.end(flow.id, "reset") and flow.live:
            self._streams.report_unreachable(transport, flow.client_conn, flow.server_conn)
