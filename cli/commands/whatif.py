"""`kiebitz whatif`: what would have come of a session if some messages had been others."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

import click
import msgspec

from kiebitz.cli.differences.as_json import difference_json
from kiebitz.cli.differences.sides import sides
from kiebitz.cli.options.alterations import Wish, copies, read_wishes, splices_of
from kiebitz.cli.options.session import open_session, session_argument
from kiebitz.cli.status import VIOLATIONS
from kiebitz.cli.terminal.console import write_json
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.services.standard_streams import warn
from kiebitz.services.wording import counted
from kiebitz.storage.derived.derived_session import derive_session
from kiebitz.storage.diff import compare
from kiebitz.storage.read.timeline import Timeline

_LISTED = 20
"""So many messages that tell of the same event are named."""

_LONGEST_TITLE = 200


@click.command()
@session_argument
@click.option("--drop", multiple=True, metavar="#N", help="Leave this message out.")
@click.option(
    "--edit",
    multiple=True,
    metavar="'#N FIELD=VALUE …'",
    help="Give this message's fields these values, and leave the others as they are.",
)
@click.option(
    "--insert",
    multiple=True,
    metavar="'#N NAME FIELD=VALUE …'",
    help="Put in a message of this name right after #N, on the same stream and going the same way, unless "
    "only the other side has such messages.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object with all that differs, as diff has it."
)
def whatif(
    session: str, drop: Sequence[str], edit: Sequence[str], insert: Sequence[str], as_json: bool
) -> None:
    """Show what a game would have been if a message had been lost, another one, or sent in addition.

    The session is derived again, in memory, from its bytes with these messages changed, and compared with
    what it was: from which event on is the game another one? Nothing is written. The exit status is 0 if the
    events and all else that was said stay the same, and 3 if not.

    N is a message's number as kiebitz messages has it. Most shells take a # at the beginning of a word for a
    comment: write '#7', or 7. FIELD is written as in filters, such as dice, Wurf[0] or Spieler.Status. VALUE
    is a text in quotes, or JSON, or without any quotes a number, a word, or what stands in the protocol. In
    all else the message stays spelt as it was; what its grammar does not allow is refused.

    \b
    Example:
      kiebitz whatif game.db --drop '#26'
      kiebitz whatif game.db --edit '#31 dice=2,1' --edit '#33 dice=2,1'
      kiebitz whatif catan.pcap --edit '#90 Wurf[0]=6' --edit '#7 Spieler.Status="Spiel starten"'
      kiebitz whatif game.db --insert '#48 PLAYER LOST names=bob reason=MIA'
    """
    wishes = [*read_wishes("drop", drop), *read_wishes("edit", edit), *read_wishes("insert", insert)]
    if not wishes:
        raise click.UsageError("what is to be another? Say --drop '#7', --edit '#7 dice=2,1' or --insert")
    # They draw, for which much has to be loaded.
    from kiebitz.cli.differences.report import show_difference
    from kiebitz.cli.terminal.screen import progress_bar

    timeline = open_session(session)
    # Else what is recorded meanwhile would differ, too.
    with timeline.as_of_now():
        splices = splices_of(timeline, wishes)
        with progress_bar(session) as on_progress:
            other = derive_session(timeline, splices, on_progress)
        click.get_current_context().call_on_close(other.connection.close)
        found = compare(timeline, other)
        both = sides(timeline, other, "as it was", _title(wishes))
        if as_json:
            write_json(difference_json(found, both))
        else:
            show_difference(found, both)
        _tell_of_copies(session, timeline, wishes, {one.a for one in found.events if one.a is not None})
    if not found.equal:
        raise click.exceptions.Exit(VIOLATIONS)


def _title(wishes: Sequence[Wish]) -> str:
    return shortened(", ".join(wish.title for wish in wishes), _LONGEST_TITLE)


def _tell_of_copies(
    session: str, timeline: Timeline, wishes: Sequence[Wish], differing: Collection[int]
) -> None:
    """Say on stderr which other messages tell of an event, so that it stays in spite of what was done.

    `differing` are the events that did not stay.
    """
    found = {
        copy.id: msgspec.structs.replace(wish, number=timeline.numbers.number("messages", copy.id))
        for wish in wishes
        for copy in copies(timeline, wish, wishes)
        if copy.event_id not in differing
    }
    more = [*found.values()]
    if not more:
        return
    count = counted(len(more), "other message tells", "other messages tell")
    numbers = ", ".join(f"#{wish.number}" for wish in more[:_LISTED])
    if len(more) > _LISTED:
        warn(f"{count} of the same event: {numbers} and so on")
        return
    verbs = " and ".join(dict.fromkeys(wish.verb for wish in more))
    options = " ".join(wish.option for wish in [*wishes, *more])
    warn(
        f"{count} of the same event: {numbers}; {verbs} {'it' if len(more) == 1 else 'them'}, too:",
        f"  kiebitz whatif {shlex.quote(session)} {options}",
    )
