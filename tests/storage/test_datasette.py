from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import kiebitz
from hypothesis import given
from hypothesis import strategies as st
from imported_databases import database_of
from make_schema import VIEWS
from strength import a_few

from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.storage.database.schema import TABLES
from kiebitz.storage.export.datasette import QUERIES
from kiebitz.storage.export.parquet import GrammarHints, Shape

GAMES = {
    "maexchen": "maexchen-head-odd.pcap",
    "schafkopf": "schafkopf-1.3-2humans.pcap",
    "catan": "catan-yaks-g1-3p.pcap.gz",
    "okey": "okey-seed-game-win.pcap.gz",
    "cgml": "cgml-hands.pcap.gz",
}
"""A capture of each protocol in which enough happens."""

GIVEN = {"culprit": "odd", "session_id": 1, "game": 1}

EMPTY = {
    *((protocol, "all_diagnostics_of_one_client") for protocol in GAMES if protocol != "maexchen"),
    *((protocol, "diagnostics_by_culprit") for protocol in ("cgml", "okey", "schafkopf", "catan")),
}
"""Questions to which a capture may have no answer."""


def metadata(path: Path) -> dict[str, Any]:
    done = kiebitz("export", str(path), "-T", "datasette")
    assert done.status == 0, done.err
    (found,) = done.json["databases"].items()
    assert found[0] == path.stem
    said: dict[str, Any] = found[1]
    return said


def asked(path: Path, query: dict[str, str]) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query["sql"], GIVEN).fetchall()


@pytest.mark.parametrize("protocol", a_few(GAMES, ["maexchen", "okey"]))
def test_each_question_has_an_answer(protocol: str) -> None:
    path = Path(database_of(GAMES[protocol]))
    (dissector,) = (dissector for dissector in BUILT_IN if dissector.protocol == protocol)
    queries = metadata(path)["queries"]
    assert [*queries] == [query.name for query in (*QUERIES, *dissector.presentation.queries)]
    assert dissector.presentation.queries
    for name, query in queries.items():
        assert query["title"]
        assert asked(path, query) or (protocol, name) in EMPTY, name


def test_the_most_frequent_bluffer_is_counted() -> None:
    path = Path(database_of(GAMES["maexchen"]))
    rolled: dict[str, str] = {}
    bluffs: dict[str, list[bool]] = {}
    for event in kiebitz("events", str(path), "--json").json:
        if event["kind"] == "rolled":
            rolled[event["actor"]] = event["data"]["dice"]
        elif event["kind"] == "announced" and event["actor"] in rolled:
            said = event["data"]["dice"] != rolled[event["actor"]]
            bluffs.setdefault(event["actor"], []).append(said)
    found = asked(path, metadata(path)["queries"]["who_bluffed_most"])
    assert {player: (lies, said) for player, lies, said, _ in found} == {
        player: (sum(told), len(told)) for player, told in bluffs.items()
    }


def test_it_speaks_of_what_is_there() -> None:
    tables = metadata(Path(database_of(GAMES["catan"])))["tables"]
    with closing(sqlite3.connect(Path(database_of(GAMES["catan"])))) as connection:
        assert set(tables) <= {*TABLES, *VIEWS}
        for name, told in tables.items():
            columns = {column for _, column, *_ in connection.execute(f"PRAGMA table_info({name})")}
            assert {*told.get("columns", ()), *told.get("units", ())} <= columns
            assert told.get("label_column", "id") in columns | {"id"}
    assert set(tables) >= {*VIEWS}


PLAIN = GrammarHints(lambda path, value: False, ())


def _shape(values: list[Any], place: GrammarHints = PLAIN) -> Shape:
    shape = Shape()
    for value in values:
        shape.take(value, place)
    return shape


@pytest.mark.parametrize(
    ("values", "fitted"),
    [
        ([1, 2], [1, 2]),
        ([1, None, 1.5], [1, None, 1.5]),
        ([1, "a", True], ["1", "a", "true"]),
        ([1 << 63], [str(1 << 63)]),
        (["\ud800"], ["\\ud800"]),
        ([[1], [], None], [[1], [], None]),
        ([{"a": 1}, {"b": 2}], [{"a": 1}, {"b": 2}]),
        ([{"a": 1}, 5, [6]], [{"object": {"a": 1}}, {"value": 5}, {"list": [6]}]),
        ([{"a": 1}, {"a": {"b": 2}}], [{"a": {"value": 1}}, {"a": {"object": {"b": 2}}}]),
    ],
)
def test_values_fit_into_the_shape_of_all(values: list[Any], fitted: list[Any]) -> None:
    assert [_shape(values).fit(value) for value in values] == fitted


def test_keys_that_are_names_make_a_map() -> None:
    place = GrammarHints(lambda path, value: path == ("scores",), ())
    scores = {"scores": {"alice": 1, "bob": 2}}
    assert _shape([scores], place).fit(scores) == {"scores": [("alice", 1), ("bob", 2)]}


def test_mixed_productions_have_forms_even_with_a_single_example() -> None:
    place = GrammarHints(lambda path, value: False, ("board.field",))
    value = {"board": [{"field": "a"}]}
    assert _shape([value], place).fit(value) == {"board": [{"field": {"value": "a"}}]}


def test_a_shape_is_bounded() -> None:
    wide = {str(number): number for number in range(1000)}
    assert json.loads(_shape([wide]).fit(wide)) == wide
    deep: Any = 1
    for _ in range(50):
        deep = {"a": deep}
    text = json.dumps(_shape([deep]).fit(deep))
    assert "\\" in text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_what_came_does_not_matter(values: list[Any], random: Any) -> None:
    other = values.copy()
    random.shuffle(other)
    one, another = _shape(values), _shape(other)
    assert [one.fit(value) for value in values] == [another.fit(value) for value in values]
