"""The view of a Mäxchen table: the cup and the dice, the roll to beat, the players with their points.

Between two rounds the dice of the last one stay on the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from kiebitz.dissectors.game.valid_state import Number, Types, valid_events, valid_game, valid_items
from kiebitz.dissectors.game.view import (
    Call,
    Dice,
    Element,
    Figure,
    Group,
    Line,
    Name,
    Scene,
    Seat,
    Span,
    View,
    counted,
    latest,
    not_known,
)
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.maexchen.dice import CANCELED_WORDS, LOST_WORDS, MIA, MIA_WORD

_UNKNOWN = {"players": "who plays", "announced": "what to beat", "round": "which round"}


class _Announced(TypedDict):
    name: str
    dice: str


class _Lost(TypedDict, total=False):
    names: list[str]
    reason: str


class _Own(TypedDict, total=False):
    dice: str
    bluff: bool
    joined: bool


_TYPES = Types(
    {
        "phase": str,
        "round": Number,
        "players": list[str],
        "turn": str,
        "rolling": str,
        "seer": str,
        "actual": str,
        "announced": _Announced,
        "lost": _Lost,
        "private": dict[str, _Own],
        "unknown": list[str],
        "inferred": list[str],
    }
)
_DATA = {
    "announced": Types({"name": str, "dice": str}),
    "lost": Types({"names": list[str], "reason": str}),
    "actual_dice": Types({"dice": str}),
    "round_started": Types({"players": list[str]}),
    "round_canceled": Types({"reason": str}),
}


def view_of(scene: Scene) -> View:
    """Return the view of a table."""
    return _Table(scene).view()


class _Table:
    def __init__(self, scene: Scene) -> None:
        _, self.part, events = valid_game(scene, _TYPES, _DATA)
        # During a round only its own events count.
        before = [] if self.part.get("phase") == "started" else valid_events(scene.events, _DATA)
        self.names = scene.names
        known = valid_items(scene.state.get("players"), dict[str, Any])
        self.watching = sorted(name for name, about in known.items() if about.get("spectator"))
        self.scores = valid_items(scene.state.get("scores"), Number)
        self.players: list[str] = self.part.get("players", sorted({*known} - {*self.watching}))
        self.absent = sorted({*known, *self.scores} - {*self.players} - {*self.watching})
        self.to_move = player_to_move(self.part)
        self.announced: dict[str, str] = self.part.get("announced", {})
        self.lost: Sequence[str] = self.part.get("lost", {}).get("names", ())
        self.actual: str | None = self.part.get("actual")
        if self.part:
            self.story = _story(self.part, before)
        else:
            self.story = _last_round(before)
            events = self._events_of_last_round(before)
        self.calls = [
            _call(event.data["name"], event.data["dice"]) for event in events if event.kind == "announced"
        ]
        if self.announced:
            bluffs = bool(self.private(self.announced["name"]).get("bluff"))
            self.calls[-1:] = [_call(self.announced["name"], self.announced["dice"], bluffs)]

    def _events_of_last_round(self, events: Sequence[Event]) -> list[Event]:
        end = latest(events, "lost", "round_canceled")
        if end is None:
            return []
        last = [event for event in events if event.game_id == end.game_id]
        self.lost = end.data.get("names", ())
        self.actual = next((event.data["dice"] for event in last if event.kind == "actual_dice"), None)
        return last

    def view(self) -> View:
        absent = tuple((name, str(self.scores.get(name, ""))) for name in self.absent)
        watching = tuple((name, "") for name in self.watching)
        groups = (Group("not in this round", absent), Group("watching", watching))
        return View(
            names=self.names,
            title=(f"round {self.part.get('round', '?')}",) if self.part else (),
            seats=tuple(map(self.seat, self.players)),
            story=self.story,
            dice=self.dice(),
            calls=tuple(self.calls),
            unknown=not_known(_UNKNOWN.get(field, field) for field in self.part.get("unknown", ())),
            groups=tuple(group for group in groups if group.members),
        )

    def private(self, name: str | None) -> dict[str, Any]:
        private: dict[str, Any] = self.part.get("private", {}).get(name, {})
        return private

    def dice(self) -> Dice:
        """Return the dice as they lie there: open, known to their roller, or under the cup."""
        roller = self.part.get("rolling") or self.announced.get("name")
        if self.actual is not None and (shown := faces(self.actual)):
            return Dice(shown, "open")
        if shown := faces(self.private(roller).get("dice") or ""):
            return Dice(shown, "secret")
        return Dice((), "none" if roller is None and self.actual is None else "hidden")

    def seat(self, name: str) -> Seat:
        # Before the first announcement of points, missing points need no mark.
        points = str(self.scores.get(name, "?")) if self.scores else ""
        joined = self.private(name).get("joined") and "players" not in self.part
        lost, moves = name in self.lost, name == self.to_move
        return Seat(
            name=name,
            state="lost" if lost else "turn" if moves else "joined" if joined else "",
            marks=self.marks(name, lost, moves),
            says=self.calls[-1] if self.announced.get("name") == name else None,
            figures=(Figure(counted(points, "point"), points),) if points else (),
        )

    def marks(self, name: str, lost: bool, moves: bool) -> tuple[Span, ...]:
        """Return the word for a player's action; empty for none, or for an announcement alone."""
        playing = self.part.get("phase") == "started"
        if lost:
            return (Span("lost", "bad"),)
        if playing and self.part.get("seer") == name:
            return (Span("wants to see", "strong"),)
        if playing and self.part.get("rolling") == name:
            return (Span("rolls", "strong"),)
        if self.announced.get("name") == name:
            return ()
        if moves:
            return (Span("next?" if "turn" in self.part.get("inferred", ()) else "to move", "strong"),)
        return (Span("joins", "good"),) if self.private(name).get("joined") else ()


