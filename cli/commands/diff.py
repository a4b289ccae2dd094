"""`kiebitz diff`: compare two sessions, or two states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kiebitz.cli.completion.session import SessionType
from kiebitz.cli.differences.sides import difference_json, sides
from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.records import json_option
from kiebitz.cli.options.session import open_session_as
from kiebitz.cli.status import VIOLATIONS
from kiebitz.cli.terminal.console import write_json
from kiebitz.services.sessions import split_number
from kiebitz.services.standard_streams import warn
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.diff import compare
from kiebitz.storage.read.seek import END, Position, PositionError, parse_position

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


@click.command()
@click.argument("a", metavar="A", type=SessionType(), is_eager=True)
@click.argument("b", metavar="B", type=SessionType(), is_eager=True, required=False)
@filter_option
@protocol_option
@click.option("--state", "states", is_flag=True, help="Compare two states; A and B may be SESSION@MOMENT.")
@click.option(
    "--alterations",
    is_flag=True,
    help="Show the alterations in A, and compare A with itself without them.",
)
@json_option("Print one JSON object with all differences.")
def diff(
    a: str, b: str | None, wanted: Filter | None, states: bool, alterations: bool, as_json: bool
) -> None:
    """Compare two sessions by meaning: show the first move that differs, then all other differences.

    Events and diagnostics are compared, not packets. Players are matched by name, or by order of appearance
    if that makes more events equal. Times, addresses and values that a server generates are ignored. The exit
    status is 0 if the sessions are equal, and 3 if not.

    With --state, two states are compared path by path. A MOMENT is 12.5s, #EVENT or end (the default).

    With --alterations, A is a session in which Kiebitz changed, dropped or held messages. It is compared
    with the same session without alterations. Later messages are in both, as peers answered what they
    received.

    \b
    Example:
      kiebitz diff monday.pcap tuesday.pcap
      kiebitz diff game.db:1 game.db:2 -Y 'kind == "rolled"'
      kiebitz diff --state game.db:3@12.5s game.db:3@end
      kiebitz diff --alterations game.db
    """
    if alterations:
        if b is not None or states or wanted is not None:
            raise click.UsageError("--alterations requires a single session, and excludes -Y and --state")
        # Reports are slow to import: each is loaded only if needed.
        from kiebitz.cli.differences.alteration_effects import show_alteration_effects

        timeline = open_session_as(a)
        # Exclude what is recorded meanwhile.
        with timeline.as_of_now():
            is_equal = show_alteration_effects(timeline, a, as_json)
        if not is_equal:
            raise click.exceptions.Exit(VIOLATIONS)
        return
    if b is None:
        raise click.UsageError("Missing argument 'B'.")
    if states and wanted is not None:
        raise click.UsageError("--state and -Y exclude each other: a state depends on all events")
    (path_a, moment_a), (path_b, moment_b) = _split(a, states), _split(b, states)
    first, second = open_session_as(path_a), open_session_as(path_b)
    both = sides(first, second, a, b)
    found = compare(first, second, wanted)
    if states:
        from kiebitz.cli.differences.states import show_state_difference

        equal = show_state_difference(found, both, moment_a, moment_b, as_json)
    else:
        equal = found.equal
        if as_json:
            write_json(difference_json(found, both))
        else:
            from kiebitz.cli.differences.report import show_difference

            show_difference(found, both)
        versions = [one.session.kiebitz_version for one in (first, second)]
        if found.diagnostics and versions[0] != versions[1]:
            warn(
                f"A was dissected by Kiebitz {versions[0]}, B by {versions[1]}, which may be why their"
                " diagnostics differ; kiebitz redissect updates a database"
            )
    if not equal:
        raise click.exceptions.Exit(VIOLATIONS)


def _split(given: str, states: bool) -> tuple[str, Position]:
    """Split SESSION@MOMENT. Raises StorageError, and UsageError for an invalid moment."""
    try:
        # A file name may contain an @.
        split_number(given)
        return given, END
    except StorageError as missing:
        path, _, moment = given.rpartition("@")
        try:
            split_number(path)
        except StorageError:
            raise missing from None
    if not states:
        raise click.UsageError(f"{given}: a moment requires --state; without it, whole sessions are compared")
    try:
        return path, parse_position(moment)
    except PositionError as error:
        raise click.UsageError(str(error)) from error
