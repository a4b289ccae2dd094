"""The forwarder: all modes of one relay on one event loop, with their journal.

It only forwards and journals. Another process reads the journal; its failure does not affect clients.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from typing import Protocol

from kiebitz.dissectors.extras import require_extra
from kiebitz.proxy.alterer import Alterer
from kiebitz.proxy.journal.flush_timer import FlushTimer
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.relay.alteration_pipeline import AlterationPipeline
from kiebitz.proxy.relay.endpoints import Notice, Route, allow_open_files, reject_loops
from kiebitz.proxy.relay.listeners import (
    ListenerInfo,
    OwnConnections,
    ReverseTcpListener,
    ReverseUdpListener,
    TcpListener,
    UdpListener,
)
from kiebitz.proxy.relay.modes import Mitmproxy, Mode, Reverse, Transparent
from kiebitz.proxy.relay.tcp import TcpRelay
from kiebitz.proxy.relay.transparent import transparent_listeners
from kiebitz.proxy.relay.udp import UdpRelay
from kiebitz.proxy.system.clock import now_ns
from kiebitz.proxy.system.deferred_signals import TERMINATION_SIGNALS
from kiebitz.proxy.system.dependencies import check_names

_OTHER_FILES = 64
"""Number of open files other than sockets: journal, terminal, and files of the interpreter."""


class Relay(Protocol):
    """A relay for one mode, part of a mode, or several modes, whose sockets are already bound."""

    @property
    def listeners(self) -> Sequence[ListenerInfo]:
        """The listeners and their purposes, known once the relay is started."""

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start forwarding. Raises RelayError."""

    async def stop(self, loop: asyncio.AbstractEventLoop, ts_ns: int) -> None:
        """Stop forwarding, and end all streams at `ts_ns`."""

    def close(self) -> None:
        """Close the sockets."""


