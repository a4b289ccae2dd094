"""The choice of routes to the injection points of cases: simulated peers, or recorded games."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from typing import Literal, NamedTuple

from kiebitz.dissectors.conformance.bots import Bot
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.probing.case import Case
from kiebitz.dissectors.probing.client_route import ClientRoute
from kiebitz.dissectors.probing.routes import RecordedRoute, Route
from kiebitz.dissectors.probing.server_route import ServerRoute, SimulatedTable
from kiebitz.dissectors.probing.simulated_route import RouteGoal
from kiebitz.dissectors.registry import dissector_of, file_of
from kiebitz.dissectors.replay.script import Script
from kiebitz.proxy.relay.modes import endpoint
from kiebitz.services.probing.connection_setup import ProbeSetup
from kiebitz.services.server_addresses import addresses_of
from kiebitz.services.sessions import is_database, load, session_of, split_number
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.recorded_items import script_of

_NAMES = ("Anna", "Bert", "Cleo", "Dora")
_NEWCOMER = "Emil"

_MAX_GAMES = 8
"""Maximum number of games to play: not every game has everything that can happen."""


class RouteChoice(NamedTuple):
    """A way to a case's injection point.

    `make` creates a route; its argument is a seed that varies the play.
    """

    kind: Literal["played", "recorded"]
    make: Callable[[int], Route]


def routes_to(case: Case, setup: ProbeSetup) -> Sequence[RouteChoice]:
    """Return the ways to a case's injection point in the order to try them; empty if there are none."""
    goal = RouteGoal(case.target_message(setup.dissector), case.at_start, case.harmless, case.is_cut)
    played, recorded = [], []
    if _may_be_played(setup, goal):
        played.append(RouteChoice("played", lambda seed: _played(setup, goal, seed, 0)))
    if setup.script is not None:
        recorded.append(
            RouteChoice("recorded", lambda seed: _recorded(setup, case.fits, case.at_start, case.is_cut))
        )
    # A record contains the first messages of a conversation; for others, simulated peers get further.
    return [*recorded, *played] if setup.is_like or case.at_start else [*played, *recorded]


def baseline_route(setup: ProbeSetup) -> Route:
    """Return a route that plays a game without any case."""
    if _may_be_played(setup, RouteGoal()):
        return _played(setup, RouteGoal(), 1, _MAX_GAMES)
    return _recorded(setup, None)


def _may_be_played(setup: ProbeSetup, goal: RouteGoal) -> bool:
    about = setup.dissector
    if setup.target_role == "server":
        return about.conformance.bot is not None
    # A server sends the first message only if the protocol has it so.
    return (
        about.conformance.bot is not None
        and about.conformance.simulated_server is not None
        and not goal.early
    )


def _played(setup: ProbeSetup, goal: RouteGoal, seed: int, games: int) -> Route:
    about, address, baseline = setup.dissector, setup.address, setup.baseline
    if setup.target_role == "server":
        players = [_player(setup, name, seed, games) for name in _NAMES[: about.conformance.seats]]
        stranger = _player(setup, _NEWCOMER, seed, 0)
        return ClientRoute(about, players, stranger, address, goal, baseline, setup.clock.time)
    assert about.conformance.simulated_server is not None
    others = [_player(setup, name, seed, 0) for name in _NAMES[1 : about.conformance.seats]]
    company = SimulatedTable(about.conformance.simulated_server(about.conformance.seats, seed, games), others)
    return ServerRoute(about, company, address, goal, baseline, setup.clock.time)


def _player(setup: ProbeSetup, name: str, seed: int, games: int) -> Bot:
    make = setup.dissector.conformance.bot
    assert make is not None
    return make(name, seed + len(name) + ord(name[0]), games)


def _recorded(
    setup: ProbeSetup,
    fits: Callable[[Decoded], bool] | None,
    at_start: bool = False,
    is_cut: bool = False,
) -> Route:
    about, script, plays = setup.dissector, setup.script, INPUT_DIRECTION[setup.target_role]
    assert script is not None
    servers = addresses_of([endpoint(*setup.address)], script.servers)
    return RecordedRoute(script, plays, {about.protocol: about}, servers, fits, at_start, is_cut)


def script_in(session: str, protocol: str | None = None) -> Script:
    """Return the script of a session, limited to one protocol's streams if one is named.

    Raises StorageError and CaptureError.
    """
    path, number = split_number(session)
    connection, _ = load(path)
    try:
        timeline, _ = session_of(connection, path, number)
        script = script_of(timeline)
    finally:
        connection.close()
    if protocol is not None:
        script = script.only({role.number for role in script.roles if role.protocol == protocol})
    if not script.steps:
        of = "game" if protocol is None else f"game of {protocol}"
        problem = f"{session}: no {of} was recognised in it, so it reaches no injection point"
        if protocol is not None and file_of(protocol) is not None and is_database(path):
            problem += f"; if it was recorded without the file: kiebitz redissect {shlex.quote(path)} -P FILE"
        raise StorageError(problem)
    return script


def _packed(protocol: str) -> Traversable | None:
    """Return the recorded game in the package of a protocol, None if it has none."""
    dissector = dissector_of(protocol)
    package = type(dissector).__module__.rpartition(".")[0]
    packed = files(package) / "sample.pcapng.gz" if package else None
    return packed if packed is not None and packed.is_file() else None


def built_in_script(dissector: Dissector) -> Script | None:
    """Return the recorded game of a protocol; None if bots play instead. Raises StorageError."""
    if dissector.conformance.bot is not None and _packed(dissector.protocol) is None:
        return None
    with sample_of(dissector.protocol) as sample:
        return script_in(sample)


@contextmanager
def sample_of(protocol: str) -> Iterator[str]:
    """Provide the path of the recorded game that comes with a protocol. Raises StorageError."""
    packed = _packed(protocol)
    if packed is None:
        raise StorageError(
            f"no recorded game comes with {protocol}: name a capture of one with --via-session CAPTURE"
        )
    with as_file(packed) as path:
        yield str(path)
