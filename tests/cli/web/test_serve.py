from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command import CAPTURES, ROOT, kiebitz
from processes_and_rows import free_port
from served_pages import QUICK_S, Answer, Serving, serving
from session_factory import Conversation, record
from strength import a_few

import kiebitz as library
from kiebitz.cli.web import records
from kiebitz.cli.web.openapi import openapi
from kiebitz.cli.web.routes import ENDPOINTS
from kiebitz.dissectors.model import PUBLIC
from kiebitz.storage.session.message_detail import MessageDetail

RECORDED = {
    "maexchen": ("maexchen-head-tiny.pcap", "bob"),
    "schafkopf": ("schafkopf-1.3-badcard.pcap", "Falsch"),
    "catan": ("catan-yaks-lobby.pcap.gz", "Zoe Weiss"),
    "okey": ("okey-seed-game-win.pcap.gz", "pascal"),
    "cgml": ("cgml-tiny.pcap.gz", "6533"),
}
"""Protocol -> a capture, and a player in it."""

NUMBERS = {protocol: number for number, protocol in enumerate(RECORDED, 1)}
PROTOCOLS = [*RECORDED]
DOCUMENT = ROOT / "docs" / "openapi.json"
MOST = 1000

KINDS: dict[str, type] = {
    "api/sessions": records.Sessions,
    "api/home": records.Home,
    "api/held": records.Held,
    **{address.path[1:]: address.answer for address in ENDPOINTS if isinstance(address.answer, type)},
}
"""Path -> the type of its answer."""


def exactly(answer: Answer, kind: type) -> Any:
    """Return the answer as JSON, which is that of a record and has nothing else in it."""
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "application/json"
    found: Any = msgspec.json.decode(answer.body, type=kind)
    assert json.loads(msgspec.json.encode(found)) == answer.json
    return answer.json


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("recorded")
    made = {}
    for protocol, (capture, _) in RECORDED.items():
        made[protocol] = folder / f"{protocol}.db"
        library.import_capture(str(CAPTURES / capture), str(made[protocol])).close()
    return made


@pytest.fixture(scope="module")
def server(paths: dict[str, Path]) -> Iterator[Serving]:
    with serving(*map(str, paths.values())) as running:
        yield running


def tables_of(server: Serving, protocol: str) -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = server.well("api/tables", session=NUMBERS[protocol])["tables"]
    return tables


def whole(server: Serving, path: str, key: str, **query: Any) -> list[Any]:
    rows: list[Any] = []
    after = 0
    while True:
        found = server.well(path, after=after, limit=MOST, **query)
        rows += found[key]
        if found["is_last"]:
            return rows
        after = rows[-1].get("seq" if key == "events" else "id")


def as_json(record: Any) -> Any:
    return msgspec.to_builtins(record)


# Existing objects.


