"""The forwarder: all modes of one relay on one event loop, with their journal.

It forwards and journals, nothing else. Whoever reads the journal is another process, whose death changes
nothing for the clients.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from typing import Protocol

from kiebitz.dissectors.extras import require_extra
from kiebitz.proxy.alterer import Altering
from kiebitz.proxy.journal.flush_timer import Flushing
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.relay.alteration_pipeline import Detour
from kiebitz.proxy.relay.endpoints import Notice, Route, allow_open_files, refuse_circles
from kiebitz.proxy.relay.listeners import Listening, OwnConnections, ReverseTcp, ReverseUdp, TcpGate, UdpGate
from kiebitz.proxy.relay.modes import Mitmproxy, Mode, Reverse, Transparent
from kiebitz.proxy.relay.tcp import TcpRelay
from kiebitz.proxy.relay.transparent import transparent_gates
from kiebitz.proxy.relay.udp import UdpRelay
from kiebitz.proxy.system.clock import now_ns
from kiebitz.proxy.system.deferred_signals import ENDING

_OTHER_FILES = 64
"""Open files besides the sockets: the journal, the terminal, what the interpreter needs."""


class Relay(Protocol):
    """What relays one mode, or a part of it, or several. That it can listen is certain."""

    @property
    def says(self) -> Sequence[Listening]:
        """Where it listens once it is started, and what for."""

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let traffic flow. Raises RelayError."""

    async def stop(self, loop: asyncio.AbstractEventLoop, ts_ns: int) -> None:
        """Let no more traffic flow, and end all streams at `ts_ns`."""

    def close(self) -> None:
        """Give back the sockets."""


