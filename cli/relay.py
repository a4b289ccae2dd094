"""`kiebitz relay`: passes traffic on untouched in this process, and records it in another."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import click

from cli.catalog import compile_wanted
from cli.decode_as import decode_as_option, parse_decode_as
from cli.plugins import tell_left_out
from cli.print_rules import InterfaceType, PortsType, print_rules
from cli.recording import record_journal
from cli.recording_options import database_option
from proxy.journal import JournalWriter
from proxy.modes import Mode, Transparent, parse_mode
from proxy.processes import start_recorder
from proxy.relay import Forwarder, hold_signals, run_relay
from proxy.rules import Ports
from storage.schema import StorageError

_NOTICE_EVERY_S = 5.0
"""A trouble that repeats itself is told again after this time, with how often it came."""


class _ModeType(click.ParamType[Mode]):
    name = "mode"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Mode:
        try:
            return parse_mode(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Notices:
    """Tells on stderr what goes wrong without stopping the relay, and not a thousand times a second."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[float, int]] = {}

    def __call__(self, code: str, sentence: str) -> None:
        last, missed = self._told.get(code, (0.0, 0))
        now = time.monotonic()
        if last and now - last < _NOTICE_EVERY_S:
            self._told[code] = (last, missed + 1)
            return
        more = f" (and {missed} more like it)" if missed else ""
        click.echo(f"kiebitz: {sentence}{more}", err=True)
        self._told[code] = (now, 0)


@click.command()
@click.option(
    "-m",
    "modes",
    multiple=True,
    required=True,
    type=_ModeType(),
    metavar="MODE",
    help="reverse:tcp://HOST:PORT@[ADDR:]PORT or reverse:udp://…: listen on ADDR:PORT (ADDR: 127.0.0.1), "
    "pass on to HOST:PORT. transparent@[ADDR:]PORT: pass on what the firewall redirects there, TCP and UDP "
    "(Linux). May be repeated.",
)
@database_option
@decode_as_option
@click.option("-Y", "wanted", metavar="FILTER", help="Show only what meets this filter; all is recorded.")
@click.option("-q", "quiet", is_flag=True, help="Show nothing of what happens.")
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
    decode_as: tuple[str, ...],
    wanted: str | None,
    quiet: bool,
    idle: float,
    max_connections: int,
    keep_source: bool,
    rules_only: bool,
    interfaces: tuple[str, ...],
    ports: tuple[Ports, ...],
) -> None:
    """Stand between players and their server: pass every byte on, and record the game.

    \b
    Example, for a server on port 9000 and clients that are told 9001:
      kiebitz relay -m reverse:udp://127.0.0.1:9000@9001 -w game.db
    For players on wlan0 who are told nothing, rules first, then the relay:
      kiebitz relay -m transparent@9001 --print-rules -i wlan0 --port 9000
      sudo kiebitz relay -m transparent@9001 -w game.db
    """
    if keep_source and not any(isinstance(mode, Transparent) for mode in modes):
        raise click.UsageError("--keep-source goes with a transparent mode: add -m transparent@9001")
    if rules_only:
        print_rules(modes, interfaces, ports, keep_source)
        return
    if interfaces or ports:
        raise click.UsageError(f"{'-i' if interfaces else '--port'} goes with --print-rules")
    parse_decode_as(decode_as)
    compile_wanted(wanted)
    # The recorder's process tells nothing of it.
    tell_left_out()
    source = " ".join(map(str, modes))
    name = f"relay {time.strftime('%Y-%m-%d %H:%M:%S')}"
    try:
        file = Path(database).absolute()
        spool = Path(tempfile.mkdtemp(prefix=_spool_prefix(file), dir=file.parent))
    except OSError as error:
        raise StorageError(f"{database}: nothing can be written beside it: {error.strerror}") from error
    notices = _Notices()
    recorder: SpawnProcess | None = None
    hold_signals()
    try:
        journal = JournalWriter(spool / "journal", on_trouble=lambda sentence: notices("journal", sentence))
        # The sockets first: a port that is in use leaves no session behind.
        forwarder = Forwarder(
            modes,
            journal,
            on_notice=notices,
            idle_seconds=idle,
            max_connections=max_connections,
            keep_source=keep_source,
        )
        ours, theirs = multiprocessing.Pipe()
        recorder = start_recorder(
            record_journal,
            spool / "journal",
            database,
            source,
            name,
            decode_as,
            wanted,
            quiet,
            theirs,
        )
        theirs.close()
        _wait_until_ready(ours, forwarder)
        _tidy(file, spool)
        for running in forwarder.relays:
            click.echo(f"listening on {running.says}", err=True)
        forwarder.watch_recorder(recorder.sentinel, _recorder_died)
        run_relay(forwarder)
        ours.close()
        recorder.join()
    except BaseException:
        if recorder is not None:
            # Else it would wait for the end of this process, and this process for its.
            recorder.kill()
        raise
    finally:
        shutil.rmtree(spool, ignore_errors=True)
    if recorder.exitcode != 0:
        raise click.exceptions.Exit(1)


def _wait_until_ready(recorder: Connection, forwarder: Forwarder) -> None:
    try:
        failure: str | None = recorder.recv()
    except EOFError:
        failure = "the recorder did not start"
    if failure is not None:
        forwarder.close()
        raise StorageError(failure)


def _tidy(database: Path, spool: Path) -> None:
    """Remove the spools of relays that were killed; the recorder has made sure that none is running."""
    for path in database.parent.iterdir():
        if path.name.startswith(_spool_prefix(database)) and path != spool:
            shutil.rmtree(path, ignore_errors=True)


def _spool_prefix(database: Path) -> str:
    return f".{database.name}-spool-"


def _recorder_died() -> None:
    click.echo(
        "kiebitz: the recorder has died; the relay goes on, but nothing more is recorded. "
        "What was recorded until then is kept. Stop with Ctrl-C and start again to record.",
        err=True,
    )
