from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from command import TINY
from held_messages import Relay, held_message, holding
from processes_and_rows import until
from served_pages import JSON, QUICK_S, Serving, own_address, post, serving
from session_factory import Conversation
from strength import every

from kiebitz.storage.recording.recorder import Recorder


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = str(tmp_path_factory.mktemp("held") / "game.db")
    recorder = Recorder(path, "relay", "made up", started_ns=0)
    recorder.record(Conversation().says(b"REGISTER;alice").hears(b"REGISTERED").items)
    recorder.commit()
    yield path
    recorder.close()


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


@pytest.mark.parametrize(
    ("deed", "done"),
    [
        ({"do": "let-go", "number": 1}, ("let go", 1)),
        ({"do": "drop", "number": 1}, ("drop", 1)),
        ({"do": "change", "number": 1, "values": {"dice": "2,1"}}, ("change", 1, b"ANNOUNCE;2,1;token")),
        ({"do": "answer", "number": 1, "text": "REJECTED"}, ("answer", 1, b"REJECTED")),
        ({"do": "let-all-go"}, ("let all go", 1)),
        ({"do": "drop-all"}, ("drop all", 1)),
    ],
    ids=lambda row: row.get("do") if isinstance(row, dict) else "",
)
def test_possible_actions(deed: dict[str, Any], done: tuple[Any, ...], server: Serving, relay: Relay) -> None:
    relay.hold(held_message(1))
    shows(server, [1])
    answer = post(server, deed)
    assert (answer.status, answer.json) == (200, {"do": deed["do"], "number": deed.get("number")})
    assert relay.engine.done == [done]


REFUSED: list[tuple[Any, int, str]] = [
    ({"do": "let-go", "number": 9}, 409, "message 9 is no longer held"),
    ({"do": "let-go"}, 409, "let-go needs the number of a message"),
    ({"do": "change", "number": 9, "values": {}}, 409, "message 9 is no longer held"),
    ({"do": "change", "number": 1, "values": {"dice": "4,2"}}, 409, "no field was changed"),
    ({"do": "change", "number": 1, "values": {"dice": "9,9"}}, 409, "dice=9,9 does not fit"),
    ({"do": "answer", "number": 1, "text": "REJETED"}, 409, "did you mean REJECTED?"),
    ({"do": "answer", "number": 1, "text": ""}, 409, "has no message"),
    ({"do": "sudo"}, 400, "the body is not a valid action"),
    ({"do": "drop", "number": 1, "as": "root"}, 400, "the body is not a valid action"),
    ({"do": "change", "number": 1, "values": {"dice": 7}}, 400, "the body is not a valid action"),
    (b"", 400, "the body is not a valid action"),
    (b"\0\xff", 400, "the body is not a valid action"),
    (b"[" * 60_000, 400, "the body is not a valid action"),
    (b" " * 70_000, 413, "a request has at most 65536 bytes"),
]


@pytest.mark.parametrize(("body", "status", "words"), every(8, REFUSED, lambda row: str(row[0])[:60]))
def test_impossible_requests_raise_an_error(
    body: Any, status: int, words: str, server: Serving, relay: Relay
) -> None:
    relay.hold(held_message(1))
    shows(server, [1])
    answer = post(server, body)
    assert answer.status == status
    assert words in answer.sentence
    assert relay.engine.done == []


def test_mismatches_are_reported_by_field(server: Serving, relay: Relay) -> None:
    relay.hold(held_message(1))
    shows(server, [1])
    answer = post(server, {"do": "change", "number": 1, "values": {"dice": "9,9", "token": "a b"}})
    assert answer.json["slips"].keys() == {"dice", "token"}
    assert "a text with blanks must be quoted" in answer.json["slips"]["token"]


@pytest.mark.full
def test_the_second_of_two_decisions_is_refused(server: Serving, relay: Relay) -> None:
    relay.hold(held_message(1))
    shows(server, [1])
    assert post(server, {"do": "drop", "number": 1}).status == 200
    assert post(server, {"do": "let-go", "number": 1}).status == 409
    assert relay.engine.done == [("drop", 1)]


# Who may.

ANOTHER_SITE: list[dict[str, str]] = [
    # What a page of another site can have a browser send without asking.
    {"Content-Type": "text/plain"},
    {"Content-Type": "text/plain;application/json"},
    {"Content-Type": "application/x-www-form-urlencoded"},
    {"Content-Type": "multipart/form-data; boundary=x"},
    {},
    # Each half of what is needed.
    {"Content-Type": "application/json"},
    {"Kiebitz-Hands": "1"},
    {"Kiebitz-Hands": "1", "Content-Type": "text/plain"},
    # All of it, but from elsewhere.
    {**JSON, "Origin": "http://evil.example"},
    {**JSON, "Origin": "null"},
    {**JSON, "Origin": "http://localhost:1"},
    {**JSON, "Sec-Fetch-Site": "cross-site"},
    {**JSON, "Sec-Fetch-Site": "same-site"},
    {**JSON, "Host": "evil.example"},
    {**JSON, "Host": "evil.example", "Origin": "http://evil.example"},
]


@pytest.mark.parametrize("headers", every(9, ANOTHER_SITE), ids=str)
def test_no_other_site_acts(headers: dict[str, str], server: Serving, relay: Relay) -> None:
    relay.hold(held_message(1))
    shows(server, [1])
    answer = post(server, {"do": "let-go", "number": 1}, headers)
    assert answer.status == 403
    assert answer.sentence
    assert relay.engine.done == []


def test_no_other_site_is_allowed_to_ask(server: Serving) -> None:
    """A browser first asks whether it may send a custom header."""
    headers = {
        "Origin": "http://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,kiebitz-hands",
    }
    for given in (headers, {**headers, "Origin": f"http://127.0.0.1:{server.port}"}):
        answer = server.get("api/held", headers=given, method="OPTIONS")
        assert answer.status in (403, 405)
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_the_page_itself_acts(server: Serving, relay: Relay) -> None:
    relay.hold(held_message(1))
    shows(server, [1])
    own = {**JSON, "Origin": f"http://127.0.0.1:{server.port}", "Sec-Fetch-Site": "same-origin"}
    assert post(server, {"do": "let-go", "number": 1}, own).status == 200


def test_nothing_but_post_acts(server: Serving, relay: Relay) -> None:
    relay.hold(held_message(1))
    shows(server, [1])
    for method in ("PUT", "DELETE", "PATCH", "HEAD"):
        server.get("api/held", headers=JSON, method=method)
    server.get("api/held", headers=JSON, do="let-go", number=1)
    assert relay.engine.done == []


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
