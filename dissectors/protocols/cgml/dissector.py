"""The dissector for CGML."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from kiebitz.dissectors.dissector import Dissector, Likeness, likeness
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.identity import Identity
from kiebitz.dissectors.model import Direction, Event
from kiebitz.dissectors.presentation import Presentation
from kiebitz.dissectors.protocol_file.packaged import assembly_of
from kiebitz.dissectors.protocols.cgml.cards import (
    PACK,
    card_words,
    cards_words,
    level_words,
    player_names,
    suit_words,
)
from kiebitz.dissectors.protocols.cgml.grammar import CODEC, GRAMMAR


class CgmlPresentation(Presentation):
    """Sentences, scores and statistics of CGML."""

    counts = "money"
    phrases = MappingProxyType(
        {
            "card": cards_words,
            "cards": cards_words,
            "should": cards_words,
            "trump": suit_words,
            "second": suit_words,
            "level": lambda level: level_words(level) or "no flek",
        }
    )

    def scores(self, state: State) -> dict[str, int]:
        players = state.get("players", {})
        return {
            name: money
            for group in state.get("groups", {}).values()
            for number, money in group.get("money", {}).items()
            if (name := players.get(number, {}).get("name"))
        }

    def display_name(self, actor: str, state: State) -> str:
        return player_names(state).get(actor, actor)

    def words(self, value: Any) -> str:
        return card_words(value) if isinstance(value, str) and value in PACK else super().words(value)

    def template(self, event: Event) -> str:
        if event.kind == "connected" and event.data.get("role") == "server":
            return "the game server {url} logs in"
        return super().template(event)


class Cgml(Dissector):
    """The dissector for CGML: mariáš for three, with a login server and game servers."""

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        if b"<" not in data:
            return None
        framer = self.framer(direction)
        frames = [*framer.feed(0, data), *framer.eof()]
        return likeness(
            [self.codec.decode(frame.data, direction) for frame in frames if frame.data and frame.cut is None]
        )


CGML = Cgml(
    **assembly_of(__package__, GRAMMAR, CODEC),
    presentation=CgmlPresentation(GRAMMAR, __package__),
    identity=Identity(
        GRAMMAR,
        login_messages=("connect", "newgroup", "newgame"),
        logout_messages=("disconnect",),
        # A client uses its player's number on all connections, one for each group.
        same_player="number",
    ),
)
