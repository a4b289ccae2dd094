"""Numbers count within a session: a session reads the same, whatever else is in its database."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, ODD, TINY, Done, kiebitz, without_session
from imported_databases import database_of
from served_pages import serving
from strength import GAMES, a_few
from tables import tried_commands

import kiebitz as library

COMMANDS = tried_commands("test_session_numbering")
"""Commands with arguments after the session; their output for it must equal that for its capture."""

HAVE_JSON = ("messages", "events", "games", "streams", "check", "state", "whatif")
"""Commands with JSON output."""


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("numbers") / "several.db"
    shutil.copyfile(database_of("maexchen-head-odd.pcap"), path)
    for capture in (*GAMES.values(), "maexchen-head-tiny.pcap"):
        assert kiebitz("import", str(CAPTURES / capture), "-w", str(path)).status == 0
    return path


def _places() -> dict[str, int]:
    """Protocol to the number of its session."""
    return {protocol: number for number, protocol in enumerate(GAMES, 2)}


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_ids(part) for key, part in value.items() if key not in ("id", "table")}
    return [_without_ids(part) for part in value] if isinstance(value, list) else value


def _said(done: Done, session: str) -> tuple[int, str, str]:
    err = "\n".join(line for line in done.err.splitlines() if "plug-in" not in line)
    return done.status, without_session(done.out.replace(session, "SESSION")), err.replace(session, "SESSION")


@pytest.mark.parametrize("protocol", a_few(GAMES, ["maexchen"]))
@pytest.mark.full
def test_a_session_reads_as_its_capture(protocol: str, several: Path) -> None:
    alone, among = str(database_of(GAMES[protocol])), f"{several}:{_places()[protocol]}"
    for command, *options in COMMANDS:
        session = [alone, *options]
        expected = _said(kiebitz(command, *session), alone)
        session[0] = among
        assert _said(kiebitz(command, *session), among) == expected, (command, options)
        if command in HAVE_JSON and expected[0] in (0, 3):
            found = kiebitz(command, among, *options, "--json").json
            assert _without_ids(found) == _without_ids(kiebitz(command, alone, *options, "--json").json)


@pytest.mark.full
def test_json_has_the_number_and_the_id(several: Path) -> None:
    alone = kiebitz("events", str(database_of(GAMES["maexchen"])), "--json").json
    among = kiebitz("events", f"{several}:2", "--json").json
    assert [one["number"] for one in among] == [one["id"] for one in alone]
    assert among[0]["id"] > len(kiebitz("events", ODD, "--json").json)


@pytest.mark.full
def test_a_difference_names_each_side_by_its_own_numbers(several: Path) -> None:
    expected = kiebitz("diff", ODD, TINY)
    among = kiebitz("diff", f"{several}:1", f"{several}:2")
    assert among.out.replace(f"{several}:1", ODD).replace(f"{several}:2", TINY) == expected.out


@pytest.mark.parametrize("protocol", a_few(GAMES, ["maexchen"]))
def test_the_library_reports_and_accepts_numbers(protocol: str, several: Path) -> None:
    def told(path: str) -> Iterator[Any]:
        with library.open(path) as session:
            assert session.timeline.session.name == GAMES[protocol]
            for each in (session.streams(), session.games(), session.messages(after=4), session.events()):
                yield [_without_ids(record) for record in json.loads(library_json(each))]
            yield _without_ids(json.loads(library_json(session.diagnostics("event >= 3"))))
            yield _without_ids(json.loads(library_json(session.state("#6"))))

    assert [*told(f"{several}:{_places()[protocol]}")] == [*told(str(database_of(GAMES[protocol])))]


def library_json(records: Any) -> bytes:
    import msgspec

    return msgspec.json.encode([*records])


@pytest.mark.full
def test_the_page_requests_by_numbers_and_receives_them(several: Path) -> None:
    with serving(str(database_of(GAMES["maexchen"])), f"{several}:2") as server:
        (tables,) = (
            [one["table"] for one in server.get("api/tables", session=n).json["tables"]] for n in (1,)
        )
        (others,) = (
            [one["table"] for one in server.get("api/tables", session=n).json["tables"]] for n in (2,)
        )
        for path, query in (
            ("api/messages", {"after": 3, "limit": 9}),
            ("api/messages", {"before": 20, "limit": 9, "filter": "event == 3 || number > 12"}),
            ("api/messages", {"around": 30, "limit": 9}),
            ("api/messages/23", {}),
            ("api/messages/23", {"as_": "alice"}),
            ("api/messages/999", {}),
            ("api/diagnostics", {}),
            ("api/streams", {}),
            ("api/tables/T/events", {"game": 1}),
            ("api/tables/T/events", {"filter": "event == 7 || game == 1", "as_": "bob"}),
            ("api/tables/T/state", {"at": 15}),
            ("api/tables/T/timeline", {}),
            ("api/tables/T/picture", {"at": 15}),
        ):
            one, other = (
                _without_ids(server.get(path.replace("T", str(table)), session=number, **query).json)
                for number, table in ((1, tables[0]), (2, others[0]))
            )
            if "flaws" in one:
                one["flaws"] = other["flaws"] = []
            assert one == other, (path, query)
