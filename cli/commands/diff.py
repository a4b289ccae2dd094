"""`kiebitz diff`: how two sessions differ, or their states at a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kiebitz.cli.completion.session import SessionType
from kiebitz.cli.differences.as_json import difference_json
from kiebitz.cli.differences.sides import sides
from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.session import open_session
from kiebitz.cli.plugins import tell_missing
from kiebitz.cli.status import VIOLATIONS
from kiebitz.cli.terminal.console import write_json
from kiebitz.services.sessions import split_number
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.diff import compare
from kiebitz.storage.read.seek import END, Position, PositionError, parse_position

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


@click.command()
@click.argument("a", metavar="A", type=SessionType(), is_eager=True)
@click.argument("b", metavar="B", type=SessionType(), is_eager=True, required=False)
@filter_option
@click.option("--state", "states", is_flag=True, help="Compare two states: A and B may be SESSION@MOMENT.")
@click.option(
    "--alterations",
    is_flag=True,
    help="Show what Kiebitz has altered in A, and compare A with itself as it was sent.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object: what was compared, and all that differs."
)
def diff(
    a: str, b: str | None, wanted: Filter | None, states: bool, alterations: bool, as_json: bool
) -> None:
    """Show where two games part: the first move that differs, then what else does.

    A and B are sessions. Their events are compared, however many packets told of them: players are matched by
    name, or by the order in which they come up if that makes more the same; times, addresses, and values that
    a server makes up anew do not count. The exit status is 0 if they are the same, and 3 if not.

    With --state, two states are compared path by path. A MOMENT is 12.5s, #EVENT or end; without one it is
    the end.

    With --alterations there is only A, in which Kiebitz has changed, dropped or held messages as they passed.
    It is compared with what it would have been had everything been passed on as it was sent. What peers said
    later is in both: it is what they answered to what they got.

    \b
    Example:
      kiebitz diff monday.pcap tuesday.pcap
      kiebitz diff game.db:1 game.db:2 -Y 'kind == "rolled"'
      kiebitz diff --state game.db:3@12.5s game.db:3@end
      kiebitz diff --alterations game.db
    """
    if alterations:
        if b is not None or states or wanted is not None:
            raise click.UsageError("--alterations takes one session, and neither -Y nor --state")
        # This report, like the two below, is loaded where it is asked for.
        from kiebitz.cli.differences.alteration_effects import show_what_was_altered

        timeline = open_session(a)
        tell_missing(timeline)
        # Else what is recorded meanwhile would differ, too.
        with timeline.as_of_now():
            is_equal = show_what_was_altered(timeline, a, as_json)
        if not is_equal:
            raise click.exceptions.Exit(VIOLATIONS)
        return
    if b is None:
        raise click.UsageError("Missing argument 'B'.")
    if states and wanted is not None:
        raise click.UsageError("--state and -Y do not go together: a state is all that has happened")
    (path_a, moment_a), (path_b, moment_b) = _split(a, states), _split(b, states)
    first, second = open_session(path_a), open_session(path_b)
    tell_missing(first)
    tell_missing(second)
    both = sides(first, second, a, b)
    found = compare(first, second, wanted)
    if states:
        from kiebitz.cli.differences.states import differing_states

        equal = differing_states(found, both, moment_a, moment_b, as_json)
    else:
        equal = found.equal
        if as_json:
            write_json(difference_json(found, both))
        else:
            from kiebitz.cli.differences.report import show_difference

            show_difference(found, both)
    if not equal:
        raise click.exceptions.Exit(VIOLATIONS)


def _split(given: str, states: bool) -> tuple[str, Position]:
    """A session and the moment behind its @. Raises StorageError, and UsageError for what is no moment."""
    try:
        # The name of a file may have an @.
        split_number(given)
        return given, END
    except StorageError as missing:
        path, _, moment = given.rpartition("@")
        try:
            split_number(path)
        except StorageError:
            raise missing from None
    if not states:
        raise click.UsageError(
            f"{given}: a moment only goes with --state; without it whole sessions are compared"
        )
    try:
        return path, parse_position(moment)
    except PositionError as error:
        raise click.UsageError(str(error)) from error
