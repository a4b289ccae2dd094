"""The programs in `peers/` survive everything, and their faults show in play or otherwise, if requested.

A line `shown by` of the text has the name of a function here, its arguments, its result with the fault, and
`otherwise` its result without; of a condition that is the opposite.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from command import kiebitz, peer_command
from games_in_memory import GAMES, NAMES, SEATS, diagnostics, played, player_of, server_of
from peers.bench import Bench, Seat
from peers.planted import FAULTS, Fault
from peers.program import Died
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, running
from snapshots import as_bytes
from strength import a_few, times

from kiebitz.dissectors.model import Transport

ABOUT = '<player id="{}"><name>Zoe</name><race>bot</race></player><game>licitovany_marias</game>'
LOGIN = f'<connect status="active">{ABOUT}</connect>\r\n\r\n'
HALLO = b'{"Hallo":{"Version":"x"}}\n'


GAMES_LIVE = {"maexchen": 6, "schafkopf": 2, "catan": 1, "okey": 1, "cgml": 3}
MOVES = {
    "maexchen": (b"JOIN", b"ROLL", b"SEE", b"ANNOUNCE"),
    "schafkopf": (b"!MODEL",),
    "catan": (b'{"Bauen', '{"Würfeln'.encode()),
    "okey": (b"DRAW", b"PUTT"),
    "cgml": (b"<licite", b"<playcard"),
}

STALLED_S = 70.0


# A client alone with a server.


def hears(fault: str, protocol: str, pattern: str, *said: str) -> int:
    bench = Bench(server_of(protocol, fault))
    seat = bench.connect()
    bench.say(seat, *map(as_bytes, said))
    return len(re.findall(as_bytes(pattern).decode(), seat.text))


def second_hears(fault: str, protocol: str, pattern: str, *said: str) -> int:
    bench = Bench(server_of(protocol, fault))
    first, second = bench.connect(), bench.connect()
    for seat in (first, second):
        bench.say(seat, *map(as_bytes, said))
    bench.say(first, as_bytes(said[-1]))
    return len(re.findall(as_bytes(pattern).decode(), second.text))


def closes(fault: str, protocol: str, wrong: str) -> bool:
    bench = Bench(server_of(protocol, fault))
    other = bench.connect()
    bench.say(bench.connect(), as_bytes(wrong))
    return other.is_closed


def slow(fault: str, protocol: str) -> bool:
    line = b"x" * 60_000
    bench = Bench(server_of(protocol, fault))
    seat = bench.connect()
    start = time.process_time()
    bench.say(seat, line)
    middle = time.process_time()
    assert sum(byte == 0x78 for byte in line) == len(line)
    return middle - start > 4 * (time.process_time() - middle)


def silent_for(fault: str, protocol: str, seconds: str) -> bool:
    bench = Bench(server_of(protocol, fault))
    seat = bench.connect()
    bench.run(float(seconds))
    return seat.is_closed


def fifth(fault: str, protocol: str) -> int:
    bench = Bench(server_of(protocol, fault))
    seats = [bench.connect() for _ in range(5)]
    for number, seat in enumerate(seats):
        bench.say(seat, f"LOGI p{number}\r\n".encode(), b"JLOB 1\r\n")
    return sum("+JLOB t" in seat.text for seat in seats)


def colours(fault: str, protocol: str) -> int:
    bench = Bench(server_of(protocol, fault))
    seats = [bench.connect(), bench.connect()]
    for seat in seats:
        wanted = b'{"Spieler":{"Name":"Zoe","Farbe":"Rot"}}\n'
        bench.say(seat, HALLO, wanted, b'{"Spiel starten":{}}\n')
    return seats[1].text.count("Farbe bereits vergeben")


def starts_for_second(fault: str, protocol: str, *hosts: str) -> bool:
    """Register a name at each of these addresses: true if a round starts for the second client."""
    bench = Bench(server_of(protocol, fault, players=1))
    for host in hosts:
        seat = bench.connect(host=host)
        bench.say(seat, b"REGISTER;Anna")
    bench.run(3)
    return "ROUND STARTING" in seat.text


def stranger_accepts(fault: str, protocol: str) -> int:
    bench = Bench(server_of(protocol, fault))
    for number in range(3):
        bench.say(bench.connect(), LOGIN.format(number).encode())
    seat = bench.connect(door=1)
    bench.say(seat, f'<newgroup status="accept" id="4">{ABOUT.format(99)}</newgroup>\r\n\r\n'.encode())
    return seat.text.count("<disconnect")


# Spoilt games.


def matches(pattern: str, bench: Bench, who: str = "Anna") -> bool:
    heard = "".join(seat.text for seat in bench.seats if seat.who == who)
    return re.search(pattern, heard, re.DOTALL) is not None


def replaced(
    fault: str, protocol: str, start: str, part: str, by: str, pattern: str, who: str = "Anna"
) -> bool:
    """Replace a part of Bert's messages."""

    def spoils(seat: Seat, data: bytes) -> list[bytes]:
        is_meant = data.startswith(as_bytes(start))
        return [re.sub(as_bytes(part), as_bytes(by), data, flags=re.DOTALL) if is_meant else data]

    return matches(pattern, played(protocol, fault, spoils=spoils, seconds=5), who)


