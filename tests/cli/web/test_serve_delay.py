"""`kiebitz serve --delay`: spectators see live games late, the full link and players see them at once."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from browser import Look
from live_session import Live
from processes_and_rows import until
from served_pages import QUICK_S, Serving, post, serving
from session_factory import Conversation, record

from kiebitz.cli.web import delayed_copy
from kiebitz.cli.web.openapi import openapi
from kiebitz.dissectors.model import PUBLIC
from kiebitz.services.sessions import session_at
from kiebitz.storage.read.timeline import Timeline

DELAY_S = 2
SECRET = "Geheimnis"
PATHS = [
    path[1:] for path, about in openapi()["paths"].items() if "get" in about and path != "/api/openapi.json"
]
QUERIES: dict[str, list[dict[str, Any]]] = {
    "api/live": [],
    "api/home/live": [],
    "api/complete": [{"text": "x"}],
    "api/messages": [{"limit": 1000}, {"filter": f'text contains "{SECRET}"'}, {"after": 4}],
    "api/messages/{message}": [{"message": number} for number in range(1, 12)],
}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    session = Live(tmp_path / "game.db")
    session.hears(b"ROUND STARTING;b8a6", 100).hears(b"ROUND STARTED;1;alice", 99)
    yield session
    session.close()


def links(server: Serving) -> tuple[str, str]:
    """Return the full link, and that of spectators."""
    said = r"^for spectators \(public view, \d+ s late\): (http://\S+)$"
    (late,) = re.findall(said, server.out, re.MULTILINE)
    return server.address, late


def is_live(server: Serving, key: str | None = None) -> bool:
    found: bool = server.well("api/sessions", key=key)["sessions"][0]["live"]
    return found


def answers(server: Serving, key: str | None) -> str:
    """Return everything that the API answers, as one text."""
    found = []
    for path in PATHS:
        for query in QUERIES.get(path, [{}, {"at": 3}, {"filter": "dir"}, {"severity": "note"}]):
            target = path.replace("{table}", "1").replace("{message}", str(query.get("message", 1)))
            given = {name: value for name, value in query.items() if name != "message"}
            found.append(server.get(target, None, "GET", key=key, **given).body.decode())
    return "\n".join(found)


@pytest.mark.full
def test_spectators_see_everything_late(tmp_path: Path, live: Live) -> None:
    with serving(str(tmp_path / "game.db"), "--delay", str(DELAY_S)) as server:
        assert server.key is not None
        assert links(server)[1] == f"http://127.0.0.1:{server.port}/"
        before = answers(server, None)
        assert "round_started" in before
        assert SECRET not in before
        with server.live() as stream, server.live(key=server.key) as at_once:
            assert stream.of_kind("status")["live"]
            began_s = time.monotonic()
            live.hears(f"PLAYER LOST;{SECRET};SEE_FAILED".encode(), 0).hears(f"SCORE;{SECRET}:1".encode(), 0)
            until(lambda: SECRET in answers(server, server.key), "the full link shows it", QUICK_S)
            assert at_once.next(QUICK_S) is not None
            while time.monotonic() - began_s < DELAY_S - 0.5:
                found = answers(server, None)
                if time.monotonic() - began_s < DELAY_S:
                    assert SECRET not in found
                    assert server.well("api/sessions")["delay"] == DELAY_S
            until(lambda: SECRET in answers(server, None), "spectators see it, too", QUICK_S)
            assert time.monotonic() - began_s >= DELAY_S
            until(lambda: SECRET in str(stream.next(QUICK_S)), "it is pushed", QUICK_S)

        def is_the_same() -> bool:
            at_once = server.well("api/tables/1/events", key=server.key, as_=PUBLIC)
            return bool(server.well("api/tables/1/events") == at_once)

        until(is_the_same, "nothing else differs", QUICK_S)
        ended_s = time.monotonic()
        live.close()
        until(lambda: not is_live(server, server.key), "it ends", QUICK_S)
        assert is_live(server) or time.monotonic() - ended_s >= DELAY_S
        until(lambda: not is_live(server), "it ends late", QUICK_S)
        assert time.monotonic() - ended_s >= DELAY_S


@pytest.mark.full
def test_links_on_other_addresses_and_of_players(tmp_path: Path, live: Live) -> None:
    arguments = str(tmp_path), "--spectator-delay", "60", "--player-links", "--host", "0.0.0.0"
    with serving(*arguments) as server:
        full, late = links(server)
        until(lambda: "alice" in server.links(), "there is a player's link", QUICK_S)
        key = late.partition("key=")[2]
        assert server.get("api/sessions").status == 403
        live.hears(f"SCORE;alice:1,{SECRET}:2".encode(), 0)
        for link in (full.partition("key=")[2], server.links()["alice"]):
            until(lambda key=link: SECRET in answers(server, key), "it is shown at once", QUICK_S)  # type: ignore[misc]
        assert SECRET not in answers(server, key)
        assert server.well("api/home", key=key)["sessions"][0]["session"]["live"]
        refused = post(server, {"do": "let-all-go"}, key=key)
        assert (refused.status, refused.sentence) == (
            403,
            "a spectator cannot act on held messages: open the full link",
        )


@pytest.mark.full
def test_one_browser_may_open_both_links(tmp_path: Path, live: Live, look: Look) -> None:
    """The teacher's browser has the full link in one tab, and shows spectators' page on the projector."""
    with serving(str(tmp_path / "game.db"), "--delay", "60") as server:
        live.hears(f"PLAYER LOST;{SECRET};SEE_FAILED".encode(), 0)
        until(lambda: SECRET in answers(server, server.key), "the full link shows it", QUICK_S)
        sight = look(server.address)
        sight.page.locator("#kind", has_text=re.compile("^live$")).wait_for()
        assert SECRET in sight.page.inner_text("body")
        sight.go(f"http://127.0.0.1:{server.port}/")
        sight.page.locator("#kind", has_text="live, 60 s late").wait_for()
        assert SECRET not in sight.page.inner_text("body")
        sight.go(server.address)
        sight.page.locator("#kind", has_text=re.compile("^live$")).wait_for()
        sight.leave()


WITHOUT_BYTES = """
    SELECT count(*) FROM messages AS m WHERE NOT EXISTS (
        SELECT 1 FROM chunks AS c WHERE c.stream_id = m.stream_id AND c.direction = m.direction
        AND c.offset <= m.offset AND m.offset + m.length <= c.offset + c.length)
