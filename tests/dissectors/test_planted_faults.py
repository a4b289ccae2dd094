"""Faults that ordinary play does not show exist if requested, and only then.

An exhibit uses a program with and without the fault, and returns the results. `died` means that the program
ended.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Concatenate, NamedTuple, ParamSpec

import pytest
from games_in_memory import played, player_of, seated, server_of
from peers.bench import Bench, Seat
from peers.planted import FAULTS, Fault
from peers.program import Died
from snapshots import as_bytes
from strength import a_few

DIED = "died"
ABOUT = '<player id="{}"><name>Zoe</name><race>bot</race></player><game>licitovany_marias</game>'
LOGIN = f'<connect status="active">{ABOUT}</connect>\r\n\r\n'
HALLO = b'{"Hallo":{"Version":"x"}}\n'
CHAT = b'{"Chatnachricht senden":{"Nachricht":"Gr\xc3\xbc\xc3\x9f Gott"}}\n'


Show = Callable[[str, str], object]


class Exhibit(NamedTuple):
    """The results of `show` with a fault in the program, and without it."""

    peer: str
    fault: str
    show: Show
    faulty: object
    faultless: object


P = ParamSpec("P")


def exhibited(show: Callable[Concatenate[str, str, P], object]) -> Callable[P, Show]:
    """Make of what comes of a fault in a protocol, given some arguments, a function of these two."""

    def bound(*args: P.args, **kwargs: P.kwargs) -> Show:
        return lambda fault, protocol: show(fault, protocol, *args, **kwargs)

    return bound


def outcome(row: Exhibit, fault: str) -> object:
    try:
        return row.show(fault, row.peer.partition("-")[0])
    except Died:
        return DIED


# A client alone with a server.


@exhibited
def alone(fault: str, protocol: str, *said: bytes) -> object:
    bench = Bench(server_of(protocol, fault))
    bench.say(bench.connect(), *said)
    return is_answered(protocol, bench)


def is_answered(protocol: str, bench: Bench) -> bool:
    knocks = {"maexchen": b"REGISTER;Zoe", "cgml": b"<no></xml>\r\n\r\n"}
    seat = bench.connect()
    bench.say(seat, knocks.get(protocol, b""))
    return bool(seat.heard)


@exhibited
def hears(fault: str, protocol: str, pattern: str, *said: bytes) -> object:
    bench = Bench(server_of(protocol, fault))
    seat = bench.connect()
    bench.say(seat, *said)
    return len(re.findall(pattern, seat.text))


@exhibited
def second_hears(fault: str, protocol: str, pattern: str, *said: bytes) -> object:
    bench = Bench(server_of(protocol, fault))
    first, second = bench.connect(), bench.connect()
    for seat in (first, second):
        bench.say(seat, *said)
    bench.say(first, said[-1])
    return len(re.findall(pattern, second.text))


@exhibited
def waits(fault: str, protocol: str, half: bytes) -> object:
    bench = Bench(server_of(protocol, fault))
    bench.say(bench.connect(), half)
    seat = bench.connect()
    greeted = len(seat.heard)
    bench.say(
        seat,
        {"cgml": b"<no></xml>\r\n\r\n", "schafkopf": b"!BEENDEN\n!END\n"}.get(protocol, HALLO + b"LLPL\n"),
    )
    return len(seat.heard) > greeted or seat.is_closed


@exhibited
def closes(fault: str, protocol: str, wrong: bytes) -> object:
    bench = Bench(server_of(protocol, fault))
    other = bench.connect()
    bench.say(bench.connect(), wrong)
    return other.is_closed


@exhibited
def half_closed(fault: str, protocol: str) -> object:
    bench = Bench(server_of(protocol, fault))
    seat = bench.connect()
    bench.half_close(seat)
    return seat.is_closed


@exhibited
def slow(fault: str, protocol: str) -> object:
    line = b"x" * 60_000
    bench = Bench(server_of(protocol, fault))
    seat = bench.connect()
    start = time.process_time()
    bench.say(seat, line)
    middle = time.process_time()
    assert sum(byte == 0x78 for byte in line) == len(line)
    return middle - start > 4 * (time.process_time() - middle)


@exhibited
def okey_login(fault: str, protocol: str, *names: str) -> object:
    bench = Bench(server_of(protocol, fault))
    for name in names[:-1]:
        seat = bench.connect()
        bench.say(seat, f"LOGI {name}\r\n".encode())
        bench.reset(seat)
    seat = bench.connect()
    bench.say(seat, f"LOGI {names[-1]}\r\n".encode())
    return seat.text.split()[-1]


@exhibited
def silent_for(fault: str, protocol: str, seconds: float) -> object:
    bench = Bench(server_of(protocol, fault))
    seat = bench.connect()
    bench.run(seconds)
    return seat.is_closed


def fifth(fault: str, protocol: str) -> object:
    bench = Bench(server_of(protocol, fault))
    seats = [bench.connect() for _ in range(5)]
    for number, seat in enumerate(seats):
        bench.say(seat, f"LOGI p{number}\r\n".encode(), b"JLOB 1\r\n")
    return sum("+JLOB t" in seat.text for seat in seats)


def whispered(fault: str, protocol: str) -> object:
    bench = Bench(server_of(protocol, fault))
    seats = [bench.connect() for _ in range(4)]
    for number, seat in enumerate(seats):
        bench.say(seat, f"LOGI p{number}\r\n".encode())
    bench.say(seats[0], b"CATC w hallo p1\r\n")
    return sum("CATS" in seat.text for seat in seats)


def gone_from_lobby(fault: str, protocol: str) -> object:
    bench = Bench(server_of(protocol, fault))
    stays, goes = bench.connect(), bench.connect()
    for seat in (stays, goes):
        bench.say(seat, HALLO)
    bench.reset(goes)
    return "Verbindung verloren" in stays.text


def colours(fault: str, protocol: str) -> object:
    bench = Bench(server_of(protocol, fault))
    seats = [bench.connect(), bench.connect()]
    for seat in seats:
        wanted = b'{"Spieler":{"Name":"Zoe","Farbe":"Rot"}}\n'
        bench.say(seat, HALLO, wanted, b'{"Spiel starten":{}}\n')
    return seats[1].text.count("Farbe bereits vergeben")


@exhibited
def register_from(fault: str, protocol: str, *hosts: str) -> object:
    bench = Bench(server_of(protocol, fault, players=1))
    for host in hosts:
        seat = bench.connect(host=host)
        bench.say(seat, b"REGISTER;Anna")
    bench.run(3)
    return seat.text.partition("D")[0] + "|" + str("ROUND STARTING" in seat.text)


# Spoilt games.


def matches(pattern: str, bench: Bench, who: str = "Anna") -> bool:
    heard = "".join(seat.text for seat in bench.seats if seat.who == who)
    return re.search(pattern, heard, re.DOTALL) is not None


@exhibited
def in_game(
    fault: str,
    protocol: str,
    spoils: Callable[[bytes], list[bytes]],
    pattern: str,
    seconds: float = 5,
    who: str = "Anna",
) -> object:
    bench = played(protocol, fault, spoils=lambda seat, data: spoils(data), seconds=seconds)
    return matches(pattern, bench, who)


@exhibited
def with_bert(fault: str, protocol: str, berts: str, pattern: str, seed: int = 1) -> object:
    return matches(pattern, played(protocol, fault, berts=berts, seconds=5, seed=seed), "Bert")


@exhibited
def said_by_another(fault: str, protocol: str, start: bytes, pattern: str) -> object:
    def spoils(seat: Seat, data: bytes) -> list[bytes]:
        if not data.startswith(start):
            return [data]
        (cleo,) = [one for one in seat.bench.seats if one.who == "Cleo" and one.door == seat.door]
        seat.bench.whisper(cleo, data)
        return []

    return matches(pattern, played(protocol, fault, spoils=spoils, seconds=5))


@exhibited
def without_bert(fault: str, protocol: str, start: bytes, pattern: str) -> object:
    silent: list[Seat] = []

    def spoils(seat: Seat, data: bytes) -> list[bytes]:
        if data.startswith(start) or silent:
            silent.append(seat)
            return []
        return [data]

    bench = seated(protocol, fault, spoils=spoils)
    bench.run(5, until=lambda: bool(silent))
    bench.reset(silent[0])
    bench.run(5)
    return matches(pattern, bench)


def stranger_accepts(fault: str, protocol: str) -> object:
    bench = Bench(server_of(protocol, fault))
    for number in range(3):
        bench.say(bench.connect(), LOGIN.format(number).encode())
    seat = bench.connect(door=1)
    bench.say(seat, f'<newgroup status="accept" id="4">{ABOUT.format(99)}</newgroup>\r\n\r\n'.encode())
    return seat.text.count("<disconnect")


def second_registers(fault: str, protocol: str) -> object:
    bench = Bench(server_of(protocol, fault, players=3))
    bench.say(bench.connect(), b"REGISTER;Anna")
    return bench.say(bench.connect(), b"REGISTER;Bert")


def replaced(start: bytes, pattern: bytes, by: bytes) -> Callable[[bytes], list[bytes]]:
    return lambda data: [re.sub(pattern, by, data, flags=re.DOTALL) if data.startswith(start) else data]


def never(*starts: bytes) -> Callable[[bytes], list[bytes]]:
    return lambda data: [] if data.startswith(starts) else [data]


def twice(start: bytes) -> Callable[[bytes], list[bytes]]:
    return lambda data: [data, data] if data.startswith(start) else [data]


def pausing(data: bytes) -> list[bytes]:
    """Return a pause before each bid."""
    pause = b'<pause type="start"></pause>\r\n\r\n'
    return [pause, data] if data.startswith(b"<licite") else [data]


@exhibited
def same_play(fault: str, protocol: str) -> object:
    one, other = (played(protocol, its, seconds=5) for its in (fault, ""))
    return [seat.heard for seat in one.seats] == [seat.heard for seat in other.seats]


def rolls_shown(fault: str, protocol: str) -> object:
    bench = played(protocol, fault)
    heard = [data for seat in bench.seats for data in seat.heard if data.startswith(b"ROLLED")]
    return len({*heard}) < len(heard)


# Messages to players.


@exhibited
def told(fault: str, protocol: str, *said: bytes) -> object:
    player = player_of(protocol, "Anna", fault)
    player.connected()
    for data in said:
        player.hear(data)
    return not player.over


@exhibited
def says(fault: str, protocol: str, said: bytes, answer: bytes) -> object:
    player = player_of(protocol, "Anna", fault)
    player.connected()
    player.hear(said)
    return answer in player.says


@exhibited
def plays(fault: str, protocol: str, pattern: str) -> object:
    return matches(pattern, played(protocol, berts=fault, seconds=5), "Bert")


@exhibited
def writes(fault: str, protocol: str, text: bytes) -> object:
    bench = played(protocol, berts=fault, seconds=5)
    return any(text in data for seat in bench.seats if seat.who == "Bert" for data in seat.said)


@exhibited
def completes(fault: str, protocol: str) -> object:
    return played(protocol, berts=fault, seconds=5).server.games > 0


SHOWN: dict[str, dict[str, tuple[Show, object] | tuple[Show, object, object]]] = {
    "maexchen-server": {
        "gives-away-names": (register_from("127.0.0.1", "127.0.0.2"), "REGISTERE|True", "REJECTE|False"),
        "forgets-the-new-port": (
            register_from("127.0.0.1", "127.0.0.1"),
            "REGISTERE|False",
            "REGISTERE|True",
        ),
        "answers-the-first-client": (second_registers, [], [b"REGISTERED"]),
        "confirms-twice": (hears("REGISTERED", b"REGISTER;Zoe"), 2, 1),
        "waits-for-ever": (in_game(never(b"ROLL", b"SEE"), "DID_NOT_TAKE_TURN"), False),
        "takes-any-token": (in_game(replaced(b"JOIN", b";.*", b";x"), "STARTED;[^S]*Bert"), True),
        "takes-any-address": (said_by_another(b"JOIN", "STARTED;[^S]*Bert"), True),
        "takes-used-tokens": (in_game(twice(b"JOIN"), "STARTED;[^S]*Bert[^S]*Bert"), True),
        "takes-any-dice": (in_game(replaced(b"ANNOUNCE", b";.*?;", b";7,7;"), "Bert;7,7"), True),
        "dies-on-odd-dice": (in_game(replaced(b"ANNOUNCE", b";.*?;", b";7,7;"), "Bert;7,7"), DIED, False),
        "lets-low-dice-pass": (in_game(replaced(b"ANNOUNCE", b";.*?;", b";3,1;"), "LOSING_DICE"), False),
        "shows-rolls": (rolls_shown, True),
    },
    "schafkopf-server": {
        "waits-for-who-is-gone": (without_bert(b"!ERSTE3", "!BEENDEN"), False),
        "takes-any-card": (with_bert("plays-what-it-has-not", "!SIEGER"), True),
        "lets-suits-be": (with_bert("does-not-follow-suit", "!SIEGER"), True),
        "takes-any-bid": (in_game(replaced(b"!SPIELSTDU", b"\n.*?\n", b"\nSI\n"), "!ENDE", who="Bert"), True),
        "takes-any-flag": (in_game(replaced(b"!MODEL", b"!SPIEL", b"!ERSTE3"), "!SIEGER", who="Bert"), True),
        "takes-turn-from-anyone": (said_by_another(b"!ERSTE3", "GEKLOPFT"), True),
        "tells-turns-twice": (same_play(), False),
    },
    "schafkopf-player": {
        "forgets-end": (completes(), False),
    },
    "catan-server": {
        "tells-nobody-who-is-gone": (gone_from_lobby, False),
        "refuses-in-silence": (hears("Fehler", HALLO, b'{"Foo":{}}\n'), 0, 1),
        "confirms-twice": (hears('"OK"', HALLO, CHAT), 2, 1),
        "confirms-nothing": (hears('"OK"', HALLO, CHAT), 0, 1),
        "forgets-line-ends": (hears('"Chat[^\n]*"OK"', HALLO, CHAT), 1, 0),
        "answers-only-who-asks": (second_hears('"Chat', HALLO, CHAT), 1, 2),
        "numbers-all-alike": (second_hears('Willkommen":{"id":1}', HALLO), 1, 0),
        "lets-colours-be-shared": (colours, 0, 1),
        "shows-hands": (same_play(), False),
        "shows-what-is-stolen": (same_play(), False),
        "counts-points-wrong": (same_play(), False),
        "forgets-the-robber": (same_play(), False),
        "lets-anybody-move": (with_bert("rolls-twice", "nicht an der Reihe"), False),
        "builds-without-paying": (with_bert("builds-without-cards", "Zu wenig Rohstoffe"), False),
        "lets-few-be-discarded": (with_bert("discards-too-few", "Falsche Anzahl", seed=2), False),
        "trades-cheaply": (with_bert("pays-too-little", "Falscher Kurs"), False),
        "builds-anywhere": (
            in_game(
                replaced(
                    b'{"Bauen": {"Typ": "Dorf"', rb"\[.*\]", b'[{"x":9,"y":9},{"x":9,"y":8},{"x":8,"y":9}]'
                ),
                '"x":9',
                5,
            ),
            True,
        ),
    },
    "catan-player": {
        "writes-strasse": (writes(b'"Strasse"'), True),
        "builds-between-two-fields": (plays("Fehler"), True),
    },
    "okey-server": {
        "never-times-out": (silent_for(20), False),
        "forgets-nobody": (okey_login("Zoe", "Zoe"), "Zoe_1", "Zoe"),
        "answers-twice": (hears(r"\+LPLA", b"LPLA\r\n"), 2, 1),
        "gives-names-twice": (second_hears(r"\+LOGI Zoe\r", b"LOGI Zoe\r\n"), 1, 0),
        "lets-a-fifth-in": (fifth, 5, 4),
        "whispers-to-all": (whispered, 3, 1),
        "waits-for-who-is-gone": (without_bert(b"DRAW", "PWIN|EMPT"), False),
        "lets-anybody-draw": (with_bert("draws-twice", r'\+DRAW " "'), False),
        "takes-any-tile": (with_bert("puts-what-it-has-not", r"\+PUTT f f"), False),
        "takes-any-deck": (with_bert("keeps-its-tile", r"\+PUTT f f"), False),
        "numbers-all-alike": (same_play(), False),
        "tells-the-next-but-one": (same_play(), False),
    },
    "okey-player": {
        "answers-no-ping": (says(b"PING\r\n", b"+PING\r\n"), False),
        "draws-twice": (plays(r'\+DRAW " "'), True),
    },
    "cgml-server": {
        "waits-for-who-is-gone": (without_bert(b"<licite", "<abort"), False),
        "keeps-groups-of-who-is-gone": (without_bert(b"<licite", "<abort"), False),
        "waits-for-ever": (in_game(never(b"<licite"), "timeout", 100), False),
        "gives-ids-twice": (second_hears("<disconnect", LOGIN.format(1).encode()), 0, 1),
        "takes-anybody-into-a-group": (stranger_accepts, 0, 1),
        "takes-turn-from-anyone": (said_by_another(b"<licite", '<licite type="info"'), True),
        "keeps-pauses-to-itself": (in_game(pausing, "<pause"), False),
        "shows-hands": (same_play(), False),
        "shows-discards": (same_play(), False),
        "takes-any-bid": (in_game(replaced(b"<licite", rb">[^<>]+<", b">G<"), "you must bid more"), False),
        "takes-any-card": (with_bert("plays-what-it-has-not", "you must play"), False),
        "lets-colours-be": (with_bert("does-not-follow", "you must play"), False),
        "takes-any-discard": (with_bert("discards-too-few", "you must discard"), False),
    },
    "cgml-player": {
        "answers-for-another": (completes(), False),
        "names-no-trumps": (plays("renonc"), True),
    },
}


def fatal(fault: Fault) -> Show:
    said = map(as_bytes, fault.fatal)
    return alone(*said) if fault.role == "server" else told(*said)


EXHIBITS = [
    *(Exhibit(fault.peer, fault.name, fatal(fault), DIED, True) for fault in FAULTS if fault.fatal),
    *(
        Exhibit(f"{protocol}-server", fault, show, is_faulty, not is_faulty)
        for protocol, half, wrong in (
            ("schafkopf", b"!NAM", b"!KARTE\nX\nY\n!END\n"),
            ("catan", b'{"Hal', b"{\n"),
            ("okey", b"LOG", b"\r\n"),
            ("cgml", b"<conn", b"<a>\r\n\r\n"),
        )
        for fault, show, is_faulty in (
            ("waits-for-the-rest", waits(half), False),
            ("closes-all", closes(wrong), True),
            ("ignores-half-close", half_closed(), False),
            ("is-quadratic", slow(), True),
        )
    ),
    *(
        Exhibit(peer, fault, show, faulty, without[0] if without else not faulty)
        for peer, rows in SHOWN.items()
        for fault, (show, faulty, *without) in rows.items()
    ),
]


@pytest.mark.parametrize(
    "row",
    a_few(
        EXHIBITS,
        lambda row: (
            (row.peer, row.fault)
            in {
                ("maexchen-server", "dies-on-bad-utf8"),
                ("maexchen-server", "takes-any-address"),
                ("schafkopf-server", "waits-for-the-rest"),
                ("schafkopf-server", "lets-suits-be"),
                ("catan-server", "confirms-twice"),
                ("catan-player", "dies-on-broken-json"),
                ("okey-server", "whispers-to-all"),
                ("okey-server", "never-times-out"),
                ("cgml-server", "waits-for-who-is-gone"),
                ("cgml-player", "answers-for-another"),
            }
        ),
        lambda row: f"{row.peer} {row.fault}",
    ),
)
def test_a_fault_is_there_when_it_is_asked_for(row: Exhibit) -> None:
    assert outcome(row, row.fault) == row.faulty
    assert outcome(row, "") == row.faultless


def test_every_fault_is_exhibited_or_shows_in_play() -> None:
    exhibited = {(row.peer, row.fault) for row in EXHIBITS}
    shown = {(fault.peer, fault.name) for fault in FAULTS if fault.shows}
    assert exhibited | shown == {(fault.peer, fault.name) for fault in FAULTS}
    assert all(row.faulty != row.faultless for row in EXHIBITS)
