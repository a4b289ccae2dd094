"""The Catan table with lost messages, as a player, with two servers, and with hostile servers.

Scripted games are in `tests/data/catan_games.txt`, games made up at random in `test_catan_games.py`.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest
from catan_play import Server, a_game
from catan_wire import Step, captured, game_part, state_of, told, wrong
from conversation import games_of
from inspected_captures import inspected

from kiebitz.dissectors.game.state import seen_by
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Ids, Message, Stream
from kiebitz.dissectors.protocols.catan.table import PartialViews
from kiebitz.dissectors.registry import BUILT_IN


def test_a_lost_copy_does_no_harm() -> None:
    server = a_game("6 8 9")
    for place, step in enumerate(server.steps):
        if isinstance(step, Step) and step.client == "Bert" and place % 5 == 0:
            server.steps[place] = step._replace(lost=True)
    findings, whole = server.found(), a_game("6 8 9").found()
    assert wrong(findings) == []
    for kind in ("built", "gained"):
        assert told(findings, kind) == told(whole, kind)


def test_after_each_hole_counts_are_unknown_until_they_are_reported() -> None:
    server = a_game("6")
    first = len(server.steps)
    server.rounds("8 9")
    again = len(server.steps)
    server.rounds("6")
    for start in (first, again):
        # What is lost are the dice and what they yield, but not what the players have then.
        is_lost = False
        for place in range(start, len(server.steps)):
            step = server.steps[place]
            if not isinstance(step, Step) or (step.client, step.direction) != ("Bert", "s2c"):
                continue
            if is_lost and b"Status" in step.data:
                break
            is_lost = is_lost or "Würfelwurf".encode() in step.data
            if is_lost:
                server.steps[place] = step._replace(lost=True)
    part = game_part(state_of(server.steps, ["Bert"]))
    for number, hand in server.truth.hands.items():
        private = part["private"].get(server.names[number], {}).get("resources", {})
        for kind, count in private.items():
            least, most = count if isinstance(count, list) else (count, count)
            assert least <= hand[kind] <= most, (number, kind)


def test_each_player_sees_their_own_cards_only() -> None:
    server = a_game("6 8 9")
    state = state_of(server.steps)
    for name, player in server.ids.items():
        seen = game_part(seen_by(state, name))
        assert {who: part["resources"] for who, part in seen["private"].items()} == {
            name: server.truth.hands[player]
        }
        assert {number: each["resources"] for number, each in seen["players"].items()} == {
            str(number): sum(hand.values()) for number, hand in server.truth.hands.items()
        }


def test_two_servers_are_two_tables() -> None:
    items_of = [captured(a_game("6 8").steps), captured(a_game("9").steps)]
    for item in items_of[1]:
        item.stream.server = "127.0.0.1:7001"
        item.stream.id += 100 * (item.stream.id < 100)
    findings = inspected([*items_of[0], *items_of[1]])
    assert [table.server for table in findings.tables] == ["127.0.0.1:7000", "127.0.0.1:7001"]
    assert [game.table_id for game in games_of(findings)] == [1, 2]
    assert wrong(findings) == []


# Hostile servers: everything is bounded, and nothing is ever raised.


def shouted(messages: Iterable[dict[str, Any]]) -> tuple[Server, dict[str, Any]]:
    server = a_game("6")
    for message in messages:
        server.say("Anna", "s2c", message)
    return server, game_part(state_of(server.steps))


OFFER = {"Spieler": 1, "Angebot": {"Holz": 1}, "Nachfrage": {"Erz": 1}}


@pytest.mark.full
def test_thousands_of_whatever() -> None:
    _, part = shouted({"Handelsangebot": {**OFFER, "Handel id": number}} for number in range(2000))
    assert [*part["trades"]] == [*map(str, range(1900, 2000))]
    accepted = ({"Handelsangebot angenommen": {"Spieler": number, "Handel id": 1}} for number in range(2000))
    _, part = shouted([{"Handelsangebot": {**OFFER, "Handel id": 1}}, *accepted])
    assert len(part["trades"]["1"]["accepted"]) == 100
    gain = {"Rohstoffe": {"Holz": 1}}
    server, part = shouted({"Ertrag": {"Spieler": number, **gain}} for number in range(2000))
    assert len(part["players"]) <= 100
    assert len(state_of(server.steps)["players"]) <= 100
    ways = ([{"x": n % 1000, "y": -1000}, {"x": 1000, "y": n // 1000}] for n in range(2000))
    _, part = shouted(
        {"Bauvorgang": {"Gebäude": {"Eigentümer": 1, "Typ": "Straße", "Ort": way}}} for way in ways
    )
    assert len(part["buildings"]) == 1000
    started = {"Spiel gestartet": {"Karte": Server().karte()}}
    games = games_of(shouted([started] * 300)[0].found())
    assert len(games) == 301
    assert all(game.result == {"aborted": "another game began"} for game in games[:-1])


def test_the_oldest_purchases_and_payments_are_forgotten() -> None:
    bought = [{"Entwicklungskarte gekauft": {"Spieler": 1, "Entwicklungskarte": "Ritter"}}] * 102
    costs = [{"Kosten": {"Spieler": 1, "Rohstoffe": 3}}] * 102
    paid = told(shouted([*bought, *costs])[0].found(), "paid")
    assert sum(cost.get("why") == "development card" for cost in paid) == 100
    server, _ = shouted([*costs, *bought])
    server.rounds("3")
    assert sum(one.code == "missing-cost" for one in wrong(server.found())) == 2


@pytest.mark.full
def test_roads_everywhere_are_not_measured() -> None:
    fields = [{"Ort": {"x": x, "y": y}, "Typ": "Wald", "Zahl": 6} for x in range(20) for y in range(20)]
    roads = [
        {"Eigentümer": 1, "Typ": "Straße", "Ort": [{"x": x, "y": y}, {"x": x + right, "y": y + up}]}
        for x in range(18)
        for y in range(18)
        for right, up in ((1, 0), (0, 1), (1, -1))
    ]
    server, part = shouted(
        [
            {"Spiel gestartet": {"Karte": {"Felder": fields, "Gebäude": roads, "Häfen": []}}},
            {"Würfelwurf": {"Spieler": 1, "Wurf": [1, 2]}},
            {"Längste Handelsstraße": {"Spieler": 2}},
            {"Würfelwurf": {"Spieler": 2, "Wurf": [1, 2]}},
        ]
    )
    assert part["longest_road"] == 2
    assert wrong(server.found()) == []


@pytest.mark.parametrize("count", [2**31 - 1, -(2**31) + 1])
def test_counts_beyond_all_measure(count: int) -> None:
    own = {"id": 1, "Rohstoffe": {"Holz": count}, "Entwicklungskarten": 2**31 - 1}
    server, part = shouted(
        [
            {"Ertrag": {"Spieler": 1, "Rohstoffe": {"Holz": count}}},
            {"Kosten": {"Spieler": 1, "Rohstoffe": count}},
            {"Ertrag": {"Spieler": 2, "Rohstoffe": count}},
            {"Statusupdate": {"Spieler": own}},
            {"Würfelwurf": {"Spieler": 2, "Wurf": [3, 4]}},
            {"Monopol": {"Spieler": 2, "Rohstoff": "Holz"}},
            {"Kosten": {"Spieler": 1, "Rohstoffe": {"Holz": count}}},
            {"Würfelwurf": {"Spieler": 3, "Wurf": [3, 3]}},
        ]
        * 3
    )
    assert {*part["players"]} == {"1", "2", "3"}
    assert len(told(server.found(), "rolled")) == 10


@pytest.mark.full
def test_long_messages_are_not_kept() -> None:
    stream = Stream(1, "tcp", "127.0.0.1:40000", "127.0.0.1:7000", 0)
    begin = b'{"Hallo":{"Version":"x","Protokoll":"1.0"}}\n{"Willkommen":{"id":1}}\n'
    inspector = Inspector(BUILT_IN, Ids())
    inspector.feed(Chunk(stream, "s2c", 0, 0, begin))
    offset = len(begin)
    tracemalloc.start()
    for number in range(60):
        said = f'{{"Chatnachricht":{{"Nachricht":"{number}{"x" * 900_000}"}}}}\n'.encode()
        inspector.feed(Chunk(stream, "s2c", number, offset, said))
        offset += len(said)
        assert len(inspector.drain().messages) == 1 + 2 * (number == 0)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 4_000_000


def test_the_latest_messages_are_remembered_but_long_ones() -> None:
    stream, versions = Stream(1, "tcp", "10.0.0.1:1", "10.0.0.2:3000", 0), PartialViews()

    def version(name: str, **fields: Any) -> object:
        return versions.of(Message(1, stream, "s2c", 0, name, fields, to_json(fields), 0, 0))

    gain = version("Ertrag", Spieler=1, Rohstoffe={"Holz": 1})
    assert version("Kosten", Spieler=1, Rohstoffe={"Holz": 1}) != gain
    assert version("Ertrag", Spieler=1, Rohstoffe={"Holz": 1}) is gain
    for number in range(1000):
        version("Ertrag", Spieler=number, Rohstoffe={"Erz": 1})
    assert version("Ertrag", Spieler=1, Rohstoffe={"Holz": 1}) is not gain
    chat = {"Absender": 1, "Nachricht": "x" * 600}
    assert version("Chatnachricht", **chat) is not version("Chatnachricht", **chat)
