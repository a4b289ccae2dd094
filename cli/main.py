"""The command `kiebitz`: its subcommands, each loaded only when it is asked for, and how everything ends."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

import click

from kiebitz.cli import completion
from kiebitz.cli.configuration.file import VARIABLE, configuration, configuration_path
from kiebitz.cli.status import FAILED, INTERRUPTED, OK, USAGE
from kiebitz.cli.terminal.console import wish_for_colour
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.services.faults import fault
from kiebitz.services.progress import OnProgress, set_display
from kiebitz.services.standard_streams import (
    escape_unencodable,
    flush,
    has_output_failed,
    open_standard_streams,
    print_error_line,
    warn,
)

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Get traffic": {
        "relay": ("cli.commands.relay:relay", "Stand between players and their server, and record."),
        "sniff": ("cli.commands.sniff:sniff", "Record what passes a network interface."),
        "import": ("cli.commands.import_:import_command", "Read capture files into a database."),
        "collect": ("cli.commands.collect:collect", "Record what taps on other machines publish."),
    },
    "See what happened": {
        "watch": ("cli.commands.watch:watch", "The table on the terminal, live or recorded."),
        "serve": ("cli.commands.serve:serve", "The table in the browser, for a class."),
        "sessions": ("cli.commands.sessions:sessions", "The sessions in a database."),
        "streams": ("cli.commands.streams:streams", "Who talked to which server."),
        "games": ("cli.commands.games:games", "The games of a session and how they ended."),
        "messages": ("cli.commands.messages:messages", "What was said, message by message."),
        "show": ("cli.commands.show:show", "One message in full, byte by byte."),
        "events": ("cli.commands.events:events", "What happened in the game, in sentences."),
        "state": ("cli.commands.state:state", "The state of the game at any moment."),
        "stats": ("cli.commands.stats:stats", "What can be counted: dice, bluffs, tricks, points, times."),
        "check": ("cli.commands.check:check", "Who broke which rule, at which byte."),
        "diff": ("cli.commands.diff:diff", "Where two games part: a difference by meaning."),
        "whatif": ("cli.commands.whatif:whatif", "The game if a message had been lost, or another one."),
        "follow": ("cli.commands.follow:follow", "The bytes of one stream."),
    },
    "Play it again": {
        "replay": ("cli.commands.replay:replay", "A game again, in the terminal or to a live peer."),
    },
    "Test a program": {
        "probe": ("cli.commands.probe:probe", "Is my server, is my client right? Case by case."),
    },
    "Keep it": {
        "export": ("cli.commands.export:export", "A session as pcapng, JSON lines, CSV or Parquet."),
        "redissect": ("cli.commands.redissect:redissect", "Read the recorded bytes anew."),
    },
    "Ask many": {
        "corpus": ("cli.commands.corpus:corpus", "Thousands of captures, asked one question."),
    },
    "Look it up": {
        "protocols": ("cli.commands.protocols:protocols", "The protocols and their messages."),
        "addon-path": (
            "cli.commands.addon_path:addon_path",
            "The script that shows and records games in mitmproxy.",
        ),
        "help": ("cli.commands.help:help_command", "The help of a command, or of filters."),
        "completion": ("cli.commands.completion:completion", "Completion for bash, zsh or fish."),
    },
}
"""Section of the help -> command -> where it is, and what the list of commands says of it."""


class Kiebitz(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in COMMANDS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for section in COMMANDS.values():
            if cmd_name in section:
                module, _, attribute = section[cmd_name][0].partition(":")
                command: click.Command = getattr(import_module(f"kiebitz.{module}"), attribute)
                if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
                    # All is loaded: from here on Ctrl-C ends a command well.
                    signal.signal(signal.SIGINT, signal.default_int_handler)
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            near = get_close_matches(args[0], known)
            hint = did_you_mean(*near) if near else "they are listed by kiebitz -h"
            raise click.UsageError(f"there is no command {args[0]}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, sentence) for name, (_, sentence) in section.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        path = configuration_path() or f"the one that {VARIABLE} names"
        missing = "" if os.path.exists(path) else " (there is none)"
        with formatter.section("Configuration file"):
            # It stays on one line, to be copied.
            formatter.write(f"{'':{formatter.current_indent}}{printable(path)}{missing}\n")

    def invoke(self, ctx: click.Context) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                flush()
                _tell_of_plugins()
        except BrokenPipeError:
            # Its reader has gone, or it could not be written and that is reported.
            return None


@click.group(cls=Kiebitz, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(
    None,
    "-V",
    "--version",
    package_name="kiebitz",
    message=f"%(prog)s %(version)s (Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version})",
)
def kiebitz() -> None:
    """Look over the players' shoulders: relay, record and inspect networked table games.

    SESSION is a capture file, a database, or DB:N for session N of it. Listings take several of them, and
    'DB:*' for all of a database.

    \b
    Example:
      kiebitz relay -m reverse:udp://127.0.0.1:9000@9001 -w game.db
      kiebitz events game.db
      kiebitz check odd.pcap
    """
    colour = configuration().colour
    if colour != "auto":
        wish_for_colour(colour == "always")


def run(arguments: Sequence[str]) -> int:
    """Run the command line and give its exit status; a failure is told on stderr in a sentence."""
    escape_unencodable()
    set_display(_counting)
    if completion.VARIABLE in os.environ:
        # Click must know our ways of answering a shell.
        import_module("kiebitz.cli.completion.shells")
    try:
        status = kiebitz.main(list(arguments), "kiebitz", completion.VARIABLE, standalone_mode=False)
    except click.Abort:
        return INTERRUPTED
    except click.UsageError as error:
        # click has this class since 8.2; before, it prints the help itself.
        if type(error).__name__ == "NoArgsIsHelpError":
            for line in error.format_message().split("\n"):
                print_error_line(line)
            return USAGE
        warn(_of_usage(error), *_excerpt(error))
        if error.ctx is not None:
            print_error_line(f"For help: {error.ctx.command_path} -h")
        return USAGE
    except Exception as error:
        return _failed(_behind(error), arguments)
    return status if isinstance(status, int) else OK


def main() -> None:
    """The command `kiebitz`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # A KeyboardInterrupt that comes while modules are loaded may get lost in them, and Ctrl-C with it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _restart_with_safe_path()
    open_standard_streams()
    status = run(sys.argv[1:])
    with suppress(BrokenPipeError):
        flush()
    sys.exit(FAILED if status == OK and has_output_failed() else status)


