"""What a round of Schafkopf looks like in words: its cards and modes, and the few lines amid the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kiebitz.cli.render.text.canvas import ASCII, OWN_SUITS, SUIT_STYLES, Glyphs, without_accents
from kiebitz.cli.terminal.screen import LINE_BREAK, Text
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.schafkopf.cards import FARBEN, HAND, WERTE, mode
from kiebitz.dissectors.protocols.schafkopf.words import NO_GAME, WERT_WORDS, mode_words

Say = Callable[[str], Text]
"""A player's name as it is drawn."""

_STYLES = dict(zip(FARBEN, SUIT_STYLES, strict=True))
_LETTERS = {"OBER": "O", "UNTER": "U", "SAU": "S", "ZEHN": "10", "KONIG": "K", "NEUN": "9"}
_LONGEST = max(map(len, WERT_WORDS.values()))

_FIRST_CARDS = 3
_NEEDED = {"seats": "names", "mode": "mode", "player": "player"}
"""What is always known by the time the first card is played, if the round was seen from its beginning."""


# Cards and modes.


def card_letters(card: str, glyphs: Glyphs) -> Text:
    """A card as short as it goes, such as `♥S`."""
    farbe, _, wert = card.partition(" ")
    return Text(glyphs.suits[FARBEN.index(farbe)] + _LETTERS[wert], _STYLES[farbe])


def card_words(card: str, glyphs: Glyphs) -> Text:
    """What stands on a card, such as `♥ Sau`; all are of the same width."""
    farbe, _, wert = card.partition(" ")
    word = WERT_WORDS[wert].ljust(_LONGEST)
    if glyphs is ASCII:
        word = without_accents(word)
    # A sign of two cells has blanks enough of its own.
    sign = glyphs.suits[FARBEN.index(farbe)].ljust(1 if glyphs is OWN_SUITS else 2)
    return Text(sign + word, _STYLES[farbe])


def sorted_hand(hand: Iterable[str], played: str | None) -> list[str]:
    """A hand as players hold it, trumps first: the order in which it is sent changes from card to card."""
    trumps = mode(played or NO_GAME).trumps

    def place(card: str) -> tuple[int, int]:
        farbe, _, wert = card.partition(" ")
        return (-1, trumps.index(card)) if card in trumps else (FARBEN.index(farbe), WERTE.index(wert))

    return sorted(hand, key=place)


# What follows from the state.


def phase(part: dict[str, Any]) -> str:
    """The phase of a round, which is played once cards lie there, whatever was missed before."""
    told: str = part.get("phase", "")
    return "playing" if told in ("dealing", "bidding") and _cards_lie(part) else told


def taken(part: dict[str, Any]) -> dict[str, Any] | None:
    """The trick that lies on the table and is over."""
    tricks: list[dict[str, Any]] = part.get("tricks", [])
    return tricks[-1] if tricks and tricks[-1]["number"] == part.get("trick") else None


def seat_to_move(part: dict[str, Any], seats: Sequence[str]) -> int | None:
    """Whose turn it is; nobody's between a player's card and the next turn."""
    turn = part.get("turn")
    if turn not in seats or phase(part) == "over":
        return None
    seat = seats.index(turn)
    if str(seat) not in part.get("table", {}):
        return seat
    over = taken(part)
    return seat if over is not None and (over["winner"] == turn or over["seats"][-1] != seat) else None


def cards_left(part: dict[str, Any], seat: int) -> int | None:
    """How many cards a seat must still have; None where that cannot be known."""
    if not _seen_whole(part):
        return None
    if phase(part) == "dealing":
        return _FIRST_CARDS
    lies = taken(part) is None and str(seat) in part.get("table", {})
    return HAND - lies - sum(seat in trick["seats"] for trick in part.get("tricks", ()))


def not_known(part: dict[str, Any]) -> str:
    """What should be known by now and is not; empty if there is nothing."""
    if phase(part) != "playing":
        return ""
    unknown = [words for key, words in _NEEDED.items() if key not in part]
    if unknown:
        return "not known: " + ", ".join(unknown)
    secret = any(own.get("partner") for own in part.get("private", {}).values())
    return "partner not known yet" if "partner" in part.get("unknown", ()) and not secret else ""


def _cards_lie(part: dict[str, Any]) -> bool:
    return bool(part.get("table") or part.get("tricks"))


def _seen_whole(part: dict[str, Any]) -> bool:
    """Whether the play was seen from its first card on: only then are points counted."""
    return "points" in part if part.get("tricks") else "mode" in part or not part.get("table")


# What is going on.


def marks(part: dict[str, Any], name: str) -> list[Text]:
    """What a player is and has said in this round."""
    found = []
    if part.get("player") == name:
        found.append(Text("plays", "bold"))
    if part.get("partner") == name:
        found.append(Text("partner", "bold"))
    elif part.get("private", {}).get(name, {}).get("partner"):
        found.append(Text("secret partner", "bold"))
    bid = part.get("private", {}).get(name, {}).get("bid")
    if bid is not None and phase(part) == "bidding":
        found.append(Text("passes" if bid == NO_GAME else f"bids {mode_words(bid)}"))
    if name in part.get("knocks", ()):
        found.append(Text("knocked"))
    if name in part.get("kontra", ()):
        found.append(Text("Kontra", "bold"))
    return found


def story(part: dict[str, Any], events: Sequence[Event], name: Say) -> Text:
    """What is going on; `events` are the latest of the round."""
    now = phase(part)
    if now == "dealing":
        return Text.assemble("dealing", LINE_BREAK, "who knocks?")
    if now == "bidding":
        best = part.get("best_bid", "NICHTS")
        if best == "NICHTS":
            return Text.assemble("bidding", LINE_BREAK, "no bid yet")
        return Text.assemble("bidding", LINE_BREAK, "best bid:", LINE_BREAK, mode_words(best))
    played = Text(mode_words(part["mode"]), "bold") + LINE_BREAK if "mode" in part else Text("", "bold")
    if now == "over":
        return played + _outcome(events, name)
    trick = taken(part)
    if trick is not None:
        return played + _trick(trick) + LINE_BREAK + Text("for ") + _player(trick["winner"], name)
    if "kontra" not in part and not _cards_lie(part):
        return played + Text("Kontra?")
    return played + Text(f"trick {part.get('trick', 1)}")


def last_trick(part: dict[str, Any], name: Say, glyphs: Glyphs) -> Text | None:
    """The last trick that is over, its cards in the order played; None if there is none."""
    if not part.get("tricks"):
        return None
    trick = part["tricks"][-1]
    cards = Text(" ").join(card_letters(card, glyphs) for card in trick["cards"])
    return Text.assemble(_trick(trick), " for ", _player(trick["winner"], name), ": ", cards)


def _trick(trick: dict[str, Any]) -> Text:
    return Text(f"trick {trick['number']}: {trick['points']} points")


def _player(who: str | None, name: Say) -> Text:
    return Text("?") if who is None else name(who)


def _outcome(events: Sequence[Event], name: Say) -> Text:
    """How a round ended, as far as that was told."""
    verdict = next((event for event in reversed(events) if event.kind in ("won", "lost")), None)
    if verdict is not None:
        party = Text(" and ").join(name(player) for player in verdict.data["names"])
        return Text.assemble(party, (f" {verdict.kind}", "bold"))
    end = next((event for event in reversed(events) if event.kind == "round_ended"), None)
    reason = end.data["reason"] if end is not None else "played"
    return Text("the round is over" if reason == "played" else reason)
