"""mitmproxy's modes in the relay: an embedded mitmproxy with only the addons that forward bytes.

It runs on the forwarder's event loop and journals like the other relays. It reads no configuration file of
mitmproxy, only the given settings, but uses mitmproxy's keys and certificates, so that devices that trust
them continue to do so.

This module takes most of a second to import, so it is imported only for such a mode.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import cast

import mitmproxy_rs
from mitmproxy.addons.block import Block
from mitmproxy.addons.dns_resolver import DnsResolver
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.addons.tlsconfig import TlsConfig
from mitmproxy.connection import Client
from mitmproxy.exceptions import OptionsError
from mitmproxy.master import Master
from mitmproxy.options import Options
from mitmproxy.proxy.events import DataReceived
from mitmproxy.proxy.layer import NextLayer
from mitmproxy.proxy.layers.modes import ReverseProxy
from mitmproxy.proxy.mode_servers import WireGuardServerInstance
from mitmproxy.proxy.mode_specs import ProxyMode, ReverseMode
from mitmproxy.proxy.server_hooks import ServerConnectionHookData
from mitmproxy.tls import TlsData
from mitmproxy.version import VERSION

from kiebitz.dissectors.model import Transport
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.mitmproxy.keys import secure_keys
from kiebitz.proxy.mitmproxy.layers import PlainLayers
from kiebitz.proxy.mitmproxy.streams import StreamJournal
from kiebitz.proxy.relay.alteration_pipeline import AlterationPipeline
from kiebitz.proxy.relay.endpoints import Notice, RelayError, Route, bind, endpoint_text, resolve
from kiebitz.proxy.relay.listeners import ListenerInfo
from kiebitz.proxy.relay.modes import Mitmproxy, SettingError, endpoint

_TCP_IDLE_SECONDS = 86_400
"""Idle timeout of TCP connections; mitmproxy's own is ten minutes, and a game may be silent for longer."""

_GREETING_SECONDS = 2.0
"""Time after which a client that speaks TLS has started it."""

_SET_BY_MODE = ("mode", "server", "listen_host", "listen_port")
"""mitmproxy options that `-m` sets."""

_STOP_SECONDS = 1.0
"""Time for connections to close when the relay ends."""

_LOG = logging.getLogger()
"""The root logger: mitmproxy, its Rust part, and asyncio for their tasks use several loggers."""


class _ConnectionEndAddon:
    """An addon that journals the ends of connections, and failed ones, in `streams`."""

    def __init__(self, proxyserver: Proxyserver, streams: StreamJournal) -> None:
        self._proxyserver = proxyserver
        self._streams = streams

    def client_disconnected(self, client: Client) -> None:
        """End the stream once no direction is open (mitmproxy hook)."""
        self._streams.end(client.id)

    def server_connect_error(self, data: ServerConnectionHookData) -> None:
        """Report an unreachable server (mitmproxy hook)."""
        self._streams.report_unreachable(data.server.transport_protocol, data.client, data.server)

    def tls_failed_server(self, data: TlsData) -> None:
        """Journal the failure and close the client, which mitmproxy would leave waiting (mitmproxy hook)."""
        client, server = data.context.client, data.context.server
        text = f"TLS with the server failed: {server.error}"
        self._streams.record_refused(client.transport_protocol, client, server, "tls", text)
        connection = self._proxyserver.connections.get(client.id)
        if connection is not None and client in connection.transports:
            connection.close_connection(client)


class _ClientAddon:
    """An addon that admits clients up to a limit, never times out players, and handles silent clients.

    `servers` maps the name and port of each reverse mode's server to its address.
    """

    def __init__(
        self,
        proxyserver: Proxyserver,
        servers: Mapping[tuple[str, int], tuple[str, int]],
        idle_seconds: float,
        max_clients: int,
        on_notice: Notice,
    ) -> None:
        self._proxyserver = proxyserver
        self._servers = servers
        self._idle_seconds = idle_seconds
        self._max_clients = max_clients
        self._on_notice = on_notice
        self._waiting: set[asyncio.Task[None]] = set()

    def client_connected(self, client: Client) -> None:
        """Reject the client by setting its `error` if there are too many (mitmproxy hook)."""
        idle = _TCP_IDLE_SECONDS if client.transport_protocol == "tcp" else round(self._idle_seconds)
        self._proxyserver.connections[client.id].timeout_watchdog.timeout = idle
        if len(self._proxyserver.connections) > self._max_clients:
            client.error = "too many connections"
            self._on_notice(
                "max-connections",
                f"{endpoint_text(client.peername)} was rejected: mitmproxy's modes have {self._max_clients} "
                "connections. Raise the limit with --max-connections.",
            )

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """Use the address resolved at the start, as a name might have another one by now (mitmproxy hook)."""
        named = data.server.address
        if isinstance(data.client.proxy_mode, ReverseMode) and named is not None:
            data.server.address = self._servers.get(named, named)

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """Limit the wait for the client's first bytes in reverse modes (mitmproxy hook)."""
        if isinstance(data.client.proxy_mode, ReverseMode):
            task = asyncio.get_running_loop().create_task(self._start_silent_client(data.client))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    def done(self) -> None:
        """Cancel pending waits as mitmproxy ends (mitmproxy hook)."""
        for task in self._waiting:
            task.cancel()

    async def _start_silent_client(self, client: Client) -> None:
        """Treat a silent client as one without TLS: the server may have to send first."""
        await asyncio.sleep(_GREETING_SECONDS)
        connection = self._proxyserver.connections.get(client.id)
        if connection is not None and isinstance(connection.layer, ReverseProxy):
            undecided = connection.layer.child_layer
            if isinstance(undecided, NextLayer) and undecided.layer is None:
                await connection.server_event(DataReceived(client, b""))


