from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from command import CAPTURES, ROOT, kiebitz
from conversation_files import blocks
from imported_databases import copy_of_database
from processes_and_rows import free_port
from request_files import compare
from served_pages import QUICK_S, Answer, Serving, serving
from session_factory import Conversation, record
from snapshots import DATA
from strength import times

import kiebitz as library
from kiebitz.cli.web import records
from kiebitz.cli.web.openapi import openapi
from kiebitz.cli.web.routes import ENDPOINTS
from kiebitz.dissectors.model import PUBLIC
from kiebitz.storage.session.message_detail import MessageDetail, MessageDetails

RECORDED = {
    "maexchen": ("maexchen-head-tiny.pcap", "bob"),
    "schafkopf": ("schafkopf-1.3-badcard.pcap", "Falsch"),
    "catan": ("catan-yaks-lobby.pcap.gz", "Zoe Weiss"),
    "okey": ("okey-seed-game-win.pcap.gz", "pascal"),
    "cgml": ("cgml-tiny.pcap.gz", "6533"),
}
"""Protocol -> a capture, and a player in it."""

NUMBERS = {protocol: number for number, protocol in enumerate(RECORDED, 1)}
DOCUMENT = ROOT / "docs" / "openapi.json"
MOST = 1000

REQUESTS = blocks(DATA / "requests.txt")

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
        copy_of_database(capture, made[protocol])
    return made


@pytest.fixture(scope="module")
def server(paths: dict[str, Path]) -> Iterator[Serving]:
    with serving(*map(str, paths.values())) as running:
        yield running


class Game(NamedTuple):
    """A recorded game: a served session, and what the library reads of it."""

    server: Serving
    protocol: str
    session: library.Session

    @property
    def number(self) -> int:
        return NUMBERS[self.protocol]

    @property
    def player(self) -> str:
        return RECORDED[self.protocol][1]

    def exactly(self, path: str, kind: type, **query: Any) -> Any:
        return exactly(self.server.get(path, session=self.number, **query), kind)

    def whole(self, path: str, **query: Any) -> list[Any]:
        return whole(self.server, path, session=self.number, **query)

    def table(self) -> tuple[int, int]:
        """Return the number of the first table, and of its last event."""
        table = self.server.well("api/tables", session=self.number)["tables"][0]
        return table["table"], table["last"]


@pytest.fixture(params=RECORDED)
def game(request: pytest.FixtureRequest, server: Serving, paths: dict[str, Path]) -> Iterator[Game]:
    with library.open(str(paths[request.param])) as session:
        yield Game(server, request.param, session)


def whole(server: Serving, path: str, **query: Any) -> list[Any]:
    """Return all rows of a list."""
    rows: list[Any] = []
    key = path.rpartition("/")[2]
    after = 0
    while True:
        found = server.well(path, after=after, limit=MOST, **query)
        rows += found[key]
        if found["is_last"]:
            return rows
        after = rows[-1].get("seq" if key == "events" else "id")


def ids(rows: Iterable[Any]) -> list[int]:
    return [row["id"] for row in rows]


# Existing objects.


def test_the_sessions(server: Serving, paths: dict[str, Path]) -> None:
    found = exactly(server.get("api/sessions"), records.Sessions)
    assert found["player"] is None
    assert [session["name"] for session in found["sessions"]] == [f"{name}.db:1" for name in paths]
    assert [session["number"] for session in found["sessions"]] == [*NUMBERS.values()]
    assert not any(session["live"] or session["lacks"] for session in found["sessions"])
    assert all(session["started"].endswith("Z") for session in found["sessions"])


def test_tables_and_players(game: Game) -> None:
    found = game.exactly("api/tables", records.Tables)
    last = {event.table: event.seq for event in game.session.events()}
    assert found["tables"] == [
        {
            "table": table.id,
            "protocol": game.protocol,
            "title": found["tables"][0]["title"],
            "server": table.server,
            "place": table.server,
            "first": 0,
            "last": last.get(table.id, 0),
            "moves": {"catan": found["tables"][0]["moves"], "okey": ["drew", "put"]}.get(game.protocol, []),
        }
        for table in game.session.state()
    ]
    assert game.player in found["players"]


