"""A table of licitovaný mariáš: three players who keep their places, the game that is played, the trick."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

import msgspec

from kiebitz.cli.render.svg.cards import ACORN, BELL, HEART, LEAF, Face, backs, card, sign
from kiebitz.cli.render.svg.cgml_groups import put_groups, sound_state
from kiebitz.cli.render.svg.lettering import BESIDE, put_fitted, put_lines
from kiebitz.cli.render.svg.pieces import text
from kiebitz.cli.render.svg.seats import Layout, Place, Seated, put_felt, put_seated, put_story
from kiebitz.cli.render.svg.state_validation import Key, Kinds, Number, drawn_game
from kiebitz.cli.render.svg.svg_canvas import Sheet
from kiebitz.cli.render.text.canvas import UNICODE
from kiebitz.cli.render.text.cgml_groups import group_name
from kiebitz.cli.render.text.cgml_words import (
    around,
    ending,
    marks,
    on_table,
    sorted_hand,
    story,
    taken,
    tricks_words,
)
from kiebitz.cli.render.text.scene import Scene
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.cards import COLOURS, HEIGHTS, SEATS, WITHOUT_TRUMPS
from kiebitz.dissectors.protocols.cgml.names import called, player_names
from kiebitz.dissectors.protocols.cgml.words import SUIT_WORDS, level_words, value_words

_Card = Annotated[str, msgspec.Meta(pattern=f"^[{COLOURS}]({'|'.join(HEIGHTS)})$")]
_Colour = Literal["R", "B", "G", "A"]
_Id = Annotated[int, msgspec.Meta(ge=0, le=10**15)]


class _Own(TypedDict, total=False):
    hand: list[_Card]
    talon: list[_Card]


class _Bid(TypedDict):
    call: str
    player: _Id | None


class _Played(TypedDict):
    card: _Card
    player: _Id | None


class _Trick(TypedDict):
    cards: list[_Played]
    number: Number
    winner: _Id | None


class _Pause(TypedDict):
    player: _Id | None
    message: str


class _Laid(TypedDict):
    player: _Id | None
    cards: list[_Card]


_KINDS: Kinds = {
    "group": str,
    "hand": Number,
    "seats": list[_Id],
    "hands": dict[Key, Number],
    "private": dict[Key, _Own],
    "bidding": list[_Bid],
    "declarer": _Id,
    "contract": str,
    "talon": Annotated[int, msgspec.Meta(ge=0, le=32)],
    "trump": _Colour,
    "second": _Colour,
    "flek": Annotated[str, msgspec.Meta(pattern="^[0-9]{1,9}(:[0-9]{1,9})?$")],
    "tricks": list[_Trick],
    "table": list[_Played],
    "turn": _Id,
    "pause": _Pause,
    "laid": _Laid,
    "unknown": list[str],
}
_DATA: dict[str, Kinds] = {
    "result": {"winners": list[_Id], "money": dict[Key, Number]},
    "cancelled": {"why": str},
    "aborted": {"player": _Id | None, "why": str},
    "renonc": {"player": _Id | None, "card": _Card | None, "should": list[_Card]},
    "played": {"player": _Id | None},
}

_SIGNS = {"R": HEART, "B": BELL, "G": LEAF, "A": ACORN}
_SHORT = {"0Q": "svr", "0J": "spo"}

_WIDE = Layout(
    felt=(430, 10, 740, 540),
    places=(
        Place("bottom", 262, 566, 1076, 186, (741, 380)),
        Place("left", 20, 10, 390, 560, (456, 290)),
        Place("right", 1190, 10, 390, 560, (1026, 290)),
    ),
    hand=84,
    lying=118,
    story=(800, 310, 440),
    names_below=False,
)
_TALL = Layout(
    felt=(10, 474, 680, 396),
    places=(
        Place("bottom", 10, 880, 680, 150, (281, 616)),
        Place("left", 10, 104, 334, 366, (56, 590)),
        Place("right", 356, 104, 334, 366, (506, 590)),
    ),
    hand=64,
    lying=138,
    story=(350, 540, 640),
    names_below=True,
)
_CORNER = 240
"""So wide are the corners beside the hand at the bottom."""


def draw_cgml(scene: Scene, sheet: Sheet) -> None:
    """The hand that is played, or the groups; of a login server, who and what is there."""
    state = sound_state(scene.state)
    names = player_names(state)
    number, part, events = drawn_game(scene, _KINDS, _DATA)
    if not number:
        put_groups(sheet, state, names, scene.events, _DATA)
        return
    layout = _TALL if sheet.is_tall else _WIDE
    put_felt(sheet, layout)
    _put_game(sheet, part)
    end = ending(events)
    said = story(part, events, lambda player: Text(called(player, names)[:60]), Text, UNICODE).plain
    latest = events[-1] if events else None
    if latest is not None and latest.kind == "renonc" and end is None:
        said = _renonc(latest, names)
    put_story(sheet, layout, said.split("\n"), 3)
    players = [_seated(state, part, events, player, names) for player in around(part)]
    put_seated(sheet, layout, players, "contract" in part or bool(on_table(part)))
    _put_said(sheet, part, names)


def face(code: str) -> Face:
    """A card as it is called."""
    colour, value = code[0], code[1:]
    word = value_words(value)
    return Face(_SIGNS[colour], word, SUIT_WORDS[colour], _SHORT.get(value, word))


def _seated(
    state: dict[str, Any],
    part: dict[str, Any],
    events: list[Event],
    player: int | None,
    names: dict[str, str],
) -> Seated:
    if player is None:
        return Seated("?", False, [], [], "", [], None, None, False, False)
    key = str(player)
    end = ending(events)
    figures = [words] if (words := tricks_words(part, player)) else []
    if end is not None and end.kind == "result" and key in end.data["money"]:
        figures.append(f"this hand {end.data['money'][key]:+d}")
    money = state["groups"].get(part.get("group"), {}).get("money", {})
    if key in money:
        figures.append(f"money {money[key]}")
    # Events call players by their id.
    figures.append(f"id {player}")
    known = part.get("private", {}).get(key, {}).get("hand")
    left = part.get("hands", {}).get(key)
    over = taken(part)
    lies = on_table(part).get(player)
    last = next((event.data["player"] for event in events[-2:] if event.kind == "played"), None)
    return Seated(
        name=called(player, names),
        to_move=part.get("turn") == player and end is None,
        marks=[mark.plain for mark in marks(part, player)],
        figures=figures,
        brief=" · ".join(figures[-2:]),
        cards=[face(each) for each in sorted_hand(known, part)] if known is not None else [],
        hidden=left if known is None else max(0, (left or 0) - len(known)),
        lies=face(lies) if lies is not None else None,
        just=last == player,
        takes=over is not None and over["winner"] == player,
    )


def _renonc(event: Event, names: dict[str, str]) -> str:
    told = f"{called(event.data['player'], names)[:60]} revokes"
    if event.data["card"] is None:
        return told
    should = ", ".join(face(each).words for each in event.data["should"])
    return f"{told}\n{face(event.data['card']).words}\nfor {should}"


def _game(part: dict[str, Any]) -> str:
    """What is played."""
    contract = part.get("contract")
    if contract is None:
        return "no game yet"
    if contract == "PASS":
        return "all have passed"
    if contract in WITHOUT_TRUMPS:
        return f"{contract}, no trumps"
    words = [str(contract)]
    if "trump" in part:
        words.append(f"trumps {SUIT_WORDS[part['trump']]}")
    return ", ".join(words)


def _put_game(sheet: Sheet, part: dict[str, Any]) -> None:
    """The group, the game, how often it is doubled, and the talon."""
    hand = f"group {group_name(part.get('group'))} · hand {part.get('hand', '?')}"
    game = _game(part)
    flek = level_words(part.get("flek", "1"))
    second = f"second {SUIT_WORDS[part['second']]}" if "second" in part else ""
    talon = part.get("private", {}).get(str(part.get("declarer")), {}).get("talon")
    faces = [face(each) for each in talon[:SEATS]] if talon is not None else []
    sheet.say(printable(f"mariáš, {hand}"[:200]))
    sheet.say(printable(", ".join(filter(None, (f"game: {game}", second, flek)))[:200]))
    hidden = part.get("talon", 0)
    told = "talon: " + ", ".join(each.words for each in faces) if faces else f"talon: {hidden} hidden cards"
    if faces or hidden:
        sheet.say(told)
    trump = part.get("trump")
    room, x, y = (406.0, 10.0, 40.0) if sheet.is_tall else (510.0, 462.0, 108.0)
    if trump is not None:
        sheet.put(sign(_SIGNS[trump], 46), x + 22, y - 14)
        x, room = x + 56, room - 56
    put_fitted(sheet, game, (x, y), room, (42, 36, 32, 28, BESIDE), bold=True)
    if sheet.is_tall:
        sheet.put(text(hand, BESIDE, 270, "k-faint", anchor="end"), 690, 38)
        line = " · ".join(filter(None, (second, flek, told if faces or hidden else "")))
        if line:
            put_fitted(sheet, line, (10, 82), 680, (28, BESIDE, 24))
        return
    sheet.put(text(hand, BESIDE, 480, "k-faint"), 462, 52)
    y += 50
    for words in filter(None, (flek, second)):
        put_fitted(sheet, words, (462, y), 500, (32, 28, BESIDE), bold=True)
        y += 42
    if faces or hidden:
        sheet.put(text("talon", BESIDE, 180, "k-faint", anchor="end"), 1140, 52)
    for place, each in enumerate(reversed(faces)):
        sheet.put(card(each, 82), 1058 - 88 * place, 64)
    if not faces and hidden:
        sheet.put(backs(hidden, 82, 120), 1140 - 120, 64)


def _put_said(sheet: Sheet, part: dict[str, Any], names: dict[str, str]) -> None:
    """What was bid, the last trick, what was laid down, and what is not known."""
    bids = [f"{bid['call'][:8]} {called(bid['player'], names)[:20]}" for bid in part.get("bidding", ())]
    blocks = []
    if part.get("tricks"):
        trick = part["tricks"][-1]
        title = f"trick {trick['number']} for {called(trick['winner'], names)[:20]}"
        blocks.append([title, *(face(played["card"]).words for played in trick["cards"][:SEATS])])
    if "laid" in part:
        laid = part["laid"]
        title = f"{called(laid['player'], names)[:20]} lays down"
        blocks.append([title, *(face(each).words for each in laid["cards"][:10])])
    unknown = [f"not known: {', '.join(part['unknown'])}"[:100]] if part.get("unknown") else []
    if bids:
        sheet.say(printable("bidding: " + ", ".join(bids[-12:])))
    for title, *cards in blocks:
        sheet.say(printable(f"{title}: {', '.join(cards)}"))
    for words in unknown:
        sheet.say(printable(words))
    if sheet.is_tall:
        told = [f"{title}: {', '.join(cards)}" for title, *cards in blocks[-1:]]
        told += ["bidding: " + ", ".join(bids[-4:])] if bids and not told else []
        for words in (told + unknown)[:1]:
            put_lines(sheet, words, (10, 1062), 680, ink="k-faint")
        return
    latest = [
        "bidding",
        *(f"… {len(bids) - 4} more" for _ in bids[5:6]),
        *bids[-5 if len(bids) < 6 else -4 :],
    ]
    for x, rows in ((20.0, latest if bids else []), (1342.0, (blocks[-1] if blocks else []) + unknown)):
        y = 596.0
        for row in rows[:6]:
            y = put_lines(sheet, row, (x, y), _CORNER, size=24, ink="k-faint", most=1 if x < 100 else 2)
