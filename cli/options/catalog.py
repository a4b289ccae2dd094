"""What filters may name, taken from the grammars, and the option -Y that takes one."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

import click

from kiebitz.cli.options.session import SESSION_ARGUMENTS
from kiebitz.cli.sessions import open_session
from kiebitz.cli.terminal.console import Candidate, candidates
from kiebitz.dissectors.registry import installed
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.storage.paths import paths_to, spoken
from kiebitz.storage.players import name_of_stream
from kiebitz.storage.timeline import Timeline

# The filter language takes its time to load, and most commands are asked without a filter.
if TYPE_CHECKING:
    from kiebitz.storage.filters import FieldCatalog, Filter, Parameters, Target


def field_catalog(spoken: Collection[str] | None = None) -> FieldCatalog:
    """The messages and events of every protocol, or of those `spoken`, with the names of their fields."""
    from kiebitz.storage.filters import FieldCatalog

    messages: dict[str, dict[str, dict[str, str]]] = {}
    events: dict[str, dict[str, tuple[str, ...]]] = {}
    for dissector in installed().dissectors.values():
        grammar = dissector.grammar
        if spoken is not None and grammar.protocol not in spoken:
            continue
        fields = messages[grammar.protocol] = {}
        for row in grammar.rows:
            fields.setdefault(row.name, {}).update({field.name: field.gloss for field in row.fields})
        events[grammar.protocol] = {kind: event.fields for kind, event in grammar.events.items()}
    return FieldCatalog(messages, events)


def sql_condition(timeline: Timeline, wanted: Filter | None, target: Target) -> tuple[str, Parameters]:
    """A filter as a condition for WHERE and its parameters; without a filter, one that is always true.

    The session's database gets the functions that the condition calls.
    """
    if wanted is None:
        return "1", []
    from kiebitz.storage.filters import register_functions

    register_functions(timeline.connection, name_of_stream(timeline))
    return wanted.sql(target)


def compile_wanted(text: str | None) -> Filter | None:
    """The filter of a -Y, None if there is none. Raises FilterError."""
    if text is None:
        return None
    from kiebitz.storage.filters import compile_filter

    return compile_filter(text, field_catalog())


def _compiled(context: click.Context, parameter: click.Parameter, text: str | None) -> Filter | None:
    if text is None:
        return None
    from kiebitz.storage.filters import FilterError, compile_filter

    try:
        return compile_wanted(text)
    except FilterError as error:
        if not error.unknown:
            raise
        # Now it pays to look into the sessions: what is near among their own words is meant.
        given = [context.params[name] for name in SESSION_ARGUMENTS if name in context.params]
        opened = [open_session(session, is_told=False) for session in given]
        found = dict.fromkeys(path for each in opened for path in paths_to(each, str(error.unknown[0])))
        if found:
            hint = did_you_mean(*found)
            raise FilterError(error.message, text, error.position, error.length, hint) from None
        if opened:
            compile_filter(text, field_catalog({name for timeline in opened for name in spoken(timeline)}))
        raise


def _completed(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """The name that is being written at the end of a filter."""
    from kiebitz.storage.filters import complete

    found = re.search(r"[\w.]*$", text)
    assert found is not None
    before = text[: found.start()]
    return candidates((before + name, None) for name in complete(found[0], field_catalog()))


filter_option = click.option(
    "-Y",
    "wanted",
    metavar="FILTER",
    callback=_compiled,
    shell_complete=_completed,
    help='Only what meets this display filter, as in: msg == "ROLL" && stream == 3',
)
"""Gives the command `wanted`: the compiled Filter, or None. Raises FilterError."""
