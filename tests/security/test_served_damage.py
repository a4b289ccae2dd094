"""`kiebitz serve` with any database: each address answers in JSON, or with an error message.

Nothing is called an internal error of Kiebitz, and nothing that a page would take for markup is in a drawing.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from command import kiebitz
from damaged_databases import ROWS, SPOTS, VALUES, Kind, Spot, damaged_copy, spoilt, spots_of
from hostile_text import CAPTURES_OF
from served_pages import Serving, serving
from strength import a_few

from kiebitz.cli.web.openapi import openapi

PATHS = sorted(
    path[1:]
    for path, about in openapi()["paths"].items()
    if "get" in about and not path.endswith(("/live", "/openapi.json"))
)

MARKUP = "\n<script>alert(1)</script><img src=x onerror=alert(1)>]]>&amp;\x1b[2J\u2028\u202e" + "e\u0301" * 40


def ask_everything(server: Serving, sessions: int) -> int:
    """Ask each address; how many answered well."""
    well = 0
    for session in range(1, sessions + 1):
        for path in PATHS:
            for query in _queries(path):
                place = path.replace("{table}", "1").replace("{message}", "3")
                if path != "api/sessions":
                    query = {**query, "session": session}
                answer = server.get(place, None, "GET", **query)
                assert answer.status in (200, 400, 404, 503), (place, query, answer)
                well += answer.status == 200
                if answer.status != 200:
                    assert answer.sentence
                elif path.endswith(".svg"):
                    harmless(answer.body.decode())
                else:
                    for markup in answer.json.get("fragments", {}).values():
                        harmless(markup)
        with server.live(session=session, after=0) as stream:
            while (told := stream.next(0.3)) is not None:
                pictures = told.data.get("picture") or {} if told.kind == "message" else {}
                for markup in pictures.get("fragments", {}).values():
                    harmless(markup)
    return well


def _queries(path: str) -> Iterable[dict[str, Any]]:
    given = {part["name"] for part in openapi()["paths"][f"/{path}"]["get"]["parameters"]}
    yield {"text": "x"} if "text" in given else {}
    if "as" in given:
        yield {"as_": "alice"}
    if "filter" in given:
        yield {"filter": 'named == "alice" || length > 3', "after": 0}
    if "at" in given and "{table}" in path:
        yield {"at": 9}


def harmless(markup: str) -> None:
    for element in ET.fromstring(f"<svg>{markup.partition('?>')[2] or markup}</svg>").iter():
        assert not element.tag.lower().endswith(("script", "foreignobject", "img", "iframe", "a", "image"))
        for name, value in element.attrib.items():
            assert not re.match(r"on", name)
            assert not name.endswith("href") or value.startswith("#")
            assert "javascript:" not in value


def served(path: str) -> int:
    """Serve a database and ask for everything, unless it is refused in a sentence; how much was answered."""
    server = Serving(path, "--port", "0")
    try:
        try:
            server.ready()
        except AssertionError:
            assert server.process.wait(10) in (1, 2)
            assert server.err.startswith("kiebitz: ")
            return -1
        finally:
            assert "Traceback" not in server.err
        well = ask_everything(server, 1)
        assert server.end() == 130
        assert "fault" not in server.err
        assert "Traceback" not in server.err
        return well
    finally:
        server.kill()


@pytest.mark.full
@pytest.mark.parametrize("spot", a_few(SPOTS, SPOTS[9:10], ".".join))
def test_each_spoilt_column_is_answered(spot: Spot, tmp_path: Path) -> None:
    served(spoilt(tmp_path, CAPTURES_OF["maexchen"], [spot], MARKUP))


@pytest.mark.full
@pytest.mark.parametrize("protocol", a_few(CAPTURES_OF, ["catan"]))
@pytest.mark.parametrize("kind", a_few(["names", "values"], ["values"]))
def test_no_text_is_markup(kind: Kind, protocol: str, tmp_path: Path) -> None:
    served(spoilt(tmp_path, CAPTURES_OF[protocol], spots_of(kind), MARKUP))


@pytest.mark.full
@pytest.mark.parametrize("kind", a_few(ROWS, [*ROWS][:1]))
def test_rows_that_kiebitz_never_writes_are_reported(kind: str, tmp_path: Path) -> None:
    served(damaged_copy(tmp_path, ROWS[kind]))


@pytest.mark.full
@pytest.mark.parametrize(
    "statement",
    a_few(
        VALUES,
        lambda row: "length = 1" in row,
    ),
)
def test_values_that_no_program_writes_are_reported(statement: str, tmp_path: Path) -> None:
    served(damaged_copy(tmp_path, statement))


@pytest.mark.full
def test_a_damaged_one_is_called_so(tmp_path: Path) -> None:
    with serving(damaged_copy(tmp_path, "UPDATE events SET data = 'x' WHERE id = 9")) as server:
        answer = server.get("api/tables/1/events")
        assert answer.status == 503
        assert "this database is damaged" in answer.sentence
        assert "kiebitz redissect rebuilds everything except the bytes" in answer.sentence
        assert server.well("api/streams")["streams"]


@pytest.mark.full
def test_export_writes_a_page_or_says_why_not(tmp_path: Path) -> None:
    spots = [spot for spot in SPOTS if spot.table == "events" and spot.kind == "values"]
    path = spoilt(tmp_path, CAPTURES_OF["maexchen"], spots, MARKUP)
    for number, more in enumerate([[], ["--as", "alice"]]):
        page = tmp_path / f"{number}.html"
        done = kiebitz("export", path, "-T", "html", "-o", str(page), *more)
        assert done.status in (0, 1), done
        assert "fault" not in done.err
        if done.status == 0:
            assert "alert(1)" not in page.read_text()
        else:
            json.dumps(done.err)
            assert done.err.startswith("kiebitz: ")
