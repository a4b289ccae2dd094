from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from filter_rows import Session, database, insert, live, stored
from snapshots import DATA, check, marked, unmarked
from strength import every

from kiebitz.dissectors.filters import FieldCatalog, FilterError, Target, compile_filter, complete
from kiebitz.dissectors.model import (
    Action,
    Diagnostic,
    Direction,
    Event,
    Message,
    Severity,
    Stream,
    TableInfo,
)
from kiebitz.dissectors.session_numbering import FROM_ONE
from kiebitz.storage.filters.sql import to_sql

SECOND = 10**9
START = 1_700_000_000 * SECOND

CATALOG = FieldCatalog(
    messages={
        "maexchen": {
            "ROLL": {},
            "ROLLED": {"dice": "what fell", "token": "of the round"},
            "PLAYER LOST": {"names": "who", "reason": "why"},
            "SCORE": {"scores": "by player"},
        },
        "catan": {
            "Würfelwurf": {"Wurf": "two dice", "Spieler": "who"},
            "Chat": {"chat": "the text", "Chat": "called as its message"},
        },
    },
    events={"maexchen": {"rolled": ["dice"], "lost": ["names", "reason"]}, "catan": {"said": ["chat"]}},
)


ALTERED: dict[int, Action] = {2: "change", 4: "double"}
"""Message to what Kiebitz has done to it."""


def message(
    number: int, stream: Stream, second: float, name: str, event: int | None, **fields: Any
) -> Message:
    direction: Direction = "c2s" if name in ("ROLL", "Chat") else "s2c"
    game = 2 if name == "ROLLED" else None
    ts_ns = START + int(second * SECOND)
    return Message(
        number,
        stream,
        direction,
        ts_ns,
        name,
        fields,
        _json(fields),
        number * 10,
        9,
        game,
        event,
        ALTERED.get(number),
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def diagnostic(stream: Stream, severity: Severity, code: str, about: int | None) -> Diagnostic:
    return Diagnostic(
        stream, "c2s", START + 3 * SECOND, severity, "rule", code, f"about {code}", 40, 2, message_id=about
    )


ALICE = Stream(3, "udp", "10.0.0.1:4000", "10.0.0.9:9000", START, "maexchen")
BOB = Stream(4, "udp", "10.0.0.2:4000", "10.0.0.9:9000", START, "maexchen", player="bobby")
CATAN = Stream(5, "tcp", "10.0.0.1:5000", "10.0.0.9:50000", START, "catan")

MAEXCHEN = Session(
    id=1,
    started_ns=START,
    streams=[ALICE, BOB],
    tables=[TableInfo(1, "maexchen", "10.0.0.9:9000")],
    messages=[
        message(1, ALICE, 0.0, "ROLL", 11),
        message(2, ALICE, 0.5, "ROLLED", 11, dice="2,1", token="t"),
        message(3, ALICE, 1.0, "PLAYER LOST", 12, names=["bob", "carol"], reason="LIED"),
        message(4, BOB, 1.0, "PLAYER LOST", 12, names=["bob", "carol"], reason="LIED"),
        message(5, BOB, 12.5, "SCORE", None, scores={"alice": 3, "bob": None, "dave": 2**63 + 1}),
    ],
    events=[
        Event(11, 1, 2, 1, START + SECOND // 2, "rolled", "alice", {"dice": "2,1"}, []),
        Event(12, 1, 2, 2, START + SECOND, "lost", None, {"names": ["bob", "carol"], "reason": "LIED"}, []),
    ],
    diagnostics=[
        diagnostic(ALICE, "error", "not-your-turn", 1),
        diagnostic(BOB, "note", "dialect", 4),
        diagnostic(BOB, "warning", "gap", None),
    ],
)
OTHER = Session(
    id=2,
    started_ns=START + 100 * SECOND,
    streams=[CATAN],
    tables=[TableInfo(2, "catan", "10.0.0.9:50000")],
    messages=[
        message(6, CATAN, 100.5, "Würfelwurf", None, Wurf=[6, 2.5], Spieler={"id": 0, "Farbe": "rot"}),
        message(7, CATAN, 101.0, "Chat", 13, chat="Grüße\0!", Chat=True),
    ],
    events=[Event(13, 2, None, 1, START + 101 * SECOND, "said", "bob", {"chat": "Grüße\0!"}, [])],
    first_diagnostic=4,
)

TARGETS: tuple[Target, ...] = ("messages", "events", "diagnostics")


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    made = database(MAEXCHEN, OTHER)
    yield made
    made.close()


def test_results_of_a_filter(connection: sqlite3.Connection) -> None:
    lines = []
    for line in (DATA / "filters.txt").read_text().splitlines():
        if not line.startswith("    "):
            lines.append(line)
        if not line.startswith(("    ", "--")):
            compiled = compile_filter(line, CATALOG)
            found = [stored(compiled, target, connection) for target in TARGETS]
            assert [live(compiled, target, MAEXCHEN, OTHER) for target in TARGETS] == found, line
            lines.append("    " + " ".join(map(str, found)))
    check(DATA / "filters.txt", "\n".join([*lines, ""]))


def test_errors_of_a_filter() -> None:
    made = ""
    for line in (DATA / "wrong_filters.txt").read_text().splitlines()[::2]:
        text = unmarked(line)[0].decode("utf-8", "surrogateescape")
        with pytest.raises(FilterError) as caught:
            compile_filter(text, CATALOG)
        error = caught.value
        before, inside = text[: error.position], text[error.position :][: error.length]
        data, start, wrong = (part.encode("utf-8", "surrogateescape") for part in (text, before, inside))
        hint = f" | {error.hint}" if error.hint else ""
        made += f"{marked(data, [(len(start), len(wrong))])}\n    {error.message}{hint}\n"
    check(DATA / "wrong_filters.txt", made)


def test_an_error_is_shown_under_a_caret() -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter('maexchen.dise == "2,1"', CATALOG)
    assert [str(caught.value), *caught.value.excerpt()] == [
        'no field "maexchen.dise"; did you mean "maexchen.dice"?',
        '  maexchen.dise == "2,1"',
        "  ^^^^^^^^^^^^^",
    ]


@pytest.mark.parametrize(
    ("text", "shown", "carets"),
    [
        ('chat == "骰"\n&& dise', '  chat == "骰" && dise', "                  ^^^^"),
        ('chat == "e\u0301\x1b" || dise', '  chat == "e\u0301 " || dise', "                  ^^^^"),
        ("dise" + " || chat" * 20, None, "  ^^^^"),
        ("chat || " * 20 + "dise", None, "  " + " " * 51 + "^^^^"),
    ],
    ids=["wide", "combining and escape", "long after", "long before"],
)
def test_the_caret_is_right_and_nothing_wraps(text: str, shown: str | None, carets: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text, CATALOG)
    line, below = caught.value.excerpt()
    assert below == carets
    assert shown is None or line == shown
    assert len(line) <= 110


@pytest.mark.parametrize(
    "text",
    [
        "dice || " * 2000,
        "x" * 10_001,
        "(" * 5000,
        "!(" * 2000,
        "dice[" * 2000,
        "dice == " + "9" * 5000,
        'dice matches "' + "(" * 400 + ")" * 400 + '"',
        'dice matches "a{99999999999999999999}"',
        'dice matches "(((a{99}){99}){99})"',
        'dice matches "' + "(" * 100 + "a" + ")+" * 100 + '"',
        'dice matches "a{4294967294}"',
    ],
    ids=lambda text: text[:20],
)
def test_a_filter_beyond_bounds_is_an_error(text: str) -> None:
    with pytest.raises(FilterError):
        compile_filter(text, CATALOG)


DEEP = 'maexchen.dice != "1" && msg == "a"'
for _ in range(30):
    DEEP = f'!(maexchen.dice == "1" && kind == "x" || {DEEP} && diag.code == "x")'


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        " || ".join(["maexchen.dice != 1"] * 450),
        "!" * 9000 + "dice",
        " && ".join(["dice"] * 500),
    ],
    ids=["deep", "many", "nots", "most"],
)
@pytest.mark.parametrize("target", every(2, TARGETS))
def test_the_largest_filters_still_run(text: str, target: Target, connection: sqlite3.Connection) -> None:
    compiled = compile_filter(text, CATALOG)
    assert stored(compiled, target, connection) == live(compiled, target, MAEXCHEN, OTHER)


