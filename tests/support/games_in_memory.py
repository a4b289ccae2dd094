"""Games of the programs in `peers/`, in memory: with a planted fault in the server, or in a player."""

from __future__ import annotations

from typing import Any

from peers.bench import Bench, Spoils
from peers.planted import PEERS
from peers.program import Setup
from peers.shell import BotPlayer, Host

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import Diagnostic
from kiebitz.dissectors.registry import dissector_of

NAMES = ("Anna", "Bert", "Cleo", "Dora")
SEATS = {"maexchen": 3, "schafkopf": 4, "catan": 3, "okey": 4, "cgml": 3}
GAMES = {"maexchen": 6, "schafkopf": 4, "catan": 1, "okey": 2, "cgml": 6}
"""Number of games that shows most behaviour, by protocol."""

PATIENCE_S = 30.0
"""Time limit in seconds of the bench's simulated clock."""


def server_of(protocol: str, fault: str = "", **about: Any) -> Host:
    """Return a server; with a fault, if one is named."""
    server = PEERS[f"{protocol}-server"](Setup(fault=fault, **{"points": 5, **about}))
    assert isinstance(server, Host)
    return server


def player_of(protocol: str, name: str, fault: str = "", **about: Any) -> BotPlayer:
    player = PEERS[f"{protocol}-player"](Setup(fault=fault, name=name, **about))
    assert isinstance(player, BotPlayer)
    return player


def seated(
    protocol: str,
    fault: str = "",
    berts: str = "",
    spoils: Spoils | None = None,
    seed: int = 1,
    games: int | None = None,
) -> Bench:
    """Return a table with all players seated. Bert has the fault `berts`, or its messages are spoilt."""
    seats = SEATS[protocol]
    count = GAMES[protocol] if games is None else games
    bench = Bench(server_of(protocol, fault, games=count, seed=seed, players=seats))
    for name in NAMES[:seats]:
        is_bert = name == "Bert"
        player = player_of(protocol, name, berts if is_bert else "", seed=seed)
        bench.connect(player, spoils=spoils if is_bert else None)
    return bench


def played(
    protocol: str,
    fault: str = "",
    berts: str = "",
    spoils: Spoils | None = None,
    seed: int = 1,
    seconds: float = PATIENCE_S,
) -> Bench:
    """Return a table where all that could be played was played."""
    bench = seated(protocol, fault, berts, spoils, seed)
    bench.run(seconds)
    return bench


def diagnostics(protocol: str, bench: Bench) -> list[Diagnostic]:
    """Return Kiebitz's diagnostics."""
    dissector = dissector_of(protocol)
    assert isinstance(dissector, Dissector)
    return bench.findings(dissector).diagnostics