class _NoticeHandler(logging.Handler):
    """A log handler that turns mitmproxy's warnings and errors into notices; keeps errors of the start."""

    def __init__(self, on_notice: Notice) -> None:
        super().__init__(logging.WARNING)
        self.errors: list[str] = []
        self.starting = True
        self._on_notice = on_notice

    def emit(self, record: logging.LogRecord) -> None:
        sentence = record.getMessage().partition("\n")[0].strip()
        if self.starting and record.levelno >= logging.ERROR:
            self.errors.append(sentence)
            return
        who = record.name.partition(".")[0]
        client = getattr(record, "client", None)
        about = f"{who}, {endpoint_text(client)}" if client else who
        self._on_notice(f"{record.name}:{record.lineno}", f"{about}: {sentence}")


class MitmproxyRelay:
    """A relay for all of `modes` through one mitmproxy; forwards between `start` and `stop`.

    UDP clients are dropped after `idle_seconds` of silence; those of WireGuard after a minute, by mitmproxy's
    Rust part. Clients beyond `max_connections`, over TCP and UDP together, are closed immediately.

    Raises:
        SettingError: mitmproxy does not have an option of `settings`, or rejects its value.
        RelayError: it cannot listen.
    """

    def __init__(
        self,
        modes: Sequence[Mitmproxy],
        settings: Sequence[str],
        journal: JournalWriter,
        on_notice: Notice,
        idle_seconds: float,
        max_connections: int,
        pipeline: AlterationPipeline | None = None,
    ) -> None:
        self.listeners: list[ListenerInfo] = []
        self._modes = [_check_bindable(mode) for mode in modes]
        self._servers: dict[tuple[str, int], tuple[str, int]] = {}
        self.routes: list[Route] = []
        """Routes of the reverse modes, which lead to one server each."""
        for mode in self._modes:
            if mode.kind.startswith("reverse:"):
                named = cast(ReverseMode, ProxyMode.parse(_mitmproxy_spec(mode))).address
                _, address = resolve(*named, "tcp")
                self._servers[named] = (address[0], address[1])
                self.routes.append(Route("tcp", (mode.listen_host, mode.listen_port), address))
        self._settings = settings
        self._idle_seconds = idle_seconds
        self._max_connections = max_connections
        self._on_notice = on_notice
        self._streams = StreamJournal(journal, on_notice, pipeline)
        self._log = _NoticeHandler(on_notice)
        _LOG.addHandler(self._log)
        try:
            asyncio.run(self._check_startable())
        except BaseException:
            self.close()
            raise

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listen and start forwarding. Raises RelayError if mitmproxy cannot."""
        self._master, self._proxyserver = await self._create()
        await self._proxyserver.setup_servers()
        self._raise_errors()
        await self._master.running()
        self._log.starting = False
        for mode, server in zip(self._modes, self._proxyserver.servers, strict=True):
            listening = ListenerInfo(_description(mode))
            if isinstance(server, WireGuardServerInstance):
                listening = ListenerInfo(
                    _description(mode), _peer_configuration(mode, server), _peer_advice(mode)
                )
            self.listeners.append(listening)

    async def stop(self, loop: asyncio.AbstractEventLoop, ts_ns: int) -> None:
        """Stop forwarding, and end all streams at `ts_ns`."""
        self._streams.end_all(ts_ns)
        await self._proxyserver.servers.update([])
        for connection in list(self._proxyserver.connections.values()):
            transport = connection.transports.get(connection.client)
            if transport is not None and transport.handler is not None:
                transport.handler.cancel()
        end = time.monotonic() + _STOP_SECONDS
        while self._proxyserver.connections and time.monotonic() < end:
            await asyncio.sleep(0.01)
        await self._master.done()

    def close(self) -> None:
        """Restore logging."""
        _LOG.removeHandler(self._log)

    async def _create(self) -> tuple[Master, Proxyserver]:
        """Create a mitmproxy that is not running yet. Raises SettingError and RelayError."""
        options = Options()
        master = Master(options)
        proxyserver = Proxyserver()
        try:
            master.addons.add(
                Block(),
                proxyserver,
                _ClientAddon(
                    proxyserver, self._servers, self._idle_seconds, self._max_connections, self._on_notice
                ),
                _ConnectionEndAddon(proxyserver, self._streams),
                PlainLayers(self._streams, proxyserver.connections),
                DnsResolver(),
                TlsConfig(),
            )
            _apply_settings(options, self._settings)
            self._guard_keys(options)
            # This update makes TlsConfig read or create the keys.
            options.update(confdir=options.confdir)
            try:
                options.update(mode=[_mitmproxy_spec(mode) for mode in self._modes])
            except OptionsError as error:
                raise RelayError(f"mitmproxy reports: {error}") from error
            self._raise_errors()
        except BaseException:
            await master.done()
            raise
        return master, proxyserver

    def _guard_keys(self, options: Options) -> None:
        folder = Path(os.path.expanduser(options.confdir))
        wireguard = []
        for mode in self._modes:
            kind, _, file = mode.kind.partition(":")
            if kind == "wireguard":
                wireguard.append(Path(os.path.expanduser(file)) if file else folder / "wireguard.conf")
        is_dedicated = options.confdir == options.default("confdir")
        secure_keys(
            folder,
            wireguard,
            mitmproxy_rs.wireguard.genkey,
            self._on_notice,
            is_dedicated=is_dedicated,
        )

    async def _check_startable(self) -> None:
        """Create and discard a mitmproxy, so that errors are reported immediately."""
        master, _ = await self._create()
        await master.done()

    def _raise_errors(self) -> None:
        if self._log.errors:
            raise RelayError(f"mitmproxy cannot start: {'; '.join(self._log.errors)}")


def _apply_settings(options: Options, settings: Sequence[str]) -> None:
    """Set mitmproxy options given as OPTION=VALUE. Raises SettingError."""
    for setting in settings:
        name = setting.partition("=")[0]
        if name in _SET_BY_MODE:
            raise SettingError(f"{name} is set with -m")
        if name not in options:
            near = get_close_matches(name, options.keys(), n=1)
            hint = f"; {did_you_mean(*near)}" if near else ""
            raise SettingError(f"mitmproxy's modes have no option {name}{hint}")
    try:
        options.set(*settings)
    except (OptionsError, TypeError) as error:
        raise SettingError(f"mitmproxy reports: {error}") from error
    for name, option in options.items():
        if option.choices and option.current() not in option.choices:
            raise SettingError(f"{name} must be one of {', '.join(option.choices)}")


def _check_bindable(mode: Mitmproxy) -> Mitmproxy:
    """Return the mode with its resolved address, after checking that it can be bound. Raises RelayError."""
    if mode.listen_host is None or mode.listen_port is None:
        reason = _local_mode_problem()
        if reason is not None:
            raise RelayError(f"{mode}: {reason}.")
        return mode
    family, address = resolve(mode.listen_host, mode.listen_port, _transport(mode))
    with bind(family, address, _transport(mode)) as probe:
        host, port = probe.getsockname()[:2]
    return Mitmproxy(mode.kind, host, port)


def _local_mode_problem() -> str | None:
    """Return why local mode is unavailable on this machine; None if it is available."""
    # Before 11.1 this cannot be queried, and there is no local mode for Linux.
    ask = getattr(mitmproxy_rs.local.LocalRedirector, "unavailable_reason", None)
    if ask is not None:
        return cast("str | None", ask())
    if sys.platform == "linux":
        return f"on Linux this needs mitmproxy 11.1, and so Python 3.12; this is mitmproxy {VERSION}"
    return None


def _transport(mode: Mitmproxy) -> Transport:
    """Return the transport by which clients reach mitmproxy itself."""
    return "udp" if mode.kind.startswith("wireguard") else "tcp"


def _mitmproxy_spec(mode: Mitmproxy) -> str:
    """Return the mode in mitmproxy's notation, with an IPv6 address without brackets."""
    if mode.listen_host is None:
        return mode.kind
    # Only without a host here does the peers' configuration name an address of this machine.
    everywhere = mode.kind.startswith("wireguard") and mode.listen_host == "0.0.0.0"
    return f"{mode.kind}@{'' if everywhere else mode.listen_host}:{mode.listen_port}"