def repeated(fault: str, protocol: str, start: str, times: str, pattern: str, seconds: str = "5") -> bool:
    """Send Bert's messages so many times."""

    def spoils(seat: Seat, data: bytes) -> list[bytes]:
        return [data] * (int(times) if data.startswith(as_bytes(start)) else 1)

    return matches(pattern, played(protocol, fault, spoils=spoils, seconds=float(seconds)))


def said_by_another(fault: str, protocol: str, start: str, pattern: str) -> bool:
    def spoils(seat: Seat, data: bytes) -> list[bytes]:
        if not data.startswith(as_bytes(start)):
            return [data]
        (cleo,) = [one for one in seat.bench.seats if one.who == "Cleo" and one.door == seat.door]
        seat.bench.whisper(cleo, data)
        return []

    return matches(pattern, played(protocol, fault, spoils=spoils, seconds=5))


def with_bert(fault: str, protocol: str, berts: str, pattern: str) -> bool:
    return matches(pattern, played(protocol, fault, berts=berts, seconds=5), "Bert")


def same_play(fault: str, protocol: str) -> bool:
    one, other = (played(protocol, its, seconds=5) for its in (fault, ""))
    return [seat.heard for seat in one.seats] == [seat.heard for seat in other.seats]


def rolls_shown(fault: str, protocol: str) -> bool:
    bench = played(protocol, fault)
    heard = [data for seat in bench.seats for data in seat.heard if data.startswith(b"ROLLED")]
    return len({*heard}) < len(heard)


# Players.


def bert_hears(fault: str, protocol: str, pattern: str) -> bool:
    return matches(pattern, played(protocol, berts=fault, seconds=5), "Bert")


def bert_says(fault: str, protocol: str, text: str) -> bool:
    bench = played(protocol, berts=fault, seconds=5)
    return any(as_bytes(text) in data for seat in bench.seats if seat.who == "Bert" for data in seat.said)


def completes(fault: str, protocol: str) -> bool:
    return played(protocol, berts=fault, seconds=5).server.games > 0


SHOWS: dict[str, Callable[..., object]] = {
    function.__name__: function
    for function in (
        *(hears, second_hears, closes, slow, silent_for, fifth, colours, starts_for_second, stranger_accepts),
        *(replaced, repeated, said_by_another, with_bert, same_play, rolls_shown),
        *(bert_hears, bert_says, completes),
    )
}


def dies(fault: Fault, name: str) -> bool:
    """True if a program with the fault of a name ends at the message that the text has for it."""
    said = [as_bytes(line) for line in fault.fatal]
    try:
        if fault.role == "server":
            bench = Bench(server_of(fault.protocol, name))
            bench.say(bench.connect(), *said)
            return False
        player = player_of(fault.protocol, "Anna", name)
        player.connected()
        for data in said:
            player.hear(data)
    except Died:
        return True
    return player.over


