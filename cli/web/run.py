"""Start of the server, and the output with its address, QR code and players' links."""

from __future__ import annotations

import asyncio
import errno
import socket
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from urllib.parse import quote

import uvicorn

from kiebitz.cli.options.serving import Serving
from kiebitz.cli.plugins import warn_about_missing
from kiebitz.cli.terminal.console import is_terminal, show_line
from kiebitz.cli.terminal.scan_code import show_scan_code
from kiebitz.cli.web.access import Keys, kept_keys
from kiebitz.cli.web.admission import affordable_limits
from kiebitz.cli.web.connections import REQUEST_S, Connections, HttpConnection
from kiebitz.cli.web.grants import Grant
from kiebitz.cli.web.reader import Reader, ServedSession
from kiebitz.cli.web.server import Server
from kiebitz.cli.web.session_folders import MAX_SESSIONS, SessionFolders
from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.registry import using_copies
from kiebitz.proxy.relay.modes import endpoint, is_this_machine
from kiebitz.proxy.system.deferred_signals import TERMINATION_SIGNALS, end_with_parent, signals_handled
from kiebitz.services.standard_streams import flush, warn

_ACK_TIMEOUT_S = 60
"""Time in seconds after which unacknowledged data closes a connection."""

_BACKLOG = 2048
"""Maximum number of connections that wait in the kernel to be accepted."""

_SEND_BUFFER_BYTES = 256 << 10
"""Kernel buffer of a connection, in bytes. The kernel's own choice grows to several MiB for a slow reader."""

_PROBE_ADDRESS = ("192.0.2.1", 9)
"""Documentation address, never sent to; its route shows which local address others can reach."""

_PLAYERS_POLL_S = 1.0


class ServeError(KiebitzError):
    """The address cannot be listened on."""


class Link:
    """The server's links; `host` is the address given by the user.

    Spectators' links show the public view. With `delay_s`, they have no key on loopback, and show live games
    that many seconds late.
    """

    def __init__(self, host: str, port: int, keys: Keys, delay_s: float | None = None) -> None:
        self.is_open = is_this_machine(host.lower())
        self._keys = keys
        self.delay_s = delay_s
        self.host = _own_address(host)
        """Address by which others reach this machine."""
        self.base = f"http://{endpoint(self.host, port)}/"

    def full_link(self) -> str:
        """Return the link to the full view."""
        is_bare = self.is_open and self.delay_s is None
        return self.base if is_bare else f"{self.base}?key={quote(self._keys.full_key())}"

    def late_link(self) -> str:
        """Return the link for spectators: the public view, live games late if there is a delay."""
        is_bare = self.is_open and self.delay_s is not None
        return self.base if is_bare else f"{self.base}?key={quote(self._keys.late_key())}"

    def player(self, grant: Grant) -> str:
        """Return the link to one player's view."""
        return f"{self.base}?key={quote(self._keys.player(grant))}"


class _Uvicorn(uvicorn.Server):
    """A uvicorn server with limited connections that closes event streams on shutdown.

    It accepts connections itself: asyncio would log a traceback for each one without a free file descriptor.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server: Server,
        listener: socket.socket,
        connections: Connections,
        on_started: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._kiebitz = server
        self._listener = listener
        self._connections = connections
        self._on_started = on_started
        self._accepting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            make = partial(
                HttpConnection,
                self._connections,
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
            )
            self._accepting = asyncio.create_task(self._connections.accept(self._listener, make))
            self._accepting.add_done_callback(self._stop_if_failed)
            self._on_started()

    def _stop_if_failed(self, accepting: asyncio.Task[None]) -> None:
        error = None if accepting.cancelled() else accepting.exception()
        if isinstance(error, Exception):
            warn(fault(error))
            self.should_exit = True

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # uvicorn's
        """Shut down on SIGINT and SIGTERM alike, so that temporary files are removed."""
        return signals_handled(*TERMINATION_SIGNALS, handler=self.handle_exit)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
        self._kiebitz.end()
        await super().shutdown(sockets)


def open_listener(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ServeError."""
    if not host:
        # An empty host would mean all addresses.
        raise ServeError("cannot listen: --host is empty")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket names its protocol. Without it, each answer, written in two
    # pieces, would wait 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Inherited by each connection.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _ACK_TIMEOUT_S * 1000)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except (OSError, OverflowError, ValueError, TypeError) as error:
        listener.close()
        raise ServeError(f"cannot listen on {host}:{port}: {_reason(error)}") from error
    return listener