def _description(mode: Mitmproxy) -> str:
    """Return the mode's listening address and mitmproxy's description of it."""
    description = ProxyMode.parse(_mitmproxy_spec(mode)).description
    if mode.listen_host is None or mode.listen_port is None:
        return f"{mode.kind}: mitmproxy's {description}"
    return f"{_transport(mode)} {endpoint(mode.listen_host, mode.listen_port)}: mitmproxy's {description}"


def _peer_configuration(mode: Mitmproxy, server: WireGuardServerInstance) -> str:
    """Return the configuration for WireGuard peers of `server`."""
    configuration = server.client_conf() or ""
    if mode.listen_host is not None and mode.listen_port is not None:
        # mitmproxy omits the brackets of an IPv6 address.
        bare, right = f"{mode.listen_host}:{mode.listen_port}", endpoint(mode.listen_host, mode.listen_port)
        configuration = configuration.replace(f" = {bare}", f" = {right}")
    return configuration


def _peer_advice(mode: Mitmproxy) -> str | None:
    """Return a hint for WireGuard peers if the listening address is a loopback address."""
    if mode.listen_host is None or not ipaddress.ip_address(mode.listen_host).is_loopback:
        return None
    return "Only programs on this machine can reach it there. For a phone: -m wireguard@0.0.0.0:51820"
