"""The SQL back end of filters, for SQLite and DuckDB; every value is a parameter.

The row's table has the alias m (messages), e (events) or d (diagnostics). A condition may be NULL where a row
has no such value; that counts as false, so `not` becomes `IS NOT TRUE`. SQLite and DuckDB use the same
conditions, except for the fragments in a `Dialect`.

SQL dialects of the two engines: SQLite for a session database, DuckDB for a corpus.

A corpus table has rows of many captures, and an id is unique within its capture only: so each join also
compares `capture`. Each capture is one session.
"""

from __future__ import annotations

import functools
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.filters import Filter
from kiebitz.dissectors.filters.fields import AnyField, Column, MessageField, StateField
from kiebitz.dissectors.filters.rows import JSON, Owner, Target, ValueLocation, locations
from kiebitz.dissectors.filters.semantics import AllOf, AnyOf, Condition, Meaning, with_row_ids
from kiebitz.dissectors.filters.syntax import Passage, Step
from kiebitz.dissectors.filters.values import Test, holds, holds_inside, texts_in
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.session_numbering import Numbers
from kiebitz.storage.database.schema import ALTERATION_OF_MESSAGE


class Dialect(msgspec.Struct, frozen=True):
    """The SQL fragments of an engine's conditions, with `{}` as placeholder.

    Attributes:
        ways: Target -> owner -> join from a row to its related records; the placeholder is the condition on
            these.
        started: Target -> start time of the row's session.
        contains: Test whether the text in the placeholder contains another one.
    """

    joins: Mapping[Target, Mapping[Owner, str]]
    started: Mapping[Target, str]
    contains: str


class _Join(NamedTuple):
    """A join from a record (alias `origin`) to those whose `key` is its `reference`."""

    table: str
    alias: str
    key: str
    origin: str
    reference: str


_To = Callable[[_Join], str]

_SESSION_OF_STREAM = _Join("sessions", "x", "id", "s", "session_id")
_MESSAGES_OF_EVENT = _Join("messages", "m", "event_id", "e", "id")
_MESSAGE_OF_DIAGNOSTIC = _Join("messages", "m", "id", "d", "message_id")


def _joins(to: _To, alteration: str) -> dict[Target, dict[Owner, str]]:
    """Return the joins from each kind of row; `alteration` is that from a message to its alteration."""
    stream = to(_Join("streams", "s", "id", "m", "stream_id"))
    session = stream.format(to(_SESSION_OF_STREAM))
    event = to(_Join("events", "e", "id", "m", "event_id"))
    diagnostics = to(_Join("diagnostics", "d", "message_id", "m", "id"))
    messages, message = to(_MESSAGES_OF_EVENT), to(_MESSAGE_OF_DIAGNOSTIC)
    own_stream = to(_Join("streams", "s", "id", "d", "stream_id"))
    return {
        "messages": {
            "message": "{}",
            "event": event,
            "diagnostic": diagnostics,
            "alteration": alteration,
            "stream": stream,
            "session": session,
        },
        "events": {
            "event": "{}",
            "message": messages,
            "diagnostic": messages.format(diagnostics),
            "alteration": messages.format(alteration),
            "stream": messages.format(stream),
            "table": to(_Join("tables", "t", "id", "e", "table_id")),
            "session": to(_Join("sessions", "x", "id", "e", "session_id")),
        },
        "diagnostics": {
            "diagnostic": "{}",
            "message": message,
            "event": message.format(event),
            "alteration": message.format(alteration),
            "stream": own_stream,
            "session": own_stream.format(to(_SESSION_OF_STREAM)),
        },
    }


def _in_database(step: _Join) -> str:
    table, alias, key, origin, reference = step
    if table == "streams":
        # There are few streams: SQLite finds them once, not for each row.
        return f"{origin}.{reference} IN (SELECT {alias}.{key} FROM {table} AS {alias} WHERE {{}})"
    return f"EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {alias}.{key} = {origin}.{reference} AND {{}})"


def _in_capture(step: _Join) -> str:
    table, alias, key, origin, reference = step
    return (
        f"EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {alias}.{key} = {origin}.{reference}"
        f" AND {alias}.capture = {origin}.capture AND {{}})"
    )


