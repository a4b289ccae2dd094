"""Streams of connections through mitmproxy: a client's connection and its server's, journaled as one.

The addon that journals plain TCP and UDP flows of a mitmproxy that a user runs.

It records what the receiver gets. So injected messages are recorded like all others, and changed ones as the
preceding addons have left them. Only edits made while mitmproxy intercepts a flow are not recorded, as addons
are not informed of them. The flows themselves are the user's, and are not changed.

A silent connection is no flow, and so no stream; nor is one that mitmproxy takes for HTTP or the like. Flows
read from a file are ignored.
"""

from __future__ import annotations

import ipaddress
import os
import re

import msgspec
from mitmproxy.connection import Client, Server
from mitmproxy.tcp import TCPFlow
from mitmproxy.udp import UDPFlow

from kiebitz.dissectors.model import Direction, Transport
from kiebitz.proxy.journal.writer import MAX_PAYLOAD, JournalWriter
from kiebitz.proxy.relay.alteration_pipeline import AlterationPipeline, StreamOutput
from kiebitz.proxy.relay.endpoints import Notice, endpoint_text
from kiebitz.proxy.relay.tcp import CONNECT_FAULTS
from kiebitz.proxy.system.clock import now_ns


class FlowJournal:
    """A mitmproxy addon that journals flows in `streams`; all its methods are hooks."""

    def __init__(self, streams: StreamJournal) -> None:
        self._streams = streams

    def tcp_message(self, flow: TCPFlow | UDPFlow) -> None:
        """Journal a message (mitmproxy hook)."""
        if flow.live:
            message = flow.messages[-1]
            direction: Direction = "c2s" if message.from_client else "s2c"
            self._streams.journal_data(
                flow.id, _transport(flow), flow.client_conn, flow.server_conn, direction, message.content
            )

    def tcp_end(self, flow: TCPFlow | UDPFlow) -> None:
        """Journal the end of a flow (mitmproxy hook)."""
        self._streams.end(flow.id)

    def tcp_error(self, flow: TCPFlow | UDPFlow) -> None:
        """Journal a reset or an unreachable server (mitmproxy hook)."""
        if not self._streams.end(flow.id, "reset") and flow.live:
            self._streams.report_unreachable(_transport(flow), flow.client_conn, flow.server_conn)

    udp_message, udp_end, udp_error = tcp_message, tcp_end, tcp_error


def _transport(flow: TCPFlow | UDPFlow) -> Transport:
    return "tcp" if isinstance(flow, TCPFlow) else "udp"


_ERROR_NUMBER = re.compile(r"\[Errno (\d+)\]")


class _Stream(msgspec.Struct, eq=False):
    """A stream's number in the journal; `received` counts the bytes of each direction."""

    number: int
    transport: Transport
    received: dict[Direction, int] = msgspec.field(default_factory=lambda: {"c2s": 0, "s2c": 0})


