"""The dissector for Catan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector, Likeness, likeness
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.grammar.sentences import UNKNOWN, each
from kiebitz.dissectors.identity import Identity
from kiebitz.dissectors.model import Direction, Event
from kiebitz.dissectors.presentation import Presentation
from kiebitz.dissectors.protocol_file.packaged import assembly_of
from kiebitz.dissectors.protocols.catan.board import spot_text
from kiebitz.dissectors.protocols.catan.grammar import CODEC, GRAMMAR
from kiebitz.dissectors.protocols.catan.ledger import counts_text

_CARD_TARGETS = {
    "roads": ": {roads}",
    "resource": " for {resource}",
    "resources": " for {resources}",
    "to": " and moves the robber to {to}",
}
"""Templates for the target of a development card, by field of the event."""

_INVENTED = 2
"""Number of resources that an Erfindung yields."""


def _resource_words(counts: Any) -> str:
    """Return the text of counts in an event, which may be invalid."""
    return counts_text(counts) if isinstance(counts, dict | int) else UNKNOWN


def _place_words(place: Any) -> str:
    """Return the text of an edge or corner in an event, which may be invalid."""
    try:
        return spot_text(tuple((field["x"], field["y"]) for field in place))
    except (TypeError, KeyError):
        return UNKNOWN


def _shows_whole_hand(resources: Any) -> bool:
    """Return True if an Erfindung does not have two resources: one server sends the player's whole hand."""
    if not isinstance(resources, dict):
        return False
    return sum(count for count in resources.values() if isinstance(count, int)) != _INVENTED


class CatanPresentation(Presentation):
    """Sentences, scores and statistics of Catan."""

    moves = ("rolled", "robber", "built", "bought_card", "played_card", "trade_done", "sea_trade")
    phrases = MappingProxyType(
        dict.fromkeys(("resources", "offer", "demand", "paid", "gained"), _resource_words)
        | {"place": _place_words, "roads": each(_place_words)}
    )

    def scores(self, state: State) -> dict[str, int]:
        games = state.get("games", {})
        if not games:
            return {}
        players = games[max(games, key=int)].get("players", {})
        return {
            about["name"]: about["points"]
            for about in players.values()
            if about.get("name") and isinstance(about.get("points"), int)
        }

    def template(self, event: Event) -> str:
        template, data = super().template(event), event.data
        if event.kind != "played_card" or _shows_whole_hand(data.get("resources")):
            return template
        return template + next(
            (more for field, more in _CARD_TARGETS.items() if data.get(field) is not None), ""
        )

    def words(self, value: Any) -> str:
        if isinstance(value, dict):
            if {*value} == {"x", "y"}:
                return f"({value['x']},{value['y']})"
            return ", ".join(f"{part} {key}" for key, part in value.items() if part) or "nothing"
        if isinstance(value, list) and all(isinstance(part, int) for part in value):
            return "+".join(map(str, value))
        if isinstance(value, bool):
            return "yes" if value else "no"
        return super().words(value)


class Catan(Dissector):
    """The dissector for Catan, in which the cards of other players are hidden."""

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        framer = self.framer(direction)
        frames = [*framer.feed(0, data), *framer.eof()]
        return likeness([self.codec.decode(frame.data, direction) for frame in frames if frame.data])


class CatanIdentity(Identity):
    """Identity in Catan: a player's own points include those of hidden cards, which others do not see."""

    def as_public(self, event: Event, reports: Sequence[tuple[str, int, Mapping[str, Any]]]) -> Event:
        told = [
            (stream, fields["Spieler"] if name == "Statusupdate" else fields)
            for name, stream, fields in reports
            if name in ("Statusupdate", "Ertrag", "Kosten")
        ]
        hidden = [fields for _, fields in told if isinstance(fields.get("Rohstoffe"), int)]
        is_open = not hidden and len({stream for stream, _ in told}) >= _OPEN_TO
        resources = event.data.get("resources")
        if event.kind in ("gained", "paid") and event.data.get("why") is None and isinstance(resources, dict):
            # No public event explains it.
            resources = resources if is_open else sum(resources.values())
            return msgspec.structs.replace(event, data=event.data | {"resources": resources})
        copies = [fields for _, fields in told] if is_open else hidden
        return self.as_copied(event, [{"Spieler": fields} for fields in copies if "id" in fields])

    def as_copied(self, event: Event, copies: Sequence[Mapping[str, Any]]) -> Event:
        points: dict[int, int] = {}
        for told in (fields["Spieler"] for fields in copies):
            if "Siegpunkte" in told and told.get("Status") not in ("Spiel starten", "Wartet auf Spielbeginn"):
                points[told["id"]] = max(told["Siegpunkte"], points.get(told["id"], told["Siegpunkte"]))
        changes = [(path, value) for path, value in event.changes if path[-1:] != ["points"]]
        if event.game_id is not None:
            place = "games", str(event.game_id), "players"
            changes += [([*place, str(player), "points"], value) for player, value in points.items()]
        data = event.data
        if "points" in data:
            data = data | {"points": points.get(data.get("player", -1))}
        return msgspec.structs.replace(event, data=data, changes=changes)


_OPEN_TO = 2
"""Number of streams with open copies from which on a value is not hidden from anyone."""


CATAN = Catan(
    **assembly_of(__package__, GRAMMAR, CODEC),
    presentation=CatanPresentation(GRAMMAR, __package__),
    identity=CatanIdentity(
        GRAMMAR,
        login_messages=("Spieler",),
        differing_copies=("Statusupdate",),
        # What the bank has follows from all hands.
        hidden_state=[("games", None, "bank")],
    ),
)
