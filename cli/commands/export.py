"""`kiebitz export`: a session as a file for other programs."""

from __future__ import annotations

import click

from kiebitz.cli.files import opened
from kiebitz.cli.options.session import session_argument
from kiebitz.cli.plugins import tell_missing
from kiebitz.cli.sessions import open_session
from kiebitz.cli.terminal.console import is_terminal
from kiebitz.storage.export import BINARY, FORMATS


@click.command()
@session_argument
@click.option("-T", "form", type=click.Choice(list(FORMATS)), required=True, help="The format.")
@click.option(
    "-o", "output", type=click.Path(), metavar="FILE", help="Write to this file; else to standard output."
)
def export(session: str, form: str, output: str | None) -> None:
    """Write a session for other programs: Wireshark (pcapng), scripts (jsonl), tables (csv, parquet).

    pcapng has each datagram with comments that say what it means; jsonl has every record of the session in
    order of time; csv and parquet have a row for each message.

    \b
    Example:
      kiebitz export game.db -T pcapng -o game.pcapng
      kiebitz export game.db -T jsonl | jq 'select(.record == "event").sentence'
    """
    if output is None and form in BINARY and is_terminal():
        raise click.UsageError(f"{form} is not for a terminal: name a file with -o, or send it to a pipe")
    timeline = open_session(session)
    tell_missing(timeline)
    with opened(output, session) as file:
        FORMATS[form](timeline, file)
