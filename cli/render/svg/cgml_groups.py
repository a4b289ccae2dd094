"""A CGML server without a hand that is played: the groups with their money, players, other servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from kiebitz.cli.render.svg.idle_server import Gathered, put_gathering
from kiebitz.cli.render.svg.lettering import many
from kiebitz.cli.render.svg.state_validation import Key, Kinds, Number, sound_events, sound_items
from kiebitz.cli.render.svg.svg_canvas import Sheet
from kiebitz.cli.render.text.cgml_groups import group_name
from kiebitz.cli.render.text.cgml_words import ending, ending_words
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.names import called


class _Player(TypedDict, total=False):
    name: str
    race: str


class _Group(TypedDict, total=False):
    players: list[Number]
    money: dict[Key, Number]


class _Server(TypedDict):
    numplayers: Number


def sound_state(state: State) -> dict[str, Any]:
    """What is shown of a state beside its games."""
    return {
        "players": sound_items(state.get("players"), _Player, Key),
        "groups": sound_items(state.get("groups"), _Group),
        "servers": sound_items(state.get("servers"), _Server),
        "loads": sound_items(state.get("loads"), Number),
    }


def put_groups(
    sheet: Sheet,
    state: dict[str, Any],
    names: dict[str, str],
    events: Sequence[Event],
    data: Mapping[str, Kinds],
) -> None:
    """How the last hand ended, the groups, who is in none, and what other servers there are."""
    rows = _last_hand(sound_events([event for event in events if event.game_id is not None], data), names)
    groups = []
    seated = set()
    for key, about in state["groups"].items():
        players = about.get("players", [])
        seated |= {*map(str, players)}
        money = about.get("money", {})
        said = [f"money {money[str(player)]}" if str(player) in money else "" for player in players]
        names_in_it = [called(player, names) for player in players]
        groups.append(Gathered(f"group {group_name(key)[:20]}", [*zip(names_in_it, said, strict=True)]))
    waiting = [
        (name, "bot" if state["players"][player].get("race") == "bot" else "")
        for player, name in names.items()
        if player not in seated
    ]
    if waiting:
        groups.append(Gathered("in no group", waiting))
    servers = [f"{url} for {about['numplayers']} players" for url, about in state["servers"].items()]
    loads = [f"{client} {load}" for client, load in state["loads"].items()]
    for title, found in (("game servers", servers), ("load of servers of bots", loads)):
        if found:
            rows.append(f"{title}: {many(found, 6)}")
    put_gathering(
        sheet, "mariáš: no hand is played" if rows or groups else "mariáš: nobody is here yet", groups, rows
    )


def _last_hand(events: list[Event], names: dict[str, str]) -> list[str]:
    end = ending(events)
    if end is None:
        return []
    told = ending_words(end, lambda player: Text(called(player, names)[:40]), Text, Text(" ")).plain
    if end.kind == "result":
        money = [
            f"{called(int(player), names)[:40]} {amount:+d}" for player, amount in end.data["money"].items()
        ]
        told += ": " + many(money, 6)
    return [f"the last hand: {told}"]
