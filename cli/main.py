"""The command `kiebitz`: lazy loading of subcommands, error messages and exit statuses."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from difflib import get_close_matches
from importlib import import_module
from keyword import iskeyword
from threading import Timer
from typing import Any, cast

import click

from kiebitz.cli import completion
from kiebitz.cli.configuration.file import VARIABLE, configuration, configuration_path
from kiebitz.cli.status import FAILED, INTERRUPTED, OK, USAGE
from kiebitz.cli.terminal.console import set_colour_preference
from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.services.importing import is_compiled
from kiebitz.services.progress import OnProgress, set_display
from kiebitz.services.standard_streams import (
    escape_unencodable,
    flush,
    has_output_failed,
    open_standard_streams,
    print_error_line,
    warn,
)

_REPEAT_S = 0.01
"""Time in seconds after which a Ctrl-C that was lost is repeated."""

COMMANDS: dict[str, dict[str, str]] = {
    "Record": {
        "relay": "Relay traffic between players and their server, and record it.",
        "sniff": "Record traffic from a network interface.",
        "import": "Import capture files into a database.",
        "class": "Run a lesson: relays, recordings and the page for several groups.",
        "collect": "Record what taps on other machines publish as one session.",
    },
    "Inspect": {
        "watch": "Show the table in the terminal, live or recorded.",
        "serve": "Serve the table as a web page, live or recorded.",
        "sessions": "List, rename or delete the sessions of a database.",
        "streams": "List TCP connections and UDP conversations.",
        "games": "List games and their results.",
        "messages": "List messages.",
        "show": "Show messages in full, byte by byte.",
        "events": "List the events of the game as sentences.",
        "sequence": "Draw messages between players and servers as a sequence diagram.",
        "state": "Show the state of the game at any moment.",
        "stats": "Show statistics: dice, bluffs, tricks, points, times.",
        "check": "Report violations of protocol and rules, byte by byte.",
        "diff": "Compare two sessions by meaning.",
        "whatif": "Compare a session with itself with some messages changed.",
        "follow": "Show the bytes of one stream.",
    },
    "Replay": {
        "replay": "Replay a session in the terminal or to a live peer.",
    },
    "Test": {
        "probe": "Test a server or a client against the specification.",
        "interop": "Run every server with every client, as one page.",
    },
    "Export": {
        "export": "Export a session as pcapng, JSON lines, CSV, Parquet or HTML.",
        "redissect": "Dissect the recorded bytes again.",
    },
    "Corpus": {
        "corpus": "Query thousands of captures at once.",
    },
    "Reference": {
        "protocols": "List the protocols, or print the reference of one.",
        "draft": "Infer a first protocol file from traffic.",
        "addon-path": "Print the path of the add-on for mitmproxy.",
        "help": "Show the help of a command, or of filters.",
        "completion": "Print the completion script for bash, zsh or fish.",
    },
}
"""Help section -> command -> summary."""


class Kiebitz(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in COMMANDS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        name = cmd_name.replace("-", "_")
        name += "_" * iskeyword(name)
        command: click.Command = getattr(import_module(f"kiebitz.cli.commands.{name}"), name)
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            # All modules are loaded: Ctrl-C can be handled from here on.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            near = get_close_matches(args[0], known)
            hint = did_you_mean(*near) if near else "kiebitz -h lists the commands"
            raise click.UsageError(f"there is no command {args[0]}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([*section.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        path = configuration_path() or f"set by {VARIABLE}"
        missing = "" if os.path.exists(path) else " (not found)"
        with formatter.section("Configuration file"):
            # On one line, for copying.
            formatter.write(f"{'':{formatter.current_indent}}{printable(path)}{missing}\n")

    def invoke(self, ctx: click.Context) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                flush()
                _warn_about_plugins()
        except BrokenPipeError:
            # The reader closed the pipe, or the write error is already reported.
            return None


_BUILD = (
    f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}, "
    f"{'compiled' if is_compiled() else 'not compiled'}"
)


@click.group(cls=Kiebitz, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(
    None,
    "-V",
    "--version",
    package_name="kiebitz",
    message=f"%(prog)s %(version)s ({_BUILD})",
)
def kiebitz() -> None:
    """Relay, record and inspect networked table games.

    SESSION is a capture file, a database, or DB:N for session N of a database.
    Listings accept several sessions, and 'DB:*' for all sessions of a database.

    \b
    Example:
      kiebitz relay -m reverse:udp://127.0.0.1:9000@9001 -w game.db
      kiebitz events game.db
      kiebitz check odd.pcap
    """
    colour = configuration().colour
    if colour != "auto":
        set_colour_preference(colour == "always")


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status; report a failure on stderr in one sentence."""
    escape_unencodable()
    set_display(_counting)
    if completion.VARIABLE in os.environ:
        # Register Kiebitz's completion classes with click.
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
    """Run the command `kiebitz` and exit."""
    sys.unraisablehook = _repeat_interruption
    _restart_with_safe_path()
    open_standard_streams()
    status = run(sys.argv[1:])
    with suppress(BrokenPipeError):
        flush()
    sys.exit(FAILED if status == OK and has_output_failed() else status)


