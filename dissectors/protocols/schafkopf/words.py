"""The words for Schafkopf's cards and modes, in sentences and in views."""

from __future__ import annotations

import re
from typing import Any

from kiebitz.dissectors.grammar.sentences import UNKNOWN, each
from kiebitz.dissectors.protocols.schafkopf.cards import FARBEN

WERT_WORDS = {"OBER": "Ober", "UNTER": "Unter", "SAU": "Sau", "ZEHN": "10", "KONIG": "König", "NEUN": "9"}
FARBE_WORDS = {farbe: farbe.capitalize() for farbe in FARBEN}

MODE = re.compile(r"([A-Z]+?)(eichel|gras|herz|schellen)?(du|DU)?")
"""The parts of a mode: kind, suit, and the word for a du."""


def card_words(card: Any) -> str:
    """Return the name of a card: `Eichel-Ober`."""
    if not isinstance(card, str):
        return UNKNOWN
    farbe, _, wert = card.partition(" ")
    known = farbe in FARBE_WORDS and wert in WERT_WORDS
    return f"{FARBE_WORDS[farbe]}-{WERT_WORDS[wert]}" if known else card


cards_words = each(card_words)
"""The words for several cards."""


def mode_words(name: Any) -> str:
    """Return the name of a mode: `Solo Herz du` for `SOLOherzDU`."""
    if not isinstance(name, str):
        return UNKNOWN
    found = MODE.fullmatch(name)
    if found is None:
        return name
    kind, farbe, du = found.groups()
    return " ".join(filter(None, (kind.capitalize(), (farbe or "").capitalize(), (du or "").lower())))
