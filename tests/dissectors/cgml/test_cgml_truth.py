"""Simulated games of CGML: what Kiebitz makes of the captures equals what the simulator did.

The simulator was written from the specification alone, and wrote down what it did.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from cgml_play import without_names
from inspected_captures import CAPTURES, from_then_on, inspected, items_of
from strength import a_few

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Diagnostic, Event, Findings, Game, Item

NAMES = ["cgml-tiny", "cgml-hands", "cgml-styles", "cgml-wrapped"]
HIDDEN = [None] * 10


def truth_of(name: str) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    return truth


class Seen:
    def __init__(self, game: Game, events: list[Event], part: dict[str, Any]) -> None:
        self.game = game
        self._events = events
        self.part = part
        """Its part of the state at its end."""

    def data(self, kind: str) -> list[dict[str, Any]]:
        return [without_names(event) for event in self._events if event.kind == kind]

    def pairs(self, kind: str, *keys: str) -> list[tuple[Any, ...]]:
        return [tuple(data[key] for key in keys) for data in self.data(kind)]


def hands_of(found: Findings) -> dict[str, Seen]:
    parts: dict[int, dict[str, Any]] = {}
    states: dict[int, State] = {}
    for event in found.events:
        state = states.setdefault(event.table_id, {})
        apply(state, event.changes)
        for number, part in state.get("games", {}).items():
            parts[int(number)] = json.loads(json.dumps(part))
    games = {game.id: game for game in found.games}
    return {
        game.label: Seen(game, [event for event in found.events if event.game_id == number], parts[number])
        for number, game in games.items()
    }


def expected_hands(truth: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    for group in truth["groups"]:
        for hand in group.get("hands", ()):
            yield f"group {group['id']}, hand {hand['no']}", hand


def call_of(bid: dict[str, Any]) -> str:
    return str({"YES": bid["ask"], "NO": "PASS"}.get(bid["answer"], bid["answer"]))


def agrees(seen: Seen, hand: dict[str, Any], own: int | None = None) -> None:
    """Compare a hand with the truth, seen from all conversations or from a player's `own`."""
    assert seen.part["seats"] == hand["order"]
    for data in seen.data("dealt"):
        dealt = hand["dealt"][str(data["player"])]
        assert data["cards"] == (dealt if own in (None, data["player"]) else HIDDEN)
    assert {data["player"] for data in seen.data("dealt")} == {*hand["order"]}
    assert seen.pairs("bid", "player", "call") == [(bid["player"], call_of(bid)) for bid in hand["bids"]]
    won = hand["bid_result"]
    assert seen.pairs("contract", "player", "game") == [(won["player"], won["game"])]
    if hand["contract"] != "PASS":
        declarer = hand["declarer"]
        known = own in (None, declarer)
        assert seen.pairs("talon_taken", "player", "cards") == [
            (declarer, hand["talon_dealt"] if known else [None, None])
        ]
        assert seen.pairs("discarded", "player", "cards") == [
            (declarer, hand["talon_discard"] if known else [None, None])
        ]
        trump = (declarer, hand["contract"], hand["trump"], hand["push"])
        assert seen.pairs("trump", "player", "game", "trump", "second") == [trump]
        assert seen.pairs("flek", "player", "level") == [
            (flek["player"], flek["answer"]) for flek in hand["fleks"]
        ]
    tricks = [trick for trick in hand["tricks"] if trick["complete"]][: hand.get("rounds_in_result")]
    assert seen.pairs("trick", "number", "cards", "winner") == [
        (trick["no"], [card for _, card in trick["cards"]], trick["winner"]) for trick in tricks
    ]
    assert [
        [[played["player"], played["card"]] for played in trick["cards"]]
        for trick in seen.part.get("tricks", ())
    ] == [trick["cards"] for trick in tricks]
    ends(seen, hand, own)


def ends(seen: Seen, hand: dict[str, Any], own: int | None) -> None:
    pauses = [event for event in hand["events"] if event["event"] == "pause start"]
    if own is None:
        assert seen.pairs("paused", "player", "message") == [
            (event["player"], event["message"]) for event in pauses
        ]
    assert len(seen.data("paused")) == len(seen.data("resumed")) == len(pauses)
    match hand["end"]:
        case "result":
            assert seen.game.result == {
                "contract": hand["contract"],
                "declarer": hand["declarer"],
                "money": hand["money"],
            }
            (result,) = seen.data("result")
            assert sorted(result["winners"]) == sorted(hand["winners"])
            assert sorted(result["losers"]) == sorted(hand["losers"])
        case "passed":
            assert seen.game.result == {"cancelled": "pass"}
        case "renonc":
            truth = hand["renonc"]
            known = own in (None, truth["player"])
            assert seen.game.result == {"cancelled": "renonc"}
            assert seen.pairs("renonc", "player", "card", "should") == [
                (truth["player"], truth["card"], truth["allowed"]) if known else (truth["player"], None, None)
            ]
        case other:
            raise AssertionError(f"nothing is known of an end like {other}")


def serious(found: Findings) -> list[Diagnostic]:
    return [
        violation
        for violation in found.diagnostics
        if violation.severity != "note" and violation.code not in ("renonc", "gap", "mid-stream")
    ]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", a_few(NAMES, ["cgml-tiny", "cgml-wrapped"]))
