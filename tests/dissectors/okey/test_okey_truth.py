"""Recorded Okey games against what the programs that played them wrote down themselves.

From all conversations together and from each alone, in whatever pieces the bytes come.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from inspected_captures import CAPTURES, bytewise, errors, from_then_on, inspected, items_of, joined
from strength import a_few

from kiebitz.dissectors.model import Chunk, Direction, Event, Findings, Item

PLAYED = ("okey-seed-game-win", "okey-head-game-win")
HARMLESS = (*PLAYED, "okey-seed-tiny", "okey-head-tiny", "okey-seed-lobby", "okey-head-chat")
MALFORMED = ("okey-seed-malformed", "okey-head-malformed")


def truth(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    return found


def of_kind(found: Findings, *kinds: str) -> list[Event]:
    return [event for event in found.events if event.kind in kinds]


def tiles(deck: Iterable[str | None] | None) -> list[str]:
    """Return a deck without its order: the truth's decks are those of the end of the game in places."""
    return sorted(tile for tile in deck or () if tile)


def moves(found: Findings) -> list[tuple[Any, ...]]:
    return [
        (event.data["seat"], event.kind, event.data.get("stack"), event.data["tile"])
        for event in of_kind(found, "drew", "put")
    ]


def true_moves(game: dict[str, Any]) -> list[tuple[Any, ...]]:
    made: list[tuple[Any, ...]] = []
    for move in game["moves"]:
        if "draw" in move:
            made.append((move["player"], "drew", move["draw"]["stack"], move["draw"]["tile"]))
        if "put" in move:
            made.append((move["player"], "put", None, move["put"]["tile"]))
    return made


@pytest.mark.parametrize("pieces", [list, bytewise, joined], ids=["as recorded", "byte by byte", "joined"])
@pytest.mark.parametrize("name", PLAYED)
def test_a_game_is_as_its_programs_wrote_it_down(
    name: str, pieces: Callable[[Iterable[Item]], Iterable[Item]]
) -> None:
    found = inspected(pieces(items_of(f"{name}.pcap.gz")))
    [game] = truth(name)["games"]
    after = 1 if name == "okey-seed-game-win" else 0
    # There a player draws once more after the win.
    assert moves(found)[: -after or None] == true_moves(game)
    dealt = sorted(of_kind(found, "dealt"), key=lambda event: event.data["seat"])
    assert [event.actor for event in dealt] == game["players"]
    assert [tiles(event.data["deck"]) for event in dealt] == [tiles(deck) for deck in game["decks"]]
    assert [event.data["name"] for event in of_kind(found, "won")] == [game["outcome"]["winner"]]
    [known] = {info.id: info for info in found.games}.values()
    assert known.result == {"winner": game["outcome"]["winner"]}
    assert known.label == f"lobby {game['lobby']}"
    assert errors(found) == []


@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("seat", range(4))
def test_a_game_is_known_from_one_conversation_as_far_as_it_shows_it(name: str, seat: int) -> None:
    [game] = truth(name)["games"]
    port = truth(name)["connections"][game["conns"][seat]]["local_port"]
    found = inspected(
        item for item in items_of(f"{name}.pcap.gz") if item.stream.client == f"127.0.0.1:{port}"
    )
    expected = [
        # Other players' tiles from the main stack are hidden.
        (who, kind, stack, None if stack == "m" and who != seat else tile)
        for who, kind, stack, tile in true_moves(game)
    ]
    # Not every server sends the winner's last tiles to the others.
    assert moves(found)[: len(expected) - 1] == expected[:-1]
    [dealt] = of_kind(found, "dealt")
    assert (dealt.data["seat"], tiles(dealt.data["deck"])) == (seat, tiles(game["decks"][seat]))
    assert [event.data["name"] for event in of_kind(found, "won")] == [game["outcome"]["winner"]]
    assert errors(found) == []