QUICK = {
    *(
        "maexchen-server dies-on-bad-utf8",
        "maexchen-server takes-any-address",
        "schafkopf-server lets-suits-be",
    ),
    *("catan-server confirms-twice", "catan-player dies-on-broken-json", "okey-server never-times-out"),
    "cgml-player answers-for-another",
}


def label(fault: Fault) -> str:
    return f"{fault.peer} {fault.name}"


@pytest.mark.parametrize(
    "fault",
    a_few((one for one in FAULTS if one.shown or one.fatal), lambda one: label(one) in QUICK, label),
)
def test_a_fault_is_there_when_it_is_asked_for(fault: Fault) -> None:
    if fault.fatal:
        assert (dies(fault, fault.name), dies(fault, "")) == (True, False)
    for line in fault.shown:
        how, result, other = re.fullmatch("(.*) → (.*?)(?:, otherwise (.*))?", line).groups()  # type: ignore[union-attr]
        shows, *words = how.split(" | ")
        faulty = json.loads(result)
        assert SHOWS[shows](fault.name, fault.protocol, *words) == faulty
        assert SHOWS[shows]("", fault.protocol, *words) == (json.loads(other) if other else not faulty)


def test_every_fault_is_found_or_shown() -> None:
    assert [one for one in FAULTS if not (one.cases or one.shows or one.shown or one.fatal)] == []


# In ordinary play; whole games without a fault: `test_bots.py`.


def showing(fault: Fault) -> set[str]:
    """Return the codes of what Kiebitz finds in ordinary play of a program with this fault."""
    found: set[str] = set()
    for seed in range(1, 6):
        servers, berts = (fault.name, "") if fault.role == "server" else ("", fault.name)
        bench = played(fault.protocol, servers, berts, seed=seed, seconds=STALLED_S)
        found |= {violation.code for violation in diagnostics(fault.protocol, bench)}
        if {*fault.shows} <= found:
            break
    return found


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    "fault",
    a_few(
        [fault for fault in FAULTS if fault.shows],
        lambda fault: (
            fault.name in ("counts-a-loss-twice", "names-the-losers", "pays-too-much", "repeats-the-bid")
        ),
        lambda fault: f"{fault.peer} {fault.name}",
    ),
)
def test_a_fault_shows_in_play(fault: Fault) -> None:
    assert {*fault.shows} <= showing(fault)
    assert not {*fault.shows} & {
        violation.code for violation in diagnostics(fault.protocol, played(fault.protocol))
    }


# For any message of a client.


def spoilt(chance: random.Random, data: bytes) -> list[bytes]:
    at = chance.randrange(len(data) + 1)
    match chance.randrange(8):
        case 0:
            return [data[:at], bytes([chance.randrange(256)]) + data[at + 1 :]]
        case 1:
            return [data[:at]]
        case 2:
            return [data[at:], data]
        case 3:
            return [data, data]
        case 4:
            return [
                data[:at] + chance.choice((b"\xff", b"\0", b"9" * 400, b'"', b"<", b"{" * 3000)) + data[at:]
            ]
        case 5:
            return []
        case 6:
            return [chance.randbytes(chance.randrange(200)) + b"\n\n"]
    return [data.replace(b"1", b"-7").replace(b"e", b"E")]


def gets_in(protocol: str, bench: Bench) -> bool:
    seat = bench.connect()
    if protocol == "maexchen":
        bench.say(seat, b"REGISTER;Zoe")
    if protocol == "cgml":
        bench.say(seat, b"<no></xml>\r\n\r\n")
    return bool(seat.heard)


