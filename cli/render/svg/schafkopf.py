"""A Schafkopf table: the four players around it, who keep their places from round to round, and the trick."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import msgspec

from kiebitz.cli.render.svg.cards import SUITS, Face, card, sign
from kiebitz.cli.render.svg.idle_server import Gathered, put_gathering
from kiebitz.cli.render.svg.lettering import BESIDE, many, put_fitted, put_lines
from kiebitz.cli.render.svg.pieces import text
from kiebitz.cli.render.svg.seats import Layout, Place, Seated, put_felt, put_seated, put_story
from kiebitz.cli.render.svg.state_validation import Kinds, Number, drawn_game, sound_items
from kiebitz.cli.render.svg.svg_canvas import Sheet
from kiebitz.cli.render.text.scene import Scene
from kiebitz.cli.render.text.schafkopf_words import (
    cards_left,
    marks,
    not_known,
    phase,
    seat_to_move,
    sorted_hand,
    story,
    taken,
)
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.schafkopf.cards import FARBEN, SEATS, WERTE
from kiebitz.dissectors.protocols.schafkopf.words import FARBE_WORDS, WERT_WORDS, mode_words

_Card = Annotated[str, msgspec.Meta(pattern=f"^({'|'.join(FARBEN)}) ({'|'.join(WERTE)})$")]
_Seat = Annotated[int, msgspec.Meta(ge=0, lt=SEATS)]
_Names = list[str]


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


_KINDS: Kinds = {
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
_DATA: dict[str, Kinds] = {
    "won": {"names": _Names},
    "lost": {"names": _Names},
    "round_ended": {"reason": str},
    "played": {"seat": _Seat},
}

_WIDE = Layout(
    felt=(430, 196, 740, 408),
    places=(
        Place("bottom", 430, 614, 740, 186, (745, 442)),
        Place("left", 20, 206, 390, 400, (448, 324)),
        Place("top", 430, 8, 740, 186, (745, 206)),
        Place("right", 1190, 206, 390, 400, (1042, 324)),
    ),
    hand=92,
    lying=110,
    story=(800, 411, 460),
    names_below=False,
)
_TALL = Layout(
    felt=(10, 584, 680, 290),
    places=(
        Place("bottom", 10, 882, 680, 170, (384, 686)),
        Place("left", 10, 232, 334, 348, (46, 674)),
        Place("top", 10, 58, 680, 170, (212, 664)),
        Place("right", 356, 232, 334, 348, (546, 674)),
    ),
    hand=78,
    lying=108,
    story=(350, 634, 640),
    names_below=True,
)
_CORNER = 390


def draw_schafkopf(scene: Scene, sheet: Sheet) -> None:
    """The round that is on, or who is there before the first."""
    number, part, events = drawn_game(scene, _KINDS, _DATA)
    accounts = sound_items(scene.state.get("accounts"), Number)
    here = sound_items(scene.state.get("players"), dict[str, Any])
    layout = _TALL if sheet.is_tall else _WIDE
    names: list[str] = part.get("seats") or [f"seat {seat}" for seat in range(SEATS)]
    gone = sorted(name for name, about in here.items() if not about.get("here"))
    if not number:
        _put_waiting(sheet, here, gone, accounts)
        return
    put_felt(sheet, layout)
    _put_facts(sheet, part, scene.state.get("stock"))
    is_played = phase(part) in ("playing", "over")
    put_story(sheet, layout, _story(part, events, sheet.is_tall), 2 if is_played else 3)
    own = next((names.index(name) for name in scene.names if name in names), 0)
    to_move = seat_to_move(part, names)
    last = next((event.data["seat"] for event in events[-2:] if event.kind == "played"), None)
    players = []
    for seat in ((own + step) % SEATS for step in range(SEATS)):
        players.append(_seated(part, names[seat], seat, to_move == seat, last == seat, accounts))
        if names[seat] in gone:
            players[-1].marks.insert(0, "has left")
    put_seated(sheet, layout, players, is_played)
    _put_last_trick(sheet, part)
    others = sorted({*here} - {*gone, *names})
    _put_others(sheet, others, [name for name in gone if name not in names])


def face(card_name: str) -> Face:
    """A card as it is called."""
    farbe, _, wert = card_name.partition(" ")
    return Face(SUITS[FARBEN.index(farbe)], WERT_WORDS[wert], FARBE_WORDS[farbe], WERT_WORDS[wert])


def _seated(
    part: dict[str, Any], name: str, seat: int, to_move: bool, just: bool, accounts: dict[str, int]
) -> Seated:
    left = cards_left(part, seat)
    known = part.get("private", {}).get(name, {}).get("hand")
    cards = [face(each) for each in sorted_hand(known, part.get("mode"))] if known is not None else []
    hidden = left if known is None else max(0, (left or 0) - len(cards))
    figures, brief = [], []
    if part.get("tricks"):
        points = part.get("points", {}).get(name, "?")
        figures.append("1 point" if points == 1 else f"{points} points")
        brief.append(figures[-1])
    if name in accounts:
        figures.append(f"account {accounts[name]}")
        brief.append(f"{accounts[name]}")
    over = taken(part)
    lies = part.get("table", {}).get(str(seat))
    return Seated(
        name=name,
        to_move=to_move,
        marks=[mark.plain for mark in marks(part, name)],
        figures=figures,
        brief=" · ".join(brief),
        cards=cards,
        hidden=hidden,
        lies=face(lies) if lies is not None else None,
        just=just,
        takes=over is not None and over["winner"] == name,
    )


def _put_facts(sheet: Sheet, part: dict[str, Any], stock: object) -> None:
    """The round, and what is played in it: in the corner, or in the first line."""
    facts = f"round {part.get('round', '?')}" + (f" · stock {stock}" if isinstance(stock, int) else "")
    played = mode_words(part["mode"]) if "mode" in part else "no game yet"
    sheet.say(f"Schafkopf, {facts}")
    sheet.say(printable(f"game: {played}"[:80]))
    suit = next(
        (name for farbe, name in zip(FARBEN, SUITS, strict=True) if FARBE_WORDS[farbe] in played), None
    )
    remark = not_known(part)
    if sheet.is_tall:
        sheet.put(text(facts, BESIDE, 305, "k-faint", anchor="end"), 690, 36)
        room, x, y = 370.0, 10.0, 38.0
    else:
        sheet.put(text(facts, BESIDE, _CORNER, "k-faint"), 20, 40)
        room, x, y = float(_CORNER), 20.0, 92.0
        if remark:
            put_lines(sheet, remark, (20, 132), _CORNER, ink="k-faint")
    if suit is not None:
        sheet.put(sign(suit, 44), x + 22, y - 13)
        x, room = x + 54, room - 54
    put_fitted(sheet, played, (x, y), room, (40, 36, 32, 29, 26), bold=True)


def _story(part: dict[str, Any], events: list[Event], is_tall: bool) -> list[str]:
    """What is going on, without the game that is played: that stands elsewhere."""
    said = story(part, events, Text).plain.split("\n")
    if "mode" in part:
        said = said[1:]
    if is_tall:
        said.append(not_known(part))
    return [row for row in said if row]


def _put_last_trick(sheet: Sheet, part: dict[str, Any]) -> None:
    """The last trick that is over."""
    tricks = part.get("tricks")
    if not tricks:
        return
    trick = tricks[-1]
    faces = [face(each) for each in trick["cards"][:SEATS]]
    title = f"last trick: {trick['points']} points for {trick['winner'] or '?'}"
    sheet.say(printable(f"{title}: {', '.join(each.words for each in faces)}"))
    if sheet.is_tall:
        put_fitted(sheet, title, (10, 1088), 680, (28, BESIDE), ink="k-faint")
        return
    x = 1580 - _CORNER
    sheet.put(
        text(f"trick {trick['number']}: {trick['points']} points for", BESIDE, _CORNER, "k-faint"),
        x,
        40,
    )
    put_fitted(sheet, trick["winner"] or "?", (x, 72), _CORNER, (BESIDE,), bold=True)
    for number, each in enumerate(faces):
        sheet.put(card(each, 82), x + number * 90, 84)


def _put_others(sheet: Sheet, here: list[str], gone: list[str]) -> None:
    """Who is not at the table."""
    told = [f"{title}: {many(names, 5)}" for title, names in (("also here", here), ("left", gone)) if names]
    for words in told:
        sheet.say(printable(words))
    if told and not sheet.is_tall:
        y = 660.0
        for words in told:
            y = put_lines(sheet, words, (20, y), _CORNER, ink="k-faint")


def _put_waiting(sheet: Sheet, here: dict[str, Any], gone: list[str], accounts: dict[str, int]) -> None:
    """Before the first round, or after the last: who is there, with the accounts."""

    def said(names: list[str]) -> list[tuple[str, str]]:
        return [(name, f"account {accounts[name]}" if name in accounts else "") for name in names]

    present = sorted({*here} - {*gone})
    groups = [Gathered(title, said(names)) for title, names in (("here", present), ("left", gone)) if names]
    put_gathering(sheet, "no round yet", groups)
