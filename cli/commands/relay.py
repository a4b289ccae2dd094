"""`kiebitz relay`: forward traffic in this process, and record it in another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import click

from kiebitz.cli.completion.network import complete_interface, complete_mode
from kiebitz.cli.options.altering import OrderedCommand, altering_options, read_rules
from kiebitz.cli.options.anonymizing import anonymize_option
from kiebitz.cli.options.companions import Companions, showing_options
from kiebitz.cli.options.decode_as import decode_as_option
from kiebitz.cli.options.print_rules import InterfaceType, PortsType, print_rules
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.recording import database_option, max_size_option, name_option, rotation_option
from kiebitz.cli.options.serving import Serving
from kiebitz.cli.options.taps import publish_options, tapped, tapping
from kiebitz.cli.param_type import Parsed
from kiebitz.cli.plugins import load_plugins
from kiebitz.cli.status import FAILED
from kiebitz.proxy.forwarder import Forwarder, run_relay
from kiebitz.proxy.journal.follower import start_resource_tracker
from kiebitz.proxy.relay.endpoints import RelayError
from kiebitz.proxy.relay.firewall_rules import Ports
from kiebitz.proxy.relay.listeners import ListenerInfo
from kiebitz.proxy.relay.modes import Mitmproxy, Mode, SettingError, Transparent, parse_mode
from kiebitz.proxy.system.deferred_signals import Interrupted, deferred_signals
from kiebitz.proxy.system.parent import end_with_parent
from kiebitz.proxy.system.sudo import continue_as_invoking_user
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.services.recording.notices import Notices
from kiebitz.services.recording.resume import recover
from kiebitz.services.recording.rotation import Limits
from kiebitz.services.recording.supervisor import RecorderSupervisor
from kiebitz.services.standard_streams import is_stderr_terminal, print_error_line
from kiebitz.storage.read.conditions import compile_optional_filter


def _report_listener(listening: ListenerInfo, has_code: bool) -> None:
    """Print a listener's address, and WireGuard's client configuration, also as QR code on a terminal."""
    if listening.configuration is None:
        print_error_line(f"listening on {listening.description}")
        return
    print_error_line(f"listening on {listening.description}; configuration of its peer:")
    for line in ("", *listening.configuration.split("\n"), ""):
        print_error_line(line)
    if listening.advice is not None:
        # A phone could not connect.
        print_error_line(listening.advice)
    elif has_code and is_stderr_terminal():
        # Only for modes with a configuration.
        from kiebitz.cli.terminal.scan_code import show_scan_code

        show_scan_code(listening.configuration, stderr=True)


class _Shown:
    """The companions of a relay; quitting `kiebitz watch` stops the relay."""

    def __init__(self, companions: Companions, recorder: RecorderSupervisor, forwarder: Forwarder) -> None:
        self._companions = companions
        self._recorder = recorder
        self._forwarder = forwarder

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        def stop() -> None:
            with suppress(RuntimeError):
                # The loop may already be closed.
                loop.call_soon_threadsafe(self._forwarder.stop)

        self._companions.start(self._recorder.session, stop)

    def leave(self) -> None:
        # The relay was ended by a signal or by the user.
        self._companions.stop()


@contextmanager
def _held_signals() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM to a safe point."""
    try:
        with deferred_signals():
            yield
    except Interrupted as error:
        # Only raised if the signal has no effect of its own.
        raise click.Abort from error


