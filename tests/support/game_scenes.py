"""States of each game to draw, views of them, and what views and pictures say."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from catan_states import island
from terminal_scenes import event

from kiebitz.dissectors.game.view import Line, Name, Scene, Span, Suit, View
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.registry import dissector_of

SEATS = ["Anna", "Bert", "[BOT]-0", "[BOT]-1"]
NAMES = ["Anna", "Bert", "Carl", "Dora"]
IDS = [1, 2, 3]
DECK = ["1:RED", None, "13:BLUE", "0:RED"] + ["4:YELLOW", "4:BLACK"] * 5 + [None] * 10


def view(game: str, state: dict[str, Any], events: list[Event] | None = None) -> View:
    dissector = dissector_of(game)
    assert dissector is not None
    made = dissector.presentation.view(Scene(state, events or [], sorted(state.get("players", {}))))
    assert made is not None
    return made


def said(line: Line) -> str:
    """Return a line in words."""
    found = ""
    for element in line:
        match element:
            case str():
                found += element
            case Span():
                found += element.text
            case Name() | Suit():
                found += element.name
            case tuple():
                found += ", ".join(piece.words for piece in element)
            case _:
                found += element.words
    return found


def story(made: View) -> list[str]:
    return [said(line) for line in made.story]


def maexchen(*names: str, **part: Any) -> dict[str, Any]:
    """Return a round of these players that is on."""
    return {
        "players": {name: {"spectator": False} for name in names},
        "games": {"7": {"phase": "started", "round": 3, "players": [*names], **part}},
    }


def schafkopf(**part: Any) -> dict[str, Any]:
    """Return a round seen from its beginning, before its first card; None removes a part."""
    known = {
        "round": 3,
        "phase": "playing",
        "seats": SEATS,
        "mode": "SAUSPIELgras",
        "player": "Bert",
        "kontra": [],
        "unknown": ["partner"],
        **part,
    }
    return {
        "players": {"Anna": {"here": True}, "Bert": {"here": True}},
        "accounts": {"Anna": 1000, "Bert": -74335},
        "stock": 40,
        "games": {"7": {key: value for key, value in known.items() if value is not None}},
    }


def okey(names: list[str] = NAMES, **part: Any) -> dict[str, Any]:
    """Return a game at Bert's turn with unknown racks; None removes a part of it."""
    known = {
        "lobby": 5,
        "seats": {str(seat): {"name": name, "tiles": 14} for seat, name in enumerate(names)},
        "exchange": ["1:RED", "12:BLUE", None, "0:YELLOW"],
        "turn": 1,
        **part,
    }
    return {
        "players": {name: {"lobby": 5} for name in names},
        "lobbies": {"5": {"players": names, "ready": names}},
        "games": {"7": {key: value for key, value in known.items() if value is not None}},
    }


def cgml(**part: Any) -> dict[str, Any]:
    """Return a hand in which Bára (2) plays; None takes a part of it away."""
    known = {
        "group": "4",
        "hand": 3,
        "seats": IDS,
        "hands": {"1": 10, "2": 10, "3": 10},
        "talon": 2,
        "bidding": [{"player": 2, "call": "7"}, {"player": 3, "call": "PASS"}, {"player": 1, "call": "PASS"}],
        "declarer": 2,
        "contract": "7",
        "trump": "G",
        **part,
    }
    return {
        "players": {"1": {"name": "Adam"}, "2": {"name": "Bára"}, "3": {"name": "Cyril", "race": "bot"}},
        "groups": {"4": {"players": IDS, "money": {"1": 12, "2": -24, "3": 12}}},
        "games": {"7": {key: value for key, value in known.items() if value is not None}},
    }


def played(player: int, card: str) -> dict[str, Any]:
    return {"player": player, "card": card}


GAMES: dict[str, Callable[[], dict[str, Any]]] = {
    "maexchen": lambda: maexchen("alice", "bob"),
    "schafkopf": schafkopf,
    "okey": okey,
    "cgml": cgml,
    "catan": island,
}


def scene(steps: list[str]) -> tuple[dict[str, Any], list[Event]]:
    """Return the state and the events that a block describes."""
    state: dict[str, Any] = GAMES.get(steps[0].split(" ")[0], dict)()
    events: list[Event] = []
    for step in steps[1:]:
        path, _, value = step.partition("= ")
        if step.startswith("event "):
            _, kind, data = step.split(" ", 2)
            events.append(event(len(events) + 1, kind, **json.loads(data)))
        elif not path:
            state = json.loads(value)
        else:
            part: Any = state
            *above, last = path.removesuffix(" gone").removesuffix(" ").split(".")
            for key in above:
                part = part.setdefault(key, {})
            if step.endswith(" gone"):
                del part[last]
            else:
                part[last] = json.loads(value)
    return state, events
