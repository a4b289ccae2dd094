"""What a CGML server has besides the hand that is drawn: players, groups and their money, other servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kiebitz.cli.render.text.cgml_words import ending, ending_words
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.names import called

_MOST_GROUPS = 8


def group_name(group: str | None) -> str:
    """A group's number; one that was met in its middle has none that is known."""
    return "?" if group is None or group.startswith("?") else group


def group_lines(
    state: dict[str, Any], names: dict[str, str], drawn: str | None, width: int, pen: Pen
) -> list[Text]:
    """The groups whose hand is not `drawn`, with their money, who is in none, and other servers."""
    groups = {key: about for key, about in state.get("groups", {}).items() if key != drawn}
    lines = [_group(key, groups[key], names, width, pen) for key in [*groups][-_MOST_GROUPS:]]
    if len(groups) > _MOST_GROUPS:
        lines.append(pen.line(f"and {len(groups) - _MOST_GROUPS} more groups", width, "dim"))
    return lines + _elsewhere(state, names, width, pen)


def last_hand(events: Sequence[Event], names: dict[str, str], width: int, pen: Pen) -> list[Text]:
    """How the last hand ended, as far as these events tell."""
    # A group that does not come about is cancelled, too.
    end = ending([event for event in events if event.game_id is not None])
    if end is None:
        return []

    def name(player: int | None) -> Text:
        return pen.name(called(player, names))

    told = Text.assemble(("the last hand: ", "dim"), ending_words(end, name, pen.words, Text(" ")))
    if end.kind == "result":
        amounts = (name(int(player)).append(f" {amount:+d}") for player, amount in end.data["money"].items())
        told.append(": ").append_text(Text(", ").join(amounts))
    return pen.wrap(told, width, 3)


def _group(key: str, about: dict[str, Any], names: dict[str, str], width: int, pen: Pen) -> Text:
    money = about.get("money", {})
    players = about.get("players", ())
    said = {called(player, names): f"({money[str(player)]})" for player in players if str(player) in money}
    return pen.listing(
        f"group {group_name(key)}: ", [called(player, names) for player in players], said, width
    )


def _elsewhere(state: dict[str, Any], names: dict[str, str], width: int, pen: Pen) -> list[Text]:
    """Who plays in no group, and the servers that a login server knows."""
    seated = {
        str(player) for about in state.get("groups", {}).values() for player in about.get("players", ())
    }
    waiting = [player for player in names if player not in seated]
    lines = []
    if waiting:
        bots = {names[player]: "(bot)" for player in waiting if state["players"][player].get("race") == "bot"}
        lines.append(pen.listing("in no group: ", [names[player] for player in waiting], bots, width))
    servers = [f"{url} for {about['numplayers']} players" for url, about in state.get("servers", {}).items()]
    loads = [f"{client} {load}" for client, load in state.get("loads", {}).items()]
    for title, known in (("game servers: ", servers), ("load of servers of bots: ", loads)):
        if known:
            lines.append(pen.words(title + ", ".join(known), width))
            lines[-1].stylize("dim")
    return lines