@click.command(cls=OrderedCommand)
@click.option(
    "-m",
    "modes",
    multiple=True,
    required=True,
    type=Parsed("mode", parse_mode),
    metavar="MODE",
    shell_complete=complete_mode,
    help="reverse:tcp://HOST:PORT@[ADDR:]PORT or reverse:udp://…: listen on ADDR:PORT (default "
    "ADDR: 127.0.0.1) and forward to HOST:PORT. transparent@[ADDR:]PORT: forward what the "
    "firewall redirects there, TCP and UDP (Linux). reverse:ws://… is reverse:tcp. socks5, "
    "wireguard, local[:NAME|PID], reverse:tls://…, reverse:wss://…: use mitmproxy. May be repeated.",
)
@database_option
@name_option
@rotation_option
@max_size_option
@decode_as_option
@protocol_option
@showing_options
@publish_options
@altering_options
@anonymize_option
@click.option(
    "--idle",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="UDP only: time after which a silent client's socket to the server is closed.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    metavar="N",
    help="TCP only: maximum number of connections per mode; further clients are rejected.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="OPTION=VALUE",
    help="Set an option of mitmproxy, as in ssl_insecure=true. May be repeated.",
)
@click.option(
    "--keep-source",
    is_flag=True,
    help="Transparent modes only: connect to servers from the players' addresses. The answers "
    "must be routed through this machine.",
)
@click.option(
    "--print-rules",
    "rules_only",
    is_flag=True,
    help="Print the firewall rules for transparent modes, and the commands that remove them, and exit.",
)
@click.option(
    "-i",
    "interfaces",
    multiple=True,
    type=InterfaceType(),
    metavar="IFACE",
    shell_complete=complete_interface,
    help="With --print-rules: the players' interface, as in wlan0; lo is for programs on this machine.",
)
@click.option(
    "--port",
    "ports",
    multiple=True,
    type=PortsType(),
    metavar="[tcp/|udp/]PORT[-PORT]",
    help="With --print-rules: the servers' ports.",
)
def relay(
    modes: tuple[Mode, ...],
    database: str,
    name: str | None,
    limits: Limits | None,
    max_size: int | None,
    decode_as: tuple[str, ...],
    wanted: str | None,
    quiet: bool,
    is_watched: bool,
    place: tuple[str, int] | None,
    serving: Serving,
    place_of_tap: NatsUrl | None,
    tap_name: str | None,
    credentials: Path | None,
    idle: float,
    max_connections: int,
    settings: tuple[str, ...],
    keep_source: bool,
    rules_only: bool,
    interfaces: tuple[str, ...],
    ports: tuple[Ports, ...],
    is_forced: bool,
    held_at_exit: str,
    is_anonymized: bool,
    **_: object,
) -> None:
    """Relay traffic between players and their server unchanged, and record it.

    With options that alter messages, the recording has what each side received, and the original messages.

    \b
    Example, for a server on port 9000 and clients that connect to 9001:
      kiebitz relay -m reverse:udp://127.0.0.1:9000@9001 -w game.db
    For players on wlan0 with unchanged settings, first the rules, then the relay:
      kiebitz relay -m transparent@9001 --print-rules -i wlan0 --port 9000
      sudo "$(command -v kiebitz)" relay -m transparent@9001 -w game.db
    """
    if keep_source and not any(isinstance(mode, Transparent) for mode in modes):
        raise click.UsageError("--keep-source requires a transparent mode: add -m transparent@9001")
    if rules_only:
        print_rules(modes, interfaces, ports, keep_source)
        return
    if interfaces or ports:
        raise click.UsageError(f"{'-i' if interfaces else '--port'} requires --print-rules")
    if name is not None and is_anonymized:
        raise click.UsageError("--name excludes --anonymize: a name may tell who plays")
    continue_as_invoking_user()
    end_with_parent()
    # It loads Rich, without which help and errors come sooner.
    from kiebitz.cli.live_view import live_view

    compile_optional_filter(wanted)
    rules = read_rules(click.get_current_context(), modes)
    if settings and not any(isinstance(mode, Mitmproxy) for mode in modes):
        raise click.BadParameter("none of the modes uses mitmproxy", param_hint="--set")
    published = tapping(place_of_tap, tap_name, credentials, is_anonymized)
    # The recorder process does not report them.
    load_plugins()
    recover(database)
    notices = Notices()
    start_resource_tracker()
    # Each text is its own key: rate limiting must not suppress the message that the journal works again.
    with (
        Companions(is_watched, place, serving) as companions,
        _held_signals(),
        tapped(published, database) as tap,
        RecorderSupervisor(
            database,
            on_trouble=lambda sentence: notices(sentence, sentence),
            tap=tap.journal if tap is not None else None,
        ) as recorder,
        ExitStack() as stack,
    ):
        altering = None
        if rules:
            # Slow to import; only needed to alter messages.
            from kiebitz.services.alteration.setup import alteration

            altering = stack.enter_context(
                alteration(
                    rules,
                    decode_as=decode_as,
                    on_notice=notices,
                    is_forced=is_forced,
                    drops_held=held_at_exit == "drop",
                    folder=recorder.folder,
                    session=lambda: recorder.session,
                )
            )
        try:
            # Open the sockets first: a port in use must not leave an empty session.
            forwarder = Forwarder(
                modes,
                recorder.journal,
                on_notice=notices,
                on_listening=partial(_report_listener, has_code=not (quiet or is_watched)),
                idle_seconds=idle,
                max_connections=max_connections,
                keep_source=keep_source,
                settings=settings,
                alterer=altering.engine if altering is not None else None,
            )
        except SettingError as error:
            raise click.BadParameter(str(error), param_hint="--set") from error
        try:
            recorder.start(
                " ".join(map(str, modes)),
                limits=limits,
                decode_as=decode_as,
                view=None if quiet or is_watched else partial(live_view, wanted),
                max_size=max_size,
                is_anonymized=is_anonymized,
                name=name,
            )
            if tap is not None:
                tap.start()
        except BaseException:
            forwarder.close()
            raise
        if altering is not None:
            altering.engine.streams_before = recorder.streams_before
        try:
            others = [*(altering.beside if altering is not None else ()), *([tap] if tap is not None else [])]
            run_relay(forwarder, recorder, *others, _Shown(companions, recorder, forwarder))
        except RelayError:
            # End the empty session.
            recorder.finish()
            if tap is not None:
                tap.finish()
            raise
        is_recorded = recorder.finish()
        if tap is not None:
            tap.finish()
        if not is_recorded or recorder.has_output_failed:
            raise click.exceptions.Exit(FAILED)
