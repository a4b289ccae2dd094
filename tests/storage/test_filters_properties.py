"""A filter's SQL conditions, for SQLite and DuckDB, and its predicate agree on every row, however odd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import msgspec
import pytest
from filter_rows import Session, corpus, database, gathered, live, stored
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times

from kiebitz.dissectors.filters import FieldCatalog, Target, compile_filter
from kiebitz.dissectors.model import Diagnostic, Event, Message, Stream, TableInfo, Transport
from kiebitz.dissectors.session_numbering import FROM_ONE
from kiebitz.storage.filters.sql import to_sql

TARGETS: tuple[Target, ...] = ("messages", "events", "diagnostics")
FIELDS = ["chat", "dice", "a b"]
MESSAGES = ["ROLL", "PLAYER LOST", "chat"]
CATALOG = FieldCatalog(
    {"maexchen": {name: dict.fromkeys(FIELDS, "") for name in MESSAGES}, "catan": {"Wurf": {"dice": ""}}},
    {"maexchen": {"lost": ["dice", "scores"]}},
)

# Few and often equal, so that comparisons come true; some at the borders of SQLite's and Python's types.
TEXTS = st.sampled_from(["", "a", "a\0b", "a\0c", "ü", "u\u0308\uffff😀", "'\"\\%"])
INTEGERS = st.sampled_from([0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, -(2**63) - 1, 10**30])
FLOATS = st.sampled_from([0.1, -0.0, 1.5, 2.0**63, 1.7e308, 5e-324])
SCALARS = TEXTS | INTEGERS | FLOATS | st.booleans()
VALUES = st.recursive(
    SCALARS | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "0", "\0"]), inner, max_size=2)
    ),
    max_leaves=5,
)
OBJECTS = st.fixed_dictionaries({"chat": SCALARS}, optional={"dice": VALUES, "a b": VALUES, "scores": VALUES})
STORED_NUMBERS = st.sampled_from([0, 1, 2, 2**53 + 1, 2**63 - 1])
TIMES = st.sampled_from([10**18, 10**18 + 1, 10**18 + 10**8, 10**18 + 15 * 10**8])
OPTIONAL_TEXTS = st.none() | TEXTS


@st.composite
def sessions(draw: st.DrawFn, number: int) -> Session:
    base = number * 100
    session = Session(number, draw(TIMES), first_diagnostic=base)
    protocols = st.sampled_from([None, "maexchen", "catan"])
    transports: list[Transport] = ["tcp", "udp"]
    for index in range(draw(st.integers(1, 2))):
        protocol = draw(protocols)
        transport, client, server, player = draw(
            st.tuples(st.sampled_from(transports), TEXTS, TEXTS, OPTIONAL_TEXTS)
        )
        session.streams.append(Stream(base + index, transport, client, server, 0, protocol, player=player))
        session.tables.append(TableInfo(base + index, protocol or "catan", ""))
    for index in range(draw(st.integers(1, 2))):
        session.events.append(draw(_events(base + index, session)))
    for index in range(draw(st.integers(1, 3))):
        session.messages.append(draw(_messages(base + index, session)))
    session.diagnostics.extend(draw(st.lists(_diagnostics(session), min_size=1, max_size=3)))
    return session


def _events(number: int, session: Session) -> st.SearchStrategy[Event]:
    return st.builds(
        Event,
        id=st.just(number),
        table_id=st.sampled_from([table.id for table in session.tables]),
        game_id=st.none() | st.integers(1, 2),
        seq=st.just(number),
        ts_ns=TIMES,
        kind=st.sampled_from(["lost", "rolled"]),
        actor=OPTIONAL_TEXTS,
        data=OBJECTS,
        changes=st.just([]),
    )


def _messages(number: int, session: Session) -> st.SearchStrategy[Message]:
    def build(fields: dict[str, Any], **others: Any) -> Message:
        return Message(id=number, fields=fields, fields_json=json.dumps(fields, ensure_ascii=False), **others)

    return st.builds(
        build,
        fields=OBJECTS,
        stream=st.sampled_from(session.streams),
        direction=st.sampled_from(["c2s", "s2c"]),
        ts_ns=TIMES,
        name=st.sampled_from(MESSAGES) | TEXTS,
        offset=STORED_NUMBERS,
        length=STORED_NUMBERS,
        game_id=st.none() | st.integers(1, 2),
        event_id=st.sampled_from([None, *(event.id for event in session.events)]),
    )


def _diagnostics(session: Session) -> st.SearchStrategy[Diagnostic]:
    return st.builds(
        Diagnostic,
        stream=st.sampled_from(session.streams),
        direction=st.sampled_from(["c2s", "s2c"]),
        ts_ns=TIMES,
        severity=st.sampled_from(["note", "warning", "error"]),
        group=st.sampled_from(["malformed", "rule"]),
        code=st.sampled_from(["unknown-message", "rule"]),
        text=TEXTS,
        offset=STORED_NUMBERS,
        length=STORED_NUMBERS,
        expected=OPTIONAL_TEXTS,
        clause=OPTIONAL_TEXTS,
        blame=st.sampled_from(["client", "unknown"]),
        message_id=st.sampled_from([None, *(message.id for message in session.messages)]),
    )


def written(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


TEXT_COLUMNS = st.sampled_from(
    [
        *("msg", "name", "kind", "player", "actor", "named", "dir", "who", "client", "server", "transport"),
        *("protocol", "diag.severity", "diag.group", "diag.code", "diag.text", "diag.blame", "diag.expected"),
        "diag.clause",
    ]
)
NUMBER_COLUMNS = st.sampled_from(
    ["offset", "length", "stream", "game", "event", "time", "number", "#", "session"]
    + [f"diag.{name}" for name in ("offset", "length")]
    + [f"frame.{name}" for name in ("number", "time_relative")]
)
SHORT_NAMES = ["chat", "dice", "chat", "a_b", "scores"]
FIELD_NAMES = st.builds(
    str.__add__,
    st.sampled_from(SHORT_NAMES)
    | st.sampled_from(["maexchen.", "maexchen.ROLL.", 'maexchen."PLAYER LOST".', "maexchen.chat."]).flatmap(
        lambda prefix: st.sampled_from([prefix + name for name in SHORT_NAMES if name != "scores"])
    ),
    st.sampled_from(["", "", "", "", "[0]", "[1]", ".x", '."0"', '."\0"', ".x[0]", "[0].x"]),
)
EQUALITY = st.sampled_from(["==", "!="])
ORDER = st.sampled_from(["<", "<=", ">", ">="])
PATTERNS = st.sampled_from(["", "^PLAYER", "^a.b$", r"\d", r"\x00", "(?i)Ü", "[[a]"])
BARE = st.sampled_from(
    ["diag", "tcp", "udp", "maexchen", "catan", "maexchen.PLAYER_LOST", "catan.Wurf", "maexchen.chat"]
)


def _joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(" ".join)


def _constants(values: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return values.map(written)


def _sets(values: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return st.lists(_constants(values), min_size=1, max_size=3).map(
        lambda items: "{" + ", ".join(items) + "}"
    )


def _leaves(value: object) -> Iterator[str | int | float]:
    """Yield every scalar in a row, whole or inside its JSON values."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None:
        yield cast(str | int | float, value)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Session, Session, list[str]]:
    first, second = draw(sessions(1)), draw(sessions(2))
    rows = [[each.messages, each.events, each.diagnostics] for each in (first, second)]
    leaves = list(dict.fromkeys(_leaves(rows)))
    times = [row.ts_ns for each in (first, second) for row in each.messages]
    seconds = [(ts_ns - first.started_ns) / 10**9 for ts_ns in times]
    texts = TEXTS | st.sampled_from([leaf for leaf in leaves if isinstance(leaf, str)])
    integers = INTEGERS | st.sampled_from([leaf for leaf in leaves if type(leaf) is int])
    numbers = integers | FLOATS | st.sampled_from([1e-9, 5e-10, *seconds])
    return first, second, draw(st.lists(_filters(texts, numbers), min_size=5, max_size=15))


