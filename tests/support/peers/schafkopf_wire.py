"""Schafkopf's Pakete, written and cut: a token on each line, `!END` or 28 lines of cards at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kiebitz.dissectors.protocols.schafkopf.cards import FARBEN, WERTE

NOTHING = "§"
CARDS = 14
"""Number of cards in a MODEL: six of the hand, four of the table, four of the last trick."""

MOST_TOKENS = 64

Model = tuple[list[str], list[str | None], list[str | None]]
"""A hand, the table and the last trick, these two by seat."""


def paket(flag: str, *fields: str) -> bytes:
    """Return a Paket with `!END`."""
    return "".join(f"{line}\n" for line in (f"!{flag}", *fields, "!END")).encode()


def model(flag: str, hand: Sequence[str], table: Sequence[str | None], last: Sequence[str | None]) -> bytes:
    """Return a MODEL: cards are written `HERZ SAU`."""
    cards = [*hand, *[None] * (6 - len(hand)), *table, *last]
    lines = [part for card in cards for part in (card.split(" ") if card else (NOTHING, NOTHING))]
    return "".join(f"{line}\n" for line in ("!MODEL", f"!{flag}", *lines)).encode()


def cards_of(lines: Sequence[str]) -> Model:
    """Return the cards of a MODEL. Raises ValueError if something is no card."""
    cards: list[str | None] = []
    for farbe, wert in zip(lines[::2], lines[1::2], strict=True):
        if farbe == wert == NOTHING:
            cards.append(None)
        else:
            cards.append(card_of(farbe, wert))
    return [card for card in cards[:6] if card is not None], cards[6:10], cards[10:]


def card_of(farbe: str, wert: str) -> str:
    """Return a card as it is written here. Raises ValueError if it is none."""
    if farbe not in FARBEN or wert not in WERTE:
        raise ValueError(f"{farbe} {wert} is no card")
    return f"{farbe} {wert}"


class Pakete:
    """Lines, put together: gives each Paket's flag and fields to `say`."""

    def __init__(self, say: Callable[[str, list[str]], None]) -> None:
        self.open: list[str] = []
        self._say = say

    def line(self, line: str) -> None:
        if not self.open and not line.startswith("!"):
            return
        self.open.append(line)
        flag = self.open[0]
        if flag == "!MODEL":
            if len(self.open) == 2 + 2 * CARDS:
                self._end(self.open[1:])
        elif line == "!END":
            self._end(self.open[1:-1])
        elif len(self.open) > MOST_TOKENS:
            self._end(self.open[1:])

    def _end(self, fields: list[str]) -> None:
        flag, self.open = self.open[0].removeprefix("!"), []
        if flag != "END":
            self._say(flag, fields)