def test_every_hand_is_as_the_simulator_played_it(name: str) -> None:
    truth = truth_of(name)
    found = inspected(items_of(f"{name}.pcap.gz"))
    seen = hands_of(found)
    expected = dict(expected_hands(truth))
    assert {*seen} == {*expected}
    for label, hand in expected.items():
        agrees(seen[label], hand)
    assert serious(found) == []
    elements = {
        (name, direction): count
        for name, counts in truth["tags"].items()
        for direction, count in counts.items()
        if count
    }
    counted: dict[tuple[str, str], int] = {}
    for message in found.messages:
        key = message.name, message.direction
        counted[key] = counted.get(key, 0) + 1
    assert counted == elements


@pytest.mark.parametrize("name", a_few(NAMES, ["cgml-tiny", "cgml-wrapped"]))
def test_players_and_groups_are_as_the_simulator_made_them(name: str) -> None:
    truth = truth_of(name)
    events = inspected(items_of(f"{name}.pcap.gz")).events
    connected = {event.data["id"]: without_names(event) for event in events if event.kind == "connected"}
    for player in truth["players"]:
        said = {"name": player["name"], "id": player["id"], "role": player["race"]}
        assert connected[player["id"]] == said
    for group in truth["groups"]:
        formed = [event.data for event in events if event.kind == "group_formed"]
        (players,) = [data["players"] for data in formed if data["group"] == group["id"]]
        assert {*players} == {*group["seats"], *group["rejected"]}
        for kind, who in (("accepted", group["seats"]), ("rejected", group["rejected"])):
            said_so = [event.data for event in events if event.kind == kind]
            assert [
                data["player"] for data in said_so if (data["group"], data["what"]) == (group["id"], "group")
            ] == who


@pytest.mark.parametrize("name", a_few(NAMES, ["cgml-tiny"]))
def test_from_one_conversation_every_hand_is_seen_but_the_others_cards(name: str) -> None:
    truth = truth_of(name)
    items = items_of(f"{name}.pcap.gz")
    expected = dict(expected_hands(truth))
    for stream in truth["streams"]:
        if stream["role"] != "game" or not any(
            stream["players"][0] in hand["order"] for hand in expected.values()
        ):
            continue
        own = [item for item in items if item.stream.client == stream["client"]]
        found = inspected(own)
        assert serious(found) == []
        for label, seen in hands_of(found).items():
            agrees(seen, expected[label], stream["players"][0])


@pytest.mark.full
@pytest.mark.parametrize("name", a_few(["cgml-wrapped", "cgml-styles"], ["cgml-wrapped"]))
@pytest.mark.parametrize("part", a_few(range(8), [1]))
def test_from_any_moment_on_the_hands_that_begin_later_are_seen(name: str, part: int) -> None:
    items = items_of(f"{name}.pcap.gz")
    whole = {results(seen): seen for seen in hands_of(inspected(items)).values()}
    found = inspected(from_then_on(items, 40 + part * len(items) // 9))
    assert serious(found) == []
    for game in found.games:
        events = [event for event in found.events if event.game_id == game.id]
        seen = Seen(game, events, {})
        dealt = [data["cards"] for data in seen.data("dealt")]
        if game.result is not None and len(dealt) == 3 and HIDDEN not in dealt:
            same = whole[results(seen)]
            for kind in ("dealt", "bid", "contract", "trump", "flek", "played", "trick", "result"):
                assert seen.data(kind) == same.data(kind)


def results(seen: Seen) -> str:
    return json.dumps(seen.data("trick")[:1] or seen.data("bid"))


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("direction", ["c2s", "s2c"])
def test_from_one_side_alone_no_violation_is_reported(name: str, direction: str) -> None:
    items: list[Item] = [
        item for item in items_of(f"{name}.pcap.gz") if getattr(item, "direction", direction) == direction
    ]
    assert serious(inspected(items)) == []


@pytest.mark.full
def test_every_violation_of_the_manifest_is_reported_once_at_its_place() -> None:
    manifest = json.loads((CAPTURES / "cgml-malformed.manifest.json").read_text())
    found = inspected(items_of("cgml-malformed.pcap.gz"))
    untold = found.diagnostics.copy()
    for violation in manifest["flaws"]:
        here = [
            told
            for told in untold
            if (told.stream.client, told.direction) == (violation["client"], violation["direction"])
            and violation["offset"] <= told.offset < violation["offset"] + violation["length"]
        ]
        assert len(here) == 1, violation
        (told_here,) = here
        # The places overlap: one may take in the tag around a value, the other not.
        assert told_here.offset <= violation["flaw_offset"] + violation["flaw_length"], violation
        assert told_here.offset + told_here.length >= violation["flaw_offset"], violation
        assert told_here.blame == ("client" if violation["direction"] == "c2s" else "server")
        assert told_here.severity == "note" or violation["kind"] not in HARMLESS
        assert told_here.severity != "note" or violation["kind"] in (*HARMLESS, *MAY_BE_HARMLESS)
        untold.remove(told_here)
    assert untold == []


HARMLESS = {
    *("upper-case-tags", "mixed-case-tags", "spec-typo", "xml-declaration", "cdata", "comment", "bom"),
    *("missing-blank-line", "extra-blank-lines", "blank-line-with-spaces", "cr-only", "mixed-line-ends"),
    "unknown-version",
}

MAY_BE_HARMLESS = ("invalid-utf8", "cut-off")
"""Kinds of faults without error: other text may be ISO-8859-2, and only the empty line may be cut off."""
