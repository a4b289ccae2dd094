"""mitmproxy's modes in the relay: a mitmproxy of our own, with the few addons that pass bytes on.

It runs on the forwarder's event loop and journals like the other relays. It reads no configuration file of
mitmproxy's, only the settings it is given, but has its keys and certificates where mitmproxy has them: so
devices that trust them already go on doing so.

This module takes most of a second to import, so only who has such a mode imports it.
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
from kiebitz.proxy.mitmproxy.keys import guard_keys
from kiebitz.proxy.mitmproxy.layers import PlainLayers
from kiebitz.proxy.mitmproxy.streams import Streams
from kiebitz.proxy.relay.alteration_pipeline import Detour
from kiebitz.proxy.relay.endpoints import Notice, RelayError, Route, bind, endpoint_text, resolve
from kiebitz.proxy.relay.listeners import Listening
from kiebitz.proxy.relay.modes import Mitmproxy, SettingError, endpoint

_TCP_IDLE_SECONDS = 86_400
"""mitmproxy itself hangs up after ten minutes without a byte, which a game can take."""

_GREETING_SECONDS = 2.0
"""A client who speaks TLS has begun by then."""

_SAID_WITH_M = ("mode", "server", "listen_host", "listen_port")
"""mitmproxy's options that say what `-m` says."""

_STOP_SECONDS = 1.0
"""How long connections have to close when the relay ends."""

_LOG = logging.getLogger()
"""The root: mitmproxy, its part in Rust, and asyncio about their tasks log in several places."""


class _Ends:
    """Journals, in `streams`, how connections end, and those that do not come about."""

    def __init__(self, proxyserver: Proxyserver, streams: Streams) -> None:
        self._proxyserver = proxyserver
        self._streams = streams

    def client_disconnected(self, client: Client) -> None:
        """mitmproxy's hook, when no direction is open any more."""
        self._streams.end(client.id)

    def server_connect_error(self, data: ServerConnectionHookData) -> None:
        """mitmproxy's hook."""
        self._streams.unreachable(data.server.transport_protocol, data.client, data.server)

    def tls_failed_server(self, data: TlsData) -> None:
        """mitmproxy's hook. It tells of that itself, but leaves a client who speaks no TLS waiting."""
        client, server = data.context.client, data.context.server
        text = f"no TLS with the server: {server.error}"
        self._streams.refused(client.transport_protocol, client, server, "tls", text)
        connection = self._proxyserver.connections.get(client.id)
        if connection is not None and client in connection.transports:
            connection.close_connection(client)


class _Clients:
    """Lets clients in, as many as there may be, for as long as they want to stay, and if they say nothing.

    `servers` has the address of each server of a reverse mode by the name and port that it was given with.
    """

    def __init__(
        self,
        proxyserver: Proxyserver,
        servers: Mapping[tuple[str, int], tuple[str, int]],
        idle_seconds: float,
        most: int,
        on_notice: Notice,
    ) -> None:
        self._proxyserver = proxyserver
        self._servers = servers
        self._idle_seconds = idle_seconds
        self._most = most
        self._on_notice = on_notice
        self._waiting: set[asyncio.Task[None]] = set()

    def client_connected(self, client: Client) -> None:
        """mitmproxy's hook: with an `error` the client is turned away."""
        idle = _TCP_IDLE_SECONDS if client.transport_protocol == "tcp" else round(self._idle_seconds)
        self._proxyserver.connections[client.id].timeout_watchdog.timeout = idle
        if len(self._proxyserver.connections) > self._most:
            client.error = "too many connections"
            self._on_notice(
                "max-connections",
                f"{endpoint_text(client.peername)} was turned away: mitmproxy's modes have {self._most} "
                "connections. Allow more with --max-connections.",
            )

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """mitmproxy's hook. A name would be asked for again, and might mean another place by now."""
        named = data.server.address
        if isinstance(data.client.proxy_mode, ReverseMode) and named is not None:
            data.server.address = self._servers.get(named, named)

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """mitmproxy's hook. In a reverse mode it waits for the client's first bytes, if need be for ever."""
        if isinstance(data.client.proxy_mode, ReverseMode):
            task = asyncio.get_running_loop().create_task(self._begin_in_silence(data.client))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    def done(self) -> None:
        """mitmproxy's hook: it ends."""
        for task in self._waiting:
            task.cancel()

    async def _begin_in_silence(self, client: Client) -> None:
        """Have a client who says nothing taken for one without TLS: the server may be the one to begin."""
        await asyncio.sleep(_GREETING_SECONDS)
        connection = self._proxyserver.connections.get(client.id)
        if connection is not None and isinstance(connection.layer, ReverseProxy):
            undecided = connection.layer.child_layer
            if isinstance(undecided, NextLayer) and undecided.layer is None:
                await connection.server_event(DataReceived(client, b""))