@pytest.mark.full(but=2)
@pytest.mark.parametrize("is_player", [False, True], ids=["everybody", "player"])
def test_events_and_states(is_player: bool, game: Game) -> None:
    player = game.player if is_player else None
    expected = [msgspec.to_builtins(event) for event in game.session.events(as_player=player)]
    assert expected
    for table in game.session.state():
        path = f"api/tables/{table.id}/events"
        assert game.whole(path, as_=player) == [event for event in expected if event["table"] == table.id]
        game.exactly(path, records.Events)
    number = game.session.state("end", player)[0].id
    events = [event for event in game.session.events() if event.table == number]
    for event in [*events[:: max(len(events) // 6, 1)], events[-1]]:
        found = game.exactly(f"api/tables/{number}/state", records.StateAt, at=event.seq, as_=player)
        (state,) = (one.state for one in game.session.state(f"#{event.id}", player) if one.id == number)
        assert found["state"] == state
        assert (found["seq"], found["event"], found["time"]) == (event.seq, event.id, event.time)
    first = game.exactly(f"api/tables/{number}/state", records.StateAt, at=events[0].seq - 1)
    assert (first["event"], first["time"], first["state"]) == (None, None, {})


def test_messages(game: Game) -> None:
    found = game.whole("api/messages")
    expected = [msgspec.to_builtins(message) for message in game.session.messages()]
    assert [row | {"words": 0, "flaw": 0} for row in found] == [
        row | {"words": 0, "flaw": 0} for row in expected
    ]
    malformed = {diagnostic.message for diagnostic in game.session.diagnostics()} - {None}
    assert {row["id"] for row in found if row["flaw"]} == malformed
    game.exactly("api/messages", records.Messages)
    # A player's messages are those of their own streams.
    own = ids(game.exactly("api/streams", records.Streams, as_=game.player)["streams"])
    assert own
    seen = game.whole("api/messages", as_=game.player)
    assert ids(seen) == ids(row for row in found if row["stream"] in own)
    # Whether a rule is broken may depend on what the player does not know.
    by_itself = {one.message for one in game.session.diagnostics() if one.group in ("malformed", "network")}
    assert {row["id"] for row in seen if row["flaw"]} <= by_itself
    details = MessageDetails(game.session.timeline)
    for number in ids(found)[:: max(9, len(found) // times(40, 9))]:
        detail = game.exactly(f"api/messages/{number}", MessageDetail)
        assert detail == json.loads(msgspec.json.encode(details.message(number)))


def test_diagnostics_and_streams(game: Game) -> None:
    diagnostics = {diagnostic.id: diagnostic for diagnostic in game.session.diagnostics()}
    found = game.whole("api/diagnostics")
    assert ids(found) == sorted(diagnostics)
    for row in found:
        expected = msgspec.to_builtins(diagnostics[row["id"]])
        assert {name: row[name] for name in expected} == expected
        assert row["seq"] is None
    game.exactly("api/diagnostics", records.Diagnostics)
    streams = [msgspec.to_builtins(stream) for stream in game.session.streams()]
    assert game.exactly("api/streams", records.Streams)["streams"] == streams
    table, last = game.table()
    for row in game.whole("api/diagnostics", table=table):
        assert 0 <= row["seq"] <= last
    for severity, which in (("error", ["error"]), ("warning", ["error", "warning"])):
        graver = game.whole("api/diagnostics", severity=severity)
        assert ids(graver) == sorted(
            diagnostic.id for diagnostic in diagnostics.values() if diagnostic.severity in which
        )


@pytest.mark.full(but=2)
@pytest.mark.parametrize("is_player", [False, True], ids=["everybody", "player"])
def test_the_timeline(is_player: bool, game: Game) -> None:
    player, (table, _) = game.player if is_player else None, game.table()
    found = game.exactly(f"api/tables/{table}/timeline", records.TimelineOverview, as_=player)
    events = {event.seq: event for event in game.session.events() if event.table == table}
    games = {one.id: one for one in game.session.games()}
    assert (found["first"], found["last"]) == (min(events) - 1, max(events))
    assert found["times"] == [[seq, event.time] for seq, event in events.items()]
    for mark in found["games"]:
        assert mark["label"] == games[mark["game"]].label
        assert mark["seq"] == min(seq for seq, event in events.items() if event.game == mark["game"])
        assert player is None or mark["result"] is None
    marks = [(diagnostic["seq"], diagnostic["id"]) for diagnostic in found["flaws"]]
    assert [seq for seq, _ in marks] == sorted(seq for seq, _ in marks)
    listed = game.whole("api/diagnostics", table=table, severity="warning", as_=player)
    assert {*marks} >= {(diagnostic["seq"], diagnostic["id"]) for diagnostic in listed}
    if found["scores"] is not None:
        steps = [seq for seq, _ in found["scores"]["steps"]]
        assert steps == sorted(set(steps))
        assert all(len(step) == len(found["scores"]["names"]) for _, step in found["scores"]["steps"])


def test_pictures_and_their_fragments(game: Game) -> None:
    table, last = game.table()
    for at, player in ((None, None), (0, None), (last // 2, game.player)):
        place: dict[str, Any] = {"at": at, "as_": player}
        picture = game.exactly(f"api/tables/{table}/picture", records.Picture, **place)
        assert picture["seq"] == (last if at is None else at)
        assert picture["words"]
        names = {name for shape in ("wide", "tall") for name, _, _ in picture[shape]["pieces"]}
        path = f"api/tables/{table}/fragments"
        fragments = game.exactly(path, records.Fragments, **place)["fragments"]
        assert fragments.keys() == names
        for markup in fragments.values():
            ET.fromstring(f'<svg xmlns:xlink="x">{markup}</svg>')
        few = sorted(names)[:3]
        for given, expected in ((",".join([*few, "none", "x' OR 1"]), few), ("", [])):
            wanted = game.exactly(path, records.Fragments, **place, names=given)["fragments"]
            assert wanted == {name: fragments[name] for name in expected}
        for shape in ("wide", "tall", None):
            query = {"session": game.number, **place, "shape": shape}
            answer = game.server.get(f"api/tables/{table}/picture.svg", **query)
            assert answer.headers["content-type"].startswith("image/svg+xml")
            assert ET.fromstring(answer.body).tag.endswith("svg")


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


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    ("path", "query"),
    [
        *(("tables/1/events", {"filter": wanted}) for wanted in (None, 'kind == "rolled"', 'kind == "x"')),
        *(("messages", {"as_": player}) for player in (None, "bob")),
    ],
)
def test_windows(path: str, query: dict[str, Any], server: Serving) -> None:
    key, number = path.rpartition("/")[2], "seq" if "events" in path else "id"
    numbers = [row[number] for row in whole(server, f"api/{path}", **query)]
    for limit, place in WINDOWS:
        if key == "events" or "around" not in place:
            found = server.well(f"api/{path}", limit=limit, **query, **place)
            got = [row[number] for row in found[key]], found["is_first"], found["is_last"]
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

    every = whole(server, f"api/{path}", as_=player)
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
    every = whole(server, "api/messages")
    for event in whole(server, "api/tables/1/events"):
        found = server.well("api/messages", table=1, at=event["seq"], limit=5)
        last = found["messages"][-1]
        telling = [row["id"] for row in every if row["event"] == event["id"]]
        if telling:
            assert last["id"] == min(telling)
        assert ids(found["messages"]) == list(range(max(last["id"] - 4, 1), last["id"] + 1))


def test_a_game_s_events(server: Serving) -> None:
    every = whole(server, "api/tables/1/events")
    games = {event["game"] for event in every} - {None}
    assert len(games) > 1
    for game in games:
        found = whole(server, "api/tables/1/events", game=game)
        assert found == [event for event in every if event["game"] == game]


# Filters.


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("tables/1/events", 'kind == "rolled" && player == "bob"'),
        ("tables/1/events", 'dice matches "^6"'),
        ("tables/1/events", 'msg == "ROLL"'),
        ("messages", 'maexchen.name == "alice" || stream == 3'),
        ("messages", "diag"),
        ("diagnostics", 'diag.severity != "note"'),
    ],
)
def test_filters_give_the_library_s_results(
    path: str, wanted: str, server: Serving, paths: dict[str, Path]
) -> None:
    with library.open(str(paths["maexchen"])) as session:
        read = getattr(session, path.rpartition("/")[2])
        assert ids(whole(server, f"api/{path}", filter=wanted)) == sorted(row.id for row in read(wanted))


def test_names_are_completed(server: Serving) -> None:
    found = exactly(server.get("api/complete", text='msg == "ROLL" && maexchen.di'), records.Completion)
    assert found["from"] == len('msg == "ROLL" && ')
    assert "maexchen.dice" in found["words"]
    assert server.well("api/complete", text="zzzz")["words"] == []


# Requests as texts.


@pytest.mark.parametrize("title", [title for title in REQUESTS if ":" not in title])
def test_requests_and_their_answers(title: str, server: Serving) -> None:
    compare(REQUESTS[title], server)


def test_non_http_requests_are_rejected_silently(server: Serving) -> None:
    before = server.err
    for rubbish in (b"\0\xff\r\n\r\n", b"GET /\r\n\r\n", b"GET /\x01 HTTP/1.1\r\n\r\n"):
        assert server.raw(rubbish).status == 400
    assert server.raw(b"GET /api/tables?\xff HTTP/1.1\r\nHost: localhost\r\n\r\n").status in (200, 400)
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
        with library.open(str(cut)) as opened:
            assert opened.lacks == session["lacks"]
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