_STARTED_OF_STREAM = (
    "(SELECT x.started_ns FROM sessions AS x JOIN streams AS s ON s.session_id = x.id"
    " WHERE s.id = {}.stream_id)"
)
_STARTED_OF_CAPTURE = "(SELECT x.started_ns FROM sessions AS x WHERE x.capture = {}.capture)"

SQLITE = Dialect(
    _joins(_in_database, f"EXISTS (SELECT 1 FROM alterations AS a WHERE {ALTERATION_OF_MESSAGE} AND {{}})"),
    {
        "messages": _STARTED_OF_STREAM.format("m"),
        "events": "(SELECT x.started_ns FROM sessions AS x WHERE x.id = e.session_id)",
        "diagnostics": _STARTED_OF_STREAM.format("d"),
    },
    "instr({}, ?) > 0",
)

DUCKDB = Dialect(
    # A corpus has no alterations.
    _joins(_in_capture, "EXISTS (SELECT 1 FROM (SELECT '' AS action WHERE FALSE) AS a WHERE {})"),
    {
        "messages": _STARTED_OF_CAPTURE.format("m"),
        "events": _STARTED_OF_CAPTURE.format("e"),
        "diagnostics": _STARTED_OF_CAPTURE.format("d"),
    },
    "contains({}, ?)",
)


Parameters = list[str | int | float]

_ALIASES: dict[Owner, str] = {
    "message": "m",
    "event": "e",
    "diagnostic": "d",
    "stream": "s",
    "table": "t",
    "session": "x",
    "alteration": "a",
}


def to_sql(
    wanted: Filter, target: Target, numbers: Numbers, dialect: Dialect = SQLITE
) -> tuple[str, Parameters]:
    """Return a filter as a condition for WHERE, with its parameters in order.

    `numbers` are those of the rows' session. The row's table must have the alias m (messages), e (events) or
    d (diagnostics). The connection needs the functions of `register_functions`; `original_error` finds their
    exceptions. NULL counts as false, so do not negate the whole.
    """
    condition, parameters = _condition(with_row_ids(wanted.meaning, target, numbers), target, dialect)
    return f"({condition})", parameters


def _condition(meaning: Meaning, target: Target, dialect: Dialect) -> tuple[str, Parameters]:
    """Return a condition on one row of a target, not yet in parentheses, and its parameters in order."""
    if isinstance(meaning, Condition):
        sql, parameters = _condition_of(meaning, target, dialect)
        return (sql if meaning.wanted else f"({sql}) IS NOT TRUE"), parameters
    word, kept_together = (" AND ", (AllOf, AnyOf)) if isinstance(meaning, AllOf) else (" OR ", (AnyOf,))
    parts: list[str] = []
    parameters = []
    # SQLite's parser has a small stack: use no more parentheses than needed, and put the deepest term first,
    # so that
    # it keeps one token per level and not three.
    for term in sorted(meaning.terms, key=_depth, reverse=True):
        sql, of_term = _condition(term, target, dialect)
        parts.append(f"({sql})" if isinstance(term, kept_together) else sql)
        parameters += of_term
    return word.join(parts), parameters


def register_functions(connection: sqlite3.Connection) -> None:
    """Register the functions that the conditions call. Raises sqlite3.Error.

    SQLite reports an exception of such a function (FilterError) as an OperationalError: see `original_error`.
    """
    for name, function in FUNCTIONS.items():
        connection.create_function(name, 2, _remember_error(function), deterministic=True)


_RAISED = "user-defined function raised exception"
"""SQLite's message for any exception in a Python function."""


class _LastError(threading.local):
    """The last exception of a function in this thread, as SQLite does not pass it on."""

    last: BaseException | None = None


_last_error = _LastError()


def original_error(error: Exception) -> BaseException:
    """Return the exception of a registered function that caused `error` (FilterError, Ctrl-C), or `error`."""
    if _last_error.last is not None and isinstance(error, sqlite3.OperationalError) and str(error) == _RAISED:
        return _last_error.last
    return error


def _remember_error(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*values: Any) -> Any:
        try:
            return function(*values)
        except BaseException as error:
            _last_error.last = error
            raise

    return called


def _depth(meaning: Meaning) -> int:
    return 0 if isinstance(meaning, Condition) else 1 + max(map(_depth, meaning.terms))


