"""The dissector of Mäxchen."""

from __future__ import annotations

from types import MappingProxyType

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.identity import Identity
from kiebitz.dissectors.presentation import Presentation
from kiebitz.dissectors.protocol_file.packaged import assembly_of, packaged_codec
from kiebitz.dissectors.protocols.maexchen.dice import dice_words, reason_words
from kiebitz.dissectors.protocols.maexchen.grammar import GRAMMAR


class MaexchenPresentation(Presentation):
    """Sentences, scores and statistics of Mäxchen."""

    phrases = MappingProxyType({"dice": dice_words, "reason": reason_words})

    def scores(self, state: State) -> dict[str, int]:
        return dict(state.get("scores", {}))


MAEXCHEN = Dissector(
    **assembly_of(__package__, GRAMMAR, packaged_codec(__package__, GRAMMAR)),
    presentation=MaexchenPresentation(GRAMMAR, __package__),
    identity=Identity(
        GRAMMAR,
        login_messages=("REGISTER", "REGISTER_SPECTATOR"),
        # The server refuses a name that another IP address has.
        same_player="address",
    ),
)
