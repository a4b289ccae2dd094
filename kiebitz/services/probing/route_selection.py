"""Which ways lead to a case's place: simple players first, or a recorded game, whichever knows it better."""

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
"""So many games are played if there is time: not each has all that can happen."""

Making = Callable[[int], Way]
"""Makes a way; of another number it plays otherwise."""


def ways_to(case: Case, conditions: Conditions) -> Sequence[Making]:
    """The ways to a case's place, what is tried first coming first; empty if there is none."""
    goal = Goal(case.aim(conditions.dissector), case.at_start, case.harmless, case.is_cut)
    played = [lambda seed: _played(conditions, goal, seed, 0)] if _may_be_played(conditions, goal) else []
    recorded = (
        [lambda seed: _recorded(conditions, case.fits, case.at_start, case.is_cut)]
        if conditions.script is not None
        else []
    )
    # A record has what is said first in it; else players come further.
    return [*recorded, *played] if conditions.is_like or case.at_start else [*played, *recorded]


def way_of_game(conditions: Conditions, seed: int) -> Way:
    """A way on which a game is played, and nothing odd is done."""
    if _may_be_played(conditions, Goal()):
        return _played(conditions, Goal(), seed, _GAMES)
    return _recorded(conditions, None)


def _may_be_played(conditions: Conditions, goal: Goal) -> bool:
    about = conditions.dissector
    if conditions.side == "server":
        return about.conformance.player is not None
    # A host says something first only if it is the protocol's way.
    return about.conformance.player is not None and about.conformance.host is not None and not goal.early


def _played(conditions: Conditions, goal: Goal, seed: int, games: int) -> Way:
    about, address, habits = conditions.dissector, conditions.address, conditions.habits
    if conditions.side == "server":
        players = [_player(conditions, name, seed, games) for name in _NAMES[: about.conformance.seats]]
        stranger = _player(conditions, _STRANGER, seed, 0)
        return PlayersWay(about, players, stranger, address, goal, habits, time.monotonic)
    assert about.conformance.host is not None
    others = [_player(conditions, name, seed, 0) for name in _NAMES[1 : about.conformance.seats]]
    company = Company(about.conformance.host(about.conformance.seats, seed, games), others)
    return HostWay(about, company, address, goal, habits, time.monotonic)


def _player(conditions: Conditions, name: str, seed: int, games: int) -> Player:
    make = conditions.dissector.conformance.player
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