def faces(dice: str) -> tuple[int | str, ...]:
    """Return the two dice of a roll, as `5,3`; empty if it is no roll."""
    found = dice.split(",")[:3]
    if len(found) != 2:
        return ()
    return tuple(int(face) if len(face) == 1 and face in "123456" else face.strip()[:4] for face in found)


def player_to_move(part: dict[str, Any]) -> str | None:
    """Return whose turn it is; None between an announcement and the next player's turn."""
    if part.get("phase") != "started":
        return None
    active: str | None = part.get("rolling") or part.get("turn")
    done = "rolling" not in part and part.get("announced", {}).get("name") == active
    return None if done else active


def _call(name: str, dice: str, bluffs: bool = False) -> Call:
    words = MIA_WORD if dice == MIA else dice
    return Call(name, words, faces(dice), "bluffs" if bluffs else "says", "bad" if bluffs else "")


# What is going on.


def _story(part: dict[str, Any], events: Sequence[Event]) -> tuple[Line, ...]:
    phase = part.get("phase")
    if phase == "lost":
        return _result(part.get("lost", {}), part.get("players"), _events_of_last_loss(events))
    if phase == "canceled":
        canceled = latest(events, "round_canceled")
        return _cancellation(canceled.data["reason"] if canceled else None)
    if phase == "starting":
        joined = [player for player, own in part.get("private", {}).items() if own.get("joined")]
        first, *others = _last_round(events)
        question = f"who plays? {len(joined)} joined" if joined else "who plays?"
        return (question,), (Span("last: ", "faint"), *first), *others
    return tuple(filter(None, _play(part)))


def _last_round(events: Sequence[Event]) -> tuple[Line, ...]:
    """Return the outcome of the last round, between two of them."""
    end = latest(events, "lost", "round_canceled")
    if end is None:
        return (("no round yet",),)
    if end.kind == "round_canceled":
        return _cancellation(end.data["reason"])
    played = _events_of_last_loss(events)
    players = next((event.data["players"] for event in played if event.kind == "round_started"), None)
    return _result(end.data, players, played)