class Attended(Protocol):
    """What wants to be looked after while a forwarder runs."""

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look after it on this loop from now on."""

    def leave(self) -> None:
        """Do so no more: the loop is about to end."""


class Forwarder:
    """Relays all `modes`, whose listening sockets are bound at once, and writes what came to `journal`.

    `idle_seconds` and `max_clients` hold for each listening UDP socket, `max_connections` for each TCP one.
    With `keep_source` the servers of transparent modes see the clients' addresses. `settings` are options of
    mitmproxy's, as OPTION=VALUE, for its modes. With `altering` all bytes go by way of it. `on_notice` is
    told of what goes wrong without stopping anything, and that may be often; `on_listening` of each place
    where clients can come, as a clause. Raises RelayError if one of the modes cannot start, and SettingError.
    The journal is closed with `run`.
    """

    def __init__(
        self,
        modes: Sequence[Mode],
        journal: JournalWriter,
        *,
        on_notice: Notice,
        on_listening: Callable[[Listening], None] = lambda listening: None,
        idle_seconds: float = 600.0,
        max_clients: int = 4096,
        max_connections: int = 4096,
        keep_source: bool = False,
        settings: Sequence[str] = (),
        altering: Altering | None = None,
    ) -> None:
        self._journal = journal
        self._detour = Detour(altering, journal) if altering is not None else None
        self._on_listening = on_listening
        self._stopped = asyncio.Event()
        self.relays: list[Relay] = []
        own = OwnConnections()
        tcp: list[TcpGate] = []
        udp: list[UdpGate] = []
        by_mitmproxy: list[Relay] = []
        mitmproxy = [mode for mode in modes if isinstance(mode, Mitmproxy)]
        routes: list[Route] = []
        try:
            for mode in modes:
                if isinstance(mode, Reverse):
                    if mode.transport == "tcp":
                        by_tcp = ReverseTcp(mode)
                        tcp.append(by_tcp)
                        routes.append(by_tcp.route)
                    else:
                        by_udp = ReverseUdp(mode)
                        udp.append(by_udp)
                        routes.append(by_udp.route)
                elif isinstance(mode, Transparent):
                    for_tcp, for_udp = transparent_gates(mode, own, keep_source, on_notice)
                    tcp += for_tcp
                    udp += for_udp
            # mitmproxy's modes share what one listener may carry.
            listeners = len(tcp) + bool(mitmproxy)
            max_connections = _affordable(listeners, max_connections, len(udp), max_clients, on_notice)
            if mitmproxy:
                require_extra("mitmproxy", str(mitmproxy[0]))
                # It takes its time to load.
                from kiebitz.proxy.mitmproxy.modes import MitmproxyRelay

                relay = MitmproxyRelay(
                    mitmproxy, settings, journal, on_notice, idle_seconds, max_connections, self._detour
                )
                by_mitmproxy.append(relay)
                routes += relay.routes
            refuse_circles(routes)
        except BaseException:
            for gate in (*tcp, *udp):
                gate.listener.close()
            for other in by_mitmproxy:
                other.close()
            raise
        detour = self._detour
        self.relays += [TcpRelay(gate, journal, on_notice, max_connections, own, detour) for gate in tcp]
        self.relays += [
            UdpRelay(gate, journal, on_notice, idle_seconds, max_clients, own, detour) for gate in udp
        ]
        self.relays += by_mitmproxy

    async def run(self) -> None:
        """Forward until `stop` is called; then end all streams and the journal, and close the sockets.

        Raises RelayError if one of the modes turns out not to start.
        """
        loop = asyncio.get_running_loop()
        flushing = Flushing(self._journal, loop)
        started: list[Relay] = []
        if self._detour is not None:
            self._detour.start(loop)
        try:
            for relay in self.relays:
                await relay.start(loop)
                started.append(relay)
                for listening in relay.says:
                    self._on_listening(listening)
            await self._stopped.wait()
        finally:
            if self._detour is not None:
                self._detour.finish()
            now = now_ns()
            for relay in started:
                await relay.stop(loop, now)
            flushing.stop()
            self._journal.close()
            self.close()

    def stop(self) -> None:
        """Let `run` come to its end. To be called in its thread."""
        self._stopped.set()

    def close(self) -> None:
        """Give back the sockets; only needed where `run` was never called."""
        for relay in self.relays:
            relay.close()


def _affordable(
    streams: int, max_connections: int, datagrams: int, max_clients: int, on_notice: Notice
) -> int:
    """See that there are enough open files for so many TCP and UDP listeners, each with so many clients.

    Where the system allows fewer there are fewer connections, as many as given.
    """
    # A client is two sockets; over UDP the second is only there in a transparent mode.
    needed = streams * (2 * max_connections + 2) + datagrams * (2 * max_clients + 2)
    allowed = allow_open_files(needed + _OTHER_FILES) - _OTHER_FILES
    if allowed >= needed or not streams:
        return max_connections
    fewer = max(1, max_connections * allowed // needed)
    on_notice(
        "open-files",
        f"The system allows this process {allowed + _OTHER_FILES} open files: each TCP listener carries "
        f"{fewer} connections at once instead of {max_connections}. Raise the limit (ulimit -Hn), or ask for "
        "fewer with --max-connections.",
    )
    return fewer


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # It does not exist for every system.
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run_relay(forwarder: Forwarder, *beside: Attended) -> None:
    """Run it until SIGINT or SIGTERM, in the main thread, on the fastest event loop there is.

    Where they are deferred (`proxy.system.deferred_signals`), one that has come ends it at once, and they are
    deferred no more.
    What is `beside` it is looked after on the same loop.
    """

    async def until_signal() -> None:
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, forwarder.stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        for attended in beside:
            attended.attend(loop)
        try:
            await forwarder.run()
        finally:
            for attended in beside:
                attended.leave()

    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        with asyncio.Runner(loop_factory=_new_event_loop) as runner:
            runner.run(until_signal())
    finally:
        # The loop leaves handlers of its own behind, which do nothing any more.
        for number, handler in before.items():
            signal.signal(number, handler)
