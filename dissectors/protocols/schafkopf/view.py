"""The view of a Schafkopf table: the four players, the cards before them, and the game that is played.

Seats advance by one from round to round. In the view players keep their places: the same one is always at the
bottom, and the others follow clockwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypedDict

import msgspec

from kiebitz.dissectors.game.valid_state import Number, Types, valid_game, valid_items
from kiebitz.dissectors.game.view import (
    SIGNS,
    Card,
    Contract,
    Deck,
    Element,
    Fact,
    Figure,
    Group,
    Hand,
    Line,
    Name,
    Scene,
    Seat,
    Span,
    Suit,
    View,
    counted,
    latest,
    not_known,
)
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.schafkopf.cards import (
    FARBE_WORDS,
    FARBEN,
    HAND,
    NICHTS,
    SEATS,
    WERT_WORDS,
    WERTE,
    mode,
    mode_words,
)

_Card = Annotated[str, msgspec.Meta(pattern=f"^({'|'.join(FARBEN)}) ({'|'.join(WERTE)})$")]
_Seat = Annotated[int, msgspec.Meta(ge=0, lt=SEATS)]
_Names = list[str]
_Part = dict[str, Any]
"""A round's part of the state."""


class _Own(TypedDict, total=False):
    hand: list[_Card]
    bid: str
    partner: bool


class _Trick(TypedDict):
    number: Number
    cards: list[_Card]
    seats: Annotated[list[_Seat], msgspec.Meta(min_length=SEATS, max_length=SEATS)]
    winner: str | None
    points: Number


_TYPES = Types(
    {
        "round": Number,
        "phase": str,
        "seats": Annotated[_Names, msgspec.Meta(min_length=SEATS, max_length=SEATS)],
        "turn": str,
        "knocks": _Names,
        "kontra": _Names,
        "best_bid": str,
        "player": str,
        "partner": str,
        "mode": str,
        "table": dict[Annotated[str, msgspec.Meta(pattern="^[0-3]$")], _Card],
        "trick": Number,
        "tricks": list[_Trick],
        "points": dict[str, Number],
        "unknown": _Names,
        "private": dict[str, _Own],
    }
)
_DATA = {
    "won": Types({"names": _Names}),
    "lost": Types({"names": _Names}),
    "round_ended": Types({"reason": str}),
    "played": Types({"seat": _Seat}),
}

_LETTERS = {"OBER": "O", "UNTER": "U", "SAU": "S", "ZEHN": "10", "KONIG": "K", "NEUN": "9"}
_SUITS = {
    farbe: Suit(sign, FARBE_WORDS[farbe], letter)
    for farbe, sign, letter in zip(FARBEN, SIGNS, "EGHS", strict=True)
}
_DECK = Deck(tuple(_SUITS.values()), in_words=True, longest=max(map(len, WERT_WORDS.values())))

_FIRST_CARDS = 3
_NEEDED = {"seats": "names", "mode": "mode", "player": "player"}
"""Parts that are known by the first card, if the round was seen from its beginning."""


def view_of(scene: Scene) -> View:
    """Return the view of the current round, or of the players before the first."""
    number, part, events = valid_game(scene, _TYPES, _DATA)
    accounts = valid_items(scene.state.get("accounts"), Number)
    here = valid_items(scene.state.get("players"), dict[str, Any])
    gone = sorted(name for name, about in here.items() if not about.get("here"))
    names: _Names = part.get("seats") or [f"seat {seat}" for seat in range(SEATS)] if number else []
    groups = _groups(here, gone, names, accounts)
    if not number:
        return View(names=scene.names, idle="no round yet", groups=groups)
    bottom = next((names.index(name) for name in scene.names if name in names), 0)
    last = next((event.data["seat"] for event in events[-2:] if event.kind == "played"), None)
    around = [(bottom + step) % SEATS for step in range(SEATS)]
    stock = scene.state.get("stock")
    return View(
        names=scene.names,
        title=(f"round {part.get('round', '?')}", *([f"stock {stock}"] if isinstance(stock, int) else [])),
        seats=tuple(_seat(part, names, seat, seat == last, gone, accounts) for seat in around),
        story=_story(part, events),
        deck=_DECK,
        contract=_contract(part),
        facts=_last_trick(part),
        unknown=_not_known(part),
        groups=groups,
    )


