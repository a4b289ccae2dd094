"""`kiebitz export`: write a session for other programs, or as an HTML page."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, BinaryIO

import click

from kiebitz.cli.completion.session import SessionType
from kiebitz.cli.options.anonymizing import (
    anonymize_option,
    check_mapping_file,
    mapping_file_option,
    writing_mapping,
)
from kiebitz.cli.options.messages import player_option
from kiebitz.cli.options.part import part_options
from kiebitz.cli.options.records import output_option
from kiebitz.cli.options.session import open_session_as
from kiebitz.cli.terminal.console import is_terminal
from kiebitz.services.anonymizing import pseudonyms_if
from kiebitz.services.output_files import STANDARD_OUTPUT, opened
from kiebitz.storage.derived.selection import PartRequest, Selection, select
from kiebitz.storage.export import datasette
from kiebitz.storage.export.export import BINARY, FORMATS
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms

_PAGE = "html"
_DATASETTE = "datasette"
_FORMS = (*FORMATS, _DATASETTE, _PAGE)


@click.command()
@click.argument("session", metavar="[SESSION]", required=False, type=SessionType(), is_eager=True)
@click.option("-T", "form", type=click.Choice(_FORMS), help="Output format.")
@click.option(
    "--site",
    type=click.Path(),
    metavar="FOLDER",
    help="Write a site that reads captures in the browser, with the file SESSION as its example.",
)
@output_option
@part_options
@player_option
@anonymize_option
@mapping_file_option
def export(
    session: str | None,
    form: str | None,
    site: str | None,
    output: str | None,
    part: PartRequest,
    player: str | None,
    is_anonymized: bool,
    mapping_file: str | None,
) -> None:
    """Export a session: pcapng for Wireshark, jsonl, csv, parquet, or html for browsers.

    pcapng has each datagram, with its meaning in comments; jsonl every record of the session in order of
    time; csv and parquet a row per message. html is the page of kiebitz serve in one file, for any browser,
    without a network; with --as it contains only what that player could observe. datasette is metadata for
    the program Datasette: descriptions of the columns, and example queries.

    -Y, --game, --from and --to select a part; together, their intersection. pcapng and html begin with
    earlier messages from outside games, such as logins, so that the part can be read and imported alone. If
    the part is empty, nothing is written and the exit status is 1.

    With --anonymize, the file contains no personal data, and can still be imported, replayed and compared.

    --site writes the page for any web server that serves files: it runs in the browser, on captures,
    databases and protocol files that are dropped on it, and sends nothing anywhere. Its foreign parts, 7 MB,
    are downloaded once. Without SESSION, it has recorded games of the built-in protocols as examples.

    \b
    Example:
      kiebitz export game.db -T pcapng -o game.pcapng
      kiebitz export game.db -T pcapng --game 3 -o round3.pcapng
      kiebitz export game.db -T csv -Y 'msg == "ROLLED"' --from 12.5s --to 20s
      kiebitz export game.db -T jsonl | jq 'select(.record == "event").sentence'
      kiebitz export game.db -T html -o game.html
      kiebitz export game.db -T datasette -o metadata.json && datasette game.db -m metadata.json
      kiebitz export game.db -T pcapng --game 3 --anonymize --mapping-file who.txt -o round3.pcapng
      kiebitz export --site public
    """
    context = click.get_current_context()
    if site is not None:
        given = [
            name
            for name in context.params
            if name not in ("session", "site")
            and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        ]
        if given:
            raise click.UsageError("--site takes no other options")
        # Slow to import.
        from kiebitz.cli.terminal.screen import loading
        from kiebitz.cli.web.static_site import write_site

        with loading("download") as on_progress:
            write_site(site, [] if session is None else [session], on_progress)
        return
    if session is None or form is None:
        choices = ", ".join(_FORMS)
        raise click.UsageError(f"give a SESSION and -T, or --site. Choose from: {choices}")
    check_mapping_file(is_anonymized, mapping_file)
    if output in (None, STANDARD_OUTPUT) and (form in BINARY or form == _PAGE) and is_terminal():
        raise click.UsageError(f"{form} cannot be written to a terminal: give a file with -o, or use a pipe")
    if player is not None and form != _PAGE:
        raise click.UsageError("--as requires -T html: the other formats contain the whole recording")
    if form == _DATASETTE and (part != PartRequest() or is_anonymized):
        raise click.UsageError(
            f"{form} describes a whole database: it excludes --anonymize and options that select a part"
        )
    timeline = open_session_as(session, player)
    # Exclude what is recorded meanwhile.
    with timeline.as_of_now():
        selection = select(timeline, part) if part != PartRequest() else None
        stand_ins = pseudonyms_if(is_anonymized)
        with writing_mapping(mapping_file, stand_ins), opened(output, session) as file:
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
    if form == _DATASETTE:
        datasette.write(timeline, file)
        return
    if stand_ins is not None:
        # Options use the original names, the file the pseudonyms.
        whole, timeline = timeline, _anonymized(timeline, stand_ins)
        selection = None if selection is None else selection.again(whole, timeline)
        player = None if player is None else stand_ins.text(player)
        session = timeline.session.name
    if form in FORMATS:
        FORMATS[form](timeline, file, selection)
        return
    if selection is not None:
        # Slow to import.
        from kiebitz.storage.derived.derived_session import extract_part

        timeline = extract_part(timeline, selection)
        click.get_current_context().call_on_close(timeline.connection.close)
    _write_page(timeline, session, player, file)


def _anonymized(timeline: Timeline, stand_ins: Pseudonyms) -> Timeline:
    from kiebitz.cli.terminal.screen import counting
    from kiebitz.storage.derived.derived_session import anonymize_session

    with counting("anonymize", "chunks") as on_progress:
        other = anonymize_session(timeline, stand_ins, on_progress)
    click.get_current_context().call_on_close(other.connection.close)
    return other


def _write_page(timeline: Timeline, session: str, player: str | None, file: BinaryIO) -> None:
    # Slow to import.
    from kiebitz.cli.terminal.screen import counting
    from kiebitz.cli.web.html_export import write_html
    from kiebitz.cli.web.reader import Reader, ServedSession

    served = ServedSession(1, session, timeline.session.id, os.path.basename(session))
    with counting("html", "steps") as on_progress:
        write_html(Reader(served, timeline), player, file, on_progress)
