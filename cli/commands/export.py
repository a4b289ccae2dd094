"""`kiebitz export`: a session as a file for other programs, or as a page to hand out."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, BinaryIO

import click

from kiebitz.cli.options.anonymizing import (
    anonymize_option,
    check_replaced,
    listing_replaced,
    replaced_option,
)
from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.moments import game_option, moment_option, player_option
from kiebitz.cli.options.session import open_session, session_argument
from kiebitz.cli.plugins import tell_missing
from kiebitz.cli.terminal.console import is_terminal
from kiebitz.services.anonymizing import stand_ins_if
from kiebitz.services.output_files import STANDARD_OUTPUT, opened
from kiebitz.storage.derived.selection import Part, Selection, select
from kiebitz.storage.export import datasette
from kiebitz.storage.export.export import BINARY, FORMATS
from kiebitz.storage.read.players import check_player
from kiebitz.storage.read.seek import Moment
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
    from kiebitz.dissectors.filters import Filter

_PAGE = "html"
_QUESTIONS = "datasette"
_FORMS = (*FORMATS, _QUESTIONS, _PAGE)


@click.command()
@session_argument
@click.option("-T", "form", type=click.Choice(_FORMS), required=True, help="The format.")
@click.option(
    "-o",
    "output",
    type=click.Path(),
    metavar="FILE",
    help="Write to this file; - is standard output, the default.",
)
@filter_option
@game_option
@moment_option("--from", "begin", "From this moment on.")
@moment_option("--to", "end", "Up to this moment.")
@player_option
@anonymize_option
@replaced_option
def export(
    session: str,
    form: str,
    output: str | None,
    wanted: Filter | None,
    number: int | None,
    begin: Moment | None,
    end: Moment | None,
    player: str | None,
    is_anonymized: bool,
    replaced: str | None,
) -> None:
    """Write a session for other programs: Wireshark (pcapng), scripts (jsonl), tables (csv, parquet).

    pcapng has each datagram with comments that say what it means; jsonl has every record of the session in
    order of time; csv and parquet have a row for each message. html is the page of kiebitz serve as one file,
    which any browser opens without a network; with --as it holds only what that player could know. datasette
    has what the program of that name shows beside a database: what its columns mean, and questions about it.

    -Y, --game, --from and --to write a part, and together what all of them mean. In pcapng and html what was
    said before it outside of games comes first, so that the part can be read alone, and imported again: who
    plays, and where. A part in which there is nothing is not written, and the exit status is 1.

    With --anonymize the file names nobody, and still is the same game: it imports, replays and compares.

    \b
    Example:
      kiebitz export game.db -T pcapng -o game.pcapng
      kiebitz export game.db -T pcapng --game 3 -o round3.pcapng
      kiebitz export game.db -T csv -Y 'msg == "ROLLED"' --from 12.5s --to 20s
      kiebitz export game.db -T jsonl | jq 'select(.record == "event").sentence'
      kiebitz export game.db -T html -o game.html
      kiebitz export game.db -T datasette -o metadata.json && datasette game.db -m metadata.json
      kiebitz export game.db -T pcapng --game 3 --anonymize --replaced who.txt -o round3.pcapng
    """
    check_replaced(is_anonymized, replaced)
    if output in (None, STANDARD_OUTPUT) and (form in BINARY or form == _PAGE) and is_terminal():
        raise click.UsageError(f"{form} is not for a terminal: name a file with -o, or send it to a pipe")
    if player is not None and form != _PAGE:
        raise click.UsageError("--as goes with -T html: the other formats have all that was recorded")
    part = Part(number, begin, end, wanted)
    if form == _QUESTIONS and (part != Part() or is_anonymized):
        raise click.UsageError(f"{form} is about a whole database: it has no parts, and names nobody")
    timeline = open_session(session)
    tell_missing(timeline)
    if player is not None:
        check_player(timeline, player)
    # A session may be recorded on meanwhile.
    with timeline.as_of_now():
        selection = select(timeline, part) if part != Part() else None
        stand_ins = stand_ins_if(is_anonymized)
        with listing_replaced(replaced, stand_ins), opened(output, session) as file:
            _write(timeline, session, form, selection, stand_ins, player, file)


def _write(
    timeline: Timeline,
    session: str,
    form: str,
    selection: Selection | None,
    stand_ins: Pseudonyms | None,
    player: str | None,
    file: BinaryIO,
) -> None:
    if form == _QUESTIONS:
        datasette.write(timeline, file)
        return
    if stand_ins is not None:
        # Options have the names that everybody knows; the file gets the stand-ins.
        whole, timeline = timeline, _anonymized(timeline, stand_ins)
        selection = None if selection is None else selection.again(whole, timeline)
        player = None if player is None else stand_ins.text(player)
        session = timeline.session.name
    if form in FORMATS:
        FORMATS[form](timeline, file, selection)
        return
    if selection is not None:
        # Making a session anew takes its time to load.
        from kiebitz.storage.derived.derived_session import part_of

        timeline = part_of(timeline, selection)
    _write_page(timeline, session, player, file)


def _anonymized(timeline: Timeline, stand_ins: Pseudonyms) -> Timeline:
    """The session in memory, naming nobody."""
    from kiebitz.cli.terminal.screen import counting
    from kiebitz.storage.derived.derived_session import anonymized

    with counting("anonymize", "chunks") as on_progress:
        other = anonymized(timeline, stand_ins, on_progress)
    click.get_current_context().call_on_close(other.connection.close)
    return other


def _write_page(timeline: Timeline, session: str, player: str | None, file: BinaryIO) -> None:
    # They take their time to load.
    from kiebitz.cli.terminal.screen import counting
    from kiebitz.cli.web.html_export import write_html
    from kiebitz.cli.web.reader import Reader, ServedSession

    served = ServedSession(1, session, timeline.session.id, os.path.basename(session))
    with counting("html", "pictures") as on_progress:
        write_html(Reader(served, timeline), player, file, on_progress)
