"""`kiebitz check`: what is wrong in a session, shown like a good compiler's messages."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from cli.catalog import filter_option, sql_condition
from cli.excerpt import ROOM, excerpt
from cli.main import VIOLATIONS
from cli.output import Column, Form, Row, batches, output_options, seconds, show
from cli.sessions import open_session, session_argument, since
from dissectors.grammar import UNREADABLE
from dissectors.records import Severity
from storage.escaping import printable
from storage.timeline import Timeline
from storage.traffic import Bytes, DiagnosticRow, diagnostics, streams

if TYPE_CHECKING:
    from storage.filters import Filter

_COLUMNS = tuple(
    Column(key, key)
    for key in (
        "id",
        "time",
        "severity",
        "group",
        "code",
        "blame",
        "stream",
        "client",
        "server",
        "dir",
        "offset",
        "length",
        "msg",
        "text",
        "expected",
        "clause",
    )
)

_MARGIN = "   | "

_COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command()
@session_argument
@filter_option
@output_options
def check(session: str, wanted: Filter | None, form: Form | None) -> None:
    """Show who broke which rule, at which byte, and what was expected there.

    The exit status is 3 if there are errors among what is shown.

    \b
    Example:
      kiebitz check odd.pcap -Y 'diag.severity != "note"'
    """
    timeline = open_session(session)
    count: Counter[str] = Counter()
    flaws = _counted(diagnostics(timeline, *sql_condition(timeline, wanted, "diagnostics")), count)
    ends = {stream.id: (stream.client, stream.server) for stream in streams(timeline)}
    if form is None:
        _blocks(timeline, flaws, ends)
        click.echo(_summary(count))
    else:
        rows = (_row(timeline, flaw, *ends[flaw.stream_id]) for flaw in flaws)
        show(_COLUMNS, batches(rows), form, "no diagnostics match" if wanted else "nothing is wrong")
    if count["error"]:
        raise click.exceptions.Exit(VIOLATIONS)


def _counted(flaws: Iterable[DiagnosticRow], count: Counter[str]) -> Iterator[DiagnosticRow]:
    for flaw in flaws:
        count[flaw.severity] += 1
        yield flaw


def _row(timeline: Timeline, flaw: DiagnosticRow, client: str, server: str) -> Row:
    return (
        flaw.id,
        since(timeline, flaw.ts_ns),
        flaw.severity,
        flaw.group,
        flaw.code,
        flaw.blame,
        flaw.stream_id,
        client,
        server,
        flaw.direction,
        flaw.offset,
        flaw.length,
        flaw.message,
        flaw.text,
        flaw.expected,
        flaw.clause,
    )


def _blocks(timeline: Timeline, flaws: Iterable[DiagnosticRow], ends: dict[int, tuple[str, str]]) -> None:
    bytes_of = Bytes(timeline.connection)
    room = ROOM
    if sys.stdout.isatty():
        # A line that wraps tears its carets off.
        room = max(20, min(ROOM, shutil.get_terminal_size().columns - len(_MARGIN) - 2))
    for flaw in flaws:
        lines = [*_head(timeline, flaw, *ends[flaw.stream_id])]
        found = bytes_of.around(flaw)
        if found is not None:
            start, data = found
            lines += [_MARGIN + line for line in excerpt(data, flaw.offset - start, flaw.length, room)]
        lines += [
            f"   = {name}: {printable(text)}"
            for name, text in (
                ("expected", flaw.expected),
                ("clause", flaw.clause),
                ("blame", f"{flaw.blame} ({flaw.group})"),
            )
            if text is not None
        ]
        click.echo("\n".join(lines) + "\n")


def _head(timeline: Timeline, flaw: DiagnosticRow, client: str, server: str) -> Iterator[str]:
    label = click.style(f"{flaw.severity}[{flaw.code}]", fg=_COLOURS[flaw.severity], bold=True)
    yield f"{label}: {printable(flaw.text)}"
    way = f"{client} → {server}" if flaw.direction == "c2s" else f"{server} → {client}"
    place = f"byte {flaw.offset} of that direction"
    if flaw.message is not None and flaw.message_offset is not None:
        message = "the message" if flaw.message == UNREADABLE else printable(flaw.message)
        place = f"byte {flaw.offset - flaw.message_offset} of {message} ({flaw.offset} of that direction)"
    yield (
        f"  --> {seconds(since(timeline, flaw.ts_ns))} s, stream {flaw.stream_id}, {way} ({flaw.direction}),"
        f" {place}"
    )


def _summary(count: Counter[str]) -> str:
    """`3 errors, 1 warning, no notes`."""
    return ", ".join(
        f"{count[severity] or 'no'} {severity}{'' if count[severity] == 1 else 's'}" for severity in _COLOURS
    )
