from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from filter_rows import Session, database, insert, live, stored
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
BOB = Stream(4, "udp", "10.0.0.2:4000", "10.0.0.9:9000", START, "maexchen")
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
    names={4: "bobby"},
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

FOUND: list[tuple[str, list[int], list[int], list[int]]] = [
    # The filter, and the ids of the messages, events and diagnostics that it finds.
    # The contract's own examples:
    ('maexchen.dice == "2,1" && player == "alice"', [2], [11], []),
    ('msg in {"ROLL", "SCORE"}', [1, 5], [11], [1]),
    ('chat contains "ü"', [7], [13], []),
    ('name matches "^PLAYER"', [3, 4], [12], [2]),
    ('!(dir == "c2s")', [2, 3, 4, 5, 6], [12], []),
    ("time >= 12.5", [5], [], []),
    ("stream == 3", [1, 2, 3], [11, 12], [1]),
    ("game == 2", [2], [11, 12], []),
    ('diag.severity == "error"', [1], [11], [1]),
    ("catan.Würfelwurf.Wurf[0] == 6", [6], [], []),
    ("names", [3, 4], [12], [2]),
    # Every name of the language's own:
    ('msg == "ROLLED"', [2], [11], []),
    ('kind == "lost"', [3, 4], [12], [2]),
    ('player == "bob"', [7], [13], []),
    ("player", [1, 2, 7], [11, 13], [1]),
    ("offset == 10", [1], [11], []),
    ("length <= 2", [], [], [1, 2, 3]),
    ('client == "10.0.0.1:4000"', [1, 2, 3], [11, 12], [1]),
    ('server contains ":9000"', [1, 2, 3, 4, 5], [11, 12], [1, 2, 3]),
    ('transport == "tcp"', [6, 7], [13], []),
    ('protocol == "catan"', [6, 7], [13], []),
    ("event == 12", [3, 4], [12], [2]),
    ("event", [1, 2, 3, 4, 7], [11, 12, 13], [1, 2]),
    ("!event", [5, 6], [], [3]),
    ("diag", [1, 4], [11, 12], [1, 2, 3]),
    ('diag.group == "rule" && diag.code contains "dia"', [4], [12], [2]),
    ('diag.text matches "gap$"', [], [], [3]),
    ('diag.blame == "unknown" and diag.offset == 40 and diag.length == 2', [1, 4], [11, 12], [1, 2, 3]),
    ("diag.expected or diag.clause", [], [], []),
    ("altered", [2, 4], [11, 12], [2]),
    ('altered == "double"', [4], [12], [2]),
    ('!(altered in {"change", "drop"}) && msg == "ROLLED"', [], [], []),
    # What listings call them, and Wireshark:
    ("# == 1", [1], [], [1]),
    ("number in {4, 11}", [4], [11], [2]),
    ("frame.number == 5", [5], [], []),
    ("frame.time_relative == 12.5", [5], [], []),
    ('actor == "bob"', [7], [13], []),
    ("session == 2", [6, 7], [13], []),
    ("tcp", [6, 7], [13], []),
    ("udp && !(session == 1)", [], [], []),
    # Who is named in whatever role, and what a client calls itself:
    ('named == "bob"', [3, 4, 7], [12, 13], [2]),
    ('named contains "rüß"', [7], [13], []),
    ("named", [1, 2, 3, 4, 7], [11, 12, 13], [1, 2]),
    ('who == "bobby"', [4, 5], [12], [2, 3]),
    ('who == "10.0.0.2:4000"', [4, 5], [12], [2, 3]),
    ('who matches "^[a-c]"', [4, 5], [12], [2, 3]),
    # Protocols and messages:
    ("maexchen", [1, 2, 3, 4, 5], [11, 12], [1, 2, 3]),
    ("maexchen.PLAYER_LOST", [3, 4], [12], [2]),
    ('maexchen."PLAYER LOST".names[1] == "carol"', [3, 4], [12], [2]),
    ("catan.Chat", [7], [13], []),
    ("catan.Chat == true", [7], [], []),
    ("catan.Chat == 1", [], [], []),
    # A list means its elements, an object its keys; null is skipped:
    ('names == "carol"', [3, 4], [12], [2]),
    ('names != "dave"', [3, 4], [12], [2]),
    ('names != "bob"', [], [], []),
    ('names contains "aro"', [3, 4], [12], [2]),
    ('scores == "alice"', [5], [], []),
    ("scores.alice == 3.0", [5], [], []),
    ("scores.bob", [], [], []),
    ("Wurf == 2.5 && Wurf[1] < 3", [6], [], []),
    ("Wurf[2] || Wurf.x || Spieler[0]", [], [], []),
    ("Spieler.id == 0", [6], [], []),
    ('Spieler.id == "0" || Spieler.id == false', [], [], []),
    ("Spieler.Farbe > \"rose\" && Spieler.Farbe <= 'rot'", [6], [], []),
    ('dice in {"1,1", "2,1"}', [2], [11], []),
    ('chat matches "e\\x00!$" and chat contains "\\x00"', [7], [13], []),
    # What SQLite's own JSON functions would find here as well:
    ("scores.dave == 9007199254740993 || scores.dave == 9223372036854775809.0", [], [], []),
    ("scores.dave == 9223372036854775809", [5], [], []),
    ('chat == "Grüße" || chat matches "e$"', [], [], []),
    # What is missing is neither equal nor different, and `not` is the plain opposite:
    ('!(dice == "2,1")', [1, 3, 4, 5, 6, 7], [12, 13], [1, 2, 3]),
    ('dice != "3,1"', [2], [11], []),
    ('!(dice != "3,1") && dir == "s2c"', [3, 4, 5, 6], [12], []),
    ("not game == 2", [1, 3, 4, 5, 6, 7], [13], [1, 2, 3]),
    ("!!(game == 2)", [2], [11, 12], []),
    # Precedence, words, numbers:
    ('msg == "ROLL" || msg == "SCORE" && stream == 3', [1], [11], [1]),
    ('(msg eq "ROLL" or msg eq "SCORE") and stream ne 3', [5], [], []),
    ("stream gt 3 and stream le 4 and stream ge 4 and stream lt 5", [4, 5], [12], [2, 3]),
    ("offset > -1 && offset < 99999999999999999999", [1, 2, 3, 4, 5, 6, 7], [11, 12, 13], [1, 2, 3]),
    ("time < 1e308 && time > -1e308 && stream == 4", [4, 5], [12], [2, 3]),
    ("offset >= 99999999999999999999 || offset == -1e300", [], [], []),
    # A time is compared by whole nanoseconds since the start of its own session:
    ("time == 0.5", [2, 6], [11], []),
    ("time > 0.4999999999 && time < 0.5000000001", [2, 6], [11], []),
    ("time <= 0.4999999999 || time >= 0.5000000001", [1, 3, 4, 5, 7], [12, 13], [1, 2, 3]),
    ("time == 0.5000000001 || time in {1, 3}", [3, 4, 7], [12, 13], [1, 2, 3]),
]

