"""What an Okey table looks like in words: who is to do what, how it ended, what is not known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kiebitz.cli.render.text.canvas import Glyphs
from kiebitz.cli.render.text.okey_tiles import tile_words
from kiebitz.cli.terminal.screen import LINE_BREAK, Text
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.okey.tiles import DECK, SEATS

Part = dict[str, Any]
"""A game's part of the state."""

Say = Callable[[str], Text]
"""A player's name as it is drawn."""


def seat_names(part: Part) -> list[str]:
    """What the players are called, by seat."""
    return [_seat(part, seat).get("name") or f"seat {seat}" for seat in range(SEATS)]


def tile_count(part: Part, seat: int) -> int | None:
    """How many tiles a seat has; None where nobody knows."""
    count: int | None = _seat(part, seat).get("tiles")
    return count


def counted(count: int | None) -> str:
    """`14 tiles`."""
    return f"{'?' if count is None else count} tile{'' if count == 1 else 's'}"


def just_put(events: Sequence[Event]) -> Event | None:
    """The put that happened last in a game, until the server tells whose turn is next."""
    latest = events[-1] if events else None
    return latest if latest is not None and latest.kind == "put" and latest.data["valid"] else None


def seat_to_move(part: Part, events: Sequence[Event]) -> int | None:
    """Whose turn it is. Before the first turn is told, it is his who was dealt one tile more."""
    if "winner" in part or "drawn_game" in part or just_put(events) is not None:
        return None
    turn: int | None = part.get("turn")
    if turn is None:
        turn = next((seat for seat in range(SEATS) if tile_count(part, seat) == DECK + 1), None)
    return turn


def story(part: Part, events: Sequence[Event], name: Say, glyphs: Glyphs) -> Text:
    """What is going on; `events` are the latest of the game."""
    if "winner" in part:
        return Text.assemble(name(part["winner"]), (" has won", "bold"))
    if "drawn_game" in part:
        return Text.assemble(("nobody has won", "bold"), LINE_BREAK, "the main stack is empty")
    names = seat_names(part)
    put = just_put(events)
    if put is not None:
        tile = put.data["tile"]
        what = tile_words(tile, glyphs) if tile is not None else "?"
        return Text.assemble(name(names[put.data["seat"]]), LINE_BREAK, "has put ", what)
    seat = seat_to_move(part, events)
    if seat is None:
        return Text("whose turn?")
    task = {DECK: "to draw a tile", DECK + 1: "to put a tile"}.get(tile_count(part, seat) or 0)
    return Text.assemble(name(names[seat]), "'s turn", *(() if task is None else (LINE_BREAK, task)))


def not_known(part: Part) -> str:
    """What should be known and is not; empty if there is nothing."""
    unknown = []
    if any("name" not in _seat(part, seat) for seat in range(SEATS)):
        unknown.append("names")
    if "exchange" not in part:
        unknown.append("exchange stacks")
    return f"not known: {', '.join(unknown)}" if unknown else ""


def _seat(part: Part, seat: int) -> dict[str, Any]:
    about: dict[str, Any] = part.get("seats", {}).get(str(seat), {})
    return about