def _seat(part: _Part, names: _Names, seat: int, fresh: bool, gone: _Names, accounts: dict[str, int]) -> Seat:
    name = names[seat]
    left = cards_left(part, seat)
    known = part.get("private", {}).get(name, {}).get("hand")
    cards = tuple(map(card, sorted_hand(known, part.get("mode")))) if known is not None else ()
    hidden = left if known is None else max(0, (left or 0) - len(cards))
    figures = [Figure(f"account {accounts[name]}", str(accounts[name]))] if name in accounts else []
    if part.get("tricks"):
        figures.append(Figure(counted(part.get("points", {}).get(name, "?"), "point")))
    over = _taken(part)
    lies = part.get("table", {}).get(str(seat))
    left_mark = (Span("has left", "bad"),) if name in gone else ()
    return Seat(
        name=name,
        state="turn" if seat_to_move(part, names) == seat else "",
        marks=left_mark + _marks(part, name),
        figures=tuple(figures),
        hand=Hand(cards, hidden),
        lies=card(lies) if lies is not None else None,
        fresh=fresh,
        takes=over is not None and over["winner"] == name,
    )


def card(name: str) -> Card:
    """Return a card by its name in the protocol, such as `HERZ SAU`."""
    farbe, _, wert = name.partition(" ")
    return Card(_SUITS[farbe], WERT_WORDS[wert], _LETTERS[wert])


def sorted_hand(hand: Iterable[str], played: str | None) -> list[str]:
    """Return a hand as players hold it, trumps first, as the order in which it is sent changes."""
    trumps = mode(played or NICHTS).trumps

    def place(card: str) -> tuple[int, int]:
        farbe, _, wert = card.partition(" ")
        return (-1, trumps.index(card)) if card in trumps else (FARBEN.index(farbe), WERTE.index(wert))

    return sorted(hand, key=place)


def _phase(part: _Part) -> str:
    """Return the phase of a round; once cards are on the table, that is `playing`."""
    phase: str = part.get("phase", "")
    return "playing" if phase in ("dealing", "bidding") and _cards_lie(part) else phase


def _taken(part: _Part) -> dict[str, Any] | None:
    """Return the finished trick that is still on the table."""
    tricks: list[dict[str, Any]] = part.get("tricks", [])
    return tricks[-1] if tricks and tricks[-1]["number"] == part.get("trick") else None


def seat_to_move(part: _Part, seats: Sequence[str]) -> int | None:
    """Return whose turn it is; None between a player's card and the next turn."""
    turn = part.get("turn")
    if turn not in seats or _phase(part) == "over":
        return None
    seat = seats.index(turn)
    if str(seat) not in part.get("table", {}):
        return seat
    over = _taken(part)
    return seat if over is not None and (over["winner"] == turn or over["seats"][-1] != seat) else None


def cards_left(part: _Part, seat: int) -> int | None:
    """Return the number of cards a seat must still have; None if unknown."""
    if not _seen_whole(part):
        return None
    if _phase(part) == "dealing":
        return _FIRST_CARDS
    lies = _taken(part) is None and str(seat) in part.get("table", {})
    return HAND - lies - sum(seat in trick["seats"] for trick in part.get("tricks", ()))


def _not_known(part: _Part) -> str:
    """Return the parts that should be known by now and are not; empty if there are none."""
    if _phase(part) != "playing":
        return ""
    if unknown := not_known(words for key, words in _NEEDED.items() if key not in part):
        return unknown
    secret = any(own.get("partner") for own in part.get("private", {}).values())
    return "partner not known yet" if "partner" in part.get("unknown", ()) and not secret else ""


