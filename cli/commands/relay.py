"""`kiebitz relay`: passes traffic on untouched in this process, and records it in another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import click

from kiebitz.cli.completion.network import complete_interface, complete_mode
from kiebitz.cli.live_view import live_view
from kiebitz.cli.options.altering import OrderedCommand, altering_options, read_rules
from kiebitz.cli.options.anonymizing import anonymize_option
from kiebitz.cli.options.companions import Companions, showing_options
from kiebitz.cli.options.conditions import rotation_option
from kiebitz.cli.options.decode_as import decode_as_option
from kiebitz.cli.options.parsed import Parsed
from kiebitz.cli.options.print_rules import InterfaceType, PortsType, print_rules
from kiebitz.cli.options.recording import database_option, max_size_option
from kiebitz.cli.options.taps import publish_options, tapped, tapping
from kiebitz.cli.plugins import tell_left_out
from kiebitz.cli.status import FAILED
from kiebitz.proxy.forwarder import Forwarder, run_relay
from kiebitz.proxy.journal.follower import start_resource_tracker
from kiebitz.proxy.relay.endpoints import RelayError
from kiebitz.proxy.relay.firewall_rules import Ports
from kiebitz.proxy.relay.listeners import ListenerInfo
from kiebitz.proxy.relay.modes import Mitmproxy, Mode, SettingError, Transparent, parse_mode
from kiebitz.proxy.system.deferred_signals import Interrupted, deferred_signals
from kiebitz.proxy.system.sudo import continue_as_invoking_user
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.services.recording.notices import Notices
from kiebitz.services.recording.resume import recover
from kiebitz.services.recording.rotation import Limits
from kiebitz.services.recording.supervisor import RecorderSupervisor
from kiebitz.services.standard_streams import is_stderr_terminal, print_error_line
from kiebitz.storage.read.conditions import compile_wanted


def _tell_where(listening: ListenerInfo, has_code: bool) -> None:
    """Say where clients come, and what WireGuard's are to be told; on a terminal also as a code to scan."""
    if listening.configuration is None:
        print_error_line(f"listening on {listening.description}")
        return
    print_error_line(f"listening on {listening.description}; its peer's configuration:")
    for line in ("", *listening.configuration.split("\n"), ""):
        print_error_line(line)
    if listening.advice is not None:
        # No phone would get there.
        print_error_line(listening.advice)
    elif has_code and is_stderr_terminal():
        # Most modes have none, and need not load what draws it.
        from kiebitz.cli.terminal.scan_code import show_scan_code

        show_scan_code(listening.configuration, stderr=True)


class _Shown:
    """The companions of a relay, which show it while it runs; quitting the picture stops the relay."""

    def __init__(self, companions: Companions, recorder: RecorderSupervisor, forwarder: Forwarder) -> None:
        self._companions = companions
        self._recorder = recorder
        self._forwarder = forwarder

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        def stop() -> None:
            with suppress(RuntimeError):
                # The relay may have ended before.
                loop.call_soon_threadsafe(self._forwarder.stop)

        self._companions.start(self._recorder.session, stop)

    def leave(self) -> None:
        # Only a signal or the user ends a relay.
        self._companions.stop()


