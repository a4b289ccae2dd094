"""Filters for a session: compiled with the installed grammars, as SQL conditions, and hints for names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.registry import installed
from kiebitz.storage.read.timeline import Timeline

# The filter language loads slowly, and most sessions are read without a filter.
if TYPE_CHECKING:
    from kiebitz.dissectors.filters import FieldCatalog, Filter, Target
    from kiebitz.storage.filters.sql import Parameters


def field_catalog(spoken: Collection[str] | None = None) -> FieldCatalog:
    """Return the messages and events of all protocols, or of those `spoken`, with their field names."""
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


def compile_optional_filter(text: str | None) -> Filter | None:
    """Compile an expression of the filter language; None stays None. Raises FilterError."""
    if text is None:
        return None
    from kiebitz.dissectors.filters import compile_filter

    return compile_filter(text, field_catalog())


def sql_condition(timeline: Timeline, wanted: Filter | None, target: Target) -> tuple[str, Parameters]:
    """Return a filter as an SQL condition with parameters; without a filter, an always true one.

    Registers the functions that the condition calls on the session's connection.
    """
    if wanted is None:
        return "1", []
    from kiebitz.storage.filters.sql import register_functions, to_sql

    register_functions(timeline.connection)
    return to_sql(wanted, target, timeline.numbers)


_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
_OPERATOR = re.compile(r"([\w.]+) *(?:==|!=|contains|in *\{[^{}]*)$")
"""The end of a filter after an operator, with the name before it."""

_MAX_SET = 300
"""Maximum number of characters before a value that are searched for its name."""


def complete_filter(
    text: str, values: Callable[[str], Iterable[str]] = lambda name: ()
) -> tuple[str, list[str]]:
    """Split off the word at the end of a filter; return the text before it and its completions.

    After an operator, these are values of the name before it, in quotes. Within quotes there are no others.

    Args:
        text: The filter so far.
        values: Returns the known values of a name.
    """
    from kiebitz.dissectors.filters import complete

    is_quoted = '"' in _STRINGS.sub("", text)
    start = text.rindex('"') if is_quoted else len(text) - len(_word(text))
    compared = _OPERATOR.search(text[:start].rstrip()[-_MAX_SET:])
    if compared is not None:
        begun = text[start:].removeprefix('"').casefold()
        # Written as JSON, as a value may contain quotes.
        found = [to_json(value) for value in values(compared[1]) if value.casefold().startswith(begun)]
        if found:
            return text[:start], found
    # Without a beginning, only a value is expected.
    is_name = not is_quoted and (start < len(text) or not text.strip())
    return text[:start], complete(text[start:], field_catalog()) if is_name else []


def _word(text: str) -> str:
    """Return the name, or its beginning, at the end of a filter."""
    found = re.search(r"[\w.]*$", text)
    assert found is not None
    return found[0]


_MAX_ROWS = 200
"""Number of messages, and of events, with such a name to search."""

_MAX_HINTS = 2


def session_protocols(timeline: Timeline) -> list[str]:
    """Return the protocols of a session."""
    rows = timeline.connection.execute(
        "SELECT DISTINCT protocol FROM streams WHERE session_id = ? AND protocol IS NOT NULL",
        (timeline.session.id,),
    )
    return sorted(protocol for (protocol,) in rows)


def find_paths(timeline: Timeline, name: str) -> list[str]:
    """Return paths below fields that end in a name, as filters write them, as in `resources.Holz`.

    Paths in events come first, then those in messages; of each the most frequent ones.
    """
    from kiebitz.dissectors.filters.fields import written

    number = timeline.session.id
    streams = "stream_id IN (SELECT id FROM streams WHERE session_id = ?)"
    found: list[str] = []
    for query in (
        f"SELECT data FROM events WHERE session_id = ? AND instr(data, ?) LIMIT {_MAX_ROWS}",
        f"SELECT fields FROM messages WHERE {streams} AND instr(fields, ?) LIMIT {_MAX_ROWS}",
    ):
        count: Counter[str] = Counter()
        for (text,) in timeline.connection.execute(query, (number, to_json(name) + ":")):
            paths = _paths(msgspec.json.decode(text), name)
            count.update(".".join(map(written, path)) for path in paths if len(path) > 1)
        found += [path for path, _ in count.most_common(_MAX_HINTS) if path not in found]
    return found


def _paths(whole: Any, name: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths that end in a name; lists add nothing to a path."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), whole)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            if name in value:
                yield (*path, name)
            waiting += [((*path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [(path, inner) for inner in value]