def _repeat_interruption(lost: sys.UnraisableHookArgs) -> None:
    """Repeat a Ctrl-C that came while an object was removed, where its exception is lost."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    # Later, as the exception would be lost here, too.
    timer = Timer(_REPEAT_S, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()


def _restart_with_safe_path() -> None:
    """Restart Python with -P if it was started with -E, as pipx does.

    Child processes would otherwise import modules from the current folder first: -E ignores PYTHONSAFEPATH.
    """
    if sys.flags.ignore_environment and not sys.flags.safe_path:
        os.execv(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]])


def _counting(title: str, things: str) -> AbstractContextManager[OnProgress]:
    # Loads Rich, which only long operations need.
    from kiebitz.cli.terminal.screen import counting

    return counting(title, things)


def _behind(error: Exception) -> BaseException:
    """Return the exception of a filter that made a query fail, else the error itself."""
    filters = sys.modules.get("kiebitz.storage.filters.sql")
    return error if filters is None else cast(BaseException, filters.original_error(error))


def _failed(error: BaseException, arguments: Sequence[str]) -> int:
    """Report an error on stderr and return the exit status."""
    if not isinstance(error, Exception) or _is_interruption(error):
        return INTERRUPTED
    warn(_sentence(error, arguments), *_excerpt(error))
    return USAGE if isinstance(error, KiebitzError) and error.is_usage else FAILED


def _is_interruption(error: BaseException | None) -> bool:
    """Return whether Ctrl-C interrupted SQLite, which raises an error of its own."""
    while error is not None:
        # Errors that Python raises on a row, such as invalid UTF-8, have no code.
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(error, sqlite3.OperationalError) and code == sqlite3.SQLITE_INTERRUPT:
            from kiebitz.storage.database.opening import LimitedConnection

            return not LimitedConnection.limit_reached
        error = error.__cause__
    return False


def _sentence(error: Exception, arguments: Sequence[str]) -> str:
    """Return the error message for the user."""
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, sqlite3.Error):
        from kiebitz.storage.database.schema import sentence

        return sentence("the database", error)
    if isinstance(error, OSError):
        return ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    if isinstance(error, KiebitzError):
        return str(error)
    # Loaded only on failure.
    from kiebitz.services.damage import damaged_database

    return damaged_database(arguments) or fault(error)


def _of_usage(error: click.UsageError) -> str:
    """Return a usage error on one line; click lists choices on several."""
    text = error.format_message()
    return " ".join(text.split()) if isinstance(error, click.MissingParameter) else text


def _excerpt(error: BaseException | None) -> list[str]:
    """Return the lines below the message: for a filter, the filter with the error marked."""
    while error is not None:
        if isinstance(error, KiebitzError) and (lines := error.excerpt()):
            return lines
        error = error.__cause__
    return []


def _warn_about_plugins() -> None:
    """Warn about plug-ins and protocol files that cannot be used, if the command has loaded any."""
    registry = sys.modules.get("kiebitz.dissectors.registry")
    if registry is not None and registry.known_problems():
        from kiebitz.cli.plugins import warn_about_failed

        warn_about_failed()
