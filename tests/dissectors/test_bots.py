"""Bots play whole games at simulated servers, and both lead to the place of each message."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from games_in_memory import GAMES, NAMES, SEATS, diagnostics, player_of, seated, server_of
from peers.bench import Bench
from peers.planted import FAULTS, Fault
from peers.program import Died
from peers.shell import BotPlayer, Host
from strength import a_few, times

from kiebitz.dissectors.conformance.bots import (
    Done,
    Reconnect,
    SendMessage,
    SimulatedPeer,
    TargetMessage,
    Wait,
)
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION, ROLES, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.probing.baseline import MessageReader, SpellingStyle
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.registry import dissector_of

ENOUGH_S = 200.0

_FORK = "only a fork's server knows it"
_LATE = "the last dialect has it, which the programs at the bench do not speak"

NEVER: dict[Direction, dict[str, dict[str, str]]] = {
    "c2s": {
        "maexchen": {"UNREGISTER": _FORK, "ECHO": _FORK},
        "schafkopf": {},
        "okey": dict.fromkeys(("LLOB", "+JOND", "+LEFT", "+NAMS", "RNAM", "HIGH", "RSTA"), _LATE),
        "catan": {},
        "cgml": {"load": "servers of bots say it, players do not"},
    },
    "s2c": {
        "maexchen": {
            **dict.fromkeys(("UNREGISTERED", "HEARTBEAT", "ECHOING"), _FORK),
            "ROUND CANCELED": "everybody joins every round",
        },
        "schafkopf": {},
        "okey": dict.fromkeys(("+LLOB", "JOND", "LEFT", "NAMS", "+RNAM", "+HIGH", "+RSTA"), _LATE),
        "catan": {"Serverantwort": "a dialect has it in place of OK and Fehler"},
        "cgml": {"newgroup": "only game servers receive it"},
    },
}
"""Messages that never come up, and why."""

REFUSALS = {"Fehler": "rolls-twice", "renonc": "does-not-follow"}
"""Messages about a client that breaks a rule, as no bot does, and the fault that breaks it."""


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedPeer, "ignored_errors", ())


def dissector(protocol: str) -> Dissector:
    found = dissector_of(protocol)
    assert isinstance(found, Dissector)
    return found


def joined(protocol: str, seed: int, games: int = 0, **about: Any) -> tuple[Bench, list[BotPlayer]]:
    bench = Bench(server_of(protocol, games=GAMES[protocol], seed=seed, players=SEATS[protocol]))
    players = [
        player_of(protocol, name, seed=seed, games=games, **about) for name in NAMES[: SEATS[protocol]]
    ]
    for player in players:
        bench.connect(player)
    return bench, players


def in_company(protocol: str, seed: int, **about: Any) -> Bench:
    """Return a server at which bots without connections take all seats but one."""
    seats = SEATS[protocol]
    company = NAMES[1:seats]
    return Bench(
        server_of(protocol, games=GAMES[protocol], seed=seed, players=seats, company=company, **about)
    )


def are_there(sides: Sequence[BotPlayer | Host]) -> bool:
    return any(side.place is not None for side in sides)


def faults(protocol: str, bench: Bench) -> list[str]:
    return [violation.text for violation in diagnostics(protocol, bench) if violation.severity != "note"]


# Players.


@pytest.mark.full(but=3)
@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("protocol", a_few(SEATS, lambda protocol: protocol != "catan"))
@pytest.mark.parametrize("seed", range(1, times(10, 1) + 1))
@pytest.mark.parametrize("company", [False, True])
def test_players_play_whole_games_without_a_fault(protocol: str, seed: int, company: bool) -> None:
    if company:
        bench, players = in_company(protocol, seed), [player_of(protocol, NAMES[0], seed=seed)]
        bench.connect(players[0])
    else:
        bench, players = joined(protocol, seed)
    bench.run(ENOUGH_S)
    assert bench.server.games == GAMES[protocol]
    assert {player.bot.games for player in players} == {GAMES[protocol]}
    assert faults(protocol, bench) == []


@pytest.mark.full(but=1)
@pytest.mark.parametrize("protocol", a_few(SEATS, ["maexchen", "schafkopf"]))
def test_the_same_seed_gives_the_same_messages(protocol: str) -> None:
    one, again, other = ([seat.said for seat in run(protocol, seed).seats] for seed in (1, 1, 2))
    assert one == again
    assert one != other


def run(protocol: str, seed: int) -> Bench:
    bench, _ = joined(protocol, seed)
    bench.run(1.0)
    return bench


@pytest.mark.full(but=1)
@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("protocol", SEATS)
def test_a_player_that_has_had_enough_leaves(protocol: str) -> None:
    bench, players = joined(protocol, 1, games=1)
    bench.run(ENOUGH_S, until=lambda: any(player.over for player in players))
    assert any(player.bot.is_finished for player in players)
    assert faults(protocol, bench) == []


# Players and hosts.


QUICK_AIMS: set[tuple[str, Direction, str]] = {
    *(("maexchen", "c2s", "SEE"), ("schafkopf", "c2s", "HOCHZEIT"), ("okey", "c2s", "+EMPT")),
    *(("catan", "c2s", "Handel annehmen"), ("cgml", "c2s", "pause"), ("maexchen", "s2c", "ACTUAL DICE")),
    *(("schafkopf", "s2c", "HOCHZEIT"), ("okey", "s2c", "EMPT"), ("catan", "s2c", "Handelsangebot")),
    ("cgml", "s2c", "pause"),
}


@pytest.mark.full(but=2)
@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize(
    ("protocol", "direction", "name"),
    a_few(
        [
            (protocol, direction, name)
            for direction in DIRECTIONS
            for protocol in SEATS
            for name in dissector(protocol).grammar.names(direction)
            if name not in NEVER[direction][protocol]
        ],
        QUICK_AIMS,
    ),
)
def test_players_and_hosts_get_to_the_place_of_each_message(
    protocol: str, direction: Direction, name: str
) -> None:
    """At a host that pursues the aim, one client is external and need not pursue it."""
    about = dissector(protocol)
    for seed in range(1, 11):
        games = int(name in ("BEENDEN", "LOGO", "+LOGO"))
        sides: Sequence[BotPlayer | Host]
        if direction == "c2s":
            bench, sides = joined(protocol, seed, games, aim=TargetMessage(name))
        else:
            # In a short game of Catan hardly anybody gets three knights.
            bench = in_company(protocol, seed, aim=TargetMessage(name), points=10)
            bench.connect(player_of(protocol, NAMES[0], REFUSALS.get(name, ""), seed=seed, games=games))
            assert isinstance(bench.server, Host)
            sides = [bench.server]
        bench.run(ENOUGH_S, until=partial(are_there, sides))
        there = [side for side in sides if side.place is not None]
        for side in there:
            assert side.place is not None
            # It is well-formed, and not yet reported.
            frame = about.codec.encode(name, direction, side.place.fields)
            assert about.codec.decode(frame, direction).valid
            assert side.said[name] == 0
        if there:
            return
    pytest.fail(f"nobody gets to {name}")


@pytest.mark.parametrize("protocol", a_few(SEATS, lambda protocol: protocol != "catan"))
def test_a_client_that_only_looks_in_ends_no_game(protocol: str) -> None:
    bench = seated(protocol, games=2)
    bench.run(ENOUGH_S, until=lambda: bench.server.games == 1)
    bench.reset(bench.connect())
    bench.run(ENOUGH_S)
    assert bench.server.games == 2


def test_a_player_that_comes_from_another_port_plays_on() -> None:
    bench = seated("maexchen", games=4)
    bench.run(ENOUGH_S, until=lambda: bench.server.games == 1)
    former = bench.seats[1]
    former.player = None
    later = player_of("maexchen", former.who)
    bench.connect(later)
    bench.run(ENOUGH_S)
    assert later.bot.games == 3
    assert {*later.latest["ROUND STARTED"]["players"]} == {*NAMES[:3]}


# Messages at the wrong time, or without sense.


@pytest.mark.parametrize("protocol", SEATS)
def test_nonsense_is_ignored(protocol: str) -> None:
    about = dissector(protocol)
    assert about.conformance.bot is not None
    assert about.conformance.simulated_server is not None
    player, host = (
        about.conformance.bot("Anna", 1, 0),
        about.conformance.simulated_server(SEATS[protocol], 1, 0),
    )
    player.connected(0)
    host.client_connected(1, 0)
    ask = {"status": "ask", "type": "ask", "flag": "SPIEL"}
    odd: list[Fields] = [{}, {"token": None, "name": 1, "id": "x", **ask}]
    for row in about.grammar.rows:
        for fields in (*odd, {field.name: [] for field in row.fields}):
            if row.direction == "s2c":
                player.receive(row.name, fields, 1)
            else:
                host.receive(1, row.name, fields, 1)
    host.client_disconnected(1, 2)
    for side in (player, host):
        for _ in range(2000):
            step = side.next(3)
            if isinstance(step, Wait | Done):
                break
            side.confirm(step)
        else:
            pytest.fail("it never ends")


@pytest.mark.full(but=4)
@pytest.mark.parametrize(
    "fault",
    a_few(FAULTS, lambda fault: fault.name.startswith("takes-any"), lambda fault: fault.peer + fault.name),
)
def test_a_peer_s_fault_causes_no_error_and_no_endless_reply(fault: Fault) -> None:
    protocol, seats = fault.protocol, SEATS[fault.protocol]
    in_server, in_player = (fault.name, "") if fault.role == "server" else ("", fault.name)
    with suppress(Died):
        bench = Bench(server_of(protocol, in_server, games=1, players=seats))
        for name in NAMES[:seats]:
            bench.connect(player_of(protocol, name, in_player))
        # The bench fails where they never end.
        bench.run(5.0)


def test_nothing_is_done_without_a_decision() -> None:
    about = dissector("maexchen")
    assert about.conformance.bot is not None
    player = about.conformance.bot("Anna", 1, 0)
    player.connected(0)
    first = player.next(0)
    assert first == player.next(0) == SendMessage("REGISTER", {"name": "Anna"})
    player.confirm(first)
    assert player.next(0) == Wait()
    player.receive("YOUR TURN", {"token": "t"}, 0)
    assert player.choices(0) == (SendMessage("ROLL", {"token": "t"}),)
    player.confirm(SendMessage("ROLL", {"token": "t"}))
    player.receive("ANNOUNCED", {"name": "Bert", "dice": "3,1"}, 0)
    player.receive("YOUR TURN", {"token": "u"}, 0)
    assert {way.name for way in player.choices(0) if isinstance(way, SendMessage)} == {"ROLL", "SEE"}
    assert player.next(0, TargetMessage("SEE")) == SendMessage("SEE", {"token": "u"})
    assert player.next(0, TargetMessage("ANNOUNCE")) == SendMessage("ROLL", {"token": "u"})


@pytest.mark.full(but=3)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("protocol", SEATS)
def test_a_case_has_an_aim(protocol: str, role: TargetRole) -> None:
    about = dissector(protocol)
    direction = INPUT_DIRECTION[role]
    said_of: dict[str, tuple[str, dict[str, Any]]] = {
        "maexchen": ("JOIN" if role == "server" else "YOUR TURN", {"token": "t"}),
        "schafkopf": ("KONTRA", {"kontra": "JA"} if role == "server" else {"kontra": ["JA"] * 4}),
        "okey": ("LOGO" if role == "server" else "+LOGO", {}),
        "catan": ("Monopol", {"Rohstoff": "Erz"} | ({} if role == "server" else {"Spieler": 1})),
        "cgml": ("pause", {"type": "finish"}),
    }
    said = SendMessage(*said_of[protocol])
    frame = about.codec.encode(said.name, direction, said.fields)
    aimed = {case.name for case in generate_cases(about, role) if case.target_message(about).matches(said)}
    decoded = about.codec.decode(frame, direction)
    assert aimed == {case.name for case in generate_cases(about, role) if case.fits(decoded)}
    assert any(f"/{said.name.replace(' ', '_')}" in name for name in aimed)


def test_a_player_calls_where_it_is_sent() -> None:
    about = dissector("cgml")
    assert about.conformance.bot is not None
    player = about.conformance.bot("Anna", 1, 0)
    player.connected(0)
    step = player.next(0)
    assert isinstance(step, SendMessage)
    player.confirm(step)
    player.receive("connect", {"status": "complete", "id": 7, "url": "127.0.0.1:7002"}, 0)
    assert player.next(0) == Reconnect("127.0.0.1:7002")
    player.confirm(Reconnect("127.0.0.1:7002"))
    player.connected(1)
    step = player.next(1)
    assert isinstance(step, SendMessage)
    assert (step.name, step.fields["id"]) == ("newgroup", 7)


# How a peer writes.

WURF = '{"Würfelwurf":{"Spieler":1,"Wurf":[1,2]}}\n'

MANNERS: list[tuple[str, bytes, str, dict[str, object], bytes]] = [
    ("catan", WURF.encode(), "Würfeln", {}, '{"Würfeln":{}}\n'.encode()),
    ("catan", b'{"Wuerfelwurf":{"Spieler":1,"Wurf":[1,2]}}\n', "Würfeln", {}, b'{"Wuerfeln":{}}\n'),
    ("catan", b'{"OK":{}}\r\n', "Zug beenden", {}, b'{"Zug beenden":{}}\r\n'),
    ("okey", b'STRT "1:RED 2:RED " 0\r\n', "CATC", {"messagetype": "b", "msg": "a b"}, b'CATC b "a b "\r\n'),
    ("okey", b'CATS b "c d%" Bert\r\n', "CATC", {"messagetype": "b", "msg": "a b"}, b'CATC b "a b%"\r\n'),
    ("schafkopf", b"!ID\n0\n!END\n", "ERSTE3", {"klopft": "JA"}, b"!ERSTE3\nJA\n!END\n"),
    ("schafkopf", b"!ID\r\n0\r\n!END\r\n", "ERSTE3", {"klopft": "JA"}, b"!ERSTE3\r\nJA\r\n!END\r\n"),
]


@pytest.mark.parametrize(("protocol", "heard", "name", "fields", "written"), MANNERS)
def test_messages_are_written_as_the_peer_writes(
    protocol: str, heard: bytes, name: str, fields: dict[str, object], written: bytes
) -> None:
    manner = SpellingStyle(dissector(protocol))
    (message,) = MessageReader(dissector(protocol), "s2c").read(heard)
    manner.learn(message)
    assert manner.encode(name, "c2s", fields) == written
