"""`kiebitz whatif`: compare a session with itself after editing some messages."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

import click

from kiebitz.cli.differences.sides import difference_json, sides
from kiebitz.cli.options.alterations import (
    Wish,
    complete_edit,
    find_copies,
    read_wishes,
    reports_of_same_event,
    splices_of,
)
from kiebitz.cli.options.messages import message_numbered
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.records import json_option
from kiebitz.cli.options.session import open_session, session_argument
from kiebitz.cli.status import VIOLATIONS
from kiebitz.cli.terminal.console import write_json
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.services.standard_streams import warn
from kiebitz.services.wording import counted
from kiebitz.storage.derived.derived_session import derive_original, derive_session
from kiebitz.storage.diff import compare
from kiebitz.storage.read.timeline import Timeline

_LISTED = 20
"""Maximum number of messages to list in a warning."""

_LONGEST_TITLE = 200


@click.command()
@session_argument
@protocol_option
@click.option("--drop", multiple=True, metavar="#N", help="Leave out this message.")
@click.option(
    "--edit",
    multiple=True,
    metavar="'#N FIELD=VALUE …'",
    shell_complete=complete_edit,
    help="Set fields of this message, and of its copies in a broadcast; '#N only FIELD=VALUE …' leaves the"
    " copies as they are. Other fields stay unchanged.",
)
@click.option(
    "--insert",
    multiple=True,
    metavar="'#N NAME FIELD=VALUE …'",
    help="Insert a message directly after #N, on the same stream and in the same direction, "
    "unless only the other side sends such messages.",
)
@json_option("Print one JSON object with all differences, as diff does.")
def whatif(
    session: str, drop: Sequence[str], edit: Sequence[str], insert: Sequence[str], as_json: bool
) -> None:
    """Show how a game would have changed with some messages dropped, edited or inserted.

    The session is derived again in memory from its bytes with these edits, and compared with the original:
    which is the first event that differs, and which diagnostics appear or disappear? Nothing is written. The
    exit status is 0 if all events, diagnostics and other messages stay the same, and 3 if not.

    N is a message number as in kiebitz messages. Most shells treat a # at the start of a word as a comment:
    write '#7', or 7. FIELD is a field as in filters, such as dice, Wurf[0] or Spieler.Status. VALUE is a
    quoted text, JSON, or without quotes a number, a word, or the protocol's own notation. The rest of the
    message keeps its bytes. Values that the grammar does not allow are rejected.

    \b
    Example:
      kiebitz whatif game.db --drop '#26'
      kiebitz whatif game.db --edit '#31 dice=2,1'
      kiebitz whatif catan.pcap --edit '#90 Wurf[0]=6' --edit '#7 only Spieler.Status="Spiel starten"'
      kiebitz whatif game.db --insert '#48 PLAYER LOST names=bob reason=MIA'
    """
    wishes = [*read_wishes("drop", drop), *read_wishes("edit", edit), *read_wishes("insert", insert)]
    if not wishes:
        raise click.UsageError("no edits: give --drop '#7', --edit '#7 dice=2,1' or --insert")
    # Slow to import.
    from kiebitz.cli.differences.report import show_difference
    from kiebitz.cli.terminal.screen import progress_bar

    timeline = open_session(session)
    # Exclude what is recorded meanwhile.
    with timeline.as_of_now():
        wishes = find_copies(timeline, wishes)
        splices = splices_of(timeline, wishes)
        with progress_bar(session) as on_progress:
            original = derive_original(timeline, on_progress)
            other = derive_session(timeline, splices, on_progress)
        for derived in (original, other):
            click.get_current_context().call_on_close(derived.connection.close)
        found = compare(original, other)
        title = shortened(", ".join(wish.title for wish in wishes), _LONGEST_TITLE)
        both = sides(original, other, "original", title)
        if as_json:
            write_json(difference_json(found, both))
        else:
            show_difference(found, both)
        _warn_about_copies(session, timeline, wishes, {one.a for one in found.events if one.a is not None})
    if not found.equal:
        raise click.exceptions.Exit(VIOLATIONS)


def _warn_about_copies(
    session: str, timeline: Timeline, wishes: Sequence[Wish], differing: Collection[int]
) -> None:
    """Warn about messages that still report the event of a dropped one.

    `differing` has the ids of the events that did change.
    """
    gone = {wish.number for wish in wishes if wish.verb != "insert"}
    reports = [
        timeline.numbers.number("messages", other.id)
        for wish in wishes
        if wish.verb == "drop"
        for other in reports_of_same_event(timeline, message_numbered(timeline, wish.number))
        if other.event_id not in differing
    ]
    more = [Wish("drop", number) for number in dict.fromkeys(reports) if number not in gone]
    if not more:
        return
    count = counted(len(more), "other message reports", "other messages report")
    numbers = ", ".join(f"#{wish.number}" for wish in more[:_LISTED])
    if len(more) > _LISTED:
        warn(f"{count} the same event: {numbers} and so on")
        return
    options = " ".join(wish.option for wish in [*wishes, *more])
    warn(
        f"{count} the same event: {numbers}; drop {'it' if len(more) == 1 else 'them'}, too:",
        f"  kiebitz whatif {shlex.quote(session)} {options}",
    )
