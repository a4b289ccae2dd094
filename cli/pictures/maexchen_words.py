"""What a round of Mäxchen looks like in words: the few lines beside the dice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.text import Text

from dissectors.maexchen.dice import MIA
from dissectors.records import Event

Say = Callable[[str], Text]
"""A player's name as it is drawn, or a text from the network made safe."""

_REASONS = {
    "SEE_BEFORE_FIRST_ROLL": "wanted to see before anybody had rolled",
    "LIED_ABOUT_MIA": "announced Mäxchen and did not have it",
    "ANNOUNCED_LOSING_DICE": "announced too little",
    "DID_NOT_ANNOUNCE": "did not announce in time",
    "DID_NOT_TAKE_TURN": "did not take the turn in time",
    "INVALID_TURN": "did what is not allowed",
    "SEE_FAILED": "wanted to see, and it was true",
    "CAUGHT_BLUFFING": "was caught bluffing",
    "MIA": "against Mäxchen",
}
_CANCELED = {
    "NO_PLAYERS": "nobody joined",
    "no players": "nobody joined",
    "ONLY_ONE_PLAYER": "only one player joined",
    "only one player": "only one player joined",
}
_UNKNOWN = {"players": "who plays", "announced": "what is to beat", "round": "which round"}


def told(part: dict[str, Any], events: Sequence[Event], name: Say, words: Say) -> Text:
    """What is going on in a round that is on, or what became of it; `events` are the latest of the table."""
    phase = part.get("phase")
    if phase == "lost":
        return result(part.get("lost", {}), part.get("players"), _announcements(events), name, words)
    if phase == "canceled":
        canceled = next((event for event in reversed(events) if event.kind == "round_canceled"), None)
        return cancellation(canceled.data["reason"] if canceled else None, words)
    if phase == "starting":
        joined = part.get("joined", [])
        return Text.assemble(
            "who plays?", f" {len(joined)} joined" if joined else "", "\n", between(events, name, words)
        )
    return _play(part, name)


def between(events: Sequence[Event], name: Say, words: Say) -> Text:
    """What became of the last round, between two of them."""
    for event in reversed(events):
        if event.kind == "lost":
            before = [other for other in events if other.game_id == event.game_id]
            players = next((other.data["players"] for other in before if other.kind == "round_started"), None)
            return result(event.data, players, _announcements(before), name, words)
        if event.kind == "round_canceled":
            return cancellation(event.data["reason"], words)
    return Text("no round yet", "dim")


def result(
    lost: dict[str, Any], players: list[str] | None, announced: list[str], name: Say, words: Say
) -> Text:
    """Who lost and why, in plain words and as the server put it; `announced` are the dice, in order."""
    losers: list[str] = lost.get("names", [])
    reason: str = lost.get("reason", "?")
    who = _losers(losers, players, name)
    if reason not in _REASONS:
        # The oldest servers give their reasons in words of their own.
        return Text.assemble(who, (" lost", "bold"), "\n", words(reason))
    why = _REASONS[reason]
    if reason == "ANNOUNCED_LOSING_DICE" and len(announced) > 1:
        why = f"announced {announced[-1]}, which does not beat {announced[-2]}"
    return Text.assemble(who, (" lost", "bold"), f"\n{why}\n", (reason, "dim"))


def cancellation(reason: str | None, words: Say) -> Text:
    """Why a round did not take place."""
    why = Text(_CANCELED[reason]) if reason in _CANCELED else words(reason or "?")
    code = Text(f"\n{reason}", "dim") if reason in _CANCELED else Text()
    return Text.assemble(("canceled\n", "bold"), why, code)


def not_known(part: dict[str, Any]) -> str:
    """Which parts of a round are not known since a gap; empty if there was none."""
    return ", ".join(_UNKNOWN.get(field, field) for field in part.get("unknown", ()))


def _play(part: dict[str, Any], name: Say) -> Text:
    announced = part.get("announced")
    private = part.get("private", {})
    if "actual" in part:
        return Text.assemble(_seer(part, name), "the dice were ", (part["actual"], "bold"))
    if "seer" in part:
        return _seer(part, name)
    if (roller := part.get("rolling")) is not None:
        dice = private.get(roller, {}).get("dice")
        if dice is None:
            return Text.assemble(name(roller), " rolls\n", _to_beat(part))
        return Text.assemble(
            name(roller), " has rolled ", (dice, "bold"), ("\nunder the cup\n", "dim"), _to_beat(part)
        )
    if announced is not None:
        story = Text.assemble(name(announced["name"]), " announced ", (announced["dice"], "bold"))
        own = private.get(announced["name"], {})
        if "bluff" in own:
            real = own.get("dice", "?")
            story.append("\n")
            story.append_text(
                Text(f"a bluff: it is {real}", "bold red") if own["bluff"] else Text("which is true", "green")
            )
        return story
    if "turn" in part:
        return Text.assemble(name(part["turn"]), " is to roll\n", _to_beat(part))
    return _to_beat(part) if "announced" in part.get("unknown", ()) else Text("the round begins")


def _seer(part: dict[str, Any], name: Say) -> Text:
    return Text.assemble(name(part["seer"]), " wants to see\n") if "seer" in part else Text()


def _to_beat(part: dict[str, Any]) -> Text:
    if "announced" in part:
        dice = part["announced"]["dice"]
        return Text.assemble("to beat: ", ("Mäxchen" if dice == MIA else dice, "bold"))
    return Text("to beat: ?") if "announced" in part.get("unknown", ()) else Text()


def _announcements(events: Sequence[Event]) -> list[str]:
    """The dice that were announced in the latest round, in order."""
    game = next((event.game_id for event in reversed(events) if event.kind == "lost"), None)
    return [event.data["dice"] for event in events if event.kind == "announced" and event.game_id == game]


def _losers(losers: list[str], players: list[str] | None, name: Say) -> Text:
    if not losers:
        return Text("?")
    if players is not None and len(losers) > 1 and len(players) == len(losers) + 1:
        winner = next((player for player in players if player not in losers), None)
        if winner is not None:
            return Text.assemble("all but ", name(winner))
    listed = Text(", ").join(map(name, losers[:3]))
    return listed.append(f" and {len(losers) - 3} more") if len(losers) > 3 else listed