class _Log(logging.Handler):
    """Makes notices of mitmproxy's warnings and errors; those that come while it starts are also kept."""

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
    """Relays what all of `modes` say, through one mitmproxy; traffic flows between start and stop.

    `settings` are mitmproxy's options, as OPTION=VALUE. Clients over UDP are forgotten when silent for
    `idle_seconds`; through WireGuard already after a minute, by mitmproxy's part in Rust. One beyond
    `max_connections`, over TCP and UDP together, is closed at once. Raises SettingError for an option or a
    value that mitmproxy does not have, and RelayError if it cannot listen.
    """

    def __init__(
        self,
        modes: Sequence[Mitmproxy],
        settings: Sequence[str],
        journal: JournalWriter,
        on_notice: Notice,
        idle_seconds: float,
        max_connections: int,
        detour: Detour | None = None,
    ) -> None:
        self.says: list[Listening] = []
        self._modes = [_bindable(mode) for mode in modes]
        self._servers: dict[tuple[str, int], tuple[str, int]] = {}
        self.routes: list[Route] = []
        """Of the reverse modes, which lead to one server each."""
        for mode in self._modes:
            if mode.kind.startswith("reverse:"):
                named = cast(ReverseMode, ProxyMode.parse(_spec(mode))).address
                _, address = resolve(*named, "tcp")
                self._servers[named] = (address[0], address[1])
                self.routes.append(Route("tcp", (mode.listen_host, mode.listen_port), address))
        self._settings = settings
        self._idle_seconds = idle_seconds
        self._max_connections = max_connections
        self._on_notice = on_notice
        self._streams = Streams(journal, on_notice, detour)
        self._log = _Log(on_notice)
        _LOG.addHandler(self._log)
        try:
            asyncio.run(self._try())
        except BaseException:
            self.close()
            raise

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listen, and let traffic flow. Raises RelayError if mitmproxy cannot."""
        self._master, self._proxyserver = await self._make()
        await self._proxyserver.setup_servers()
        self._raise_errors()
        await self._master.running()
        self._log.starting = False
        for mode, server in zip(self._modes, self._proxyserver.servers, strict=True):
            listening = Listening(_says(mode))
            if isinstance(server, WireGuardServerInstance):
                listening = Listening(_says(mode), _of_peer(mode, server), _advice(mode))
            self.says.append(listening)

    async def stop(self, loop: asyncio.AbstractEventLoop, ts_ns: int) -> None:
        """Let no more traffic flow, and end all streams at `ts_ns`."""
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
        """Let mitmproxy's log go where it went before."""
        _LOG.removeHandler(self._log)

    async def _make(self) -> tuple[Master, Proxyserver]:
        """A mitmproxy that does nothing yet. Raises SettingError and RelayError."""
        options = Options()
        master = Master(options)
        proxyserver = Proxyserver()
        try:
            master.addons.add(
                Block(),
                proxyserver,
                _Clients(
                    proxyserver, self._servers, self._idle_seconds, self._max_connections, self._on_notice
                ),
                _Ends(proxyserver, self._streams),
                PlainLayers(self._streams, proxyserver.connections),
                DnsResolver(),
                TlsConfig(),
            )
            _set(options, self._settings)
            self._guard_keys(options)
            # With this one TlsConfig reads, or makes, the keys.
            options.update(confdir=options.confdir)
            try:
                options.update(mode=[_spec(mode) for mode in self._modes])
            except OptionsError as error:
                raise RelayError(f"mitmproxy says: {error}") from error
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
        is_mitmproxys = options.confdir == options.default("confdir")
        guard_keys(
            folder,
            wireguard,
            mitmproxy_rs.wireguard.genkey,
            self._on_notice,
            is_mitmproxys=is_mitmproxys,
        )

    async def _try(self) -> None:
        """Make a mitmproxy only to see whether it can be: what is wrong should be known at once."""
        master, _ = await self._make()
        await master.done()

    def _raise_errors(self) -> None:
        if self._log.errors:
            raise RelayError(f"mitmproxy cannot start: {'; '.join(self._log.errors)}")


