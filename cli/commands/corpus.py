"""`kiebitz corpus`: build and query a corpus of many captures."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.records import Command, Option, add_options, json_option
from kiebitz.cli.status import FAILED, VIOLATIONS
from kiebitz.cli.terminal.table import Form, output_options
from kiebitz.dissectors.extras import require_extra
from kiebitz.dissectors.registry import add_file
from kiebitz.proxy.system.deferred_signals import deferred_signals, signals_handled

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter
    from kiebitz.storage.corpus.engine import Engine

# The extra [corpus] is slow to import and may be missing: it is loaded where needed.


def _with_protocol_files(context: click.Context, parameter: click.Parameter, folder: str) -> str:
    """Register the protocol files of a corpus, if there is one."""
    from kiebitz.storage.corpus.layout import CorpusError, open_corpus

    with suppress(CorpusError):
        for file in open_corpus(folder).protocol_files():
            add_file(file, replaces=True)
    return folder


_folder = click.argument(
    "folder", metavar="DIR", type=click.Path(), callback=_with_protocol_files, is_eager=True
)


@click.group()
def corpus() -> None:
    """Query thousands of captures at once.

    A corpus is a folder of Parquet files with the contents of many captures. Captures are added on all cores
    of this machine, or on a Dask cluster; DuckDB runs the queries. Requires the extra [corpus].

    \b
    Example:
      kiebitz corpus add years 2016/ 2017/ more.pcap.gz
      kiebitz corpus events years -Y 'kind == "lost" && maexchen.reason == "MIA"'
      kiebitz corpus check years
      kiebitz corpus query years 'select protocol, count(*) from games group by all'
    """
    require_extra("corpus", "a corpus")


@corpus.command("add")
@_folder
@click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True)
@protocol_option
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Use the workers of this Dask scheduler, as in tls://HOST:8786. They need the same "
    "Kiebitz, and the same paths to DIR and the captures. Default: all cores of this machine.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="With --scheduler: allow another machine without TLS. Anyone who can reach its port, or "
    "is on the network path, can then run programs on both machines.",
)
def add(folder: str, captures: tuple[str, ...], scheduler: str | None, insecure: bool) -> None:
    """Add captures to the corpus in DIR, which is created if needed.

    CAPTURE is a file, a folder that is searched recursively, or a pattern. Captures whose content is already
    in the corpus are skipped, so run the same command again to resume. Unreadable captures are reported and
    skipped, and the exit status is 1; kiebitz corpus check lists them.

    \b
    Example:
      kiebitz corpus add years 2016/ 2017/ 'more/**/*.pcapng.zst'
      kiebitz corpus add /shared/years /shared/captures --scheduler tls://lab1:8786
    """
    from kiebitz.services.corpus.cluster import add_captures, check_scheduler

    if scheduler is not None:
        check_scheduler(scheduler, insecure)
    elif insecure:
        raise click.UsageError("--insecure requires --scheduler")
    if "-" in captures:
        raise click.UsageError("standard input cannot be added to a corpus: write it to a file first")
    if not add_captures(folder, captures, scheduler):
        raise click.exceptions.Exit(FAILED)


@contextmanager
def _engine(folder: str) -> Iterator[Engine]:
    """Open a corpus for queries; on SIGTERM and SIGHUP, remove temporary files as on Ctrl-C."""
    from kiebitz.storage.corpus.engine import Engine
    from kiebitz.storage.corpus.layout import open_corpus

    with signals_handled(signal.SIGTERM, signal.SIGHUP), ExitStack() as stack:
        # DuckDB misreports an interruption during its setup.
        with deferred_signals():
            engine = stack.enter_context(Engine(open_corpus(folder)))
        yield engine


def _query(name: str, *options: Option) -> Option:
    """Return a decorator for a command that queries a corpus, which it receives as `engine`."""

    def decorate(command: Command) -> click.Command:
        @wraps(command)
        def run(folder: str, **given: Any) -> None:
            with _engine(folder) as engine:
                command(engine, **given)

        return corpus.command(name)(add_options(run, _folder, *options))

    return decorate


@_query("sessions", output_options)
def sessions(engine: Engine, form: Form | None) -> None:
    """List the captures of a corpus with the number of messages, games and errors in each.

    \b
    Example:
      kiebitz corpus sessions years
    """
    from kiebitz.cli.corpus import list_sessions

    list_sessions(engine, form)


@_query("games", protocol_option, output_options)
def games(engine: Engine, form: Form | None) -> None:
    """List the games of a corpus with start, end and result.

    \b
    Example:
      kiebitz corpus games years --csv
    """
    from kiebitz.cli.corpus import list_records

    list_records(engine, "games", form)


@_query("events", filter_option, protocol_option, output_options)
def events(engine: Engine, wanted: Filter | None, form: Form | None) -> None:
    """List the events of a corpus as sentences.

    \b
    Example:
      kiebitz corpus events years -Y 'kind == "lost" && maexchen.reason == "MIA"'
    """
    from kiebitz.cli.corpus import list_records

    list_records(engine, "events", form, wanted)


@_query("messages", filter_option, protocol_option, output_options)
def messages(engine: Engine, wanted: Filter | None, form: Form | None) -> None:
    """List the messages of a corpus.

    \b
    Example:
      kiebitz corpus messages years -Y 'chat contains "ü"'
    """
    from kiebitz.cli.corpus import list_records

    list_records(engine, "messages", form, wanted)


@_query("check", filter_option, protocol_option, output_options)
def check(engine: Engine, wanted: Filter | None, form: Form | None) -> None:
    """List the captures that could not be read, then the diagnostics of the others, counted by code.

    --json and the like list each of them. kiebitz check CAPTURE shows a diagnostic with its bytes. The exit
    status is 3 if a capture is missing, or any error is shown.

    \b
    Example:
      kiebitz corpus check years
      kiebitz corpus check years -Y 'diag.severity == "error"' --nl
    """
    from kiebitz.cli.corpus import check_corpus

    if not check_corpus(engine, wanted, form):
        raise click.exceptions.Exit(VIOLATIONS)


@_query(
    "stats",
    filter_option,
    protocol_option,
    json_option("Print one JSON object with all values."),
)
def stats(engine: Engine, wanted: Filter | None, as_json: bool) -> None:
    """Show statistics of all games of a corpus, as kiebitz stats does for a session.

    Points over time are left out, as games of different days share no timeline.

    \b
    Example:
      kiebitz corpus stats years
      kiebitz corpus stats years -Y 'player == "alice"'
    """
    from kiebitz.cli.corpus import show_statistics

    show_statistics(engine, wanted, as_json)


@_query("query", click.argument("query", metavar="SQL"), output_options)
def query(engine: Engine, query: str, form: Form | None) -> None:
    """Query a corpus in DuckDB's SQL.

    The tables are sessions, streams, tables, games, events, messages and diagnostics. All have the column
    capture and, except for sessions, protocol. Nothing else can be read, and nothing can be written.

    \b
    Example:
      kiebitz corpus query years 'select protocol, count(*) from games group by all'
    """
    from kiebitz.cli.corpus import show_answer

    show_answer(engine.ask(query), form)
