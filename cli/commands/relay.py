"""`kiebitz relay`: forward traffic in this process, and record it in another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import click
import msgspec

from kiebitz.cli.completion.network import complete_interface, complete_mode
from kiebitz.cli.options.altering import (
    INTERFACE,
    PORTS,
    Altering,
    OrderedCommand,
    RedirectedTraffic,
    altering_options,
    print_rules,
    read_rules,
)
from kiebitz.cli.options.anonymizing import anonymize_option
from kiebitz.cli.options.companions import Companions, Showing, showing_options
from kiebitz.cli.options.decode_as import decode_as_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.recording import (
    Recording,
    database_option,
    max_size_option,
    name_option,
    rotation_option,
)
from kiebitz.cli.options.records import as_records
from kiebitz.cli.options.taps import Publishing, publish_options
from kiebitz.cli.param_type import Parsed
from kiebitz.cli.plugins import load_plugins
from kiebitz.cli.status import FAILED
from kiebitz.proxy.forwarder import Companion, Forwarder, run_relay
from kiebitz.proxy.journal.follower import start_resource_tracker
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.relay.endpoints import RelayError
from kiebitz.proxy.relay.listeners import ListenerInfo
from kiebitz.proxy.relay.modes import Mitmproxy, Mode, SettingError, Transparent, parse_mode
from kiebitz.proxy.system.deferred_signals import Interrupted, deferred_signals, end_with_parent
from kiebitz.proxy.system.sudo import continue_as_invoking_user
from kiebitz.services.recording.notices import Notices
from kiebitz.services.recording.recorder_supervisor import RecorderSupervisor
from kiebitz.services.recording.resume import recover
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


class _Network(msgspec.Struct, frozen=True):
    """The modes of a relay and their limits."""

    modes: tuple[Mode, ...]
    idle: float
    max_connections: int
    settings: tuple[str, ...]
    keep_source: bool


class _Shown(msgspec.Struct):
    """The companions of a relay; quitting `kiebitz watch` stops the relay."""

    companions: Companions
    recorder: RecorderSupervisor
    forwarder: Forwarder

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        def stop() -> None:
            with suppress(RuntimeError):
                # The loop may already be closed.
                loop.call_soon_threadsafe(self.forwarder.stop)

        self.companions.start(self.recorder.session, stop)

    def leave(self) -> None:
        # The relay was ended by a signal or by the user.
        self.companions.stop()


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
    type=INTERFACE,
    metavar="IFACE",
    shell_complete=complete_interface,
    help="With --print-rules: the players' interface, as in wlan0; lo is for programs on this machine.",
)
@click.option(
    "--port",
    "ports",
    multiple=True,
    type=PORTS,
    metavar="[tcp/|udp/]PORT[-PORT]",
    help="With --print-rules: the servers' ports.",
)
@as_records(network=_Network, redirection=RedirectedTraffic, recording=Recording)
def relay(
    network: _Network,
    redirection: RedirectedTraffic,
    recording: Recording,
    showing: Showing,
    publishing: Publishing,
    altering: Altering,
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
    modes, is_anonymized = network.modes, recording.is_anonymized
    if network.keep_source and not any(isinstance(mode, Transparent) for mode in modes):
        raise click.UsageError("--keep-source requires a transparent mode: add -m transparent@9001")
    if redirection.rules_only:
        print_rules(modes, redirection, network.keep_source)
        return
    redirection.check_unused()
    continue_as_invoking_user()
    end_with_parent()
    compile_optional_filter(showing.wanted)
    rules = read_rules(altering, modes)
    if network.settings and not any(isinstance(mode, Mitmproxy) for mode in modes):
        raise click.BadParameter("none of the modes uses mitmproxy", param_hint="--set")
    publishing.check(is_anonymized)
    # The recorder process does not report them.
    load_plugins()
    recover(recording.database)
    notices = Notices()
    start_resource_tracker()
    # Each text is its own key: rate limiting must not suppress the message that the journal works again.
    with (
        showing.companions() as companions,
        _held_signals(),
        publishing.tap(recording.database) as tap,
        RecorderSupervisor(
            recording.database,
            on_trouble=lambda sentence: notices(sentence, sentence),
            make=tap.tee if tap is not None else JournalWriter,
        ) as recorder,
        ExitStack() as stack,
    ):
        interception = None
        if rules:
            # Slow to import; only needed to alter messages.
            from kiebitz.services.alteration.setup import alteration

            interception = stack.enter_context(
                alteration(
                    rules,
                    decode_as=recording.decode_as,
                    on_notice=notices,
                    is_forced=altering.is_forced,
                    drops_held=altering.held_at_exit == "drop",
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
                on_listening=partial(_report_listener, has_code=showing.prints),
                idle_seconds=network.idle,
                max_connections=network.max_connections,
                keep_source=network.keep_source,
                settings=network.settings,
                alterer=interception.engine if interception is not None else None,
            )
        except SettingError as error:
            raise click.BadParameter(str(error), param_hint="--set") from error
        try:
            _start(recorder, modes, recording, showing)
            if tap is not None:
                tap.start()
        except BaseException:
            forwarder.close()
            raise
        others: list[Companion] = [] if tap is None else [tap]
        if interception is not None:
            interception.engine.streams_before = recorder.streams_before
            others = [*interception.beside, *others]
        try:
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


def _start(
    recorder: RecorderSupervisor, modes: Sequence[Mode], recording: Recording, showing: Showing
) -> None:
    # It loads Rich, without which help and errors come sooner.
    from kiebitz.cli.live_view import live_view

    recorder.start(
        " ".join(map(str, modes)),
        limits=recording.limits,
        decode_as=recording.decode_as,
        view=partial(live_view, showing.wanted) if showing.prints else None,
        max_size=recording.max_size,
        is_anonymized=recording.is_anonymized,
        name=recording.name,
    )
