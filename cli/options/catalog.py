"""The option -Y: a display filter, with completion of field names."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from kiebitz.cli.options.session import SESSION_ARGUMENTS, open_session
from kiebitz.cli.terminal.console import Candidate, with_prefix
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.services.sessions import all_sessions
from kiebitz.storage.read import conditions
from kiebitz.storage.read.conditions import (
    compile_optional_filter,
    field_catalog,
    find_paths,
    session_protocols,
)

# The filter language is slow to import, and most commands run without a filter.
if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


def _compiled(context: click.Context, parameter: click.Parameter, text: str | None) -> Filter | None:
    if text is None or context.resilient_parsing:
        return None
    from kiebitz.dissectors.filters import FilterError, compile_filter

    try:
        return compile_optional_filter(text)
    except FilterError as error:
        if not error.unknown:
            raise
        # Look for similar names in the sessions themselves.
        given = [context.params[name] for name in SESSION_ARGUMENTS if name in context.params]
        # Only in the first of several sessions, as all would take long.
        given += islice(all_sessions(context.params.get("sessions", ())), 1)
        # The command has no context yet that would close the sessions.
        with click.Context(context.command):
            opened = [open_session(session, warns=False) for session in given]
            found = dict.fromkeys(path for each in opened for path in find_paths(each, str(error.unknown[0])))
            if found:
                hint = did_you_mean(*found)
                raise FilterError(error.message, text, error.position, error.length, hint) from None
            if opened:
                compile_filter(
                    text, field_catalog({name for timeline in opened for name in session_protocols(timeline)})
                )
        raise


def complete_filter(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete the name at the end of a filter."""
    before, names = conditions.complete_filter(text)
    return with_prefix("", ((before + name, None) for name in names))


filter_option = click.option(
    "-Y",
    "wanted",
    metavar="FILTER",
    callback=_compiled,
    shell_complete=complete_filter,
    help='Display filter, as in: msg == "ROLL" && stream == 3',
)
"""Passes `wanted` to the command: the compiled Filter, or None. Raises FilterError."""
