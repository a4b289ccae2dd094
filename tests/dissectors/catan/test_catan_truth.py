"""Real games of Catan: what Kiebitz makes of the capture equals what the programs logged themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from inspected_captures import (
    CAPTURES,
    errors,
    from_then_on,
    inspected,
    items_of,
)
from strength import a_few, times

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Chunk, Findings
from kiebitz.dissectors.protocols.catan.board import at, spot
from kiebitz.dissectors.protocols.catan.grammar import OTHER_SPELLINGS
from kiebitz.dissectors.protocols.catan.words import FARBEN, GEBÄUDE, ROHSTOFFE

GAMES = [
    "catan-eisfrei-game2-3p",
    "catan-infrarot-game2-3p",
    "catan-lurche-py-3p",
    "catan-niedlichepixel-game2-3p",
    "catan-yaks-g1-3p",
]
QUICK = ["catan-lurche-py-3p", "catan-yaks-g1-3p"]
"""Captures of two servers, each with its own clients, that `make test` analyses."""
_SPELT = OTHER_SPELLINGS.of((*FARBEN, *GEBÄUDE))


class Log:
    def __init__(self, name: str) -> None:
        log = json.loads((CAPTURES / f"{name}.truth.json").read_text())
        self.at_the_end = "dice" in log
        if self.at_the_end:
            self.players = {player["id"]: (player["name"], player["color"]) for player in log["players"]}
            self.resources = {player["id"]: player["own_resources"] for player in log["players"]}
            self.dice = log["dice"]
            self.buildings = [
                (owner, _SPELT[typ], spot(tuple(place) for place in where))
                for owner, typ, where in log["buildings"]
            ]
            over = log["over"]
        else:
            self.players = {
                int(number): (player["Name"], _SPELT[player["Farbe"]])
                for number, player in log["players"].items()
            }
            self.resources = {
                int(number): player["own_resources_last_status"] for number, player in log["players"].items()
            }
            self.dice = log["dice_in_order"]
            self.buildings = [
                (owner, _SPELT[typ], spot(map(at, where))) for owner, typ, where in log["buildings_in_order"]
            ]
            over = log["game_over"]
        self.winner = over["Sieger"] if over is not None else None


class Seen:
    def __init__(self, found: Findings, log: Log | None = None) -> None:
        games = {game.id: game for game in found.games}
        assert len(games) == 1
        self.game = next(iter(games.values()))
        self.events = found.events
        self.part: dict[str, Any] = {}
        """The game as it was at its end."""
        self._resources: dict[int, dict[str, Any]] = {}
        # One log has the players' final cards, the others each player's last report.
        latest = {} if log is None or log.at_the_end else _latest_status(found)
        state: State = {}
        for event in found.events:
            for number in [number for number, ts_ns in latest.items() if ts_ns < event.ts_ns]:
                self._resources[number] = self._held(number)
                del latest[number]
            apply(state, event.changes)
            self.part = state.get("games", {}).get(str(self.game.id), self.part)
        for number in map(int, self.part["players"]):
            self._resources.setdefault(number, self._held(number))

    def data(self, kind: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if event.kind == kind]

    @property
    def players(self) -> dict[int, tuple[str, str]]:
        return {
            int(number): (player["name"], player["colour"]) for number, player in self.part["players"].items()
        }

    @property
    def dice(self) -> list[list[Any]]:
        return [[data["player"], data["dice"]] for data in self.data("rolled")]

    @property
    def buildings(self) -> list[tuple[int, str, Any]]:
        return [(data["player"], data["type"], spot(map(at, data["place"]))) for data in self.data("built")]

    def resources(self, number: int) -> dict[str, int]:
        held = self._resources[number]
        return {kind: count for kind, count in held.items() if isinstance(count, int) and count}

    def _held(self, number: int) -> dict[str, Any]:
        name = self.part["players"][str(number)]["name"]
        return dict(self.part.get("private", {}).get(name, {}).get("resources", {}))


def _latest_status(found: Findings) -> dict[int, int]:
    latest = {}
    own = {m.stream: m.fields["id"] for m in found.messages if m.name == "Willkommen"}
    for message in found.messages:
        if message.name == "Statusupdate":
            player = message.fields["Spieler"]
            if player["id"] == own.get(message.stream) and "Rohstoffe" in player:
                latest[player["id"]] = message.ts_ns
    return latest


def agrees(seen: Seen, log: Log) -> None:
    assert seen.players == log.players
    assert seen.dice == log.dice
    if log.at_the_end:
        assert {*log.buildings} <= {*seen.buildings}
    else:
        # One server logs a road twice that it reports twice.
        assert seen.buildings == [*dict.fromkeys(log.buildings)]
    if log.winner is not None:
        assert seen.game.result is not None
        assert seen.game.result["winner"] == log.winner


RULES_LEFT_OUT = {
    # Its players cheat by chat, and a trade is not carried out; a second village yields nothing, a robber
    # never leaves a field.
    GAMES[0]: ["missing-yield", "no-start-yield", "total-mismatch", "unexplained-gain"],
    # A knight frees no field, pieces and cards are not counted, roads go through others' villages.
    GAMES[1]: [
        *("below-zero", "card-not-allowed", "missing-yield", "road-through", "robber-stays"),
        *("too-many-pieces", "unexplained-gain"),
    ],
    # It sells an Erfindung, and shows a Monopol.
    GAMES[3]: ["cards-mismatch"],
}
"""The codes of the rules that a server leaves out, each of which is reported once."""


@pytest.mark.parametrize("name", a_few(GAMES, QUICK))
def test_the_game_is_as_the_programs_logged_it(name: str) -> None:
    found = inspected(items_of(f"{name}.pcap.gz"))
    log = Log(name)
    seen = Seen(found, log)
    agrees(seen, log)
    for number, resources in log.resources.items():
        assert seen.resources(number) == {kind: count for kind, count in resources.items() if count}
        if name != "catan-eisfrei-game2-3p":
            # Nothing is left open, whatever each single player was not shown.
            private = seen.part["private"][log.players[number][0]]["resources"]
            assert {*private} == {*ROHSTOFFE}
    assert errors(found) == []
    told = [one.code for one in found.diagnostics if (one.severity, one.blame) == ("warning", "server")]
    assert sorted(told) == RULES_LEFT_OUT.get(name, [])
    # A winner has ten points, or a note says how many are missing.
    results = [game.result for game in {game.id: game for game in found.games}.values()]
    won = [result for result in results if result is not None and "winner" in result]
    short = [result for result in won if result["points"][str(result["winner"])] < 10]
    assert len([one for one in found.diagnostics if one.code == "points-missing"]) == len(short)


@pytest.mark.full
@pytest.mark.parametrize("name", a_few(GAMES, QUICK))
def test_one_conversation_alone_has_all_public_events(name: str) -> None:
    items = items_of(f"{name}.pcap.gz")
    log = Log(name)
    whole = Seen(inspected(items)).part["private"]
    for number, alone in enumerate(dict.fromkeys(item.stream.client for item in items)):
        found = inspected(item for item in items if item.stream.client == alone)
        seen = Seen(found, log)
        agrees(seen, log)
        own = sorted(log.players)[number]
        assert seen.resources(own) == {kind: count for kind, count in log.resources[own].items() if count}
        assert errors(found) == []
        for who, private in seen.part["private"].items():
            for kind, count in private.get("resources", {}).items():
                # What is not known is a range around what is known from all.
                least, most = count if isinstance(count, list) else (count, count)
                assert least <= whole[who]["resources"][kind] <= most


@pytest.mark.full
@pytest.mark.parametrize("name", a_few(GAMES, QUICK[:1]))
def test_from_any_moment_on_no_violation_is_reported(name: str) -> None:
    items = items_of(f"{name}.pcap.gz")
    log = Log(name)
    for begin in range(1, len(items), max(1, len(items) // times(15, quick=3))):
        found = inspected(from_then_on(items, begin))
        assert errors(found) == [], begin
        if any(isinstance(item, Chunk) and b'rf":' in item.data for item in items[begin:]):
            seen = Seen(found)
            assert seen.dice == log.dice[-len(seen.dice) :]


@pytest.mark.full
def test_five_servers_at_once_are_recognised_without_options() -> None:
    found = inspected(items_of("catan-five-servers.pcapng.gz"))
    assert [table.protocol for table in found.tables] == ["catan"] * 5
    together = {
        table.id: [(event.kind, event.data) for event in found.events if event.table_id == table.id]
        for table in found.tables
    }
    alone = [
        [(event.kind, event.data) for event in inspected(items_of(f"{name}.pcap.gz")).events]
        for name in GAMES
    ]
    assert sorted(map(len, together.values())) == sorted(map(len, alone))
    assert all(events in alone for events in together.values())
    assert errors(found) == []


@pytest.mark.parametrize("name", ["catan-eisfrei-lobby", "catan-yaks-lobby"])
def test_before_a_game_all_names_and_colours_are_known(name: str) -> None:
    found = inspected(items_of(f"{name}.pcap.gz"))
    configured = [
        (event.data["player"], event.data["name"], event.data["colour"])
        for event in found.events
        if event.kind == "configured"
    ]
    if name == "catan-yaks-lobby":
        assert configured == [(1, "Juergen", "Rot"), (2, "Zoe Weiss", "Blau"), (2, "Zoe Weiss", "Rot")]
    else:
        assert configured == [(0, "Jürgen", "Rot"), (1, "Zoë Weiß", "Blau"), (1, "Zoë Weiß", "Rot")]
    assert found.games == []
    assert errors(found) == []


def test_the_longest_road_is_known_from_the_middle_of_a_game_on() -> None:
    items = items_of("catan-yaks-g1-3p.pcap.gz")
    seen = Seen(inspected(from_then_on(items, len(items) * 9 // 10)))
    assert seen.part["longest_road"] == 1
    assert seen.part["unknown"] == ["board", "buildings", "robber"]


@pytest.mark.full
def test_a_player_renamed_in_a_game_keeps_the_hand() -> None:
    items = items_of("catan-niedlichepixel-game2-3p.pcap.gz")
    renamed = [
        Chunk(item.stream, item.direction, item.ts_ns, item.offset, item.data.replace(b"BlueBro", b"GreyBro"))
        if isinstance(item, Chunk) and number > len(items) // 2
        else item
        for number, item in enumerate(items)
    ]
    before, after = Seen(inspected(items)).part["private"], Seen(inspected(renamed)).part["private"]
    assert {*after} == {"GreyBro", "RedBro", "OrangeBro"}
    assert after["GreyBro"] == before["BlueBro"]