@pytest.mark.full(but=4)
@pytest.mark.parametrize("name", [*HARMLESS, *MALFORMED])
def test_players_lobbies_and_chats_are_as_the_programs_wrote_them_down(name: str) -> None:
    found = inspected(items_of(f"{name}.pcap.gz"))
    events = truth(name)["events"]
    names = [event.data["name"] for event in of_kind(found, "logged_in")]
    assert names == [event["actual"] for event in events if event["ev"] == "login"]
    renamed = [event.data["name"] for event in of_kind(found, "renamed")]
    assert renamed == [event["actual"] for event in events if event["ev"] == "rename"]
    joined_lobby = [(event.data["name"], event.data["lobby"]) for event in of_kind(found, "joined_lobby")]
    assert joined_lobby == [
        (event["name"], event["lobby"]) for event in events if event["ev"] == "join" and event["ok"]
    ]
    if name in HARMLESS:
        # All copies of a broadcast are one event.
        chats = [
            tuple(event.data[key] for key in ("scope", "from", "to", "text"))
            for event in of_kind(found, "chat")
        ]
        expected = [
            (chat["type"], chat["from"], chat["to"], chat["msg"])
            for chat in truth(name)["chats"]
            if chat["response"] is not None and chat["response"][-1] != "f"
        ]
        assert sorted(chats, key=repr) == sorted(expected, key=repr)
        assert errors(found) == []


@pytest.mark.full
@pytest.mark.parametrize("name", a_few(MALFORMED, MALFORMED[:1]))
def test_an_out_of_turn_refusal_causes_no_other_report(name: str) -> None:
    items = items_of(f"{name}.pcap.gz")
    refused = 0
    # From any position on: the deal is captured if at most these messages are missing.
    for begin in range(0, 531, 30):
        found = inspected(from_then_on(items, begin))
        codes = {violation.message_id: violation.code for violation in found.diagnostics}
        asked: dict[tuple[int, str], int] = {}
        for message in found.messages:
            if message.direction == "c2s":
                asked[message.stream.id, f"+{message.name}"] = message.id
            elif "not your turn" in (message.fields.get("debugmessage") or ""):
                refused += 1
                assert codes[asked[message.stream.id, message.name]] == "not-your-turn"
    assert refused >= 18


@pytest.mark.parametrize("name", MALFORMED)
def test_real_clients_that_send_rubbish(name: str) -> None:
    """Each line that was malformed on purpose is reported at its bytes; nothing else is an error."""
    items = items_of(f"{name}.pcap.gz")
    found = inspected(items)
    sent: dict[tuple[int, Direction], bytearray] = {}
    for item in items:
        if isinstance(item, Chunk):
            sent.setdefault((item.stream.id, item.direction), bytearray()).extend(item.data)
    logged = truth(name)
    ports = {connection["conn"]: connection["local_port"] for connection in logged["connections"]}
    wrong = Counter(
        (f"127.0.0.1:{ports[event['conn']]}", bytes.fromhex(event["hex"]))
        for event in logged["events"]
        if event["ev"] == "malformed"
    )
    violations = Counter(
        violation.message_id for violation in found.diagnostics if violation.code != "dialect"
    )
    for message in found.messages:
        data = bytes(
            sent[message.stream.id, message.direction][message.offset : message.offset + message.length]
        )
        key = (message.stream.client, data.rstrip(b"\r\n"))
        if message.direction == "c2s" and wrong[key]:
            # A line that is sent twice was right the first time.
            accepted = data.startswith((b"CATC b ", b"DRAW m", b"LLOB", b"PUTT 0:YELLOW"))
            assert violations[message.id] or accepted, data
    errors = [violation for violation in found.diagnostics if violation.severity == "error"]
    for violation in errors:
        [message] = [message for message in found.messages if message.id == violation.message_id]
        data = bytes(
            sent[message.stream.id, message.direction][message.offset : message.offset + message.length]
        )
        assert wrong[message.stream.client, data.rstrip(b"\r\n")]
        assert violation.blame == "client"
    assert len(errors) > 40
