"""The choice of routes to a case's injection point: simulated peers or a recorded game."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from kiebitz.dissectors.conformance.bots import Player
from kiebitz.dissectors.conformance.expectations import HEARS
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.probing.answer_route import AnsweringWay, only_answers
from kiebitz.dissectors.probing.case import Case
from kiebitz.dissectors.probing.client_route import PlayersWay
from kiebitz.dissectors.probing.routes import RecordedWay, Way
from kiebitz.dissectors.probing.server_route import HostWay
from kiebitz.dissectors.probing.simulated_route import Goal
from kiebitz.dissectors.probing.simulated_table import Company
from kiebitz.proxy.relay.modes import endpoint
from kiebitz.services.probing.connection_setup import Conditions
from kiebitz.services.server_addresses import places_of

_NAMES = ("Anna", "Bert", "Cleo", "Dora")
_STRANGER = "Emil"

_GAMES = 8
"""Maximum number of games to play: not every game has everything that can happen."""

Making = Callable[[int], Way]
"""Creates a route; its argument is a seed that varies the play."""


def ways_to(case: Case, conditions: Conditions) -> Sequence[Making]:
    """Return the routes to a case's injection point in the order to try them; empty if there are none."""
    goal = Goal(case.aim(conditions.dissector), case.at_start, case.harmless, case.is_cut)
    played = [lambda seed: _played(conditions, goal, seed, 0)] if _may_be_played(conditions, goal) else []
    recorded = (
        [lambda seed: _recorded(conditions, case.fits, case.at_start, case.is_cut)]
        if conditions.script is not None
        else []
    )
    # A record contains the first messages of a conversation; for others, simulated peers get further.
    return [*recorded, *played] if conditions.is_like or case.at_start else [*played, *recorded]


def way_of_game(conditions: Conditions, seed: int) -> Way:
    """Return a route that plays a game without any case."""
    if _may_be_played(conditions, Goal()):
        return _played(conditions, Goal(), seed, _GAMES)
    return _recorded(conditions, None)


def _may_be_played(conditions: Conditions, goal: Goal) -> bool:
    about = conditions.dissector
    if conditions.side == "server":
        return about.player is not None
    # A server sends the first message only if the protocol has it so.
    return about.player is not None and about.host is not None and not goal.early


def _played(conditions: Conditions, goal: Goal, seed: int, games: int) -> Way:
    about, address, habits = conditions.dissector, conditions.address, conditions.habits
    if conditions.side == "server":
        players = [_player(conditions, name, seed, games) for name in _NAMES[: about.seats]]
        stranger = _player(conditions, _STRANGER, seed, 0)
        return PlayersWay(about, players, stranger, address, goal, habits, time.monotonic)
    assert about.host is not None
    others = [_player(conditions, name, seed, 0) for name in _NAMES[1 : about.seats]]
    company = Company(about.host(about.seats, seed, games), others)
    return HostWay(about, company, address, goal, habits, time.monotonic)


def _player(conditions: Conditions, name: str, seed: int, games: int) -> Player:
    make = conditions.dissector.player
    assert make is not None
    return make(name, seed + len(name) + ord(name[0]), games)


def _recorded(
    conditions: Conditions,
    fits: Callable[[Decoded], bool] | None,
    at_start: bool = False,
    is_cut: bool = False,
) -> Way:
    about, script, plays = conditions.dissector, conditions.script, HEARS[conditions.side]
    assert script is not None
    servers = places_of([endpoint(*conditions.address)], script.servers)
    if only_answers(about, plays) and fits is not None:
        return AnsweringWay(script, about, servers, fits, at_start)
    return RecordedWay(script, plays, {about.protocol: about}, servers, fits, at_start, is_cut)