"""


@pytest.mark.full
@pytest.mark.parametrize("delay_s", [0.3, 60])
def test_what_is_recorded_during_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delay_s: float
) -> None:
    """A copy has no message without its bytes, and none too early, whenever a message is recorded."""
    (tmp_path / "copy").mkdir()
    with ThreadPoolExecutor(1) as recorder:
        live = recorder.submit(Live, tmp_path / "game.db").result()

        def record(statement: str) -> None:
            if statement.endswith("FROM messages WHERE 1"):
                recorder.submit(live.hears, b"SCORE;alice:1", 0).result()

        def opened(path: str, number: int) -> Timeline:
            timeline = session_at(path, number)
            timeline.connection.set_trace_callback(record)
            return timeline

        monkeypatch.setattr(delayed_copy, "session_at", opened)
        began_s = time.monotonic()
        copy = delayed_copy.DelayedCopy(str(tmp_path / "game.db"), 1, str(tmp_path / "copy"), delay_s)
        try:
            with closing(sqlite3.connect(copy.path)) as found:
                while time.monotonic() - began_s < 2:
                    (without,) = found.execute(WITHOUT_BYTES).fetchone()
                    assert without == 0
                (scores,) = found.execute("SELECT count(*) FROM messages WHERE name = 'SCORE'").fetchone()
                assert (scores > 0) == (delay_s < 2)
        finally:
            copy.close()
            recorder.submit(live.close).result()


@pytest.mark.full
def test_a_recording_that_continues_in_another_database_stays_late(tmp_path: Path) -> None:
    first = Live(tmp_path / "game.db")
    first.hears(b"ROUND STARTING;b8a6", 100).hears(b"ROUND STARTED;1;alice", 99)
    with serving(str(tmp_path / "game.db"), "--delay", "2") as server:
        first.hears(b"SCORE;alice:1", 0)
        first.continue_in(tmp_path / "game_00001_20261127000000.db")
        first.hears(f"SCORE;{SECRET}:2".encode(), 0)
        recorded_s = time.monotonic()
        found = answers(server, None)
        assert SECRET not in found or time.monotonic() - recorded_s >= 1.9
        until(lambda: SECRET in answers(server, None), "spectators see it, too", QUICK_S)
        assert time.monotonic() - recorded_s >= 1.9
        first.close()
        until(lambda: not is_live(server), "it ends", QUICK_S)


@pytest.mark.parametrize("shown", range(1, 9))
def test_the_copy_depends_on_nothing_later(tmp_path: Path, shown: int) -> None:
    """Two games that differ only after a time have the same copy up to it."""
    known = [b"REGISTER;alice", b"ROUND STARTING;b8a6", b"JOIN;b8a6", b"ROUND STARTED;1;alice"]
    rests = (
        [b"YOUR TURN;c1", b"ROLL;c1", b"ROLLED;2,1;d2", b"ANNOUNCE;2,1;d2", b"SCORE;alice:1"],
        [b"SCORE;alice:7", b"YOUR TURN;nonsense", b"?", b"ROUND STARTING;e9"],
    )
    copies = []
    for number, rest in enumerate(rests):
        talk = Conversation().says(known[0]).hears(b"REGISTERED")
        for data in known[1:]:
            (talk.says if data.startswith(b"JOIN") else talk.hears)(data)
        upto = min(shown, len(talk.items))
        time_ns = talk.items[upto].ts_ns if upto < len(talk.items) else talk.items[-1].ts_ns + 1
        for data in rest:
            (talk.says if data.startswith((b"ROLL;", b"ANNOUNCE", b"?")) else talk.hears)(data)
        path = record(tmp_path / f"{number}.db", talk.items)
        copy = tmp_path / f"copy-{number}.db"
        part = delayed_copy.CopiedSession(path, 1, str(copy))
        part.write_until(time_ns)
        part.end()
        with closing(sqlite3.connect(copy)) as database:
            copies.append([*database.iterdump()])
    assert copies[0] == copies[1]
    assert any("REGISTER" in line for line in copies[0])
