"""What a round of Mäxchen looks like in words: the few lines beside the dice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kiebitz.cli.terminal.screen import LINE_BREAK, Text
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.maexchen.dice import MIA
from kiebitz.dissectors.protocols.maexchen.words import CANCELED_WORDS, LOST_WORDS, MIA_WORD

Say = Callable[[str], Text]
"""A player's name as it is drawn, or a text from the network made safe."""

_UNKNOWN = {"players": "who plays", "announced": "what to beat", "round": "which round"}


def told(part: dict[str, Any], events: Sequence[Event], name: Say, words: Say) -> Text:
    """What is going on in a round that is on, or what became of it; `events` are the latest of the table."""
    phase = part.get("phase")
    if phase == "lost":
        return result(part.get("lost", {}), part.get("players"), _last_game(events), name, words)
    if phase == "canceled":
        canceled = next((event for event in reversed(events) if event.kind == "round_canceled"), None)
        return cancellation(canceled.data["reason"] if canceled else None, words)
    if phase == "starting":
        joined = [player for player, own in part.get("private", {}).items() if own.get("joined")]
        last = between(events, name, words)
        return Text.assemble(
            "who plays?", f" {len(joined)} joined" if joined else "", LINE_BREAK, ("last: ", "dim"), last
        )
    return _play(part, name, words)


def between(events: Sequence[Event], name: Say, words: Say) -> Text:
    """What became of the last round, between two of them."""
    end = next((event for event in reversed(events) if event.kind in ("lost", "round_canceled")), None)
    if end is None:
        return Text("no round yet")
    if end.kind == "round_canceled":
        return cancellation(end.data["reason"], words)
    played = _last_game(events)
    players = next((event.data["players"] for event in played if event.kind == "round_started"), None)
    return result(end.data, players, played, name, words)


def result(
    lost: dict[str, Any], players: list[str] | None, events: Sequence[Event], name: Say, words: Say
) -> Text:
    """Who lost and why, in plain words and as the server put it; `events` are those of the round."""
    who = _losers(lost.get("names", []), players, name)
    reason: str = lost.get("reason", "?")
    if reason not in LOST_WORDS:
        # The oldest servers give their reasons in words of their own.
        return Text.assemble(who, (" lost", "bold"), LINE_BREAK, words(reason))
    why = words(_why(reason, events))
    return Text.assemble(who, (" lost", "bold"), LINE_BREAK, why, LINE_BREAK, (reason, "dim"))


def _why(reason: str, events: Sequence[Event]) -> str:
    """A reason in plain words, with the dice where they are known."""
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


def cancellation(reason: str | None, words: Say) -> Text:
    """Why a round did not take place."""
    why = Text(CANCELED_WORDS[reason]) if reason in CANCELED_WORDS else words(reason or "?")
    code = Text.assemble(LINE_BREAK, (reason, "dim")) if reason in CANCELED_WORDS else Text()
    return Text.assemble(("canceled", "bold"), LINE_BREAK, why, code)


def player_to_move(part: dict[str, Any]) -> str | None:
    """Whose turn it is; nobody's between an announcement and the next player's turn."""
    if part.get("phase") != "started":
        return None
    active: str | None = part.get("rolling") or part.get("turn")
    done = "rolling" not in part and part.get("announced", {}).get("name") == active
    return None if done else active


def not_known(part: dict[str, Any]) -> str:
    """Which parts of a round are not known since a gap; empty if there was none."""
    return ", ".join(_UNKNOWN.get(field, field) for field in part.get("unknown", ()))


def _play(part: dict[str, Any], name: Say, words: Say) -> Text:
    announced = part.get("announced")
    private = part.get("private", {})
    if "actual" in part:
        return Text.assemble(_seer(part, name), "the dice were ", words(part["actual"]))
    if "seer" in part:
        return _seer(part, name)
    if (roller := part.get("rolling")) is not None:
        dice = private.get(roller, {}).get("dice")
        if dice is None:
            return Text.assemble(name(roller), " rolls", LINE_BREAK, _to_beat(part, words))
        return Text.assemble(
            *(name(roller), " has rolled ", words(dice), LINE_BREAK),
            *(("under the cup", "dim"), LINE_BREAK, _to_beat(part, words)),
        )
    if announced is not None:
        story = Text.assemble(name(announced["name"]), " announced ", words(announced["dice"]))
        own = private.get(announced["name"], {})
        if "bluff" in own:
            real = words(own.get("dice", "?")).plain
            story.append_text(LINE_BREAK)
            if own["bluff"]:
                story.append(f"a bluff: it is {real}", "bold red")
            else:
                story.append("which is true", "green")
        if (player := player_to_move(part)) is not None:
            story.append_text(LINE_BREAK).append_text(name(player)).append(": roll, or see?")
        return story
    if "turn" in part:
        return Text.assemble(name(part["turn"]), " is to roll", LINE_BREAK, _to_beat(part, words))
    return _to_beat(part, words) if "announced" in part.get("unknown", ()) else Text("the round begins")


def _seer(part: dict[str, Any], name: Say) -> Text:
    return Text.assemble(name(part["seer"]), " wants to see", LINE_BREAK) if "seer" in part else Text()


def _to_beat(part: dict[str, Any], words: Say) -> Text:
    if "announced" in part:
        dice = part["announced"]["dice"]
        return Text.assemble("to beat: ", Text(MIA_WORD) if dice == MIA else words(dice))
    return Text("to beat: ?") if "announced" in part.get("unknown", ()) else Text()


def _last_game(events: Sequence[Event]) -> list[Event]:
    """The events of the game that was lost last."""
    game = next((event.game_id for event in reversed(events) if event.kind == "lost"), None)
    return [event for event in events if event.game_id == game]


def _losers(losers: list[str], players: list[str] | None, name: Say) -> Text:
    if not losers:
        return Text("?")
    if players is not None and len(losers) > 1 and len(players) == len(losers) + 1:
        winner = next((player for player in players if player not in losers), None)
        if winner is not None:
            return Text.assemble("all but ", name(winner))
    listed = Text(", ").join(map(name, losers[:3]))
    return listed.append(f" and {len(losers) - 3} more") if len(losers) > 3 else listed