def run(
    sessions: Sequence[ServedSession],
    listener: socket.socket,
    host: str,
    serving: Serving,
    *,
    files: Sequence[str] = (),
    sources: Sequence[str] = (),
    folders: SessionFolders | None = None,
) -> None:
    """Serve until a signal, or until the recording process ends.

    Whenever one of the protocol `files` is saved, the sessions are dissected again from their `sources`.
    Sessions that appear in `folders` are served, too. Raises StorageError, sqlite3.Error.
    """
    keys = Keys() if serving.keys is None else kept_keys(serving.keys)
    link = Link(host, listener.getsockname()[1], keys, serving.delay_s)
    for served in sessions:
        with using_copies(served.copies):
            reader = Reader(served)
            games = ", ".join(dict.fromkeys(table.protocol for table in reader.tables()))
            show_line(f"serving {served.name}{f' ({games})' if games else ''}")
            if not served.is_found:
                warn_about_missing(reader.timeline)
            reader.close()
    for path in folders.paths if folders is not None else ():
        show_line(f"watching {path} for new sessions")
    end_with_parent()
    limits, warning = affordable_limits(len(sessions) if folders is None else MAX_SESSIONS)
    if warning is not None:
        warn(warning)
    hosts = [host, socket.gethostname()]
    server = Server(
        sessions, keys, hosts, link.is_open, limits, serving.is_read_only, folders, serving.delay_s
    )

    def tell() -> None:
        _print_link(link)
        if serving.opens:
            webbrowser.open(link.full_link())

    connections = Connections(limits)
    with ExitStack() as stack:
        if files:
            from kiebitz.services.reloading import Reloader

            for served in sessions:
                served.dissection = 0
            reloader = Reloader(files, sources, server.replace_sessions, partial(_report, server))
            stack.callback(reloader.close)
            reloader.start()
        asyncio.run(_serve(server, listener, connections, tell, link if serving.player_links else None))


def _report(server: Server, lines: Sequence[str]) -> None:
    warn(*lines)
    server.report_problem(lines)


async def _serve(
    server: Server,
    listener: socket.socket,
    connections: Connections,
    on_started: Callable[[], None],
    link: Link | None,
) -> None:
    config = uvicorn.Config(
        server.app,
        log_config=None,
        # The server reports errors itself.
        log_level="critical",
        access_log=False,
        # There is no trusted proxy.
        proxy_headers=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=1,
        timeout_keep_alive=REQUEST_S,
    )
    meetings: list[asyncio.Task[None]] = []

    def started() -> None:
        on_started()
        if link is not None:
            meetings.append(asyncio.create_task(_print_player_links(server, link)))

    try:
        # The listener is not passed to uvicorn; see _Uvicorn.
        await _Uvicorn(config, server, listener, connections, started).serve(sockets=[])
    finally:
        for meeting in meetings:
            meeting.cancel()


async def _print_player_links(server: Server, link: Link) -> None:
    """Print a link for each player, including later ones and new names."""
    known: set[Grant] = set()
    # The server continues without output.
    with suppress(BrokenPipeError):
        while True:
            player_grants = await server.player_grants()
            for grant in player_grants:
                if grant not in known:
                    known.add(grant)
                    is_elsewhere = any(
                        (other.player, other.session < grant.session) == (grant.player, True)
                        for other in player_grants
                    )
                    of_session = f" (session {grant.session})" if is_elsewhere else ""
                    show_line(f"  {grant.player}{of_session}: {link.player(grant)}")
            flush()
            await asyncio.sleep(_PLAYERS_POLL_S)


def _print_link(link: Link) -> None:
    address = link.full_link()
    show_line(address)
    if not link.is_open or link.delay_s is not None:
        late = "" if link.delay_s is None else f", {link.delay_s:g} s late"
        show_line(f"for spectators (public view{late}): {link.late_link()}")
    if link.delay_s is not None:
        # The code is for those who come later: the full link is the teacher's.
        address = link.late_link()
    if not link.is_open and is_terminal():
        show_scan_code(address)
    show_line("Ctrl-C ends it")
    flush()


def _own_address(host: str) -> str:
    """Return an address by which others reach this machine if `host` means all addresses."""
    if host not in ("0.0.0.0", "::"):
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_PROBE_ADDRESS)
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return "this port is in use; choose another with serve --port or relay --serve"
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address"
    if isinstance(error, OSError):
        return str(error.strerror or error)
    return "not a valid address"
