"""Everything that a player can be shown of a session: all addresses, updates and commands."""

from __future__ import annotations

import gzip
import io
import json
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import msgspec
from cleanup import close_after_test
from command import kiebitz
from session_factory import record

from kiebitz.cli.render.svg.svg_canvas import SIZES
from kiebitz.cli.web.event_stream import encode_events
from kiebitz.cli.web.grants import Grant
from kiebitz.cli.web.html_export import write_html
from kiebitz.cli.web.reader import NotThereError, Reader, ServedSession
from kiebitz.cli.web.request_params import ApiRequest
from kiebitz.cli.web.routes import ENDPOINTS, Endpoint, session_info
from kiebitz.dissectors.model import PUBLIC, Item

COMMANDS = (
    ["events"],
    ["events", "--json"],
    ["state"],
    ["state", "--json"],
    ["sequence"],
    ["show", "1", "12"],
    ["replay", "--speed", "0"],
)
"""Commands with `--as`, and options; `export` has a page of its own."""


def opened(path: str) -> Reader:
    reader = Reader(ServedSession(1, path, 1, "game.db"))
    close_after_test(reader.timeline.connection)
    return reader


def stored(path: Path, items: list[Item]) -> str:
    path.unlink(missing_ok=True)
    return record(path, items, begin_ns=0)


def numbering(path: str) -> list[list[tuple[object, ...]]]:
    """Return what is no secret: the numbers and times of events, games and messages."""
    connection = opened(path).timeline.connection
    return [
        connection.execute(query).fetchall()
        for query in (
            "SELECT id, seq, ts_ns, game_id FROM events",
            "SELECT id, event_id, game_id FROM messages",
            "SELECT id, started_ns, ended_ns FROM games",
        )
    ]


def questions(
    address: Endpoint, reader: Reader, words: list[str], most_moments: int
) -> Iterator[tuple[dict[str, str], dict[str, int]]]:
    """Yield the queries of an address, and the numbers in it."""
    timeline = reader.timeline
    known = {parameter.name for parameter in address.parameters}
    tables = [table.id for table in timeline.tables()]
    for table in tables if "{table}" in address.path else [0]:
        first, last = timeline.first_seq(table), timeline.last_seq(table)
        moments: list[str | None] = [None]
        if "at" in known and "{table}" in address.path:
            moments += [str(at) for at in range(first, last + 1, max((last - first) // most_moments, 1))]
        for at in moments:
            query = {} if at is None else {"at": at}
            if "limit" in known:
                query |= {"limit": "500"} | ({"after": "0"} if at is None else {})
            if "{message}" in address.path:
                (count,) = timeline.connection.execute("SELECT count(*) FROM messages").fetchone()
                for number in range(1, count + 1, max(count // (4 * most_moments), 1)):
                    yield query, {"message": number}
                continue
            if "shape" in known:
                for shape in SIZES:
                    yield query | {"shape": shape}, {"table": table}
                continue
            numbers = {"table": table} if table else {}
            if address.path == "/api/complete":
                yield {"text": words[0][:2] if words else "x"}, numbers
                continue
            yield query, numbers
            if "filter" in known:
                for word in words[:most_moments]:
                    yield query | {"filter": f"named == {json.dumps(word, ensure_ascii=False)}"}, numbers
            if "table" in known:
                for number in tables:
                    yield query | {"table": str(number)}, numbers


def asked_of(
    reader: Reader, reach: Grant, words: list[str], most_moments: int
) -> Iterator[tuple[str, msgspec.Struct | bytes | str]]:
    """Yield each question of a player, and its answer."""
    label = reader.label(reach)
    for address in ENDPOINTS:
        for query, numbers in questions(address, reader, words, most_moments):
            request = ApiRequest(query, address.known, reach, numbers)
            request.player = label
            try:
                yield f"{address.path} {query} {numbers}", address.ask(reader, request)
            except NotThereError as error:
                yield f"{address.path} {query} {numbers}", str(error)
    yield "sessions", session_info(reader, False, label)
    yield "live", encode_events(reader, (reach, None), 0, reader.timeline.last_event(), 0, {})[0]


def exported_page(reader: Reader, player: str) -> bytes:
    """Return the data of the page that is exported for a player, as JSON."""
    file = io.BytesIO()
    write_html(reader, player, file, lambda _done, _all: None)
    found = re.search(rb'id="kiebitz-data">([^<]*)<', file.getvalue())
    assert found is not None
    return gzip.decompress(b64decode(found.group(1)))


def whole_view(path: str, player: str, words: list[str], most_moments: int) -> Iterator[tuple[str, bytes]]:
    """Yield everything that a player can be shown of a session, byte by byte."""
    reader = opened(path)
    grants = [Grant(PUBLIC), *reader.player_grants()]
    (reach,) = [each for each in grants if each.player == player]
    for question, answer in asked_of(reader, reach, words, most_moments):
        yield question, answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
    page = json.loads(exported_page(opened(path), player))
    # The time of the export.
    del page["written"]
    yield "page", json.dumps(page).encode()
    for command, *options in COMMANDS:
        done = kiebitz(command, path, *options, "--as", player)
        yield command, f"{done.status} {done.out} {done.err}".replace(path, "PATH").encode()
