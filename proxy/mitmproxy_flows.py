"""What passes through mitmproxy, journaled: an addon for its flows of plain TCP and UDP.

It serves in the relay's own mitmproxy (`proxy/mitmproxy_modes.py`) and in one that a user runs. A flow is a
stream from its first message on, or from its end if it had none: in some of mitmproxy's modes the address of
its server is not known before. A connection on which nobody says a word is no flow for it, and so no stream.

What is recorded is what the receiver gets. So messages that somebody injects are recorded like all others,
and changed ones as the addons before this one have left them. Only what is edited while mitmproxy intercepts
a flow is recorded as it came: nothing tells an addon of the edit.

mitmproxy passes a reset on as an end, and forgets a UDP client after some silence; so a TCP stream that is
over was `closed`, and a UDP one was `idle`.
"""

from __future__ import annotations

import ipaddress
import os
import re
import time

from mitmproxy.connection import Client, Server
from mitmproxy.tcp import TCPFlow
from mitmproxy.udp import UDPFlow

from dissectors.records import Direction, Transport
from proxy.endpoints import Notice, endpoint_text
from proxy.journal import MAX_PAYLOAD, JournalWriter
from proxy.relay_tcp import CONNECT_FAULTS

_ERROR_NUMBER = re.compile(r"\[Errno (\d+)\]")


class _Stream:
    """A flow's stream in the journal; `came` counts the bytes of each direction."""

    __slots__ = ("came", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.came: dict[Direction, int] = {"c2s": 0, "s2c": 0}


class FlowJournal:
    """Writes all flows to `journal` until `end_all`; `on_notice` is told of servers that cannot be reached.

    The methods that say nothing of themselves are mitmproxy's hooks.
    """

    def __init__(self, journal: JournalWriter, on_notice: Notice) -> None:
        self._journal = journal
        self._on_notice = on_notice
        self._streams: dict[str, _Stream] = {}
        self._over = False

    def tcp_message(self, flow: TCPFlow) -> None:
        self._message(flow)

    def udp_message(self, flow: UDPFlow) -> None:
        self._message(flow)

    def tcp_end(self, flow: TCPFlow) -> None:
        self._end(flow, "closed")

    def udp_end(self, flow: UDPFlow) -> None:
        self._end(flow, "idle")

    def tcp_error(self, flow: TCPFlow) -> None:
        self._error(flow)

    def udp_error(self, flow: UDPFlow) -> None:
        self._error(flow)

    def unreachable(self, transport: Transport, client: Client, server: Server) -> None:
        """Tell that there was no connection to a server, and journal it if his address is known."""
        if self._over:
            return
        match = _ERROR_NUMBER.search(server.error or "")
        number = int(match[1]) if match else 0
        reason = os.strerror(number) if number else (server.error or "no reason was given").rstrip(".")
        code, text = CONNECT_FAULTS.get(number, ("network", reason))
        now = time.time_ns()
        stream = self._open(transport, client, server)
        if stream is not None:
            self._journal.fault(stream.number, "c2s", now, 0, code, text)
            self._journal.end(stream.number, now, "refused")
        way = endpoint_text(client.peername)
        if server.address is not None:
            way += f" to {endpoint_text(server.address)}"
        self._on_notice(code, f"{transport} {way}: {text}. The connection was closed.")

    def end_all(self, ts_ns: int) -> None:
        """End all streams at `ts_ns`, and journal nothing any more."""
        for stream in self._streams.values():
            self._journal.end(stream.number, ts_ns, "end")
        self._streams.clear()
        self._over = True

    def _message(self, flow: TCPFlow | UDPFlow) -> None:
        message = flow.messages[-1]
        data: bytes = message.content
        # A datagram may be empty; a piece of a byte stream is only if an addon has taken what was in it.
        if not data and isinstance(flow, TCPFlow):
            return
        stream = self._stream(flow)
        if stream is None:
            return
        now = time.time_ns()
        direction: Direction = "c2s" if message.from_client else "s2c"
        for start in range(0, len(data) or 1, MAX_PAYLOAD):
            piece = data[start : start + MAX_PAYLOAD]
            self._journal.chunk(stream.number, direction, now, stream.came[direction], piece)
            stream.came[direction] += len(piece)

    def _end(self, flow: TCPFlow | UDPFlow, reason: str) -> None:
        stream = self._stream(flow)
        if stream is not None:
            del self._streams[flow.id]
            self._journal.end(stream.number, time.time_ns(), reason)

    def _error(self, flow: TCPFlow | UDPFlow) -> None:
        if flow.id in self._streams:
            self._end(flow, "reset")
        else:
            self.unreachable(_transport(flow), flow.client_conn, flow.server_conn)

    def _stream(self, flow: TCPFlow | UDPFlow) -> _Stream | None:
        """A flow's stream, which begins now if it has none; None if it can have none."""
        stream = self._streams.get(flow.id)
        if stream is None:
            stream = self._open(_transport(flow), flow.client_conn, flow.server_conn)
            if stream is not None:
                self._streams[flow.id] = stream
        return stream

    def _open(self, transport: Transport, client: Client, server: Server) -> _Stream | None:
        """Begin a stream, unless all is over, or nothing but a name is known of its server."""
        address = server.peername or server.address
        if self._over or address is None or not _is_ip(address[0]):
            return None
        opened_ns = int(client.timestamp_start * 1e9)
        return _Stream(
            self._journal.open(transport, endpoint_text(client.peername), endpoint_text(address), opened_ns)
        )


def _transport(flow: TCPFlow | UDPFlow) -> Transport:
    """By the flow's kind: a stream inside QUIC is bytes in order, too."""
    return "tcp" if isinstance(flow, TCPFlow) else "udp"


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