def _filters(texts: st.SearchStrategy[str], numbers: st.SearchStrategy[float]) -> st.SearchStrategy[str]:
    scalars = texts | numbers | st.booleans()
    conditions = st.one_of(
        TEXT_COLUMNS | NUMBER_COLUMNS | FIELD_NAMES | BARE,
        _joined(TEXT_COLUMNS, EQUALITY | ORDER | st.just("contains"), _constants(texts)),
        _joined(TEXT_COLUMNS, st.just("in"), _sets(texts)),
        _joined(NUMBER_COLUMNS, EQUALITY | ORDER, _constants(numbers)),
        _joined(NUMBER_COLUMNS, st.just("in"), _sets(numbers)),
        _joined(FIELD_NAMES, EQUALITY, _constants(scalars)),
        _joined(FIELD_NAMES, ORDER, _constants(texts | numbers)),
        _joined(FIELD_NAMES, st.just("in"), _sets(scalars)),
        _joined(FIELD_NAMES, st.just("contains"), _constants(texts)),
        _joined(FIELD_NAMES | TEXT_COLUMNS, st.just("matches"), _constants(PATTERNS)),
    )
    return st.recursive(
        conditions,
        lambda inner: st.one_of(
            inner.map("!({})".format),
            st.tuples(inner, st.sampled_from([" && ", " || "]), inner).map("".join),
            inner.map("({})".format),
        ),
        max_leaves=3,
    )


@pytest.mark.full
@settings(max_examples=times(250, 4), deadline=None)  # an example takes long
@given(worlds())
def test_stored_gathered_and_live_rows_agree(world: tuple[Session, Session, list[str]]) -> None:
    first, second, filters = world
    connection = database(first, second)
    engine = corpus(connection)
    for text in filters:
        compiled = compile_filter(text, CATALOG)
        for target in TARGETS:
            found = stored(compiled, target, connection)
            told = text, target, to_sql(compiled, target, FROM_ONE)
            assert found == live(compiled, target, first, second), told
            assert found == gathered(compiled, target, engine), told
    connection.close()
    engine.close()
