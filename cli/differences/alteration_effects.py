"""`kiebitz diff --alterations`: alterations and their effects."""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.cli.differences.altered import (
    AlterationSummary,
    as_record,
    count_in_words,
    summarize_alterations,
)
from kiebitz.cli.differences.report import show_difference
from kiebitz.cli.differences.sides import difference_json, sides
from kiebitz.cli.terminal.console import show_line, write_json
from kiebitz.cli.terminal.screen import progress_bar
from kiebitz.cli.terminal.table import seconds
from kiebitz.storage.derived.derived_session import derive_original, revert_session
from kiebitz.storage.diff import compare
from kiebitz.storage.read.alterations import ACTION_WORDS
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.session.session import Session


def show_alteration_effects(timeline: Timeline, title: str, as_json: bool) -> bool:
    """Show the alterations in a session and their effects; return True if there are no effects."""
    found = [*summarize_alterations(Session(timeline), None)]
    if not found:
        if as_json:
            write_json({"alterations": [], "equal": True})
        else:
            show_line("no alterations in this session")
        return True
    with progress_bar(title) as on_progress:
        received = derive_original(timeline, on_progress)
        sent = revert_session(timeline, on_progress)
    try:
        difference = compare(sent, received)
        both = sides(sent, received, "as sent", "as received")
        if as_json:
            alterations = [as_record(one) for one in found]
            write_json({"alterations": alterations, **difference_json(difference, both)})
        else:
            _show(found)
            show_difference(difference, both)
    finally:
        sent.connection.close()
    return difference.equal


def _show(found: Sequence[AlterationSummary]) -> None:
    show_line(f"{count_in_words(len(found))}:")
    for one in found:
        alteration = one.alteration
        head = f"  {seconds(alteration.time)} s, stream {alteration.stream}, {one.way}: "
        show_line(f"{head}{ACTION_WORDS[alteration.action]} {one.name} {one.in_words()}".rstrip())
        show_line(f"    {alteration.rule}")
    show_line()