@contextmanager
def _held_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the command where nothing is half done; then they do what they always do."""
    try:
        with deferred_signals():
            yield
    except Interrupted as error:
        # Only where the signal by itself would have done nothing.
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
    help="reverse:tcp://HOST:PORT@[ADDR:]PORT or reverse:udp://…: listen on ADDR:PORT (ADDR: 127.0.0.1), "
    "pass on to HOST:PORT. transparent@[ADDR:]PORT: pass on what the firewall redirects there, TCP and UDP "
    "(Linux). socks5, wireguard, local[:NAME|PID], reverse:tls://…: by way of mitmproxy. May be repeated.",
)
@database_option
@rotation_option
@max_size_option
@decode_as_option
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
    help="UDP only: how long a silent client keeps its socket to the server.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    metavar="N",
    help="TCP only: how many connections each mode carries at once. A client beyond that is turned away.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="OPTION=VALUE",
    help="Set an option of mitmproxy, for its own modes, as in ssl_insecure=true. May be repeated.",
)
@click.option(
    "--keep-source",
    is_flag=True,
    help="Transparent modes only: servers see the players' addresses, not this machine's. Their answers must "
    "come back by way of this machine.",
)
@click.option(
    "--print-rules",
    "rules_only",
    is_flag=True,
    help="Relay nothing: print the firewall rules for transparent modes, and those that undo them.",
)
@click.option(
    "-i",
    "interfaces",
    multiple=True,
    type=InterfaceType(),
    metavar="IFACE",
    shell_complete=complete_interface,
    help="--print-rules: where the players come in, as in wlan0; lo is for programs of this machine.",
)
@click.option(
    "--port",
    "ports",
    multiple=True,
    type=PortsType(),
    metavar="[tcp/|udp/]PORT[-PORT]",
    help="--print-rules: the servers' ports.",
)
def relay(
    modes: tuple[Mode, ...],
    database: str,
    limits: Limits | None,
    max_size: int | None,
    decode_as: tuple[str, ...],
    wanted: str | None,
    quiet: bool,
    is_watched: bool,
    place: tuple[str, int] | None,
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
    at_end: str,
    is_anonymized: bool,
    **_: object,
) -> None:
    """Stand between players and their server: pass every byte on, and record the game.

    Nothing is altered unless it is asked for. Where it is, the recording has what each side got, and beside
    it what had been sent.

    \b
    Example, for a server on port 9000 and clients that are told 9001:
      kiebitz relay -m reverse:udp://127.0.0.1:9000@9001 -w game.db
    For players on wlan0 who are told nothing, rules first, then the relay:
      kiebitz relay -m transparent@9001 --print-rules -i wlan0 --port 9000
      sudo "$(command -v kiebitz)" relay -m transparent@9001 -w game.db
    """
    if keep_source and not any(isinstance(mode, Transparent) for mode in modes):
        raise click.UsageError("--keep-source goes with a transparent mode: add -m transparent@9001")
    if rules_only:
        print_rules(modes, interfaces, ports, keep_source)
        return
    if interfaces or ports:
        raise click.UsageError(f"{'-i' if interfaces else '--port'} goes with --print-rules")
    continue_as_invoking_user()
    compile_wanted(wanted)
    rules = read_rules(click.get_current_context(), modes)
    if settings and not any(isinstance(mode, Mitmproxy) for mode in modes):
        raise click.BadParameter("none of the modes is mitmproxy's", param_hint="--set")
    published = tapping(place_of_tap, tap_name, credentials, is_anonymized)
    # The recorder's process tells nothing of it.
    tell_left_out()
    recover(database)
    notices = Notices()
    start_resource_tracker()
    # Each sentence of the journal's is a notice of its own: that it works again must not be one too many.
    with (
        Companions(is_watched, place) as companions,
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
            # Only who alters messages waits for it to be loaded.
            from kiebitz.services.alteration.setup import alteration

            altering = stack.enter_context(
                alteration(
                    rules,
                    decode_as=decode_as,
                    on_notice=notices,
                    is_forced=is_forced,
                    drops_held=at_end == "drop",
                    folder=recorder.folder,
                    session=lambda: recorder.session,
                )
            )
        try:
            # The sockets first: a port that is in use leaves no session behind.
            forwarder = Forwarder(
                modes,
                recorder.journal,
                on_notice=notices,
                on_listening=partial(_tell_where, has_code=not (quiet or is_watched)),
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
            # The journal is closed, and the session of nothing is not left open.
            recorder.finish()
            if tap is not None:
                tap.finish()
            raise
        is_recorded = recorder.finish()
        if tap is not None:
            tap.finish()
        if not is_recorded or recorder.has_output_failed:
            raise click.exceptions.Exit(FAILED)
