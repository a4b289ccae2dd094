"""The dissector of Okey, and the words for tiles and stacks."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from kiebitz.dissectors.dissector import Dissector, Likeness
from kiebitz.dissectors.grammar.grammar import ImpliedBy
from kiebitz.dissectors.grammar.sentences import UNKNOWN, coded, each
from kiebitz.dissectors.identity import Identity
from kiebitz.dissectors.model import Direction, Event
from kiebitz.dissectors.presentation import Presentation
from kiebitz.dissectors.protocol_file.packaged import assembly_of
from kiebitz.dissectors.protocols.okey.grammar import CODEC, GRAMMAR, OkeyCodec
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, SEATS, is_joker

EMPTY = "–"
"""The sign for an exchange stack without a tile."""

stack_words = coded({"e": "the left stack", "m": "the main stack"})
"""The words for the stack that a tile is drawn from; the exchange stack to draw from is the left one."""


def tile_words(tile: Any) -> str:
    """Return a tile in words: `red 9`."""
    if not isinstance(tile, str):
        return UNKNOWN
    if is_joker(tile):
        # The joker's colour in the protocol has no meaning.
        return "joker"
    number, _, colour = tile.partition(":")
    return f"{colour.lower()} {number}" if colour in COLOURS else tile


deck_words = each(tile_words)
"""The words for the tiles of a deck."""

exchange_words = each(lambda tile: EMPTY if tile is None else tile_words(tile))
"""The words for the four exchange stacks: the tile on top of each."""


_COMMON_NAMES = frozenset(("PING", "+PING", "NAME", "STAT", "LEFT"))
"""Names of messages that other line protocols have, too."""


class OkeyPresentation(Presentation):
    """Sentences, scores and statistics of Okey."""

    turn = "status"
    moves = ("drew", "put")
    phrases = MappingProxyType(
        {
            "tile": tile_words,
            "deck": deck_words,
            "exchange": exchange_words,
            "exchangestacks": exchange_words,
            "stack": stack_words,
            "drawstack": stack_words,
        }
    )

    def template(self, event: Event) -> str:
        if event.kind == "status" and event.data.get("exchange") == [None] * SEATS:
            return "it is {name}'s turn; the exchange stacks are empty"
        return super().template(event)

    def words(self, value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, list):
            # An empty place on a rack is not unknown.
            return (
                " ".join("–" if part is None else super(OkeyPresentation, self).words(part) for part in value)
                or "nothing"
            )
        return super().words(value)


class OkeyIdentity(Identity):
    """Identity in Okey; a rejected put is reported to its player only."""

    def implied_by(self, event: Event) -> ImpliedBy | None:
        # A rejected put is reported to its player only, whatever comes next.
        return None if event.data.get("valid") is False else super().implied_by(event)


class Okey(Dissector):
    """Four players who draw and put tiles."""

    codec: OkeyCodec

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        framer = self.framer(direction)
        lines = [
            self.codec.decode(frame.data, direction)
            for frame in framer.feed(0, data)
            if frame.cut is None and self.codec.names_message(frame.data, direction)
        ]
        valid = [line.row.name for line in lines if line.valid and line.row is not None]
        if any(name not in _COMMON_NAMES for name in valid):
            return "certain"
        return "similar" if any(line.row is not None for line in lines) else None


OKEY = Okey(
    **assembly_of(__package__, GRAMMAR, CODEC),
    presentation=OkeyPresentation(GRAMMAR, __package__),
    identity=OkeyIdentity(
        GRAMMAR,
        login_messages=("LOGI",),
        logout_messages=("LOGO",),
        # What is unknown follows from all connections.
        hidden_state=[("games", None, "unknown")],
    ),
)
