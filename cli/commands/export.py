"""`kiebitz export`: a session as a file for other programs, or as a page to hand out."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, BinaryIO

import click

from kiebitz.cli.files import opened
from kiebitz.cli.options.anonymizing import (
    anonymize_option,
    check_replaced,
    listing_replaced,
    replaced_option,
    stand_ins_if,
)
from kiebitz.cli.options.moments import player_option
from kiebitz.cli.options.players import check_player
from kiebitz.cli.options.session import session_argument
from kiebitz.cli.plugins import tell_missing
from kiebitz.cli.sessions import open_session
from kiebitz.cli.terminal.console import is_terminal
from kiebitz.storage.export import BINARY, FORMATS
from kiebitz.storage.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.stand_ins import StandIns

_PAGE = "html"


@click.command()
@session_argument
@click.option("-T", "form", type=click.Choice([*FORMATS, _PAGE]), required=True, help="The format.")
@click.option(
    "-o", "output", type=click.Path(), metavar="FILE", help="Write to this file; else to standard output."
)
@player_option
@anonymize_option
@replaced_option
def export(
    session: str,
    form: str,
    output: str | None,
    player: str | None,
    is_anonymized: bool,
    replaced: str | None,
) -> None:
    """Write a session for other programs: Wireshark (pcapng), scripts (jsonl), tables (csv, parquet).

    pcapng has each datagram with comments that say what it means; jsonl has every record of the session in
    order of time; csv and parquet have a row for each message. html is the page of kiebitz serve as one file,
    which any browser opens without a network; with --as it holds only what that player could know.

    With --anonymize the file names nobody, and still is the same game: it imports, replays and compares.

    \b
    Example:
      kiebitz export game.db -T pcapng -o game.pcapng
      kiebitz export game.db -T jsonl | jq 'select(.record == "event").sentence'
      kiebitz export game.db -T html -o game.html
      kiebitz export game.db -T pcapng -o game.pcapng --anonymize --replaced who.txt
    """
    check_replaced(is_anonymized, replaced)
    if output is None and (form in BINARY or form == _PAGE) and is_terminal():
        raise click.UsageError(f"{form} is not for a terminal: name a file with -o, or send it to a pipe")
    if player is not None and form != _PAGE:
        raise click.UsageError("--as goes with -T html: the other formats have all that was recorded")
    timeline = open_session(session)
    tell_missing(timeline)
    if player is not None:
        check_player(timeline, player)
    stand_ins = stand_ins_if(is_anonymized)
    with listing_replaced(replaced, stand_ins), opened(output, session) as file:
        if stand_ins is not None:
            timeline = _anonymized(timeline, stand_ins)
            player = stand_ins.text(player) if player is not None else None
            session = timeline.session.name
        if form == _PAGE:
            _write_page(timeline, session, player, file)
        else:
            FORMATS[form](timeline, file)


def _anonymized(timeline: Timeline, stand_ins: StandIns) -> Timeline:
    """The session in memory, naming nobody."""
    from kiebitz.cli.terminal.screen import counting
    from kiebitz.storage.derived import anonymized

    with counting("chunks") as progress:
        bar = progress.add_task("anonymize", total=None)
        other = anonymized(
            timeline, stand_ins, lambda done, of: progress.update(bar, completed=done, total=of)
        )
    click.get_current_context().call_on_close(other.connection.close)
    return other


def _write_page(timeline: Timeline, session: str, player: str | None, file: BinaryIO) -> None:
    # They take their time to load.
    from kiebitz.cli.terminal.screen import counting
    from kiebitz.cli.web.one_file import write_html
    from kiebitz.cli.web.reader import Reader, Served

    served = Served(1, session, timeline.session.id, os.path.basename(session))
    with counting("pictures") as progress:
        bar = progress.add_task("html", total=None)
        write_html(
            Reader(served, timeline),
            player,
            file,
            lambda done, of: progress.update(bar, completed=done, total=of),
        )