class StreamJournal:
    """Writes streams to `journal` until `end_all`; `on_notice` reports unreachable servers.

    A stream is identified by its reporter's key. It begins with its first bytes: in some of mitmproxy's modes
    the server's address is not known before. With a `pipeline`, that journals the forwarded bytes.
    """

    def __init__(
        self, journal: JournalWriter, on_notice: Notice, pipeline: AlterationPipeline | None = None
    ) -> None:
        self._journal = journal
        self.pipeline = pipeline
        self._on_notice = on_notice
        self._streams: dict[str, _Stream] = {}
        self._is_over = False

    def journal_data(
        self,
        key: str,
        transport: Transport,
        client: Client,
        server: Server,
        direction: Direction,
        data: bytes,
    ) -> None:
        """Journal a datagram, possibly empty, or a piece of a byte stream, that was just forwarded."""
        stream = self._streams.get(key) or self._open(key, transport, client, server)
        # Empty pieces are created in `proxy.mitmproxy.modes` or by another addon.
        if stream is None or (not data and transport == "tcp"):
            return
        now = now_ns()
        for start in range(0, len(data) or 1, MAX_PAYLOAD):
            piece = data[start : start + MAX_PAYLOAD]
            self._journal.chunk(stream.number, direction, now, stream.received[direction], piece)
            stream.received[direction] += len(piece)

    def data_received(
        self,
        key: str,
        transport: Transport,
        client: Client,
        server: Server,
        direction: Direction,
        data: bytes,
        outlet: StreamOutput,
    ) -> bool:
        """Feed a datagram or piece of a stream to the pipeline; return False if it must pass unaltered."""
        assert self.pipeline is not None
        stream = self._streams.get(key)
        if stream is None:
            stream = self._open(key, transport, client, server)
            if stream is None:
                return False
            address = server.peername or server.address
            assert address is not None
            names = endpoint_text(client.peername), endpoint_text(address)
            self.pipeline.stream_opened(stream.number, transport, *names, now_ns(), outlet)
        self.pipeline.data_received(stream.number, direction, now_ns(), data)
        return True

    def eof_received(self, key: str, direction: Direction) -> bool:
        """Feed the end of a direction to the pipeline; return False if there is no such stream."""
        stream = self._streams.get(key)
        if stream is None or self.pipeline is None:
            return False
        self.pipeline.eof_received(stream.number, direction, now_ns())
        return True

    def end(self, key: str, reason: str | None = None) -> bool:
        """Journal a stream's end; return False if there is no such stream, or it has already ended.

        mitmproxy forwards a reset as an end, and drops a UDP client after some silence. So without a reason,
        a TCP stream was closed, and a UDP one was idle.
        """
        stream = self._streams.pop(key, None)
        if stream is None:
            return False
        if self.pipeline is not None:
            self.pipeline.stream_closed(stream.number, now_ns())
        usual = "closed" if stream.transport == "tcp" else "idle"
        self._journal.end(stream.number, now_ns(), reason or usual)
        return True

    def record_refused(
        self, transport: Transport, client: Client, server: Server, code: str, text: str
    ) -> None:
        """Journal a connection that a server refused; there is no stream if only its name is known."""
        stream = self._open(client.id, transport, client, server)
        if stream is not None:
            self._journal.fault(stream.number, "c2s", now_ns(), 0, code, text)
            self.end(client.id, "refused")

    def report_unreachable(self, transport: Transport, client: Client, server: Server) -> None:
        """Journal and report a failed connection to a server; `server.error` is the reason."""
        if self._is_over:
            return
        match = _ERROR_NUMBER.search(server.error or "")
        number = int(match[1]) if match else 0
        reason = os.strerror(number) if number else (server.error or "no reason was given").rstrip(".")
        code, text = CONNECT_FAULTS.get(number, ("network", reason))
        self.record_refused(transport, client, server, code, text)
        route = endpoint_text(client.peername)
        if server.address is not None:
            route += f" to {endpoint_text(server.address)}"
        self._on_notice(code, f"{transport} {route}: {text}. The connection was closed.")

    def end_all(self, ts_ns: int) -> None:
        """End all streams at `ts_ns`, and stop journaling."""
        for stream in self._streams.values():
            if self.pipeline is not None:
                self.pipeline.stream_closed(stream.number, ts_ns)
            self._journal.end(stream.number, ts_ns, "end")
        self._streams.clear()
        self._is_over = True

    def _open(self, key: str, transport: Transport, client: Client, server: Server) -> _Stream | None:
        """Open a stream, unless journaling has stopped or only the server's name is known."""
        address = server.peername or server.address
        if self._is_over or address is None or not _is_ip(address[0]):
            return None
        names = endpoint_text(client.peername), endpoint_text(address)
        # mitmproxy's own times are those of a clock that may be set.
        stream = _Stream(self._journal.open(transport, *names, now_ns()), transport)
        self._streams[key] = stream
        return stream


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