@pytest.mark.parametrize("value", ["'; DROP TABLE messages; --", "?", "%s", "{}", "\0"])
def test_text_of_a_filter_is_never_sql(value: str) -> None:
    for text in (f'msg == "{value}"', f'chat == "{value}"', f'chat."{value}" == 1'):
        for target in TARGETS:
            condition, parameters = to_sql(compile_filter(text, CATALOG), target, FROM_ONE)
            assert value not in condition.replace("?", "") or value == "?"
            assert condition.count("?") == len(parameters)


def plan(text: str, connection: sqlite3.Connection) -> str:
    condition, parameters = to_sql(compile_filter(text, CATALOG), "messages", FROM_ONE)
    rows = connection.execute(
        f"EXPLAIN QUERY PLAN SELECT m.* FROM messages AS m WHERE {condition}", parameters
    )
    return " ".join(row[3] for row in rows)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ('msg == "ROLL"', "name=?"),
        ('msg in {"ROLL", "SEE"}', "name=?"),
        ("maexchen.ROLLED", "name=?"),
        ("event == 3", "event_id=?"),
    ],
)
def test_a_plain_condition_uses_its_index(text: str, index: str, connection: sqlite3.Connection) -> None:
    assert index in plan(text, connection)


def test_a_message_nested_without_measure_does_not_end_the_query() -> None:
    connection = database(MAEXCHEN)
    nested = '{"dice":' + "[" * 100_000 + "]" * 100_000 + "}"
    insert(connection, "messages", [{"id": 99, "name": "ROLLED", "fields": nested}])
    assert stored(compile_filter("dice", CATALOG), "messages", connection) == [2]
    connection.close()


def test_completion_offers_what_the_language_takes() -> None:
    names = complete("", CATALOG)
    for name in names:
        compile_filter(name, CATALOG)
    assert {"msg", "name", "diag", "diag.group", "catan", "dice", "maexchen.PLAYER_LOST.names"} <= set(names)
    assert complete("maexchen.PL", CATALOG) == [
        "maexchen.PLAYER_LOST",
        "maexchen.PLAYER_LOST.names",
        "maexchen.PLAYER_LOST.reason",
    ]
    assert complete("nothing", CATALOG) == []


def test_names_that_are_no_identifiers_are_written_in_quotes() -> None:
    odd = FieldCatalog({"p": {"in": {}, "2 dice": {"a-b": "", 'say "x"': ""}}})
    assert {'p."in"', 'p."2 dice"', 'p."2 dice".a_b', 'p."2 dice".say__x_', "a_b"} <= set(complete("", odd))
    for name in complete("", odd):
        compile_filter(name, odd)
