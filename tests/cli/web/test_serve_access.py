"""Access control of `kiebitz serve`: keys, other sites, and players' links, for all addresses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, TINY
from conversation_files import blocks
from processes_and_rows import until
from request_files import assert_safe, compare
from served_pages import QUICK_S, Answer, Serving, own_address, serving
from session_factory import Conversation, record
from snapshots import DATA
from strength import every

from kiebitz.cli.web.openapi import openapi

PATHS = sorted(path[1:] for path, about in openapi()["paths"].items() if "get" in about)
STATIC = ["", "theme.css", "app.js", "index.html", "nothing"]


def takes(path: str, parameter: str) -> bool:
    given = openapi()["paths"][f"/{path}"]["get"]["parameters"]
    return any((part["in"], part["name"]) == ("query", parameter) for part in given)


def placed(path: str, table: int = 1, message: int = 1) -> str:
    """Return an address with its numbers."""
    return path.replace("{table}", str(table)).replace("{message}", str(message))


def begun(server: Serving, path: str, **query: Any) -> Answer:
    stem = path.partition("?")[0]
    if not stem.endswith("/live"):
        return server.get(path, None, "GET", **query)
    with server.live(None, path=stem, **query) as stream:
        if stream.status != 200:
            return Answer(stream.status, stream.headers, stream.body())
        told: list[Any] = []
        while (one := stream.next(QUICK_S if not told else 1.5 if "after" in query else 0.1)) is not None:
            told.append(one)
        return Answer(stream.status, stream.headers, json.dumps(told).encode())


# On loopback.


@pytest.fixture(scope="module")
def near() -> Iterator[Serving]:
    with serving(TINY) as server:
        yield server


def test_no_other_site_reads_along(near: Serving) -> None:
    compare(blocks(DATA / "requests.txt")["access: no other site reads along"], near)


def test_a_link_from_elsewhere_leads_to_the_page(near: Serving) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert near.get("", headers=headers).status != 403


@pytest.mark.full(but=6)
@pytest.mark.parametrize("path", [*map(placed, PATHS), *STATIC])
def test_every_answer_says_what_a_page_may_do(path: str, near: Serving) -> None:
    for query in ({}, {"nothing": "1"}):
        assert_safe(begun(near, path, **query))
    assert_safe(near.get(path, method="POST"))


# On another address.


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    other = str(CAPTURES / "okey-head-tiny.pcap.gz")
    with serving(TINY, other, "--host", own_address(), "--player-links") as server:
        until(lambda: {"alice", "bob", "Istref"} <= server.links().keys(), "there are links", QUICK_S)
        yield server


@pytest.mark.parametrize("path", every(2, [*map(placed, PATHS), *STATIC]))
def test_without_a_key_nothing_is_answered(path: str, far: Serving) -> None:
    assert far.key
    good, alice = far.key, far.links()["alice"]
    signature, _, name = alice.partition(".")
    bob = far.links()["bob"].partition(".")[2]
    wrong = [
        *(None, "", "x", good[:-1], good + "x", good.swapcase(), f"{good}.", f"{good}.{name}", f".{name}"),
        *(signature, f"{signature}.", f"{signature}.{bob}", f"{signature}.{name}=", f"{alice}.", f" {good}"),
        *("é" * 30, f"{signature}.é", f"{signature}.{name}\r\n", f"{signature}.{name};", "a" * 9_000),
    ]
    for key in wrong if path in ("api/sessions", "theme.css") else wrong[:3]:
        answer = begun(far, path, key=key)
        assert answer.status == 403, key
        assert b"a key is required" in answer.body
        assert "set-cookie" not in answer.headers
        assert_safe(answer, is_near=False)
    assert far.get(path, headers={"Cookie": "kiebitz-key=x"}, method="HEAD").status == 403


def test_the_key_goes_into_a_cookie_that_no_script_and_no_other_site_gets(far: Serving) -> None:
    answer = far.get("", key=far.key)
    cookie = answer.headers["set-cookie"]
    assert cookie == f"kiebitz-key={far.key}; HttpOnly; SameSite=Strict; Path=/"
    assert far.get("theme.css", headers={"Cookie": cookie.partition(";")[0]}).status == 200
    assert far.get("theme.css", headers={"Cookie": 'a="; kiebitz-key'}).status == 403
    assert "set-cookie" not in far.get("api/sessions", key=far.key).headers
    # Which a page on another port of this machine could send, too.
    headers = {"Cookie": cookie.partition(";")[0], "Sec-Fetch-Site": "same-site"}
    assert far.get("api/sessions", headers=headers).status == 403


def test_a_key_does_not_open_it_for_other_sites(far: Serving) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert far.get("api/sessions", headers=headers, key=far.key).status == 403
    # By whatever address it is reached.
    for host in ("10.0.0.1:8765", "[fe80::1]:8765", "localhost"):
        assert far.get("api/sessions", headers={"Host": host}, key=far.key).status == 200


def test_it_prints_its_address_and_each_player_s_link(far: Serving) -> None:
    assert re.fullmatch(rf"http://{re.escape(far.host)}:{far.port}/\?key=[\w-]+", far.address)
    assert far.links().keys() == {"alice", "bob", "carl", "dora", "zuschauer", "Istref"}
    assert len({far.key, *far.links().values()}) == 7
    for name, key in far.links().items():
        found = far.well("api/sessions", key=key)
        number = 2 if name == "Istref" else 1
        assert (found["player"], [session["number"] for session in found["sessions"]]) == (name, [number])
        assert far.well("api/tables", key=key, session=number)["players"] == [name]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("path", every(3, PATHS))
def test_a_player_s_link_shows_no_other_view(path: str, far: Serving) -> None:
    alice = far.links()["alice"]
    asked = {"text": "x"} if path == "api/complete" else {}
    for other in ("bob", "carl", "ALICE", "alice ", "nobody", "alice\0"):
        answer = begun(far, placed(path), key=alice, as_=other, **asked)
        if path.startswith("api/home"):
            assert answer.status == 403
        elif takes(path, "as"):
            assert (answer.status, answer.sentence) == (403, "this link shows only the view of alice")
        elif path != "api/openapi.json":
            assert answer.status == 400
    own = begun(far, placed(path), key=alice, **asked)
    # The home page is about all tables.
    assert own.status == (403 if path.startswith("api/home") else 200)
    if takes(path, "as"):
        for same in ("alice", ""):
            assert begun(far, placed(path), key=alice, as_=same, **asked).body == own.body
        # What is asked for twice is no way round it.
        query = f"{placed(path)}?as=bob&as=alice&key={alice}"
        assert begun(far, query, **asked).body == own.body or path.endswith("live")


@pytest.mark.parametrize("path", every(12, PATHS))
def test_a_player_s_link_shows_nothing_of_a_session_without_them(path: str, far: Serving) -> None:
    """Otherwise they would count as a player without observed connections, to whom most is shown."""
    # The home page is about all sessions, and no player's link opens it.
    if not takes(path, "as") or path.startswith("api/home"):
        return
    answer = begun(far, placed(path), key=far.links()["alice"], session=2)
    assert answer.status == 404
    assert "there is no player alice in this session" in answer.sentence


@pytest.mark.full
def test_players_with_strange_names_have_links_that_open(tmp_path: Path) -> None:
    names = ["ä" * 60, "a b&key=x#?/%", "<b>", "Größe\u202e", "'\"", "."]
    talk = [
        item
        for number, name in enumerate(names, 1)
        for item in Conversation(f"127.0.0.1:{40_000 + number}", number=number)
        .says(f"REGISTER;{name}".encode())
        .hears(b"REGISTERED")
        .items
    ]
    with serving(record(tmp_path / "game.db", talk), "--player-links") as server:
        known = server.well("api/tables")["players"]
        until(lambda: len(server.links()) == len(known), "there are links", QUICK_S)
        shown = {server.well("api/sessions", key=key)["player"] for key in server.links().values()}
        assert shown == set(known)
        assert len(shown) == len(names)
        for key in server.links().values():
            assert server.well("api/tables/1/events", key=key)["events"]
