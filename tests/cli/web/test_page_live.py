"""A game that is being recorded grows on the page: each event once, and no further than one wants to see."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import Look, Sight
from maexchen_programs import Player, Server
from page_walks import take
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, rows, running, until
from relayed_class import Class
from served_pages import own_address, serving
from walks import walks

ENDED = "ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE)"
"""The browser itself complains of a server that has ended, and of none."""

pytestmark = pytest.mark.full

ALL_SEEN = """() => {
    window.told = [];
    new MutationObserver((changes) => {
        for (const { addedNodes } of changes)
            for (const row of addedNodes) if (row.dataset?.key) window.told.push(Number(row.dataset.key));
    }).observe(document.getElementById("pane-events"), { childList: true, subtree: true });
}"""


def keys(sight: Sight) -> list[int]:
    """Return the events that are listed."""
    found: list[int] = sight.tell(
        "[...document.querySelectorAll('#pane-events [data-key]')].map((row) => Number(row.dataset.key))"
    )
    return found


@pytest.fixture
def lesson() -> Iterator[Class]:
    made = Class()
    yield made
    made.close()


@contextmanager
def relayed(lesson: Class, database: Path) -> Iterator[None]:
    with running(*KIEBITZ, "relay", "-q", "-m", lesson.mode, "-w", str(database), ready="listening on"):
        lesson.register("anna")
        until(lambda: bool(rows(database, "SELECT 1 FROM events")), "an event is stored")
        yield


@contextmanager
def relayed_game(database: Path, rounds: int) -> Iterator[Callable[[], None]]:
    """Record a game for which alice has registered; yield a function that lets bob join, and plays it."""
    game = Server(expected=2, rounds=rounds)
    port = free_port("udp")
    mode = f"reverse:udp://127.0.0.1:{game.port}@{port}"
    first, second = (Player(name, ("127.0.0.1", port)) for name in ("alice", "bob"))

    def play() -> None:
        second.start()
        game.join(PATIENCE_S)
        assert not game.is_alive()
        for player in (first, second):
            player.stop()

    with running(*KIEBITZ, "relay", "-q", "-m", mode, "-w", str(database), ready="listening on"):
        game.start()
        first.start()
        until(lambda: bool(rows(database, "SELECT 1 FROM events")), "alice is there")
        yield play


SENTENCES = """() => {
    window.told = [];
    const latest = document.getElementById("latest");
    const told = () => window.told.push([performance.now(), latest.textContent]);
    new MutationObserver(told).observe(latest, { childList: true });
}"""


def test_on_a_projector_each_sentence_stays_long_enough_to_be_read(tmp_path: Path, look: Look) -> None:
    with (
        relayed_game(tmp_path / "game.db", rounds=30) as play,
        serving(str(tmp_path / "game.db")) as server,
    ):
        sight = look(server.at(projector=1))
        sight.tell(SENTENCES)
        play()
        # What all at the table may know is quicker than can be read.
        seen = server.well("api/tables/1/events", as_="public", after=0, limit=500)["events"]
        sight.page.wait_for_timeout(4000)
        told = sight.tell("window.told")
        gaps = [after - before for (before, _), (after, _) in pairwise(told)]
        assert 2 <= len(told) < len(seen)
        assert all(gap > 1400 for gap in gaps), told
        sight.leave()


def test_it_follows_and_one_that_has_gone_back_stays(lesson: Class, tmp_path: Path, look: Look) -> None:
    database = tmp_path / "game.db"
    with ExitStack() as opened:
        opened.enter_context(relayed(lesson, database))
        server = opened.enter_context(serving(str(database)))
        (walk,) = walks("page.txt", "live").values()
        take(walk, look(server.at()), {"register": lesson.register, "stop": opened.close})


def test_a_server_that_was_away_is_found_again_and_nothing_is_lost(
    lesson: Class, tmp_path: Path, look: Look
) -> None:
    database = tmp_path / "game.db"
    port = free_port("tcp")
    with relayed(lesson, database):
        with serving(str(database), port=port) as server:
            sight = look(server.at())
            sight.expect(ENDED)
            sight.tells("anna is registered")
            sight.tell(ALL_SEEN)
            lesson.register("bert")
            sight.tells("bert is registered")
        sight.until(lambda: "connection lost" in sight.text("#notice"), "it says so")
        for number in range(30):
            lesson.register(f"player{number}")
        until(lambda: len(rows(database, "SELECT 1 FROM events")) == 32, "all are stored")
        with serving(str(database), port=port):
            sight.tells("player29 is registered")
            sight.until(lambda: sight.text("#notice") == "", "nothing is wrong any more")
            sight.until(lambda: keys(sight) == list(range(1, 33)), "all are listed")
            # Once again, and one more after that.
            lesson.register("carl")
            sight.tells("carl is registered")
        with serving(str(database), port=port):
            lesson.register("dora")
            sight.tells("dora is registered")
            sight.until(lambda: keys(sight) == list(range(1, 35)), "these are, too")
            assert sight.tell("window.told") == list(range(2, 35))


def test_a_refused_stream_is_explained_and_tried_again(lesson: Class, tmp_path: Path, look: Look) -> None:
    database = tmp_path / "game.db"
    with (
        relayed(lesson, database),
        serving(str(database), "--host", "0.0.0.0", "--player-links") as server,
        ExitStack() as held,
    ):
        link = urlsplit(server.link("anna"))
        request = f"GET /api/live?{link.query} HTTP/1.1\r\nHost: {link.netloc}\r\n\r\n".encode()
        answer = b" 200 "
        while b" 200 " in answer:
            stream = held.enter_context(socket.create_connection((link.hostname, server.port), PATIENCE_S))
            stream.sendall(request)
            answer = stream.recv(100)
        assert b" 503 " in answer
        sight = look(link.geturl())
        sight.expect("503")
        sentence = "not live, trying again: too many live connections by this player's link (limit 100)"
        sight.until(lambda: sentence in sight.text("#notice"), "it says why")
        held.close()
        sight.until(lambda: sight.text("#notice") == "", "it is live")
        sight.leave()


# Whose page it is.


def test_a_players_link_shows_observable_values_only(tmp_path: Path, look: Look) -> None:
    with (
        relayed_game(tmp_path / "game.db", rounds=4) as play,
        serving(str(tmp_path / "game.db"), "--host", own_address(), "--player-links") as server,
    ):
        link = server.link("alice")
        everybody, alice = look(server.address), look(link)
        for sight in (everybody, alice):
            sight.expect(ENDED)
            sight.tells("alice is registered")
        play()
        rolled = re.compile("(alice|bob) has rolled")
        everybody.until(
            lambda: len(listed(everybody, rolled)) == 2 and everybody.count > 20, "the game is seen"
        )
        everybody.rest()
        alice.rest()
        assert listed(everybody, rolled) == {"alice", "bob"}
        assert listed(alice, rolled) == {"alice"}
        # No choice, address or request leads to another player's view.
        assert not alice.is_seen("#as-choice")
        assert "as alice" in alice.text("#viewer")
        for other in ("bob", ""):
            alice.be(as_=other, at=30)
            alice.until(lambda: alice.seq > 0, "it is at some event")
            alice.rest()
            assert listed(alice, rolled) == {"alice"}
        alice.expect("status of 403")
        asking = "async () => (await fetch('api/tables/1/events?as=bob&' + location.search.slice(1))).status"
        assert alice.tell(asking) == 403
        assert alice.context.request.get(link.split("?")[0], params={"key": "another"}).status == 403


def listed(sight: Sight, pattern: re.Pattern[str]) -> set[str]:
    return set(pattern.findall(sight.text("#pane-events")))
