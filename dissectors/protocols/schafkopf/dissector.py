"""The dissector of Schafkopf."""

from __future__ import annotations

from types import MappingProxyType

from kiebitz.dissectors.dissector import Dissector, Likeness, likeness
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.identity import OTHERS, Identity
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.presentation import Presentation
from kiebitz.dissectors.protocol_file.packaged import assembly_of
from kiebitz.dissectors.protocols.schafkopf.cards import card_words, cards_words, mode_words
from kiebitz.dissectors.protocols.schafkopf.codec import CODEC
from kiebitz.dissectors.protocols.schafkopf.grammar import GRAMMAR


class SchafkopfPresentation(Presentation):
    """Sentences, scores and statistics of Schafkopf."""

    counts = "account"
    phrases = MappingProxyType(
        {"card": card_words, "cards": cards_words, "mode": mode_words},
    )

    def scores(self, state: State) -> dict[str, int]:
        return dict(state.get("accounts", {}))


class Schafkopf(Dissector):
    """The Bavarian card game, with the short pack."""

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        framer = self.framer(direction)
        frames = [frame for frame in framer.feed(0, data) if frame.cut is None]
        decoded = [self.codec.decode(frame.data, direction) for frame in frames]
        if (how_sure := likeness(decoded)) is not None:
            return how_sure
        lines = {line.rstrip(b"\r") for line in data[:1024].split(b"\n")[:-1]}
        return "similar" if any(f"!{name}".encode() in lines for name in GRAMMAR.names(direction)) else None


SCHAFKOPF = Schafkopf(
    **assembly_of(__package__, GRAMMAR, CODEC),
    presentation=SchafkopfPresentation(GRAMMAR, __package__),
    identity=Identity(
        GRAMMAR,
        login_messages=("NAME",),
        logout_messages=("BEENDEN",),
        # The server tells each player its own account only.
        hidden_state=[("accounts", OTHERS)],
    ),
)
