"""The Catan table in scripted conversations: its events, copies, players and games; and hostile servers.

Games made up at random are in `test_catan_games.py`, rules in `test_catan_rules.py`.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import pytest
from catan_island import spot
from catan_play import ANNA, ANNA_2, BERT, BERT_2, CLEO, CLEO_2, Dialect, Server, a_game
from catan_wire import Moment, Step, captured, found, game_part, items, state_of, told, wrong
from conversation import games_of
from inspected_captures import inspected

from kiebitz.dissectors.game.state import State, apply, seen_by
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Findings, Ids, Stream
from kiebitz.dissectors.protocols.catan.grammar import OTHER_SPELLINGS
from kiebitz.dissectors.registry import BUILT_IN

ALL = ("Anna", "Bert", "Cleo")

# Events and their data.

ROAD = spot((1, 0), (1, -1))


def eventful() -> Server:
    """Return a game in which everything happens once."""
    server = a_game("8 6", Dialect(costs="after"))
    server.say("Anna", "c2s", {"Chatnachricht senden": {"Nachricht": "Hallo"}})
    server.tell("Chatnachricht", {"Absender": 1, "Nachricht": "Hallo"})
    server.tell("Chatnachricht", {"Nachricht": "Willkommen"})
    server.rounds("8 8 8 7")
    server.robber(3, (1, 0), 1, "Lehm")
    server.rounds("9")
    server.build(1, "Straße", ROAD)
    server.offer(1, 7, {"Holz": 1}, {"Getreide": 1})
    server.accept(2, 7)
    server.cancel(2, 7, is_offer=False)
    server.accept(2, 7)
    server.conclude(1, 2, 7, {"Holz": 1}, {"Getreide": 1})
    server.rounds("4 5")
    server.give(3, 1, {"Holz": 2})
    server.rounds("10 9")
    server.give(2, 1, {"Erz": 2, "Wolle": 1, "Getreide": 2})
    server.rounds("3")
    server.offer(3, 8, {"Holz": 1}, {"Erz": 1})
    server.cancel(3, 8)
    server.rounds("3")
    server.overseas(1, {"Holz": 3}, {"Erz": 1})
    server.buy(1, "Ritter")
    server.refused(1, "Zug beenden", {}, "noch nicht")
    server.rounds("3 3 3")
    server.knight(1, (0, -1), 2, "Getreide")
    # The results are reported all the same, though these cards were never bought and no road is so long.
    server.truth.cards[1] |= {"Straßenbau": 1, "Monopol": 1, "Erfindung": 1}
    server.roads(1, spot((0, 1), (1, 1)), spot((0, 1), (1, 0)))
    server.monopoly(1, "Holz")
    server.invention(1, {"Holz": 1, "Erz": 1})
    server.longest(3)
    server.longest(None)
    server.army(1)
    server.finish(1)
    return server


ONE = {"player": 1, "name": "Anna"}
TWO = {"player": 2, "name": "Bert"}
THREE = {"player": 3, "name": "Cleo"}
STOLEN = {"known_to": ["Anna", "Cleo"], "others_see": {"resources": 1}}
EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("joined", {"player": 1, "name": "player 1"}),
    ("configured", {**ONE, "before": "player 1"}),
    ("configured", {**ONE, "colour": "Rot"}),
    ("ready", ONE),
    ("rolled", {**ONE, "dice": [5, 1]}),
    ("status", {**ONE, "status": "Dorf bauen", "points": 0}),
    ("built", {**TWO, "type": "Dorf", "place": [{"x": -1, "y": 0}, {"x": 0, "y": -1}, {"x": 0, "y": 0}]}),
    ("gained", {**TWO, "resources": {"Getreide": 1, "Erz": 1}, "why": "start"}),
    ("gained", {**ONE, "resources": {"Lehm": 1}, "why": "roll"}),
    ("chat", {"from": 1, "name": "Anna", "text": "Hallo"}),
    ("chat", {"name": "the server", "text": "Willkommen"}),
    ("robber", {**THREE, "to": {"x": 1, "y": 0}, "from_player": 1, "from_name": "Anna"}),
    ("paid", {**ONE, "resources": {"Lehm": 1}, "why": "robber", **STOLEN}),
    ("gained", {**THREE, "resources": {"Lehm": 1}, "why": "robber", **STOLEN}),
    ("paid", {**ONE, "resources": {"Holz": 1, "Lehm": 1}, "why": "road"}),
    ("built", {**ONE, "type": "Straße", "place": [{"x": 1, "y": -1}, {"x": 1, "y": 0}]}),
    ("trade_offered", {**ONE, "trade": 7, "offer": {"Holz": 1}, "demand": {"Getreide": 1}}),
    ("trade_accepted", {**TWO, "trade": 7}),
    ("trade_cancelled", {**TWO, "trade": 7}),
    ("trade_done", {**ONE, "partner": 2, "partner_name": "Bert", "trade": 7}),
    ("gained", {**ONE, "resources": {"Getreide": 1}, "why": "trade"}),
    ("trade_cancelled", {**THREE, "trade": 8}),
    ("sea_trade", {**ONE, "paid": {"Holz": 3}, "gained": {"Erz": 1}}),
    ("bought_card", {**ONE, "card": "Ritter", "known_to": ["Anna"], "others_see": {"card": None}}),
    ("paid", {**ONE, "resources": {"Wolle": 1, "Getreide": 1, "Erz": 1}, "why": "development card"}),
    ("refused", {**ONE, "what": "Zug beenden", "why": "noch nicht"}),
    ("played_card", {**ONE, "card": "Ritter", "to": {"x": 0, "y": -1}, "from_player": 2}),
    (
        "played_card",
        {
            **ONE,
            "card": "Straßenbau",
            "roads": [[{"x": 0, "y": 1}, {"x": 1, "y": 1}], [{"x": 0, "y": 1}, {"x": 1, "y": 0}]],
        },
    ),
    ("built", {**ONE, "type": "Straße", "place": [{"x": 0, "y": 1}, {"x": 1, "y": 1}]}),
    ("played_card", {**ONE, "card": "Monopol", "resource": "Holz"}),
    ("gained", {**ONE, "resources": {"Holz": 2}, "why": "monopoly"}),
    ("paid", {**TWO, "resources": {"Holz": 1}, "why": "monopoly"}),
    ("played_card", {**ONE, "card": "Erfindung", "resources": {"Holz": 1, "Erz": 1}}),
    ("gained", {**ONE, "resources": {"Holz": 1, "Erz": 1}, "why": "invention"}),
    ("longest_road", THREE),
    ("longest_road", {}),
    ("largest_army", ONE),
    ("ended", {"winner": 1, "player": 1, "name": "Anna", "points": {"1": 4, "2": 2, "3": 2}}),
    ("left", {**THREE, "reason": "closed"}),
]


@pytest.mark.full(but=19)
@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize(("kind", "data"), EVENTS)
def test_events(kind: str, data: dict[str, Any], ascii: bool) -> None:
    assert data in told(findings_of_the_eventful(ascii), kind)


@cache
def findings_of_the_eventful(ascii: bool) -> Findings:
    server = eventful()
    if ascii:
        server.steps = [
            step
            if isinstance(step, Moment)
            else step._replace(data=OTHER_SPELLINGS.plain(step.data.decode()).encode())
            for step in server.steps
        ]
    return found(server.steps)


@pytest.mark.parametrize("is_told", [True, False])
def test_discarding_because_of_the_robber_is_an_event_if_not_told(is_told: bool) -> None:
    server = a_game("6 6 6 6 7", Dialect(discards_told=is_told))
    server.discard(1, {"Holz": 4})
    server.robber(2, (1, 0))
    for heard in (None, ["Anna"], ["Bert"]):
        findings = found(server.steps, heard)
        (discarded,) = told(findings, "discarded")
        assert discarded["resources"] == ({"Holz": 4} if heard != ["Bert"] else 4)
        assert wrong(findings) == []
        notes = [violation.code for violation in findings.diagnostics]
        assert notes == ([] if is_told else ["untold-discard"])


# Copies.


def test_copies_are_one_event_that_all_of_them_tell() -> None:
    findings = a_game("6").found()
    (gained,) = (e for e in findings.events if e.kind == "gained" and e.data["why"] == "roll")
    telling = [message for message in findings.messages if message.event_id == gained.id]
    assert [message.name for message in telling] == ["Ertrag"] * 3
    assert len({message.stream for message in telling}) == 3
    assert {message.game_id for message in telling} == {gained.game_id}


ORDERS = [("Anna", "Bert", "Cleo"), ("Bert", "Anna", "Cleo"), ("Bert", "Cleo", "Anna")]


def bought(order: Sequence[str], after_ms: float = 1) -> Server:
    """Anna has bought a knight, and this order is that of the copies; all after the first come later."""
    server = a_game("9 5 6 10")
    server.steps += [
        Step(
            client,
            "s2c",
            b'{"Entwicklungskarte gekauft":{"Spieler":1,"Entwicklungskarte":%s}}\n'
            % (b'"Ritter"' if client == "Anna" else b"1"),
            after_ms if number else 1,
        )
        for number, client in enumerate(order)
    ]
    return server


@pytest.mark.parametrize("order", ORDERS)
def test_the_copy_that_hides_nothing_counts_whenever_it_comes(order: Sequence[str]) -> None:
    findings = bought(order, 300).found()
    (event,) = (event for event in findings.events if event.kind == "bought_card")
    assert event.data["card"] == "Ritter"
    assert len([message for message in findings.messages if message.event_id == event.id]) == 3


def test_a_missing_copy_is_waited_for_while_others_talk_for_two_seconds() -> None:
    server = bought(("Bert", "Cleo"))
    server.steps += [Step("Bert", "s2c", b'{"OK":{}}\n', after_ms) for after_ms in (1, 1900, 90, 20)]
    inspector = Inspector(BUILT_IN, Ids())
    is_taken = []
    for item in captured(server.steps):
        if isinstance(item, Chunk):
            inspector.feed(item)
            is_taken.append("bought_card" in [event.kind for event in inspector.drain().events])
    assert is_taken[-4:] == [False, False, False, True]


def test_a_copy_that_never_comes_is_not_waited_for_at_the_end() -> None:
    assert told(bought(("Bert", "Cleo")).found(), "bought_card") == [ONE]


def test_a_yield_may_overtake_its_roll_on_one_conversation() -> None:
    server = a_game("6 6 6")
    steps = [step for step in server.steps if isinstance(step, Step)]
    gain = max(place for place, step in enumerate(steps) if step.client == "Cleo" and b"Ertrag" in step.data)
    roll = max(place for place, step in enumerate(steps) if step.client == "Cleo" and b"wurf" in step.data)
    assert roll < gain
    steps[roll], steps[gain] = steps[gain], steps[roll]
    findings = found(steps)
    assert wrong(findings) == []
    assert told(findings, "rolled") == told(server.found(), "rolled")
    assert told(findings, "gained") == told(server.found(), "gained")


def test_a_lost_copy_does_no_harm() -> None:
    server = a_game("6 8 9")
    for place, step in enumerate(server.steps):
        if isinstance(step, Step) and step.client == "Bert" and place % 5 == 0:
            server.steps[place] = step._replace(lost=True)
    findings = server.found()
    assert wrong(findings) == []
    assert told(findings, "built") == told(a_game("6 8 9").found(), "built")
    assert told(findings, "gained") == told(a_game("6 8 9").found(), "gained")


def test_the_same_twice_in_a_row_happens_twice() -> None:
    server = a_game("6 6 6 6 6")
    for _ in range(2):
        server.tell("Chatnachricht", {"Absender": 1, "Nachricht": "Los!"})
    findings = server.found()
    assert len(told(findings, "chat")) == 2
    assert len([data for data in told(findings, "gained") if data["why"] == "roll"]) == 5


# Unreported events.


def test_a_theft_that_only_the_two_are_reported_is_seen_in_the_next_status() -> None:
    server = a_game("8 5 6 7", Dialect(thefts_told=False))
    server.robber(1, (-1, 0), 2, "Wolle")
    inspector, state = Inspector(BUILT_IN, Ids()), State()
    for item in items(server.steps, ["Cleo"]):
        if isinstance(item, Chunk):
            inspector.feed(item)
    for event in inspector.drain().events:
        apply(state, event.changes)
    resources = {number: player["resources"] for number, player in game_part(state)["players"].items()}
    assert resources == {"1": 5, "2": 2, "3": 1}


def test_a_trade_after_a_theft_that_only_the_two_are_reported_is_a_trade() -> None:
    server = a_game("4 8 4 4 8 7", Dialect(thefts_told=False, costs="after"))
    server.robber(3, (-1, 0), 2, "Erz")
    server.overseas(3, {"Holz": 2}, {"Wolle": 1})
    server.rounds("3")
    findings = found(server.steps, ["Anna"])
    assert told(findings, "sea_trade") == [{**THREE, "paid": {"Holz": 2}, "gained": {"Wolle": 1}}]
    assert wrong(findings) == []


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


# What a player can know.


def test_each_player_sees_his_own_cards_only() -> None:
    server = a_game("6 8 9")
    state = state_of(server.steps)
    assert {*game_part(state)["private"]} == {*ALL}
    for name in ALL:
        seen = game_part(seen_by(state, name))
        assert {*seen["private"]} == {name}
        assert {number: player["resources"] for number, player in seen["players"].items()} == {
            str(number): sum(hand.values()) for number, hand in server.truth.hands.items()
        }
        assert seen["private"][name]["resources"] == server.truth.hands[server.ids[name]]


# The lobby.


def players(server: Server) -> dict[str, Any]:
    shown = state_of(server.steps)["players"]
    assert isinstance(shown, dict)
    return shown


def ids(server: Server) -> dict[str, int]:
    return {name: player["id"] for name, player in players(server).items()}


def test_players_have_names_and_colours() -> None:
    server = Server("Anna", "Bert")
    server.ready(1)
    assert players(server) == {
        "Anna": {"id": 1, "colour": "Rot", "status": "Wartet auf Spielbeginn"},
        "Bert": {"id": 2, "status": "Spiel starten"},
    }


@pytest.mark.parametrize("name", [None, ""])
def test_an_unnamed_player_is_called_by_number(name: str | None) -> None:
    server = Server("Anna")
    server.tell(
        "Statusupdate", {"Spieler": {"id": 7, "Status": "Spiel starten", "Name": name, "Farbe": None}}
    )
    assert players(server)["player 7"] == {"id": 7, "status": "Spiel starten"}


def test_two_players_of_one_name_are_distinguished() -> None:
    server = Server("Anna")
    for number in (7, 8):
        server.tell("Statusupdate", {"Spieler": {"id": number, "Name": "Anna"}})
    assert ids(server) == {"Anna": 1, "Anna (7)": 7, "Anna (8)": 8}


def test_a_player_takes_another_name() -> None:
    server = Server("Anna")
    server.tell("Statusupdate", {"Spieler": {"id": 1, "Name": "Annika", "Farbe": "Blau"}})
    assert players(server) == {"Annika": {"id": 1, "colour": "Blau", "status": "Spiel starten"}}
    configured = told(server.found(), "configured")[-1]
    assert configured == {"player": 1, "name": "Annika", "colour": "Blau", "before": "Anna"}


def test_a_colour_that_is_taken_is_refused() -> None:
    server = Server("Anna", "Bert")
    server.ready(1)
    server.refused(2, "Spiel starten", {}, "Farbe bereits vergeben")
    findings = server.found()
    assert told(findings, "refused") == [
        {**TWO, "what": "Spiel starten", "why": "Farbe bereits vergeben"},
    ]
    assert told(findings, "ready") == [ONE]
    assert wrong(findings) == []


@pytest.mark.parametrize(
    "order", [("Bert", "Anna", "Cleo"), ("Bert", "Cleo", "Anna"), ("Anna", "Bert", "Cleo")]
)
def test_a_refusal_that_all_are_reported_is_one_event(order: Sequence[str]) -> None:
    server = a_game("6")
    server.ask(1, "Würfeln", {})
    server.steps += [Step(name, "s2c", b'{"Fehler":{"Meldung":"Nein"}}\n') for name in order]
    assert told(server.found(), "refused") == [{**ONE, "what": "Würfeln", "why": "Nein"}]


def test_a_player_leaving_before_a_game_is_removed() -> None:
    server = Server("Anna", "Bert")
    server.hang_up("Anna")
    assert told(server.found(), "left")[0] == {**ONE, "reason": "closed"}
    assert ids(server) == {"Bert": 2}


def test_a_returning_client_has_a_new_number() -> None:
    server = Server("Anna", "Bert", "Cleo")
    server.hang_up("Anna")
    server.join("Anna", number=9)
    assert ids(server) == {"Bert": 2, "Cleo": 3, "Anna": 9}
    server.start((2, *BERT), (3, *CLEO), (9, *ANNA), (9, *ANNA_2), (3, *CLEO_2), (2, *BERT_2))
    for player in (2, 3, 9, 2):
        server.roll(player, (3, 3))
    assert wrong(server.found()) == []
    assert {*game_part(state_of(server.steps))["players"]} == {"2", "3", "9"}


def test_a_client_that_is_late_watches() -> None:
    server = a_game("6")
    server.join("Dora", number=4)
    server.rounds("8 9")
    findings = server.found()
    assert wrong(findings) == []
    assert ids(server)["Dora"] == 4


def test_a_client_that_is_late_does_not_play() -> None:
    server = a_game("6")
    server.join("Dora", number=4)
    server.rounds("8 9")
    part = game_part(state_of(server.steps))
    assert {*part["players"]} == {"1", "2", "3"}
    assert part["bank"] == server.truth.bank


def test_a_rejected_client_is_no_player() -> None:
    server = a_game("6")
    text = "The game running on that server has already started."
    server.say("Dora", "s2c", {"Serverantwort": text})
    server.say("Dora", "c2s", b"")
    findings = server.found()
    assert wrong(findings) == []
    assert {*ids(server)} == {*ALL}


# Games.


def test_a_game_that_is_won() -> None:
    server = a_game("6 8")
    server.finish(2)
    findings = server.found()
    (game,) = games_of(findings)
    assert game.result == {"winner": 2, "points": {"1": 2, "2": 2, "3": 2}}
    assert game.ended_ns is not None
    assert wrong(findings) == []


def test_points_that_are_reported_after_the_end_are_the_results() -> None:
    server = a_game("6 8")
    server.tell("Spiel beendet", {"Sieger": 2})
    server.tell("Spiel beendet", {"Sieger": 2})
    server.truth.points[2] = 10
    server.update()
    findings = server.found()
    assert games_of(findings)[0].result == {"winner": 2, "points": {"1": 2, "2": 10, "3": 2}}
    assert len(told(findings, "ended")) == 1


def test_a_card_that_no_status_counts_is_among_the_points_of_the_winner() -> None:
    server = a_game("6 8")
    server.buy(2, "Siegpunkt", {})
    server.tell("Spiel beendet", {"Sieger": 2})
    findings = server.found()
    (game,) = games_of(findings)
    assert game.result == {"winner": 2, "points": {"1": 2, "2": 3, "3": 2}}
    part = game_part(state_of(server.steps))
    assert {number: player["points"] for number, player in part["players"].items()} == game.result["points"]


@pytest.mark.parametrize(("points", "notes"), [(8, 1), (10, 0), (11, 0)])
def test_a_winner_with_too_few_points_is_noted(points: int, notes: int) -> None:
    server = a_game("6 8")
    server.tell("Spiel beendet", {"Sieger": 2})
    server.truth.points[2] = points
    server.update()
    found = [one for one in server.found().diagnostics if one.code == "points-missing"]
    texts = [f"Bert wins with {points} points of 10: no message has shown the others"] * notes
    assert [(one.severity, one.blame, one.text) for one in found] == [
        ("note", "unknown", text) for text in texts
    ]


def test_some_servers_continue_after_the_end() -> None:
    server = a_game("6 8")
    server.finish(2)
    server.rounds("9 6")
    findings = server.found()
    assert [game.result for game in games_of(findings)] == [{"winner": 2, "points": {"1": 2, "2": 2, "3": 2}}]
    assert len(told(findings, "rolled")) == 7
    assert wrong(findings) == []


def test_game_after_game_on_one_server() -> None:
    server = a_game("6 8 9")
    server.finish(2)
    for _ in range(2):
        server.start((1, *ANNA), (2, *BERT), (3, *CLEO), (3, *CLEO_2), (2, *BERT_2), (1, *ANNA_2))
        server.rounds("6 5")
        server.finish(1)
    findings = server.found()
    assert [game.label for game in games_of(findings)] == ["game 1", "game 2", "game 3"]
    assert [game.result and game.result["winner"] for game in games_of(findings)] == [2, 1, 1]
    assert wrong(findings) == []
    assert [*state_of(server.steps)["games"]] == ["3"]
    of_game = {event.game_id for event in findings.events if event.kind == "rolled"}
    assert of_game == {1, 2, 3}


def test_a_game_that_another_one_follows_without_an_end_is_broken_off() -> None:
    server = a_game("6 8 9")
    server.start((1, *ANNA), (2, *BERT), (3, *CLEO))
    first, second = games_of(server.found())
    assert first.result == {"aborted": "another game began"}
    assert second.started_ns == first.ended_ns


def test_a_game_ends_when_a_player_is_lost() -> None:
    server = a_game("6 8")
    server.hang_up("Bert")
    findings = server.found()
    assert told(findings, "left")[0] == {**TWO, "reason": "closed"}
    assert games_of(findings)[0].result == {"aborted": "connection lost"}
    assert wrong(findings) == []


def test_a_game_without_a_winner_is_broken_off() -> None:
    server = a_game("6 8")
    server.tell("Spiel beendet", {"Nachricht": "Bert ist weg", "Sieger": -1})
    findings = server.found()
    assert told(findings, "ended") == [{}]
    assert games_of(findings)[0].result == {"aborted": "Bert ist weg"}
    assert wrong(findings) == []


def test_a_deserted_game_is_aborted() -> None:
    server = a_game("6 8")
    server.steps += [Step(name, "c2s", b"") for name in ALL]
    (game,) = games_of(server.found())
    assert game.result == {"aborted": "connection lost"}


def test_a_server_that_speaks_to_one_client_only_reports_a_game() -> None:
    server = Server("Anna")
    server.start((1, *ANNA), (1, *ANNA_2))
    server.rounds("6 8 6")
    findings = server.found()
    assert wrong(findings) == []
    assert game_part(state_of(server.steps))["private"]["Anna"]["resources"] == server.truth.hands[1]


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


@pytest.mark.full
def test_thousands_of_trades() -> None:
    offer = {"Spieler": 1, "Angebot": {"Holz": 1}, "Nachfrage": {"Erz": 1}}
    _, part = shouted({"Handelsangebot": {**offer, "Handel id": number}} for number in range(2000))
    assert [*part["trades"]] == [*map(str, range(1900, 2000))]


@pytest.mark.full
def test_thousands_accepting_a_trade() -> None:
    _, part = shouted(
        [
            {"Handelsangebot": {"Spieler": 1, "Handel id": 1, "Angebot": {"Holz": 1}, "Nachfrage": {}}},
            *({"Handelsangebot angenommen": {"Spieler": number, "Handel id": 1}} for number in range(2000)),
        ]
    )
    assert len(part["trades"]["1"]["accepted"]) == 100


@pytest.mark.full
def test_thousands_of_players() -> None:
    server, part = shouted(
        {"Ertrag": {"Spieler": number, "Rohstoffe": {"Holz": 1}}} for number in range(2000)
    )
    assert len(part["players"]) <= 100
    assert len(players(server)) <= 100


@pytest.mark.full
def test_thousands_of_buildings_wherever() -> None:
    _, part = shouted(
        {
            "Bauvorgang": {
                "Gebäude": {
                    "Eigentümer": 1,
                    "Typ": "Straße",
                    "Ort": [{"x": number % 1000, "y": -1000}, {"x": 1000, "y": number // 1000}],
                }
            }
        }
        for number in range(2000)
    )
    assert len(part["buildings"]) == 1000


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


@pytest.mark.full
def test_game_upon_game() -> None:
    started = {"Spiel gestartet": {"Karte": Server().karte()}}
    server, _ = shouted([started] * 300)
    games = games_of(server.found())
    assert len(games) == 301
    assert all(game.result == {"aborted": "another game began"} for game in games[:-1])


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