class Companion(Protocol):
    """A companion that needs regular attention while a forwarder runs."""

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start attending to it on this loop."""

    def leave(self) -> None:
        """Stop attending to it, as the loop is about to end."""


class Forwarder:
    """Relays for all `modes`, whose listening sockets are bound immediately; traffic is written to `journal`.

    The journal is closed when `run` ends.

    Args:
        modes: The relay modes.
        journal: Journal for the forwarded traffic.
        on_notice: Callback for non-fatal problems; may be called often.
        on_listening: Callback for each listener once it is started.
        idle_seconds: Idle timeout of UDP associations.
        max_clients: Maximum clients of each listening UDP socket.
        max_connections: Maximum connections of each listening TCP socket.
        keep_source: Let the servers of transparent modes see the clients' addresses.
        settings: mitmproxy options for its modes, as OPTION=VALUE.
        alterer: Receives all bytes, if given, and decides what is forwarded.

    Raises:
        RelayError: one of the modes cannot start.
        SettingError: mitmproxy rejects one of the settings.
        IncompatibleVersion: the installed mitmproxy lacks names that its modes use.
    """

    def __init__(
        self,
        modes: Sequence[Mode],
        journal: JournalWriter,
        *,
        on_notice: Notice,
        on_listening: Callable[[ListenerInfo], None] = lambda listening: None,
        idle_seconds: float = 600.0,
        max_clients: int = 4096,
        max_connections: int = 4096,
        keep_source: bool = False,
        settings: Sequence[str] = (),
        alterer: Alterer | None = None,
    ) -> None:
        self._journal = journal
        self._pipeline = AlterationPipeline(alterer, journal) if alterer is not None else None
        self._on_listening = on_listening
        self._stopped = asyncio.Event()
        self.relays: list[Relay] = []
        own = OwnConnections()
        tcp: list[TcpListener] = []
        udp: list[UdpListener] = []
        mitmproxy_relays: list[Relay] = []
        mitmproxy = [mode for mode in modes if isinstance(mode, Mitmproxy)]
        routes: list[Route] = []
        try:
            for mode in modes:
                if isinstance(mode, Reverse):
                    if mode.transport == "tcp":
                        tcp_listener = ReverseTcpListener(mode)
                        tcp.append(tcp_listener)
                        routes.append(tcp_listener.route)
                    else:
                        udp_listener = ReverseUdpListener(mode)
                        udp.append(udp_listener)
                        routes.append(udp_listener.route)
                elif isinstance(mode, Transparent):
                    for_tcp, for_udp = transparent_listeners(mode, own, keep_source, on_notice)
                    tcp += for_tcp
                    udp += for_udp
            # All of mitmproxy's modes together count as one listener.
            listeners = len(tcp) + bool(mitmproxy)
            max_connections = _affordable_connections(
                listeners, max_connections, len(udp), max_clients, on_notice
            )
            if mitmproxy:
                require_extra("mitmproxy", str(mitmproxy[0]))
                check_names("mitmproxy")
                # Imported here, as mitmproxy loads slowly.
                from kiebitz.proxy.mitmproxy.modes import MitmproxyRelay

                relay = MitmproxyRelay(
                    mitmproxy, settings, journal, on_notice, idle_seconds, max_connections, self._pipeline
                )
                mitmproxy_relays.append(relay)
                routes += relay.routes
            reject_loops(routes)
        except BaseException:
            for listener in (*tcp, *udp):
                listener.sock.close()
            for other in mitmproxy_relays:
                other.close()
            raise
        pipeline = self._pipeline
        self.relays += [
            TcpRelay(listener, journal, on_notice, max_connections, own, pipeline) for listener in tcp
        ]
        self.relays += [
            UdpRelay(listener, journal, on_notice, idle_seconds, max_clients, own, pipeline)
            for listener in udp
        ]
        self.relays += mitmproxy_relays

    async def run(self) -> None:
        """Forward until `stop` is called; then end all streams and the journal, and close the sockets.

        Raises RelayError if one of the modes fails to start.
        """
        loop = asyncio.get_running_loop()
        flushing = FlushTimer(self._journal, loop)
        started: list[Relay] = []
        if self._pipeline is not None:
            self._pipeline.start(loop)
        try:
            for relay in self.relays:
                await relay.start(loop)
                started.append(relay)
                for listening in relay.listeners:
                    self._on_listening(listening)
            await self._stopped.wait()
        finally:
            if self._pipeline is not None:
                self._pipeline.finish()
            now = now_ns()
            for relay in started:
                await relay.stop(loop, now)
            flushing.stop()
            self._journal.close()
            self.close()

    def stop(self) -> None:
        """Make `run` return; must be called in its thread."""
        self._stopped.set()

    def close(self) -> None:
        """Close the sockets; only needed if `run` was never called."""
        for relay in self.relays:
            relay.close()


def _affordable_connections(
    streams: int, max_connections: int, datagrams: int, max_clients: int, on_notice: Notice
) -> int:
    """Raise the limit of open files as needed by these TCP and UDP listeners with these numbers of clients.

    Returns:
        The number of connections per TCP listener, reduced if the system allows fewer open files.
    """
    # A client takes two sockets; over UDP the second one exists only in transparent mode.
    needed = streams * (2 * max_connections + 2) + datagrams * (2 * max_clients + 2)
    allowed = allow_open_files(needed + _OTHER_FILES) - _OTHER_FILES
    if allowed >= needed or not streams:
        return max_connections
    fewer = max(1, max_connections * allowed // needed)
    on_notice(
        "open-files",
        f"The system allows this process {allowed + _OTHER_FILES} open files: each TCP listener accepts "
        f"{fewer} connections at most, not {max_connections}. Raise the limit (ulimit -Hn), or lower "
        "--max-connections.",
    )
    return fewer


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # Not available on every system.
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run_relay(forwarder: Forwarder, *companions: Companion) -> None:
    """Run a forwarder until SIGINT or SIGTERM, in the main thread, on uvloop where available.

    If these signals are deferred (`proxy.system.deferred_signals`), a pending one ends the run immediately,
    and they are no longer deferred. The `companions` are attended to on the same loop.
    """

    async def until_signal() -> None:
        loop = asyncio.get_running_loop()
        for number in TERMINATION_SIGNALS:
            loop.add_signal_handler(number, forwarder.stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINATION_SIGNALS)
        for companion in companions:
            companion.attend(loop)
        try:
            await forwarder.run()
        finally:
            for companion in companions:
                companion.leave()

    before = {number: signal.getsignal(number) for number in TERMINATION_SIGNALS}
    try:
        with asyncio.Runner(loop_factory=_new_event_loop) as runner:
            runner.run(until_signal())
    finally:
        # The loop leaves its own handlers behind, which no longer do anything.
        for number, handler in before.items():
            signal.signal(number, handler)
