from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from command import TINY
from conversation_files import blocks
from held_messages import Relay, held_message, holding
from processes_and_rows import until
from request_files import compare
from served_pages import QUICK_S, Serving, own_address, post, serving
from session_factory import Conversation, recording
from snapshots import DATA
from walks import deeds_of

REQUESTS = blocks(DATA / "requests.txt")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("held") / "game.db"
    with recording(path, Conversation().says(b"REGISTER;alice").hears(b"REGISTERED")):
        yield str(path)


@pytest.fixture(scope="module")
def server(database: str) -> Iterator[Serving]:
    with serving(database, TINY) as made:
        yield made


@pytest.fixture
def relay(database: str) -> Iterator[Relay]:
    with holding(database) as made:
        yield made


def numbers(server: Serving, **query: Any) -> list[int] | None:
    found = server.well("api/held", **query)
    return [message["number"] for message in found["messages"]] if found["holds"] else None


def shows(server: Serving, expected: list[int] | None, **query: Any) -> None:
    until(lambda: numbers(server, **query) == expected, f"{expected} wait", QUICK_S)


@pytest.mark.full
def test_held_messages_are_reported(server: Serving, relay: Relay) -> None:
    shows(server, [])
    relay.hold(held_message(1, waited_s=3.0), held_message(2, b"YOUR TURN;t", "s2c"))
    shows(server, [1, 2])
    found = server.well("api/held")
    assert (found["holds"], found["may_act"], found["more"]) == (True, True, 0)
    first, second = found["messages"]
    assert 3.0 <= first.pop("waited") < 60
    assert "REJECTED" in first.pop("answers")
    assert first == {
        "number": 1,
        "stream": 1,
        "direction": "c2s",
        "sender": "alice",
        "receiver": "the server",
        "protocol": "maexchen",
        "name": "ANNOUNCE",
        "words": "dice=4,2 token=token",
        "values": [{"field": "dice", "value": "4,2"}, {"field": "token", "value": "token"}],
        "bears": 0.25,
        "patience": "the server waits 0.25 s",
        "rule": "--hold 'msg == \"ANNOUNCE\"'",
    }
    assert (second["sender"], second["receiver"]) == ("the server", "alice")


def test_news_of_it_are_pushed(server: Serving, relay: Relay) -> None:
    with server.live() as stream:
        # A relay before it may have ended just now.
        until(lambda: stream.of_kind("held") == {"count": 0}, "no held messages yet", QUICK_S)
        relay.hold(held_message(1))
        assert stream.of_kind("held") == {"count": 1}
        assert post(server, {"do": "let-go", "number": 1}).status == 200
        assert stream.of_kind("held") == {"count": 0}
        relay.end()
        assert stream.of_kind("held") == {"count": None}
    # A player's viewer does not see held messages.
    with server.live(as_="alice") as stream:
        while (told := stream.next(0.5)) is not None:
            assert told.kind != "held"


@pytest.mark.parametrize("title", [title for title in REQUESTS if title.startswith("held: ")])
def test_requests_and_their_answers(title: str, server: Serving, relay: Relay) -> None:
    deeds = {**deeds_of(relay), "listed": lambda *found: shows(server, [*map(int, found)])}
    compare(REQUESTS[title], server, deeds)


# Who may.


@pytest.mark.full
def test_a_player_s_link_neither_sees_nor_acts(database: str, relay: Relay) -> None:
    relay.hold(held_message(1))
    with serving(database, "--host", own_address(), "--player-links") as far:
        until(lambda: "alice" in far.links(), "there is a link", QUICK_S)
        shows(far, [1], key=far.key)
        alice = far.links()["alice"]
        assert numbers(far, key=alice) is None
        answer = post(far, {"do": "let-go", "number": 1}, key=alice)
        assert (answer.status, answer.sentence) == (403, "a player's link cannot act on held messages")
        assert post(far, {"do": "let-go", "number": 1}).status == 403
        with far.live(key=alice) as stream:
            while (told := stream.next(0.5)) is not None:
                assert told.kind != "held"
        assert relay.engine.done == []
        assert post(far, {"do": "let-go", "number": 1}, key=far.key).status == 200


@pytest.mark.full
def test_a_server_that_only_shows(database: str, relay: Relay) -> None:
    relay.hold(held_message(1))
    with serving(database, "--read-only") as server:
        shows(server, [1])
        assert server.well("api/held")["may_act"] is False
        answer = post(server, {"do": "let-go", "number": 1})
        assert answer.status == 403
        assert "--read-only" in answer.sentence
    assert relay.engine.done == []


@pytest.mark.full
def test_in_a_recorded_session_there_is_nothing_of_it(server: Serving, relay: Relay) -> None:
    relay.hold(held_message(1))
    shows(server, [1])
    assert numbers(server, session=2) is None
    answer = post(server, {"do": "let-go", "number": 1}, session=2)
    assert (answer.status, answer.sentence) == (409, "no messages are held: the relay has ended")


@pytest.mark.full
def test_with_the_relay_it_ends(server: Serving, database: str) -> None:
    with holding(database) as relay:
        relay.hold(held_message(1))
        shows(server, [1])
    shows(server, None)