def _seen_whole(part: _Part) -> bool:
    """Return True if the play was seen from its first card on: only then are points counted."""
    return "points" in part if part.get("tricks") else "mode" in part or not part.get("table")


def _cards_lie(part: _Part) -> bool:
    return bool(part.get("table") or part.get("tricks"))


def _contract(part: _Part) -> Contract | None:
    if "mode" not in part:
        return None
    played = mode_words(part["mode"])
    suit = next((suit for suit in _SUITS.values() if suit.name in played), None)
    return Contract(((Span(played, "strong"),),), suit=suit)


def _marks(part: _Part, name: str) -> tuple[Span, ...]:
    """Return the roles and the calls of a player in this round."""
    own = part.get("private", {}).get(name, {})
    found = []
    if part.get("player") == name:
        found.append(Span("plays", "strong"))
    if part.get("partner") == name:
        found.append(Span("partner", "strong"))
    elif own.get("partner"):
        found.append(Span("secret partner", "strong"))
    bid = own.get("bid")
    if bid is not None and _phase(part) == "bidding":
        found.append(Span("passes" if bid == NICHTS else f"bids {mode_words(bid)}"))
    if name in part.get("knocks", ()):
        found.append(Span("knocked"))
    if name in part.get("kontra", ()):
        found.append(Span("Kontra", "strong"))
    return tuple(found)


def _story(part: _Part, events: Sequence[Event]) -> tuple[Line, ...]:
    """Return the description of the situation; `events` are the latest of the round."""
    phase = _phase(part)
    if phase == "dealing":
        return ("dealing",), ("who knocks?",)
    if phase == "bidding":
        best = part.get("best_bid", NICHTS)
        if best == NICHTS:
            return ("bidding",), ("no bid yet",)
        return ("bidding",), ("best bid:",), (mode_words(best),)
    if phase == "over":
        return (_outcome(events),)
    trick = _taken(part)
    if trick is not None:
        return (_trick_words(trick),), ("for ", _winner(trick))
    if "mode" in part and "kontra" not in part and not _cards_lie(part):
        return (("Kontra?",),)
    return ((f"trick {part.get('trick', 1)}",),)


def _last_trick(part: _Part) -> tuple[Fact, ...]:
    """Return the last finished trick, its cards in the order played."""
    if not part.get("tricks"):
        return ()
    trick = part["tricks"][-1]
    title = (f"{_trick_words(trick)} for ", _winner(trick))
    return (Fact(title, ((tuple(map(card, trick["cards"][:SEATS])),),)),)


def _trick_words(trick: dict[str, Any]) -> str:
    return f"trick {trick['number']}: {trick['points']} points"


def _winner(trick: dict[str, Any]) -> Element:
    return "?" if trick["winner"] is None else Name(trick["winner"])


def _outcome(events: Sequence[Event]) -> Line:
    """Return the outcome of a round, if it was announced."""
    if (verdict := latest(events, "won", "lost")) is not None:
        party: list[Element] = []
        for name in verdict.data["names"][:SEATS]:
            party += [" and ", Name(name)] if party else [Name(name)]
        return *party, Span(f" {verdict.kind}", "strong")
    end = latest(events, "round_ended")
    reason: str = end.data["reason"] if end is not None else "played"
    return ("the round is over" if reason == "played" else reason,)


def _groups(
    here: dict[str, Any], gone: _Names, seated: _Names, accounts: dict[str, int]
) -> tuple[Group, ...]:
    """Return the players who are not at the table."""

    def members(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        return tuple(
            (name, f"account {accounts[name]}" if name in accounts else "")
            for name in names
            if name not in seated
        )

    present = Group("not in this round" if seated else "here", members(sorted({*here} - {*gone})))
    return tuple(group for group in (present, Group("left", members(gone))) if group.members)