def _set(options: Options, settings: Sequence[str]) -> None:
    """Set OPTION=VALUE, in mitmproxy's notation. Raises SettingError."""
    for setting in settings:
        name = setting.partition("=")[0]
        if name in _SAID_WITH_M:
            raise SettingError(f"{name} is said with -m")
        if name not in options:
            near = get_close_matches(name, options.keys(), n=1)
            hint = f"; {did_you_mean(*near)}" if near else ""
            raise SettingError(f"mitmproxy's modes have no option {name}{hint}")
    try:
        options.set(*settings)
    except (OptionsError, TypeError) as error:
        raise SettingError(f"mitmproxy says: {error}") from error
    for name, option in options.items():
        if option.choices and option.current() not in option.choices:
            raise SettingError(f"{name} is one of {', '.join(option.choices)}")


def _bindable(mode: Mitmproxy) -> Mitmproxy:
    """The mode with the address where it can listen; mitmproxy binds it only later. Raises RelayError."""
    if mode.listen_host is None or mode.listen_port is None:
        reason = _why_not_local()
        if reason is not None:
            raise RelayError(f"{mode}: {reason}.")
        return mode
    family, address = resolve(mode.listen_host, mode.listen_port, _transport(mode))
    with bind(family, address, _transport(mode)) as probe:
        host, port = probe.getsockname()[:2]
    return Mitmproxy(mode.kind, host, port)


def _why_not_local() -> str | None:
    """Why this machine's programs cannot be listened to here, None if they can."""
    # Before 11.1 it cannot be asked, and there is nothing of that kind for Linux.
    ask = getattr(mitmproxy_rs.local.LocalRedirector, "unavailable_reason", None)
    if ask is not None:
        return cast("str | None", ask())
    if sys.platform == "linux":
        return f"on Linux this takes mitmproxy 11.1, and so Python 3.12; this is mitmproxy {VERSION}"
    return None


def _transport(mode: Mitmproxy) -> Transport:
    """How clients reach mitmproxy itself."""
    return "udp" if mode.kind.startswith("wireguard") else "tcp"


def _spec(mode: Mitmproxy) -> str:
    """The mode as mitmproxy reads it: an IPv6 address has no brackets."""
    if mode.listen_host is None:
        return mode.kind
    # WireGuard's peers are told an address of this machine only if none stands here.
    everywhere = mode.kind.startswith("wireguard") and mode.listen_host == "0.0.0.0"
    return f"{mode.kind}@{'' if everywhere else mode.listen_host}:{mode.listen_port}"


def _says(mode: Mitmproxy) -> str:
    """Where a mode listens, in mitmproxy's words what as."""
    description = ProxyMode.parse(_spec(mode)).description
    if mode.listen_host is None or mode.listen_port is None:
        return f"{mode.kind}: mitmproxy's {description}"
    return f"{_transport(mode)} {endpoint(mode.listen_host, mode.listen_port)}: mitmproxy's {description}"


def _of_peer(mode: Mitmproxy, server: WireGuardServerInstance) -> str:
    """The configuration with which a WireGuard peer reaches `server`, as it can be pasted."""
    configuration = server.client_conf() or ""
    if mode.listen_host is not None and mode.listen_port is not None:
        # mitmproxy forgets the brackets of an IPv6 address.
        bare, right = f"{mode.listen_host}:{mode.listen_port}", endpoint(mode.listen_host, mode.listen_port)
        configuration = configuration.replace(f" = {bare}", f" = {right}")
    return configuration


def _advice(mode: Mitmproxy) -> str | None:
    """What is to be known of where WireGuard's peers come in."""
    if mode.listen_host is None or not ipaddress.ip_address(mode.listen_host).is_loopback:
        return None
    return "Only programs on this machine reach it there. For a phone: -m wireguard@0.0.0.0:51820"
