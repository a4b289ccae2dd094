"""`kiebitz corpus`: many captures, asked one question."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.status import FAILED, VIOLATIONS
from kiebitz.cli.terminal.output import Form, output_options
from kiebitz.dissectors.extras import require_extra
from kiebitz.proxy.system.deferred_signals import deferred_signals

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter
    from kiebitz.storage.corpus.engine import Engine

# A corpus is read with an extra, which takes its time to load: so that happens where it is needed.

_folder = click.argument("folder", metavar="DIR", type=click.Path())


@click.group()
def corpus() -> None:
    """Ask thousands of captures one question.

    A corpus is a folder of Parquet, in which stands what is in many captures. They are added on all cores of
    this machine, or on those of a Dask cluster; DuckDB answers. Needs the extra [corpus].

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
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Have the workers of this Dask scheduler do it, as in tls://HOST:8786. They need the same Kiebitz, "
    "and must see DIR and the captures by the same paths. Without it, all cores of this machine do it.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="--scheduler: speak to another machine without TLS. Whoever can send to its port, or is on the way, "
    "can run programs there and here.",
)
def add(folder: str, captures: tuple[str, ...], scheduler: str | None, insecure: bool) -> None:
    """Add captures to the corpus in DIR, which is made if there is none.

    CAPTURE is a file, a folder with all captures in it and below it, or a pattern. A capture that is in
    already, by its content, is not added again: so run the same command again to go on. One that cannot be
    read is told, and stops nobody; kiebitz corpus check lists it. The exit status is 1 then.

    \b
    Example:
      kiebitz corpus add years 2016/ 2017/ 'more/**/*.pcapng.zst'
      kiebitz corpus add /shared/years /shared/captures --scheduler tls://lab1:8786
    """
    from kiebitz.services.corpus.add import add_captures
    from kiebitz.services.corpus.cluster import check_scheduler

    if scheduler is not None:
        check_scheduler(scheduler, insecure)
    elif insecure:
        raise click.UsageError("--insecure goes with --scheduler")
    if "-" in captures:
        raise click.UsageError("a corpus is made of files: write what comes from a pipe into one")
    if not add_captures(folder, captures, scheduler):
        raise click.exceptions.Exit(FAILED)


@corpus.command("sessions")
@_folder
@output_options
def sessions(folder: str, form: Form | None) -> None:
    """List the captures of a corpus, with how much is in each.

    \b
    Example:
      kiebitz corpus sessions years
    """
    from kiebitz.cli.corpus import list_sessions

    with _engine(folder) as engine:
        list_sessions(engine, form)


@corpus.command("games")
@_folder
@output_options
def games(folder: str, form: Form | None) -> None:
    """List the games of a corpus, when each began and ended, and how.

    \b
    Example:
      kiebitz corpus games years --csv
    """
    from kiebitz.cli.corpus import list_games

    with _engine(folder) as engine:
        list_games(engine, form)


@corpus.command("events")
@_folder
@filter_option
@output_options
def events(folder: str, wanted: Filter | None, form: Form | None) -> None:
    """List what happened in the games of a corpus.

    \b
    Example:
      kiebitz corpus events years -Y 'kind == "lost" && maexchen.reason == "MIA"'
    """
    from kiebitz.cli.corpus import list_events

    with _engine(folder) as engine:
        list_events(engine, wanted, form)


@corpus.command("messages")
@_folder
@filter_option
@output_options
def messages(folder: str, wanted: Filter | None, form: Form | None) -> None:
    """List the messages of a corpus.

    \b
    Example:
      kiebitz corpus messages years -Y 'chat contains "ü"'
    """
    from kiebitz.cli.corpus import list_messages

    with _engine(folder) as engine:
        list_messages(engine, wanted, form)


@corpus.command("check")
@_folder
@filter_option
@output_options
def check(folder: str, wanted: Filter | None, form: Form | None) -> None:
    """Show which captures are missing and why, then what is wrong in the others, summed up by code.

    Programs get each capture that is missing, and each flaw. kiebitz check CAPTURE shows a flaw with its
    bytes. The exit status is 3 if a capture is missing, or any error is shown.

    \b
    Example:
      kiebitz corpus check years
      kiebitz corpus check years -Y 'diag.severity == "error"' --nl
    """
    from kiebitz.cli.corpus import check_corpus

    with _engine(folder) as engine:
        if not check_corpus(engine, wanted, form):
            raise click.exceptions.Exit(VIOLATIONS)


@corpus.command("stats")
@_folder
@filter_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with all lines and figures.")
def stats(folder: str, wanted: Filter | None, as_json: bool) -> None:
    """Count what happened in all games of a corpus, as kiebitz stats does in those of a session.

    Points over time are left out, as games of different days have no time in common.

    \b
    Example:
      kiebitz corpus stats years
      kiebitz corpus stats years -Y 'player == "alice"'
    """
    from kiebitz.cli.corpus import show_statistics

    with _engine(folder) as engine:
        show_statistics(engine, wanted, as_json)


@corpus.command("query")
@_folder
@click.argument("query", metavar="SQL")
@output_options
def query(folder: str, query: str, form: Form | None) -> None:
    """Ask a corpus in SQL, as DuckDB has it.

    Its tables are sessions, streams, tables, games, events, messages and diagnostics, all with the columns
    capture and, but for sessions, protocol. Nothing else can be read, and nothing written.

    \b
    Example:
      kiebitz corpus query years 'select protocol, count(*) from games group by all'
    """
    from kiebitz.cli.corpus import show_answer

    with _engine(folder) as engine:
        show_answer(engine.ask(query), form)


@contextmanager
def _engine(folder: str) -> Iterator[Engine]:
    """Open a corpus for queries; SIGTERM and SIGHUP end the command like Ctrl-C.

    Temporary files are removed then.
    """
    from kiebitz.storage.corpus.engine import Engine
    from kiebitz.storage.corpus.layout import open_corpus

    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        with ExitStack() as stack:
            # DuckDB takes an interruption while it is set up for a failure of its own.
            with deferred_signals():
                engine = stack.enter_context(Engine(open_corpus(folder)))
            yield engine
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
