from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from served_pages import Answer, Serving, serving, target
from session_factory import Conversation, record
from strength import times

MANY = times(600, 200)
LENGTH = 9_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("long") / "game.db"
    talk = Conversation().says(b"REGISTER;alice").hears(b"REGISTERED")
    for number in range(MANY):
        talk.says(b"REGISTER;" + b"a" * LENGTH + str(number).encode() + b"!")
    record(made, talk.items)
    return made


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Serving]:
    with serving(str(path)) as running:
        yield running


EACH_A_LITTLE = 'name matches "a*[bc]" || maexchen.name matches "a*[bc]"'
"""Takes some hundred milliseconds for each text: for none of them too long, for all of them hours."""


def timed(server: Serving, **query: str) -> tuple[Answer, float]:
    begin = time.monotonic()
    answer = server.get("api/messages", None, "GET", **query)
    return answer, time.monotonic() - begin


@pytest.mark.full
def test_a_slow_filter_is_given_up_and_delays_no_other_request(server: Serving) -> None:
    count = 2
    with ThreadPoolExecutor(count + 1) as pool:
        slow = [
            pool.submit(timed, server, filter=EACH_A_LITTLE, **({"as_": "alice"} if number % 2 else {}))
            for number in range(count)
        ]
        time.sleep(0.3)
        begin = time.monotonic()
        for _ in range(5):
            assert server.get("api/tables/1/picture").status == 200
            with server.live(after=0) as stream:
                assert stream.of_kind("status", 2)
        assert time.monotonic() < begin + 4
        for future in slow:
            answer, seconds = future.result(60)
            assert answer.status in (400, 503), answer
            assert "cancelled after 5 s" in answer.sentence or "took longer than" in answer.sentence
            # A text is looked through for a second at the most.
            assert seconds < 7


@pytest.mark.full
def test_a_text_that_takes_long_is_reported_with_its_place(server: Serving) -> None:
    written = 'maexchen.name matches "(a|aa)+$"'
    answer = server.get("api/messages", filter=written)
    assert answer.status == 400
    refusal = answer.json
    assert "took longer than" in refusal["error"]
    assert written[refusal["position"] :][: refusal["length"]] == '"(a|aa)+$"'


@pytest.mark.full
def test_too_many_slow_questions_are_refused_and_pictures_are_not(path: Path) -> None:
    with serving(str(path)) as server, ThreadPoolExecutor(130) as pool:
        slow = [pool.submit(_status, server) for _ in range(130)]
        time.sleep(1)
        for _ in range(5):
            assert server.get("api/tables/1/picture").status == 200
            with server.live() as stream:
                assert stream.of_kind("status", 5)
        assert [future.result() for future in slow if future.done()].count(503) >= 28
        # The others are not waited for.
        assert server.end() == 130


@pytest.mark.full
@pytest.mark.parametrize("player", ["alice", None])
def test_slow_questions_of_one_link_or_address_do_not_delay_another(player: str | None, path: Path) -> None:
    count = 20
    options = ("--host", "0.0.0.0", "--player-links") if player else ()
    with serving(str(path), *options) as server, ThreadPoolExecutor(count) as pool:
        if player:
            server.link(player)
        key, source = (server.links()[player], None) if player else (None, "127.0.0.2")
        slow = [pool.submit(_status, server, key, source) for _ in range(count)]
        time.sleep(0.5)
        assert server.get("api/messages", None, "GET", key=server.key, filter="maexchen").status == 200
        # In the order of arrival it would be the last.
        assert sum(future.done() for future in slow) < count / 2
        assert server.end() == 130


@pytest.mark.full
def test_it_ends_while_filters_are_looked_for(path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        server = Serving(str(path), "--port", "0").ready()
        try:
            # Two run, the others wait.
            slow = [pool.submit(_status, server) for _ in range(6)]
            time.sleep(0.5)
            begin = time.monotonic()
            assert server.end() == 130
            assert time.monotonic() < begin + 3
            assert [future.result() for future in slow] == [503] * 6
            assert "Traceback" not in server.err
        finally:
            server.kill()


def _status(server: Serving, key: str | None = None, source: str | None = None) -> int:
    """Ask a slow question, perhaps from another address of this machine."""
    address = None if source is None else (source, 0)
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60, source_address=address)
    try:
        connection.request("GET", target("api/messages", {"filter": EACH_A_LITTLE, "key": key}))
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()
