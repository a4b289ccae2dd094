"""Filters for a session: compiled with what the installed grammars know, and as conditions of SQL."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from kiebitz.dissectors.registry import installed
from kiebitz.storage.read.players import name_of_stream
from kiebitz.storage.read.timeline import Timeline

# The filter language takes its time to load, and most sessions are asked without a filter.
if TYPE_CHECKING:
    from kiebitz.dissectors.filters import FieldCatalog, Filter, Target
    from kiebitz.storage.filters.sql import Parameters


def field_catalog(spoken: Collection[str] | None = None) -> FieldCatalog:
    """The messages and events of every protocol, or of those `spoken`, with the names of their fields."""
    from kiebitz.dissectors.filters import FieldCatalog

    messages: dict[str, dict[str, dict[str, str]]] = {}
    events: dict[str, dict[str, tuple[str, ...]]] = {}
    for dissector in installed().dissectors.values():
        grammar = dissector.grammar
        if spoken is not None and grammar.protocol not in spoken:
            continue
        fields = messages[grammar.protocol] = {}
        for row in grammar.rows:
            fields.setdefault(row.name, {}).update({field.name: field.description for field in row.fields})
        events[grammar.protocol] = {kind: event.fields for kind, event in grammar.events.items()}
    return FieldCatalog(messages, events)


def compile_wanted(text: str | None) -> Filter | None:
    """A filter in the words of the filter language; None if there is none. Raises FilterError."""
    if text is None:
        return None
    from kiebitz.dissectors.filters import compile_filter

    return compile_filter(text, field_catalog())


def sql_condition(timeline: Timeline, wanted: Filter | None, target: Target) -> tuple[str, Parameters]:
    """A filter as a condition for WHERE and its parameters; without a filter, one that is always true.

    The session's database gets the functions that the condition calls.
    """
    if wanted is None:
        return "1", []
    from kiebitz.storage.filters.sql import register_functions, to_sql

    register_functions(timeline.connection, name_of_stream(timeline))
    return to_sql(wanted, target, timeline.numbers)


def names_at_end(text: str) -> tuple[str, list[str]]:
    """What stands before the name at the end of a filter, and the names that it may become."""
    from kiebitz.dissectors.filters import complete

    found = re.search(r"[\w.]*$", text)
    assert found is not None
    return text[: found.start()], complete(found[0], field_catalog())