def test_the_sessions(server: Serving, paths: dict[str, Path]) -> None:
    found = exactly(server.get("api/sessions"), records.Sessions)
    assert found["player"] is None
    assert [session["name"] for session in found["sessions"]] == [f"{name}.db:1" for name in paths]
    assert [session["number"] for session in found["sessions"]] == [*NUMBERS.values()]
    assert not any(session["live"] or session["lacks"] for session in found["sessions"])
    assert all(session["started"].endswith("Z") for session in found["sessions"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tables_and_players(protocol: str, server: Serving, paths: dict[str, Path]) -> None:
    found = exactly(server.get("api/tables", session=NUMBERS[protocol]), records.Tables)
    with library.open(str(paths[protocol])) as session:
        last = {event.table: event.seq for event in session.events()}
        assert found["tables"] == [
            {
                "table": table.id,
                "protocol": protocol,
                "title": found["tables"][0]["title"],
                "server": table.server,
                "place": table.server,
                "first": 0,
                "last": last.get(table.id, 0),
                "moves": {"catan": found["tables"][0]["moves"], "okey": ["drew", "put"]}.get(protocol, []),
            }
            for table in session.state()
        ]
    assert RECORDED[protocol][1] in found["players"]


@pytest.mark.full(but=2)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("is_player", [False, True], ids=["everybody", "player"])
def test_events(protocol: str, is_player: bool, server: Serving, paths: dict[str, Path]) -> None:
    player = RECORDED[protocol][1] if is_player else None
    with library.open(str(paths[protocol])) as session:
        expected = [as_json(event) for event in session.events(as_player=player)]
    assert expected
    for table in tables_of(server, protocol):
        path = f"api/tables/{table['table']}/events"
        found = whole(server, path, "events", session=NUMBERS[protocol], as_=player)
        assert found == [event for event in expected if event["table"] == table["table"]]
        exactly(server.get(path, session=NUMBERS[protocol]), records.Events)


@pytest.mark.parametrize("protocol", a_few(PROTOCOLS, ["schafkopf"]))
@pytest.mark.parametrize("is_player", [False, True], ids=["everybody", "player"])
def test_states(protocol: str, is_player: bool, server: Serving, paths: dict[str, Path]) -> None:
    player = RECORDED[protocol][1] if is_player else None
    with library.open(str(paths[protocol])) as session:
        table = session.state("end", player)[0].id
        events = [event for event in session.events() if event.table == table]
        for event in [*events[:: max(len(events) // 6, 1)], events[-1]]:
            answer = server.get(
                f"api/tables/{table}/state", session=NUMBERS[protocol], at=event.seq, as_=player
            )
            found = exactly(answer, records.StateAt)
            (expected,) = (one for one in session.state(f"#{event.id}", player) if one.id == table)
            assert found["state"] == expected.state
            assert (found["seq"], found["event"], found["time"]) == (event.seq, event.id, event.time)
        first = server.well(f"api/tables/{table}/state", session=NUMBERS[protocol], at=events[0].seq - 1)
        assert (first["event"], first["time"], first["state"]) == (None, None, {})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_messages(protocol: str, server: Serving, paths: dict[str, Path]) -> None:
    found = whole(server, "api/messages", "messages", session=NUMBERS[protocol])
    with library.open(str(paths[protocol])) as session:
        expected = [as_json(message) for message in session.messages()]
        malformed = {
            diagnostic.message for diagnostic in session.diagnostics() if diagnostic.message is not None
        }
    assert [{**row, "words": 0, "flaw": 0} for row in found] == [
        {**row, "words": 0, "flaw": 0} for row in expected
    ]
    assert {row["id"] for row in found if row["flaw"]} == malformed
    exactly(server.get("api/messages", session=NUMBERS[protocol]), records.Messages)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_player_s_messages_are_those_of_their_own_streams(protocol: str, server: Serving) -> None:
    player, number = RECORDED[protocol][1], NUMBERS[protocol]
    own = {row["id"] for row in server.well("api/streams", session=number, as_=player)["streams"]}
    assert own
    everybody = whole(server, "api/messages", "messages", session=number)
    seen = whole(server, "api/messages", "messages", session=number, as_=player)
    assert [row["id"] for row in seen] == [row["id"] for row in everybody if row["stream"] in own]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("protocol", a_few(PROTOCOLS, ["maexchen", "cgml"]))
def test_messages_in_full(protocol: str, server: Serving, paths: dict[str, Path]) -> None:
    from kiebitz.storage.session.message_detail import MessageDetails

    with library.open(str(paths[protocol])) as session:
        for message in [*session.messages()][::9]:
            found = exactly(
                server.get(f"api/messages/{message.id}", session=NUMBERS[protocol]), MessageDetail
            )
            expected = MessageDetails(session.timeline).message(message.id)
            assert found == json.loads(msgspec.json.encode(expected))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_diagnostics_and_streams(protocol: str, server: Serving, paths: dict[str, Path]) -> None:
    number = NUMBERS[protocol]
    with library.open(str(paths[protocol])) as session:
        diagnostics = {diagnostic.id: diagnostic for diagnostic in session.diagnostics()}
        streams = [as_json(stream) for stream in session.streams()]
    found = whole(server, "api/diagnostics", "diagnostics", session=number)
    assert [row["id"] for row in found] == sorted(diagnostics)
    for row in found:
        expected = as_json(diagnostics[row["id"]])
        assert {name: row[name] for name in expected} == expected
        assert row["seq"] is None
    exactly(server.get("api/diagnostics", session=number), records.Diagnostics)
    assert exactly(server.get("api/streams", session=number), records.Streams)["streams"] == streams
    table, last = (tables_of(server, protocol)[0][name] for name in ("table", "last"))
    for row in whole(server, "api/diagnostics", "diagnostics", session=number, table=table):
        assert 0 <= row["seq"] <= last
    for severity, which in (("error", ["error"]), ("warning", ["error", "warning"])):
        graver = whole(server, "api/diagnostics", "diagnostics", session=number, severity=severity)
        assert [row["id"] for row in graver] == sorted(
            diagnostic.id for diagnostic in diagnostics.values() if diagnostic.severity in which
        )


@pytest.mark.full(but=2)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("is_player", [False, True], ids=["everybody", "player"])
def test_the_timeline(protocol: str, is_player: bool, server: Serving, paths: dict[str, Path]) -> None:
    number, table = NUMBERS[protocol], tables_of(server, protocol)[0]["table"]
    player = RECORDED[protocol][1] if is_player else None
    found = exactly(
        server.get(f"api/tables/{table}/timeline", session=number, as_=player), records.TimelineOverview
    )
    with library.open(str(paths[protocol])) as session:
        events = {event.seq: event for event in session.events() if event.table == table}
        games = {game.id: game for game in session.games()}
    assert (found["first"], found["last"]) == (min(events) - 1, max(events))
    assert found["times"] == [[seq, event.time] for seq, event in events.items()]
    for mark in found["games"]:
        assert mark["label"] == games[mark["game"]].label
        assert mark["seq"] == min(seq for seq, event in events.items() if event.game == mark["game"])
        assert player is None or mark["result"] is None
    assert [diagnostic["seq"] for diagnostic in found["flaws"]] == sorted(
        diagnostic["seq"] for diagnostic in found["flaws"]
    )
    listed = whole(
        server, "api/diagnostics", "diagnostics", session=number, table=table, severity="warning", as_=player
    )
    assert {(diagnostic["id"], diagnostic["seq"]) for diagnostic in found["flaws"]} >= {
        (diagnostic["id"], diagnostic["seq"]) for diagnostic in listed
    }
    if found["scores"] is not None:
        steps = [seq for seq, _ in found["scores"]["steps"]]
        assert steps == sorted(set(steps))
        assert all(len(step) == len(found["scores"]["names"]) for _, step in found["scores"]["steps"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pictures_and_their_fragments(protocol: str, server: Serving) -> None:
    number = NUMBERS[protocol]
    table, last = (tables_of(server, protocol)[0][name] for name in ("table", "last"))
    for at, player in ((None, None), (0, None), (last // 2, RECORDED[protocol][1])):
        asked: dict[str, Any] = {"session": number, "at": at, "as_": player}
        picture = exactly(server.get(f"api/tables/{table}/picture", **asked), records.Picture)
        assert picture["seq"] == (last if at is None else at)
        assert picture["words"]
        names = {name for shape in ("wide", "tall") for name, _, _ in picture[shape]["pieces"]}
        path = f"api/tables/{table}/fragments"
        fragments = exactly(server.get(path, **asked), records.Fragments)["fragments"]
        assert fragments.keys() == names
        for markup in fragments.values():
            ET.fromstring(f'<svg xmlns:xlink="x">{markup}</svg>')
        few = sorted(names)[:3]
        wanted = server.well(path, **asked, names=",".join([*few, "none", "x' OR 1"]))["fragments"]
        assert wanted == {name: fragments[name] for name in few}
        assert server.well(path, **asked, names="")["fragments"] == {}
        for shape in ("wide", "tall", None):
            answer = server.get(f"api/tables/{table}/picture.svg", **asked, shape=shape)
            assert answer.headers["content-type"].startswith("image/svg+xml")
            root = ET.fromstring(answer.body)
            assert root.tag.endswith("svg")
            assert (shape or "wide") in ("wide", "tall")


# Windows.


def expected_window(numbers: list[int], limit: int, **place: int) -> tuple[list[int], bool, bool]:
    ((where, number),) = place.items() or (("before", 1 << 40),)
    above = [one for one in numbers if one > number]
    if where == "after":
        found = above[:limit]
    elif where == "before":
        found = [one for one in numbers if one < number][-limit:]
    else:
        upto, after = limit - limit // 2, limit // 2
        found = [one for one in numbers if one <= number][-upto:] + above[:after]
    if found:
        return found, found[0] == numbers[0], found[-1] == numbers[-1]
    # The position is at one of the ends.
    return found, where != "after" or not numbers, where == "after" or not above


WINDOWS: list[tuple[int, dict[str, int]]] = [
    (limit, place)
    for limit in (1, 2, 3, 7, 1000)
    for place in (
        {},
        *(
            {where: number}
            for where in ("after", "before", "around")
            for number in (0, 1, 9, 25, 26, 27, 999)
        ),
    )
]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("wanted", [None, 'kind == "rolled"', 'kind == "no such"'])
def test_windows_of_events(wanted: str | None, server: Serving) -> None:
    every = whole(server, "api/tables/1/events", "events", filter=wanted)
    numbers = [event["seq"] for event in every]
    for limit, place in WINDOWS:
        found = server.well("api/tables/1/events", limit=limit, filter=wanted, **place)
        got = [event["seq"] for event in found["events"]], found["is_first"], found["is_last"]
        assert got == expected_window(numbers, limit, **place), (limit, place)


@pytest.mark.parametrize("player", [None, "bob"])
def test_windows_of_messages(player: str | None, server: Serving) -> None:
    numbers = [row["id"] for row in whole(server, "api/messages", "messages", as_=player)]
    for limit, place in WINDOWS[::2]:
        if "around" not in place:
            found = server.well("api/messages", limit=limit, as_=player, **place)
            got = [row["id"] for row in found["messages"]], found["is_first"], found["is_last"]
            assert got == expected_window(numbers, limit, **place), (limit, place)


SORTED = {
    "tables/1/events": {"number": "number", "time": "time", "kind": "kind", "actor": "actor"},
    "messages": {"client": "client", "name": "name", "words": "fields", "length": "length"},
    "diagnostics": {"time": "time", "text": "text"},
}
"""The columns of each list, and the field that a row shows of it."""


@pytest.mark.parametrize("player", [None, "bob", PUBLIC])
@pytest.mark.parametrize(("path", "sort"), [(path, sort) for path in SORTED for sort in SORTED[path]])
def test_lists_in_the_order_of_a_column(path: str, sort: str, player: str | None, server: Serving) -> None:
    kind, column = path.rpartition("/")[2], SORTED[path][sort]

    def shown(row: Any) -> Any:
        value = (row["player"] if column == "client" else None) or row[column]
        value = "" if value is None else value
        text = json.dumps(value, separators=(",", ":")) if isinstance(value, dict) else value
        if sort not in ("words", "text", "actor"):
            return text
        # Numbers in it count as numbers.
        parts = re.split(r'(?<=[:\[," ])(-?\d+)(?!\w)', text)
        return [float(part) if at % 2 else part for at, part in enumerate(parts)]

    every = whole(server, f"api/{path}", kind, as_=player)
    expected = sorted(every, key=shown)
    for given, rows in ((sort, expected), (f"-{sort}", expected[::-1])):
        if player == PUBLIC and sort == "client":
            rows = every
        found: list[Any] = []
        while len(found) < len(every):
            page = server.well(f"api/{path}", limit=40, after=len(found), sort=given, as_=player)
            assert page["is_first"] == (not found)
            found += page[kind]
            assert page["is_last"] == (len(found) == len(every))
        assert found == rows


def test_messages_up_to_an_event(server: Serving) -> None:
    every = whole(server, "api/messages", "messages")
    for event in whole(server, "api/tables/1/events", "events"):
        found = server.well("api/messages", table=1, at=event["seq"], limit=5)
        last = found["messages"][-1]
        telling = [row["id"] for row in every if row["event"] == event["id"]]
        if telling:
            assert last["id"] == min(telling)
        assert [row["id"] for row in found["messages"]] == list(range(max(last["id"] - 4, 1), last["id"] + 1))


def test_a_game_s_events(server: Serving) -> None:
    every = whole(server, "api/tables/1/events", "events")
    games = {event["game"] for event in every} - {None}
    assert len(games) > 1
    for game in games:
        found = whole(server, "api/tables/1/events", "events", game=game)
        assert found == [event for event in every if event["game"] == game]


# Filters.


@pytest.mark.parametrize(
    ("path", "key", "wanted"),
    [
        ("api/tables/1/events", "events", 'kind == "rolled" && player == "bob"'),
        ("api/tables/1/events", "events", 'dice matches "^6"'),
        ("api/tables/1/events", "events", 'msg == "ROLL"'),
        ("api/messages", "messages", 'maexchen.name == "alice" || stream == 3'),
        ("api/messages", "messages", "diag"),
        ("api/diagnostics", "diagnostics", 'diag.severity != "note"'),
    ],
)
def test_filters_give_the_library_s_results(
    path: str, key: str, wanted: str, server: Serving, paths: dict[str, Path]
) -> None:
    with library.open(str(paths["maexchen"])) as session:
        asked: dict[str, Any] = {
            "events": session.events,
            "messages": session.messages,
            "diagnostics": session.diagnostics,
        }
        expected = sorted(row.id for row in asked[key](wanted))
    assert [row["id"] for row in whole(server, path, key, filter=wanted)] == expected


@pytest.mark.parametrize(
    ("wanted", "position", "length"),
    [
        ("foo", 0, 3),
        ('msg == "a" && föö', 14, 3),
        ("msg ==", 6, None),
        ('name matches "("', 13, 3),
        ("((", 2, None),
    ],
)
@pytest.mark.parametrize(
    "path", ["api/check-filter", "api/messages", "api/tables/1/events", "api/diagnostics"]
)
def test_a_filter_that_is_none_is_reported_with_its_place(
    path: str, wanted: str, position: int, length: int | None, server: Serving
) -> None:
    answer = server.get(path, filter=wanted)
    # Only to ask whether it is one is no failure.
    assert answer.status == (200 if path == "api/check-filter" else 400)
    refusal = msgspec.json.decode(answer.body, type=records.Refusal)
    assert refusal.position == position
    assert length is None or refusal.length == length


def test_a_filter_that_is_one(server: Serving) -> None:
    for wanted in ("", "  ", "diag", 'msg == "ROLL"'):
        assert exactly(server.get("api/check-filter", filter=wanted), records.FilterCheck) == {}
    assert server.well("api/check-filter") == {}


def test_names_are_completed(server: Serving) -> None:
    found = exactly(server.get("api/complete", text='msg == "ROLL" && maexchen.di'), records.Completion)
    assert found["from"] == len('msg == "ROLL" && ')
    assert "maexchen.dice" in found["words"]
    assert server.well("api/complete", text="zzzz")["words"] == []


# What cannot be answered.

REFUSED: list[tuple[int, str, str]] = [
    # Status, address, and a word of the sentence.
    (404, "api/nothing", "api/nothing"),
    (404, "api/", "api/"),
    (404, "nothing.html", "nothing.html"),
    (404, "static/../../../etc/passwd", "passwd"),
    (404, "../access.py", "access.py"),
    (404, "%2e%2e/access.py", "access.py"),
    (404, "..%2faccess.py", "access.py"),
    (404, "%00", ""),
    (404, "index.html%00.js", ""),
    (404, "%ff%fe", ""),
    (404, "x" * 10_000, "xxx"),
    (404, "api/tables/" + "9" * 30 + "/state", "there is no"),
    (404, "api/tables/" + "9" * 9_000 + "/state", "there is no"),
    (404, "api/tables/7/state", "there is no table 7"),
    (404, "api/tables/0/state", "there is no"),
    (404, "api/tables/-1/state", "there is no"),
    (404, "api/tables/1.5/state", "there is no"),
    (404, "api/tables/x/events", "there is no"),
    (404, "api/tables/%D9%A1/events", "there is no"),
    (404, "api/tables//events", ""),
    (404, "api/messages/4711", "there is no message 4711"),
    (404, "api/messages/" + "9" * 19, "there is no"),
    (404, "api/messages/" + "9" * 5000, "there is no"),
    (404, "api/tables/1/state?at=27", "there is no event 27"),
    (404, "api/tables/1/picture?at=999999999999999", "there is no event"),
    (404, "api/tables?session=6", "there is no session 6"),
    (404, "api/tables?session=0", "there is no session 0"),
    (404, "api/live?session=9", "there is no session 9"),
    (404, "api/live?table=9", "there is no table 9"),
    (404, "api/messages?table=9", "there is no table 9"),
    (404, "api/diagnostics?table=9", "there is no table 9"),
    (404, "api/tables/1/state?as=alise", "did you mean alice"),
    (404, "api/tables/1/events?as=nobody", "there is no player nobody"),
    (404, "api/messages?as=nobody", "there is no player nobody"),
    (404, "api/messages/1?as=nobody", "there is no player nobody"),
    (404, "api/streams?as=nobody", "there is no player nobody"),
    (404, "api/live?as=nobody", "there is no player nobody"),
    (404, "api/messages/1?as=bob", "there is no message 1 of bob's"),
    (400, "api/tables/1/state?at=x", "at must be a number"),
    (400, "api/tables/1/state?at=-1", "at must be a number"),
    (400, "api/tables/1/state?at=1e3", "at must be a number"),
    (400, "api/tables/1/state?at=9999999999999999", "at must be a number"),
    (400, "api/tables/1/state?at=%D9%A1", "at must be a number"),
    (400, "api/tables/1/state?at=" + "1" * 5000, "5000 characters"),
    (400, "api/tables/1/state?at=", "at must be a number"),
    (400, "api/tables/1/state?wann=1", "there is no parameter wann"),
    (400, "api/sessions?session=1", "there is no parameter session"),
    (400, "api/tables/1/events?after=1&before=3", "only one of"),
    (400, "api/messages?table=1&at=3&after=3", "only one of"),
    (400, "api/tables/1/events?limit=0", "limit must be at least 1"),
    (400, "api/messages?at=3", "at goes with table"),
    (400, "api/diagnostics?sort=expected", "sort must be one of id, time, client, code, text"),
    (400, "api/messages?around=3", "there is no parameter around"),
    (400, "api/messages?filter=" + "a" * 2001, "2001 characters"),
    (400, "api/messages?as=" + "a" * 2001, "2001 characters"),
    (400, "api/diagnostics?severity=grave", "severity must be one of error, warning, note"),
    (400, "api/tables/1/picture.svg?shape=round", "shape must be one of wide, tall"),
    (400, "api/complete", "text is missing"),
    (400, "api/tables/1/state?=1", "there is no parameter"),
    (400, "api/live?after=x", "after must be a number"),
]


@pytest.mark.full(but=3)
@pytest.mark.parametrize(
    ("status", "path", "words"), REFUSED, ids=[f"{row[0]}-{row[1][:60]}" for row in REFUSED]
)
def test_unanswerable_requests_get_an_error(status: int, path: str, words: str, server: Serving) -> None:
    answer = server.get(path)
    assert answer.status == status, answer
    refusal = msgspec.json.decode(answer.body, type=records.Refusal)
    assert words in refusal.error
    assert len(refusal.error) < 400


@pytest.mark.parametrize("query", ["?", "&", "&&;=&", "%", "%zz", "session=1;session=2", "a" * 9_000, "\xff"])
def test_a_broken_query_is_answered(query: str, server: Serving) -> None:
    request = f"GET /api/tables?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin-1")
    answer = server.raw(request)
    assert answer.status in (200, 400)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["api/sessions", "api/tables/1/state", "api/live", "theme.css"])
def test_nothing_but_reading(method: str, path: str, server: Serving) -> None:
    answer = server.get(path, method=method)
    assert answer.status == 405
    assert "GET" in answer.sentence
    assert {word.strip() for word in answer.headers["allow"].split(",")} == {"GET", "HEAD"}


@pytest.mark.parametrize(
    "path",
    [
        *("api/sessions", "api/tables", "api/tables/1/state", "api/tables/1/picture.svg", "api/live"),
        "theme.css",
    ],
)
def test_head_is_get_without_its_body(path: str, server: Serving) -> None:
    answer = server.get(path, method="HEAD")
    assert (answer.status, answer.body) == (200, b"")
    kinds = {"api/live": "text/event-stream", "theme.css": "text/css", "picture.svg": "image/svg+xml"}
    expected = next((kind for end, kind in kinds.items() if path.endswith(end)), "application/json")
    assert answer.headers["content-type"].startswith(expected)


def test_non_http_requests_are_rejected_silently(server: Serving) -> None:
    before = server.err
    for rubbish in (b"\0\xff\r\n\r\n", b"GET /\r\n\r\n", b"GET /\x01 HTTP/1.1\r\n\r\n"):
        assert server.raw(rubbish).status == 400
    with socket.create_connection((server.host, server.port), QUICK_S) as sock:
        sock.sendall(b"GET /api/sess")
    assert server.raw(b"GET /api/sessions HTTP/1.0\r\nHost: localhost\r\n\r\n").status == 200
    assert server.err == before


def test_long_answers_are_compressed_and_streams_are_not(server: Serving) -> None:
    answer = server.get("api/messages", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    with server.live(headers={"Accept-Encoding": "gzip"}, after=0) as stream:
        assert "content-encoding" not in stream.headers
        assert len(stream.events(26)) == 26


@pytest.mark.parametrize("known", ["", "x", "-1", "1e9", "9" * 30, "\xb2", "1 ", "99999"])
def test_a_broken_last_event_id_is_none(known: str, server: Serving) -> None:
    with server.live(headers={"Last-Event-ID": known}, after=20) as stream:
        assert stream.status == 200
        assert stream.of_kind("status") == {"live": False, "trouble": None, "ending": None}


# Sessions of all kinds.


def test_a_capture_is_served_and_its_database_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((CAPTURES / "maexchen-head-tiny.pcap").read_bytes()[:-7])
    with serving(str(cut)) as server:
        (session,) = server.well("api/sessions")["sessions"]
        assert session["name"] == "cut.pcap"
        assert "the capture ends inside packet 69" in session["lacks"]
        assert len(list(tmp_path.iterdir())) == 2
        assert server.well("api/tables")["tables"][0]["protocol"] == "maexchen"
    assert list(tmp_path.iterdir()) == [cut]


@pytest.mark.full
def test_several_sessions_empty_sessions_and_one_of_a_plug_in(tmp_path: Path, paths: dict[str, Path]) -> None:
    two = tmp_path / "two.db"
    for capture in ("maexchen-head-tiny.pcap", "okey-head-tiny.pcap.gz"):
        assert kiebitz("import", str(CAPTURES / capture), "-w", str(two)).status == 0
    empty = record(tmp_path / "empty.db", [])
    other = tmp_path / "other.db"
    other.write_bytes(paths["maexchen"].read_bytes())
    with sqlite3.connect(other) as connection:
        for table in ("streams", "tables", "games"):
            connection.execute(f"UPDATE {table} SET protocol = 'fremd'")
    connection.close()
    silent = record(tmp_path / "silent.db", Conversation().says(b"\0\1\2").ends().items)
    with serving(f"{two}:1", f"{two}:2", str(two), empty, str(other), silent) as server:
        protocols = [
            [table["protocol"] for table in server.well("api/tables", session=number)["tables"]]
            for number in range(1, 7)
        ]
        assert protocols == [["maexchen"], ["okey"], ["okey"], [], ["fremd"], []]
        # A table of one session is none of another.
        other_table = server.well("api/tables", session=2)["tables"][0]["table"]
        assert server.get(f"api/tables/{other_table}/state", session=1).status == 404
        message = server.well("api/messages", session=2)["messages"][0]["id"]
        assert server.get(f"api/messages/{message}", session=1).status == 404
        for session in (4, 6):
            assert server.well("api/diagnostics", session=session)["is_first"]
            assert server.well("api/messages", session=session)["messages"] == [] or session == 6
            assert server.get("api/tables/1/state", session=session).status == 404
            with server.live(session=session, after=0) as stream:
                assert stream.of_kind("status")["live"] is False
        for path, kind in KINDS.items():
            if "complete" not in path and path not in ("api/sessions", "api/home"):
                exactly(server.get(path.replace("{table}", "1").replace("{message}", "1"), session=5), kind)
        answer = server.get("api/tables/1/events", session=5, as_="alice")
        assert answer.status == 503
        assert "there is no protocol fremd here" in answer.sentence
        assert "fremd" in server.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{no}"], "there is no such file"),
        (["{db}:7"], "no session 7"),
        (["{text}"], "{text}"),
        (["{db}", "--host", "192.0.2.7"], "this machine has no such address"),
        (["{db}", "--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
        (["{db}", "--host", ""], "cannot listen"),
        (["{db}", "--host", "a\0b"], "cannot listen"),
        (["{db}", "--host", "x" * 300], "cannot listen"),
    ],
)
def test_unservable_requests_are_reported(
    arguments: list[str], words: str, tmp_path: Path, paths: dict[str, Path]
) -> None:
    text = tmp_path / "text.db"
    text.write_text("no database")
    places = {"no": str(tmp_path / "no.db"), "db": str(paths["maexchen"]), "text": str(text)}
    done = kiebitz("serve", *(word.format(**places) for word in arguments), "--port", "0")
    assert (done.status, done.out) in ((1, ""), (2, "")), done
    assert words.format(**places) in done.err
    assert done.err.startswith("kiebitz: ")


def test_a_port_that_is_in_use_is_reported(paths: dict[str, Path]) -> None:
    with socket.create_server(("127.0.0.1", free_port("tcp"))) as taken:
        done = kiebitz("serve", str(paths["maexchen"]), "--port", str(taken.getsockname()[1]))
    assert done.status == 1
    assert "this port is in use; choose another with serve --port or relay --serve" in done.err


# The document.


def test_the_document_matches_the_code(server: Serving) -> None:
    found = server.well("api/openapi.json")
    assert found == json.loads(json.dumps(openapi()))
    assert found["openapi"] == "3.1.0"
    text = json.dumps(found)
    schemas = found["components"]["schemas"]
    named = {part.partition('"')[0] for part in text.split('"$ref": "#/components/schemas/')[1:]}
    assert named <= schemas.keys()
    assert text.count('"$ref"') == text.count('"$ref": "#/components/schemas/')
    # Each is requested with the documented parameters; omitted ones are absent.
    assert set(found["paths"]) == {f"/{path}" for path in KINDS} | {
        "/api/live",
        "/api/home/live",
        "/api/tables/{table}/picture.svg",
        "/api/openapi.json",
        "/api/files",
    }
    assert found["paths"].pop("/api/files").keys() == {"post"}
    for path, entry in found["paths"].items():
        assert entry.keys() == ({"get", "post"} if path in ("/api/held", "/api/marks") else {"get"})
        place = path.replace("{table}", "1").replace("{message}", "1")[1:]
        in_path = {part["name"] for part in entry["get"]["parameters"] if part["in"] == "path"}
        assert all(f"{{{name}}}" in path for name in in_path)
        assert len(in_path) == path.count("{")
        refused = server.get(place, nothing="1")
        if path != "/api/openapi.json":
            names = [part["name"] for part in entry["get"]["parameters"] if part["in"] == "query"]
            assert refused.sentence == f"there is no parameter nothing here; there are {', '.join(names)}"


@pytest.mark.full
def test_the_document_is_kept_and_up_to_date() -> None:
    text = json.dumps(openapi(), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("KIEBITZ_SNAPSHOTS") == "write":
        DOCUMENT.write_text(text)
    made, kept = (
        json.loads(document, object_hook=_sorted_choices) for document in (text, DOCUMENT.read_text())
    )
    assert kept == made, f"KIEBITZ_SNAPSHOTS=write pytest {__file__} makes it anew"


def _sorted_choices(schema: dict[str, Any]) -> dict[str, Any]:
    # Their order differs between versions of msgspec.
    return schema | {"anyOf": sorted(schema["anyOf"], key=str)} if "anyOf" in schema else schema