def _condition_of(single: Condition, target: Target, dialect: Dialect) -> tuple[str, Parameters]:
    subject, test = single.subject, single.test
    if isinstance(subject, Column):
        conditions = [
            _in_column(subject, test, where, target, dialect) for where in locations(subject.name, target)
        ]
        if len(conditions) == 1:
            return conditions[0]
        return f"({' OR '.join(sql for sql, _ in conditions)})", [
            one for _, several in conditions for one in several
        ]
    if isinstance(subject, AnyField):
        where = JSON[target]
        sql, parameters = _inside(f"{_ALIASES[where.owner]}.{where.column}", test, subject.path, dialect)
        return dialect.joins[target][where.owner].format(sql), parameters
    sql = "m.name = ? AND " + dialect.joins["messages"]["stream"].format("s.protocol = ?")
    # No catalog for stored rows contains a state.
    assert not isinstance(subject, StateField)
    message_parameters: Parameters = [subject.message, subject.protocol]
    if isinstance(subject, MessageField):
        inside, parameters = _inside("m.fields", test, subject.path, dialect)
        sql += f" AND {inside}"
        message_parameters += parameters
    return dialect.joins[target]["message"].format(f"({sql})"), message_parameters


def _in_column(
    column: Column, test: Test, where: ValueLocation, target: Target, dialect: Dialect
) -> tuple[str, Parameters]:
    if where.reading == "texts":
        value = f"{_ALIASES[where.owner]}.{where.column}"
        return dialect.joins[target][where.owner].format(f"kiebitz_texts({value}, ?)"), [
            _encode_question(test)
        ]
    sql, parameters = _compared(_value(column, where, target, dialect), test, dialect)
    return dialect.joins[target][where.owner].format(sql), parameters


def _inside(value: str, test: Test, path: tuple[Step, ...], dialect: Dialect) -> tuple[str, Parameters]:
    """Return a condition on a JSON object; most lack the name, which the engine tests faster than Python."""
    name = next(step for step in path if isinstance(step, str))
    has = dialect.contains.format(value)
    return f"({has} AND kiebitz_field({value}, ?))", [to_json(name), _encode_question(test, path)]


def _value(column: Column, where: ValueLocation, target: Target, dialect: Dialect) -> str:
    sql = f"{_ALIASES[where.owner]}.{where.column}"
    return f"{sql} - {dialect.started[target]}" if column.name == "time" else sql


def _compared(value: str, test: Test, dialect: Dialect) -> tuple[str, Parameters]:
    parameters = list(test.values)
    if test.question == "has":
        return f"{value} IS NOT NULL", []
    if test.question == "contains":
        return dialect.contains.format(value), parameters
    if test.question == "matches":
        return f"kiebitz_matches({value}, ?)", [_encode_question(test)]
    if test.question == "in" and len(parameters) != 1:
        # DuckDB does not accept an empty list.
        return (f"{value} IN ({', '.join('?' * len(parameters))})" if parameters else "FALSE"), parameters
    return f"{value} {'=' if test.question == 'in' else test.question} ?", parameters


def _encode_question(test: Test, path: tuple[Step, ...] | None = None) -> str:
    """Encode a test of a JSON value, or without a path of a scalar, as a parameter for `_decode_question`."""
    return json.dumps([path, test.question, test.values, test.passage])


@functools.lru_cache(maxsize=1000)
def _decode_question(question: str) -> Callable[[object], bool]:
    path, kind, values, passage = json.loads(question)
    test = Test(kind, tuple(values), None if passage is None else Passage(*passage))
    return holds(test) if path is None else holds_inside(test, tuple(path))


def _json_holds(parts: Callable[[Any], Iterable[object]], text: str | None, question: str) -> bool:
    if text is None:
        return False
    try:
        decoded = msgspec.json.decode(text)
    except RecursionError:
        # No field of a game is nested so deeply; one such message must not end the whole query.
        return False
    return any(map(_decode_question(question), parts(decoded)))


# Names repeat: with the cache, most rows of a million need no Python code.
@functools.lru_cache(maxsize=1000)
def _matches(text: str | None, question: str) -> bool:
    return text is not None and _decode_question(question)(text)


FUNCTIONS: Mapping[str, Callable[[str | None, str], bool]] = {
    "kiebitz_field": functools.partial(_json_holds, lambda fields: (fields,)),
    "kiebitz_texts": functools.partial(_json_holds, texts_in),
    "kiebitz_matches": _matches,
}
"""Functions called by conditions, each with a text or NULL and an encoded test. They raise FilterError."""