def _result(lost: dict[str, Any], players: list[str] | None, events: Sequence[Event]) -> tuple[Line, ...]:
    """Return who lost and why, in plain words."""
    who = (*_losers(lost.get("names", []), players), Span(" lost", "strong"))
    reason: str = lost.get("reason", "?")
    if reason not in LOST_WORDS:
        # The oldest servers give their reasons in words of their own.
        return who, (reason,)
    return who, (_why(reason, events),)


def _why(reason: str, events: Sequence[Event]) -> str:
    """Return a reason in plain words, with the dice where they are known."""
    announced = [event.data["dice"] for event in events if event.kind == "announced"]
    actual = next((event.data["dice"] for event in events if event.kind == "actual_dice"), None)
    if reason == "ANNOUNCED_LOSING_DICE" and len(announced) > 1:
        return f"announced {announced[-1]}, which does not beat {announced[-2]}"
    if reason == "CAUGHT_BLUFFING" and announced and actual is not None:
        return f"announced {announced[-1]} and had {actual}"
    if reason == "LIED_ABOUT_MIA" and actual is not None:
        return f"announced {MIA_WORD} and had {actual}"
    if reason == "SEE_FAILED" and announced:
        return f"wanted to see, and {announced[-1]} was true"
    return LOST_WORDS[reason]


def _cancellation(reason: str | None) -> tuple[Line, ...]:
    return (Span("canceled", "strong"),), (CANCELED_WORDS.get(reason or "", reason or "?"),)


def _play(part: dict[str, Any]) -> tuple[Line, ...]:
    seer: Line = (Name(part["seer"]), " wants to see") if "seer" in part else ()
    private = part.get("private", {})
    if "actual" in part:
        return seer, (f"the dice were {part['actual']}",)
    if seer:
        return (seer,)
    if (roller := part.get("rolling")) is not None:
        dice = private.get(roller, {}).get("dice")
        if dice is None:
            return (Name(roller), " rolls"), _to_beat(part)
        return (Name(roller), f" has rolled {dice}"), (Span("under the cup", "faint"),), _to_beat(part)
    if (announced := part.get("announced")) is not None:
        own = private.get(announced["name"], {})
        truth: Line = ()
        if own.get("bluff"):
            truth = (Span(f"a bluff: it is {own.get('dice', '?')}", "bad"),)
        elif "bluff" in own:
            truth = (Span("which is true", "good"),)
        player = player_to_move(part)
        asked: Line = (Name(player), ": roll, or see?") if player is not None else ()
        return (Name(announced["name"]), f" announced {announced['dice']}"), truth, asked
    if "turn" in part:
        return (Name(part["turn"]), " is to roll"), _to_beat(part)
    return (_to_beat(part) or ("the round begins",),)


def _to_beat(part: dict[str, Any]) -> Line:
    if "announced" in part:
        dice = part["announced"]["dice"]
        return (f"to beat: {MIA_WORD if dice == MIA else dice}",)
    return ("to beat: ?",) if "announced" in part.get("unknown", ()) else ()


def _events_of_last_loss(events: Sequence[Event]) -> list[Event]:
    loss = latest(events, "lost")
    return [event for event in events if event.game_id == (loss and loss.game_id)]


def _losers(losers: list[str], players: list[str] | None) -> Line:
    if not losers:
        return ("?",)
    if players is not None and len(losers) > 1 and len(players) == len(losers) + 1:
        winner = next((player for player in players if player not in losers), None)
        if winner is not None:
            return ("all but ", Name(winner))
    found: list[Element] = [Name(losers[0])]
    for name in losers[1:3]:
        found += [", ", Name(name)]
    return (*found, f" and {len(losers) - 3} more") if len(losers) > 3 else tuple(found)
