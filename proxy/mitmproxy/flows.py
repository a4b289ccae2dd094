"""The addon that journals the flows of plain TCP and UDP of a mitmproxy that a user runs.

What is recorded is what the receiver gets. So messages that somebody injects are recorded like all others,
and changed ones as the addons before this one have left them. Only what is edited while mitmproxy intercepts
a flow is recorded as it came: nothing tells an addon of the edit. The flows themselves are the user's, and
are left as they are.

A connection on which nobody says a word is no flow, and so no stream; nor is one that mitmproxy takes for
HTTP or the like, and a flow that is read from a file has passed long ago.
"""

from __future__ import annotations

from mitmproxy.tcp import TCPFlow
from mitmproxy.udp import UDPFlow

from kiebitz.dissectors.model import Direction, Transport
from kiebitz.proxy.mitmproxy.streams import Streams


class FlowJournal:
    """Journals flows in `streams`. All its methods are mitmproxy's hooks."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def tcp_message(self, flow: TCPFlow) -> None:
        self._message(flow, "tcp")

    def udp_message(self, flow: UDPFlow) -> None:
        self._message(flow, "udp")

    def tcp_end(self, flow: TCPFlow) -> None:
        self._streams.end(flow.id)

    def udp_end(self, flow: UDPFlow) -> None:
        self._streams.end(flow.id)

    def tcp_error(self, flow: TCPFlow) -> None:
        self._error(flow, "tcp")

    def udp_error(self, flow: UDPFlow) -> None:
        self._error(flow, "udp")

    def _message(self, flow: TCPFlow | UDPFlow, transport: Transport) -> None:
        if not flow.live:
            return
        message = flow.messages[-1]
        direction: Direction = "c2s" if message.from_client else "s2c"
        self._streams.passed_on(
            flow.id, transport, flow.client_conn, flow.server_conn, direction, message.content
        )

    def _error(self, flow: TCPFlow | UDPFlow, transport: Transport) -> None:
        if not self._streams.end(flow.id, "reset") and flow.live:
            self._streams.unreachable(transport, flow.client_conn, flow.server_conn)