@pytest.mark.full(but=3)
@pytest.mark.parametrize("seed", range(times(60, 2)))
@pytest.mark.parametrize("protocol", SEATS)
def test_a_server_survives_a_player_that_errs(protocol: str, seed: int) -> None:
    chance = random.Random(seed)

    def spoils(seat: Seat, data: bytes) -> list[bytes]:
        return spoilt(chance, data) if chance.random() < 0.1 else [data]

    bench = played(protocol, spoils=spoils, seed=seed)
    assert gets_in(protocol, bench) or bench.server.over


@pytest.mark.full(but=1)
@pytest.mark.parametrize("seed", range(times(20, 1)))
@pytest.mark.parametrize("protocol", a_few(SEATS, lambda protocol: protocol != "catan"))
def test_a_game_continues_despite_an_unverified_client(protocol: str, seed: int) -> None:
    chance = random.Random(seed)
    strangers: list[Seat] = []

    def overhears(seat: Seat, data: bytes) -> list[bytes]:
        is_heard = not strangers or (chance.random() < 0.3 and len(strangers) < 30)
        if data.startswith(MOVES[protocol]) and is_heard:
            if not strangers or strangers[-1].is_closed:
                strangers.append(seat.bench.connect(host="127.0.0.2", door=seat.door))
            for piece in spoilt(chance, data):
                seat.bench.whisper(strangers[-1], piece)
        return [data]

    bench = played(protocol, spoils=overhears, seed=seed)
    assert bench.server.games == GAMES[protocol]
    assert strangers


# As programs.


@contextmanager
def served(protocol: str, database: Path, *options: str) -> Iterator[list[int]]:
    """Yield a server and a relay before it, with the ports of the relay."""
    transport: Transport = "udp" if protocol == "maexchen" else "tcp"
    doors = 2 if protocol == "cgml" else 1
    first = free_port(transport)
    while doors == 2 and free_port(transport) != first + 1:
        first = free_port(transport)
    ports = [free_port(transport) for _ in range(doors)]
    modes = [
        option
        for number, port in enumerate(ports)
        for option in ("-m", f"reverse:{transport}://127.0.0.1:{first + number}@{port}")
    ]
    common = ("--port", str(first), "--players", str(SEATS[protocol]), "--points", "4")
    with ExitStack() as ending:
        server = peer_command(f"{protocol}-server", *common, "--url", f"127.0.0.1:{ports[-1]}", *options)
        ending.enter_context(running(*server, ready="listening on"))
        ending.enter_context(running(*KIEBITZ, "relay", *modes, "-w", str(database), ready="listening on"))
        yield ports


@pytest.mark.parametrize(
    ("protocol", "fault", "code"),
    a_few(
        [
            *((protocol, "", "") for protocol in SEATS),
            ("maexchen", "blames-who-saw", "wrong-verdict"),
            ("schafkopf", "names-the-losers", "wrong-winner"),
            ("catan", "charges-too-much", "wrong-cost"),
            ("okey", "lets-anybody-win", "no-win"),
            ("cgml", "pays-too-much", "money"),
        ],
        lambda row: row[:2] == ("maexchen", ""),
        lambda row: " ".join(row[:2]).strip(),
    ),
)
@pytest.mark.full
def test_a_game_through_the_relay_is_checked(tmp_path: Path, protocol: str, fault: str, code: str) -> None:
    database = tmp_path / "game.db"
    games = str(GAMES_LIVE[protocol])
    with served(protocol, database, *(["--fault", fault] if fault else [])) as ports:
        players = [
            subprocess.Popen(
                peer_command(f"{protocol}-player", "--port", str(ports[0]), "--name", name, "--games", games),
                stderr=subprocess.PIPE,
            )
            for name in NAMES[: SEATS[protocol]]
        ]
        try:
            said = [player.communicate(timeout=PATIENCE_S)[1].decode() for player in players]
        finally:
            for player in players:
                player.kill()
                player.wait()
        assert said == [""] * len(players)
        assert {player.returncode for player in players} == {0}
    done = kiebitz("check", str(database))
    assert done.err == ""
    assert done.status == (3 if fault else 0), done.out
    assert code in done.out