TARGETS: tuple[Target, ...] = ("messages", "events", "diagnostics")


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    made = database(MAEXCHEN, OTHER)
    yield made
    made.close()


@pytest.mark.full(but=21)
@pytest.mark.parametrize(("text", "messages", "events", "diagnostics"), FOUND, ids=[row[0] for row in FOUND])
def test_results_of_a_filter(
    text: str, messages: list[int], events: list[int], diagnostics: list[int], connection: sqlite3.Connection
) -> None:
    compiled = compile_filter(text, CATALOG)
    expected = [messages, events, diagnostics]
    assert [stored(compiled, target, connection) for target in TARGETS] == expected
    assert [live(compiled, target, MAEXCHEN, OTHER) for target in TARGETS] == expected


NO_VALUE = "expected a value (text in quotes, a number, true or false)"
WRONG: list[tuple[str, str, str | None, str]] = [
    # The filter, the sentence, the hint, and the part of the filter above the carets ("" for its end).
    ('maexchen.dise == "2,1"', 'no field "maexchen.dise"', 'did you mean "maexchen.dice"?', "maexchen.dise"),
    ('player == "a" && dise', 'no field "dise"', 'did you mean "dice"?', "dise"),
    ('maexchn.dice == "1"', 'no field "maexchn.dice"', 'did you mean "maexchen.dice"?', "maexchn.dice"),
    ("ROLLED", 'no field "ROLLED"', 'did you mean "maexchen.ROLLED"?', "ROLLED"),
    ("diag.sevrity", 'no field "diag.sevrity"', 'did you mean "diag.severity"?', "diag.sevrity"),
    ("msg.x", 'no field "msg.x"', 'did you mean "msg"?', "msg.x"),
    ("maexchen[0]", 'no field "maexchen"', 'did you mean "maexchen"?', "maexchen[0]"),
    ("qqq", 'no field "qqq"', None, "qqq"),
    ('tcp == "x"', '"tcp" is a transport and has no value', None, "tcp"),
    ("frame.len", 'no field "frame.len"', 'did you mean "frame.number"?', "frame.len"),
    ("ROLL.dice", 'no field "ROLL.dice"', 'did you mean "maexchen.ROLLED.dice" or "dice"?', "ROLL.dice"),
    ("", "the filter ends too early: expected a field name", None, ""),
    ("dice ==", f"the filter ends too early: {NO_VALUE}", None, ""),
    ("(dice", 'the filter ends too early: expected ")"', None, ""),
    ("dice)", 'no "(" belongs to this ")"', None, ")"),
    ("maexchen.", "the filter ends too early: expected a name", None, ""),
    ('"x" == dice', "expected a field name", None, '"x"'),
    ("dice token", 'expected an operator such as "==" or "&&"', None, "token"),
    ('dice == "1" token', 'expected "&&" or "||"', None, "token"),
    (
        "tcp.port == 1",
        'no field "tcp.port"',
        'addresses and ports are in client and server: server contains ":4711"',
        "tcp.port",
    ),
    (
        "ip.addr == 127.0.0.1",
        "an address is a text",
        'write client contains "127.0.0.1", or server',
        "127.0.0.1",
    ),
    ('dice = "1"', '"=" alone is not an operator', 'did you mean "=="?', "="),
    ("dice & token", '"&" alone is not an operator', 'did you mean "&&"?', "&"),
    ("dice $ token", 'expected an operator such as "==" or "&&"', None, "$"),
    (
        "dir == c2s",
        NO_VALUE,
        'text must be quoted: "c2s"',
        "c2s",
    ),
    ('dice == "1', "this text has no closing quote", None, '"1'),
    ('dice in "1"', 'expected "{"', None, '"1"'),
    ('dice in {"1" "2"}', 'expected "," or "}"', None, '"2"'),
    ("dice in {}", NO_VALUE, None, "}"),
    ("dice[1.5]", "an index is a whole number from 0 up", None, "1.5"),
    ("dice[-1]", "an index is a whole number from 0 up", None, "-1"),
    ("dice[0", 'the filter ends too early: expected "]"', None, ""),
    ("time < 1e999", "this number is too large", None, "1e999"),
    ('dice == "\\ud800"', "half a surrogate pair is no character", None, '"\\ud800"'),
    ('dice == "\udcff"', "this is not UTF-8", None, "\udcff"),
    ('stream == "3"', '"stream" is a number', None, '"3"'),
    ("time == true", '"time" is a number', None, "true"),
    ("msg in {5}", '"msg" is text', 'text must be quoted: "5"', "5"),
    ('stream contains "3"', '"stream" is a number; "contains" looks into text', None, "stream"),
    ("dice contains 3", '"contains" takes text in quotes', None, "3"),
    ("dice < true", "true and false have no order", None, "true"),
    ('maexchen == "x"', '"maexchen" is a protocol and has no value', None, "maexchen"),
    ('maexchen.ROLLED == "x"', '"maexchen.ROLLED" is a message and has no value', None, "maexchen.ROLLED"),
    ('diag == "x"', '"diag" is a diagnostic and has no value', None, "diag"),
    (
        'dice matches "("',
        "not a regular expression: missing ), unterminated subpattern at position 0",
        None,
        '"("',
    ),
]


@pytest.mark.parametrize(("text", "message", "hint", "marked"), WRONG, ids=[ascii(row[0]) for row in WRONG])
def test_errors_of_a_filter(text: str, message: str, hint: str | None, marked: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text, CATALOG)
    error = caught.value
    assert (error.message, error.hint) == (message, hint)
    assert text[error.position : error.position + error.length] == marked


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