def _restart_with_safe_path() -> None:
    """Start again with -P where Python was started with -E, as pipx does.

    Child processes would otherwise import modules from the current folder first: -E ignores PYTHONSAFEPATH.
    """
    if sys.flags.ignore_environment and not sys.flags.safe_path:
        os.execv(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]])


def _counting(title: str, things: str) -> AbstractContextManager[OnProgress]:
    # Rich is loaded only where something takes long.
    from kiebitz.cli.terminal.screen import counting

    return counting(title, things)


def _behind(error: Exception) -> BaseException:
    """What a filter in a query has raised, if that is why the query failed; else the failure itself."""
    filters = sys.modules.get("kiebitz.storage.filters.sql")
    return error if filters is None else cast(BaseException, filters.reason_of(error))


def _failed(error: BaseException, arguments: Sequence[str]) -> int:
    """Say what a failure means, and give the exit status."""
    if not isinstance(error, Exception) or _is_interruption(error):
        return INTERRUPTED
    warn(_sentence(error, arguments), *_excerpt(error))
    return USAGE if isinstance(error, KiebitzError) and error.is_usage else FAILED


def _is_interruption(error: BaseException | None) -> bool:
    """Whether Ctrl-C came while SQLite was at work, which it tells in its own way."""
    while error is not None:
        # What Python itself finds in a row, such as no UTF-8, has no code.
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(error, sqlite3.OperationalError) and code == sqlite3.SQLITE_INTERRUPT:
            from kiebitz.storage.database.opening import Bounded

            return not Bounded.has_run_out
        error = error.__cause__
    return False


def _sentence(error: Exception, arguments: Sequence[str]) -> str:
    """What a failure means for a person."""
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, sqlite3.Error):
        from kiebitz.storage.database.schema import sentence

        return sentence("the database", error)
    if isinstance(error, OSError):
        return ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    if isinstance(error, KiebitzError):
        return str(error)
    # Loaded only here: most commands do not fail.
    from kiebitz.services.damage import damaged_database

    return damaged_database(arguments) or fault(error)


def _of_usage(error: click.UsageError) -> str:
    """What is wrong with a command line. Click lists what there is to choose from on lines of its own."""
    text = error.format_message()
    return " ".join(text.split()) if isinstance(error, click.MissingParameter) else text


def _excerpt(error: BaseException | None) -> list[str]:
    """Lines below the sentence: the filter, with what is wrong in it marked, if it is about one."""
    while error is not None:
        if isinstance(error, KiebitzError) and (lines := error.excerpt()):
            return lines
        error = error.__cause__
    return []


def _tell_of_plugins() -> None:
    """Say which plug-ins are left out, if the command has looked for any."""
    registry = sys.modules.get("kiebitz.dissectors.registry")
    if registry is not None and registry.installed.cache_info().currsize:
        from kiebitz.cli.plugins import tell_left_out

        tell_left_out()
