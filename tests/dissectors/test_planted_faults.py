"""Each fault that ordinary play does not show is there when it is asked for, and only then.

An exhibit does one thing to a program and gives back what came of it, with the fault and without. `died` is
that the program ended.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest
from games_in_memory import played, player_of, seated, server_of
from peers.bench import Bench, Seat
from peers.planted import FAULTS
from peers.program import Died
from strength import a_few

DIED = "died"
LOGIN = '<connect status="active"><player id="{}"><name>Zoe</name></player></connect>\r\n\r\n'
HALLO = b'{"Hallo":{"Version":"x"}}\n'
CHAT = b'{"Chatnachricht senden":{"Nachricht":"Gr\xc3\xbc\xc3\x9f Gott"}}\n'
NO_CARDS = b"!MODEL\n!SPIEL\n" + b"KREUZ\nAS\n" * 14


class Exhibit(NamedTuple):
    """What comes of `show` with a fault in the program, and without it."""

    peer: str
    fault: str
    show: Callable[[str], object]
    faulty: object
    faultless: object


def outcome(show: Callable[[str], object], fault: str) -> object:
    try:
        return show(fault)
    except Died:
        return DIED


# A client alone with a server.


def alone(protocol: str, *said: bytes) -> Callable[[str], object]:
    """Whether the server still answers a new client after this."""

    def show(fault: str) -> object:
        bench = Bench(server_of(protocol, fault))
        bench.say(bench.connect(), *said)
        return is_answered(protocol, bench)

    return show


def is_answered(protocol: str, bench: Bench) -> bool:
    knocks = {"maexchen": b"REGISTER;Zoe", "cgml": b"<no></xml>\r\n\r\n"}
    seat = bench.connect()
    bench.say(seat, knocks.get(protocol, b""))
    return bool(seat.heard)


def hears(protocol: str, pattern: str, *said: bytes) -> Callable[[str], object]:
    """How often a client hears something that matches, if it says this."""

    def show(fault: str) -> object:
        bench = Bench(server_of(protocol, fault))
        seat = bench.connect()
        bench.say(seat, *said)
        return len(re.findall(pattern, seat.text))

    return show


def second_hears(protocol: str, pattern: str, *said: bytes) -> Callable[[str], object]:
    """The same of a second client, if both say this; then the first says the last of it again."""

    def show(fault: str) -> object:
        bench = Bench(server_of(protocol, fault))
        first, second = bench.connect(), bench.connect()
        for seat in (first, second):
            bench.say(seat, *said)
        bench.say(first, said[-1])
        return len(re.findall(pattern, second.text))

    return show


def waits(protocol: str, half: bytes) -> Callable[[str], object]:
    """Whether another is answered while somebody's message is unfinished."""

    def show(fault: str) -> object:
        bench = Bench(server_of(protocol, fault))
        bench.say(bench.connect(), half)
        seat = bench.connect()
        greeted = len(seat.heard)
        bench.say(
            seat,
            {"cgml": b"<no></xml>\r\n\r\n", "schafkopf": b"!BEENDEN\n!END\n"}.get(
                protocol, HALLO + b"LLPL\n"
            ),
        )
        return len(seat.heard) > greeted or seat.is_closed

    return show


def closes(protocol: str, wrong: bytes) -> Callable[[str], object]:
    """Whether somebody else's connection is closed when a client errs."""

    def show(fault: str) -> object:
        bench = Bench(server_of(protocol, fault))
        other = bench.connect()
        bench.say(bench.connect(), wrong)
        return other.is_closed

    return show


def half_closed(protocol: str) -> Callable[[str], object]:
    """Whether a connection ends of which the client has ended its half."""

    def show(fault: str) -> object:
        bench = Bench(server_of(protocol, fault))
        seat = bench.connect()
        bench.half_close(seat)
        return seat.is_closed

    return show


def slow(protocol: str) -> Callable[[str], object]:
    """Whether a long line takes far longer than to look at each of its bytes."""
    line = b"x" * 60_000

    def show(fault: str) -> object:
        bench = Bench(server_of(protocol, fault))
        seat = bench.connect()
        start = time.process_time()
        bench.say(seat, line)
        middle = time.process_time()
        assert sum(byte == 0x78 for byte in line) == len(line)
        return middle - start > 4 * (time.process_time() - middle)

    return show


def okey_login(*names: str) -> Callable[[str], object]:
    """What the last of these is called, if those before were reset."""

    def show(fault: str) -> object:
        bench = Bench(server_of("okey", fault))
        for name in names[:-1]:
            seat = bench.connect()
            bench.say(seat, f"LOGI {name}\r\n".encode())
            bench.reset(seat)
        seat = bench.connect()
        bench.say(seat, f"LOGI {names[-1]}\r\n".encode())
        return seat.text.split()[-1]

    return show


def silent_for(protocol: str, seconds: float) -> Callable[[str], object]:
    """Whether a client is closed that says nothing for so long."""

    def show(fault: str) -> object:
        bench = Bench(server_of(protocol, fault))
        seat = bench.connect()
        bench.run(seconds)
        return seat.is_closed

    return show


def fifth(fault: str) -> object:
    """How many of five get into a lobby."""
    bench = Bench(server_of("okey", fault))
    seats = [bench.connect() for _ in range(5)]
    for number, seat in enumerate(seats):
        bench.say(seat, f"LOGI p{number}\r\n".encode(), b"JLOB 1\r\n")
    return sum("+JLOB t" in seat.text for seat in seats)


def whispered(fault: str) -> object:
    """How many hear what is whispered to one."""
    bench = Bench(server_of("okey", fault))
    seats = [bench.connect() for _ in range(4)]
    for number, seat in enumerate(seats):
        bench.say(seat, f"LOGI p{number}\r\n".encode())
    bench.say(seats[0], b"CATC w hallo p1\r\n")
    return sum("CATS" in seat.text for seat in seats)


def gone_from_lobby(fault: str) -> object:
    bench = Bench(server_of("catan", fault))
    stays, goes = bench.connect(), bench.connect()
    for seat in (stays, goes):
        bench.say(seat, HALLO)
    bench.reset(goes)
    return "Verbindung verloren" in stays.text


def colours(fault: str) -> object:
    """How often the second of two who want one colour is refused."""
    bench = Bench(server_of("catan", fault))
    seats = [bench.connect(), bench.connect()]
    for seat in seats:
        wanted = b'{"Spieler":{"Name":"Zoe","Farbe":"Rot"}}\n'
        bench.say(seat, HALLO, wanted, b'{"Spiel starten":{}}\n')
    return seats[1].text.count("Farbe bereits vergeben")


def register_from(*hosts: str) -> Callable[[str], object]:
    """What the last of these hears, who all want one name."""

    def show(fault: str) -> object:
        bench = Bench(server_of("maexchen", fault, players=1))
        for host in hosts:
            seat = bench.connect(host=host)
            bench.say(seat, b"REGISTER;Anna")
        bench.run(3)
        return seat.text.partition("D")[0] + "|" + str("ROUND STARTING" in seat.text)

    return show


# Spoilt games.


def matches(pattern: str, bench: Bench, who: str = "Anna") -> bool:
    """Whether a player has heard something that matches."""
    heard = "".join(seat.text for seat in bench.seats if seat.who == who)
    return re.search(pattern, heard, re.DOTALL) is not None


def in_game(
    protocol: str, spoils: Callable[[bytes], list[bytes]], pattern: str, seconds: float = 5
) -> Callable[[str], object]:
    """Whether Anna hears something that matches, if what Bert says is spoilt."""

    def show(fault: str) -> object:
        bench = played(protocol, fault, spoils=lambda seat, data: spoils(data), seconds=seconds)
        return matches(pattern, bench)

    return show


def with_bert(protocol: str, berts: str, pattern: str) -> Callable[[str], object]:
    """Whether Bert, who has this fault, hears something that matches."""

    def show(fault: str) -> object:
        return matches(pattern, played(protocol, fault, berts=berts, seconds=5), "Bert")

    return show


def said_by_another(protocol: str, start: bytes, pattern: str) -> Callable[[str], object]:
    """Whether Anna hears something that matches, if Cleo says what Bert should."""

    def spoils(seat: Seat, data: bytes) -> list[bytes]:
        if not data.startswith(start):
            return [data]
        (cleo,) = [one for one in seat.bench.seats if one.who == "Cleo" and one.door == seat.door]
        seat.bench.whisper(cleo, data)
        return []

    def show(fault: str) -> object:
        return matches(pattern, played(protocol, fault, spoils=spoils, seconds=5))

    return show


def without_bert(protocol: str, start: bytes, pattern: str) -> Callable[[str], object]:
    """Whether Anna hears something that matches, if Bert's connection is reset in place of saying this."""

    def show(fault: str) -> object:
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

    return show


def stranger_accepts(fault: str) -> object:
    """How often a client is sent away who accepts a group that others were told of."""
    bench = Bench(server_of("cgml", fault))
    for number in range(3):
        bench.say(bench.connect(), LOGIN.format(number).encode())
    seat = bench.connect(door=1)
    said = '<newgroup status="accept" id="4"><player id="99"></player></newgroup>\r\n\r\n'
    bench.say(seat, said.encode())
    return seat.text.count("<disconnect")


def second_registers(fault: str) -> object:
    """What a second client hears."""
    bench = Bench(server_of("maexchen", fault, players=3))
    bench.say(bench.connect(), b"REGISTER;Anna")
    return bench.say(bench.connect(), b"REGISTER;Bert")


def replaced(start: bytes, pattern: bytes, by: bytes) -> Callable[[bytes], list[bytes]]:
    """What begins like this is said otherwise."""
    return lambda data: [re.sub(pattern, by, data, flags=re.DOTALL) if data.startswith(start) else data]


def never(*starts: bytes) -> Callable[[bytes], list[bytes]]:
    return lambda data: [] if data.startswith(starts) else [data]


def twice(start: bytes) -> Callable[[bytes], list[bytes]]:
    return lambda data: [data, data] if data.startswith(start) else [data]


def pausing(data: bytes) -> list[bytes]:
    """A pause before each bid."""
    pause = b'<pause type="start"></pause>\r\n\r\n'
    return [pause, data] if data.startswith(b"<licite") else [data]


def same_play(protocol: str) -> Callable[[str], object]:
    """Whether the players hear in a game what they hear from a faultless server."""

    def show(fault: str) -> object:
        one, other = (played(protocol, its, seconds=5) for its in (fault, ""))
        return [seat.heard for seat in one.seats] == [seat.heard for seat in other.seats]

    return show


def rolls_shown(fault: str) -> object:
    """Whether a roll is told to several."""
    bench = played("maexchen", fault)
    heard = [data for seat in bench.seats for data in seat.heard if data.startswith(b"ROLLED")]
    return len({*heard}) < len(heard)


# Players, told something.


def told(protocol: str, *said: bytes) -> Callable[[str], object]:
    """Whether a player goes on after this."""

    def show(fault: str) -> object:
        player = player_of(protocol, "Anna", fault)
        player.connected()
        for data in said:
            player.hear(data)
        return not player.over

    return show


def says(protocol: str, said: bytes, answer: bytes) -> Callable[[str], object]:
    """Whether a player answers like this."""

    def show(fault: str) -> object:
        player = player_of(protocol, "Anna", fault)
        player.connected()
        player.hear(said)
        return answer in player.says

    return show


def plays(protocol: str, pattern: str) -> Callable[[str], object]:
    """Whether Bert, who may have a fault, hears something that matches."""
    return lambda fault: with_bert(protocol, fault, pattern)("")


def completes(protocol: str) -> Callable[[str], object]:
    """Whether a game comes to its end where Bert may have a fault."""
    return lambda fault: played(protocol, berts=fault, seconds=5).server.games > 0


EXHIBITS = [
    *(
        Exhibit(f"{protocol}-server", fault, alone(protocol, *said), DIED, True)
        for protocol, fault, said in (
            ("maexchen", "dies-on-bad-utf8", [b"REGISTER;\xff"]),
            ("maexchen", "dies-on-an-unknown-word", [b"FOO"]),
            ("maexchen", "dies-on-a-missing-token", [b"ROLL"]),
            ("schafkopf", "dies-on-bad-utf8", [b"!NAME\n\xff\n!END\n"]),
            ("schafkopf", "dies-on-a-missing-field", [b"!KONTRA\n!END\n"]),
            ("schafkopf", "dies-on-an-unknown-card", [NO_CARDS]),
            ("catan", "dies-on-bad-utf8", [b'{"Hallo":{"Version":"\xff"}}\n']),
            ("catan", "dies-on-broken-json", [b"{\n"]),
            ("catan", "dies-on-a-missing-attribute", [HALLO, b'{"Bauen":{}}\n']),
            ("catan", "dies-on-an-unknown-message", [HALLO, b'{"Foo":{}}\n']),
            ("okey", "dies-on-bad-utf8", [b"LOGI \xff\r\n"]),
            ("okey", "dies-on-an-empty-line", [b"\r\n"]),
            ("okey", "dies-on-a-missing-argument", [b"LOGI\r\n"]),
            ("okey", "dies-on-a-bad-number", [b"LOGI a\r\n", b"JLOB x\r\n"]),
            ("okey", "dies-on-an-unknown-word", [b"XXXX\r\n"]),
            ("cgml", "dies-on-bad-utf8", [LOGIN.format(1).replace("Zoe", "Zoë").encode("latin-1")]),
            ("cgml", "dies-on-broken-xml", [b"<a>\r\n\r\n"]),
            ("cgml", "dies-on-a-missing-attribute", [b"<connect></connect>\r\n\r\n"]),
            ("cgml", "dies-on-an-unknown-element", [b"<foo></foo>\r\n\r\n"]),
        )
    ),
    *(
        Exhibit(f"{protocol}-player", fault, told(protocol, said), DIED, True)
        for protocol, fault, said in (
            ("maexchen", "dies-on-bad-utf8", b"\xff"),
            ("maexchen", "dies-on-an-unknown-word", b"FOO"),
            ("schafkopf", "dies-on-bad-utf8", b"!NAME\n\xff\n!END\n"),
            ("schafkopf", "dies-on-an-unknown-flag", b"!FOO\n!END\n"),
            ("schafkopf", "dies-without-money", b"!KONTO\n-5\n0\n!END\n"),
            ("catan", "dies-on-bad-utf8", b"\xff\n"),
            ("catan", "dies-on-broken-json", b"{\n"),
            ("catan", "dies-on-an-unknown-message", b'{"Foo":{}}\n'),
            ("catan", "dies-when-refused", b'{"Fehler":{"Meldung":"so nicht"}}\n'),
            ("okey", "dies-on-bad-utf8", b"PING \xff\r\n"),
            ("okey", "dies-on-quoted-chat", b'CATS b "ich \\"bin\\" da " Zoe\r\n'),
            ("cgml", "dies-on-bad-utf8", b"<foo>\xe8</foo>\r\n\r\n"),
            ("cgml", "dies-on-broken-xml", b"<a>\r\n\r\n"),
            ("cgml", "dies-on-an-unknown-element", b"<foo></foo>\r\n\r\n"),
        )
    ),
    *(
        Exhibit(f"{protocol}-server", fault, show, is_faulty, not is_faulty)
        for protocol, half, wrong in (
            ("schafkopf", b"!NAM", b"!KARTE\nX\nY\n!END\n"),
            ("catan", b'{"Hal', b"{\n"),
            ("okey", b"LOG", b"\r\n"),
            ("cgml", b"<conn", b"<a>\r\n\r\n"),
        )
        for fault, show, is_faulty in (
            ("waits-for-the-rest", waits(protocol, half), False),
            ("closes-all", closes(protocol, wrong), True),
            ("ignores-half-close", half_closed(protocol), False),
            ("is-quadratic", slow(protocol), True),
        )
    ),
    # Mäxchen.
    Exhibit(
        "maexchen-server",
        "gives-away-names",
        register_from("127.0.0.1", "127.0.0.2"),
        "REGISTERE|True",
        "REJECTE|False",
    ),
    Exhibit(
        "maexchen-server",
        "forgets-the-new-port",
        register_from("127.0.0.1", "127.0.0.1"),
        "REGISTERE|False",
        "REGISTERE|True",
    ),
    Exhibit("maexchen-server", "answers-the-first-client", second_registers, [], [b"REGISTERED"]),
    Exhibit("maexchen-server", "confirms-twice", hears("maexchen", "REGISTERED", b"REGISTER;Zoe"), 2, 1),
    Exhibit(
        "maexchen-server",
        "waits-for-ever",
        in_game("maexchen", never(b"ROLL", b"SEE"), "DID_NOT_TAKE_TURN"),
        False,
        True,
    ),
    Exhibit(
        "maexchen-server",
        "takes-any-token",
        in_game("maexchen", replaced(b"JOIN", b";.*", b";x"), "STARTED;[^S]*Bert"),
        True,
        False,
    ),
    Exhibit(
        "maexchen-server",
        "takes-any-address",
        said_by_another("maexchen", b"JOIN", "STARTED;[^S]*Bert"),
        True,
        False,
    ),
    Exhibit(
        "maexchen-server",
        "takes-used-tokens",
        in_game("maexchen", twice(b"JOIN"), "STARTED;[^S]*Bert[^S]*Bert"),
        True,
        False,
    ),
    Exhibit(
        "maexchen-server",
        "takes-any-dice",
        in_game("maexchen", replaced(b"ANNOUNCE", b";.*?;", b";7,7;"), "Bert;7,7"),
        True,
        False,
    ),
    Exhibit(
        "maexchen-server",
        "dies-on-odd-dice",
        in_game("maexchen", replaced(b"ANNOUNCE", b";.*?;", b";7,7;"), "Bert;7,7"),
        DIED,
        False,
    ),
    Exhibit(
        "maexchen-server",
        "lets-low-dice-pass",
        in_game("maexchen", replaced(b"ANNOUNCE", b";.*?;", b";3,1;"), "LOSING_DICE"),
        False,
        True,
    ),
    Exhibit("maexchen-server", "shows-rolls", rolls_shown, True, False),
    # Schafkopf.
    Exhibit(
        "schafkopf-server",
        "waits-for-who-is-gone",
        without_bert("schafkopf", b"!ERSTE3", "!ENDE"),
        False,
        True,
    ),
    Exhibit(
        "schafkopf-server",
        "takes-any-card",
        with_bert("schafkopf", "plays-what-it-has-not", "BEENDEN"),
        False,
        True,
    ),
    Exhibit(
        "schafkopf-server",
        "lets-suits-be",
        with_bert("schafkopf", "does-not-follow-suit", "BEENDEN"),
        False,
        True,
    ),
    Exhibit(
        "schafkopf-server",
        "takes-any-bid",
        in_game("schafkopf", replaced(b"!SPIELSTDU", b"\n.*?\n", b"\nSI\n"), "BOT"),
        False,
        True,
    ),
    Exhibit(
        "schafkopf-server",
        "takes-any-flag",
        in_game("schafkopf", replaced(b"!MODEL", b"!SPIEL", b"!ERSTE3"), "BOT"),
        False,
        True,
    ),
    Exhibit(
        "schafkopf-server",
        "takes-turn-from-anyone",
        said_by_another("schafkopf", b"!ERSTE3", "GEKLOPFT"),
        True,
        False,
    ),
    Exhibit("schafkopf-server", "tells-turns-twice", same_play("schafkopf"), False, True),
    Exhibit("schafkopf-player", "forgets-end", completes("schafkopf"), False, True),
    # Catan.
    Exhibit("catan-server", "tells-nobody-who-is-gone", gone_from_lobby, False, True),
    Exhibit("catan-server", "refuses-in-silence", hears("catan", "Fehler", HALLO, b'{"Foo":{}}\n'), 0, 1),
    Exhibit("catan-server", "confirms-twice", hears("catan", '"OK"', HALLO, CHAT), 2, 1),
    Exhibit("catan-server", "confirms-nothing", hears("catan", '"OK"', HALLO, CHAT), 0, 1),
    Exhibit("catan-server", "forgets-line-ends", hears("catan", '"Chat[^\n]*"OK"', HALLO, CHAT), 1, 0),
    Exhibit("catan-server", "answers-only-who-asks", second_hears("catan", '"Chat', HALLO, CHAT), 1, 2),
    Exhibit("catan-server", "numbers-all-alike", second_hears("catan", 'Willkommen":{"id":1}', HALLO), 1, 0),
    Exhibit("catan-server", "lets-colours-be-shared", colours, 0, 1),
    *(
        Exhibit("catan-server", fault, same_play("catan"), False, True)
        for fault in ("shows-hands", "shows-what-is-stolen", "counts-points-wrong", "forgets-the-robber")
    ),
    *(
        Exhibit("catan-server", fault, with_bert("catan", berts, why), False, True)
        for fault, berts, why in (
            ("lets-anybody-move", "rolls-twice", "nicht an der Reihe"),
            ("builds-without-paying", "builds-without-cards", "Zu wenig Rohstoffe"),
            ("lets-few-be-discarded", "discards-too-few", "Falsche Anzahl"),
            ("trades-cheaply", "pays-too-little", "Falscher Kurs"),
        )
    ),
    Exhibit(
        "catan-server",
        "builds-anywhere",
        in_game(
            "catan",
            replaced(b'{"Bauen": {"Typ": "Dorf"', rb"\[.*\]", b'[{"x":9,"y":9},{"x":9,"y":8},{"x":8,"y":9}]'),
            '"x":9',
            5,
        ),
        True,
        False,
    ),
    Exhibit("catan-player", "writes-strasse", plays("catan", "nicht an der Reihe"), True, False),
    Exhibit("catan-player", "builds-between-two-fields", plays("catan", "Dort kann nicht"), True, False),
    # Okey.
    Exhibit("okey-server", "never-times-out", silent_for("okey", 20), False, True),
    Exhibit("okey-server", "forgets-nobody", okey_login("Zoe", "Zoe"), "Zoe_1", "Zoe"),
    Exhibit("okey-server", "answers-twice", hears("okey", r"\+LPLA", b"LPLA\r\n"), 2, 1),
    Exhibit("okey-server", "gives-names-twice", second_hears("okey", r"\+LOGI Zoe\r", b"LOGI Zoe\r\n"), 1, 0),
    Exhibit("okey-server", "lets-a-fifth-in", fifth, 5, 4),
    Exhibit("okey-server", "whispers-to-all", whispered, 3, 1),
    Exhibit("okey-server", "waits-for-who-is-gone", without_bert("okey", b"DRAW", "PWIN|EMPT"), False, True),
    Exhibit("okey-server", "lets-anybody-draw", with_bert("okey", "draws-twice", r'\+DRAW " "'), False, True),
    Exhibit(
        "okey-server", "takes-any-tile", with_bert("okey", "puts-what-it-has-not", r"\+PUTT f f"), False, True
    ),
    Exhibit("okey-server", "takes-any-deck", with_bert("okey", "keeps-its-tile", r"\+PUTT f f"), False, True),
    Exhibit("okey-server", "numbers-all-alike", same_play("okey"), False, True),
    Exhibit("okey-server", "tells-the-next-but-one", same_play("okey"), False, True),
    Exhibit("okey-player", "answers-no-ping", says("okey", b"PING\r\n", b"+PING\r\n"), False, True),
    Exhibit("okey-player", "draws-twice", plays("okey", r'\+DRAW " "'), True, False),
    # CGML.
    Exhibit("cgml-server", "waits-for-who-is-gone", without_bert("cgml", b"<licite", "<abort"), False, True),
    Exhibit(
        "cgml-server", "keeps-groups-of-who-is-gone", without_bert("cgml", b"<licite", "<abort"), False, True
    ),
    Exhibit("cgml-server", "waits-for-ever", in_game("cgml", never(b"<licite"), "timeout", 100), False, True),
    Exhibit(
        "cgml-server", "gives-ids-twice", second_hears("cgml", "<disconnect", LOGIN.format(1).encode()), 0, 1
    ),
    Exhibit("cgml-server", "takes-anybody-into-a-group", stranger_accepts, 0, 1),
    Exhibit(
        "cgml-server",
        "takes-turn-from-anyone",
        said_by_another("cgml", b"<licite", '<licite type="info"'),
        True,
        False,
    ),
    Exhibit("cgml-server", "keeps-pauses-to-itself", in_game("cgml", pausing, "<pause"), False, True),
    Exhibit("cgml-server", "shows-hands", same_play("cgml"), False, True),
    Exhibit("cgml-server", "shows-discards", same_play("cgml"), False, True),
    Exhibit(
        "cgml-server",
        "takes-any-bid",
        in_game("cgml", replaced(b"<licite", rb">[^<>]+<", b">G<"), "you must bid more"),
        False,
        True,
    ),
    *(
        Exhibit("cgml-server", fault, with_bert("cgml", berts, why), False, True)
        for fault, berts, why in (
            ("takes-any-card", "plays-what-it-has-not", "you must play"),
            ("lets-colours-be", "does-not-follow", "you must play"),
            ("takes-any-discard", "discards-too-few", "you must discard"),
        )
    ),
    Exhibit("cgml-player", "answers-for-another", completes("cgml"), False, True),
    Exhibit("cgml-player", "names-no-trumps", plays("cgml", "renonc"), True, False),
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
    assert outcome(row.show, row.fault) == row.faulty
    assert outcome(row.show, "") == row.faultless


def test_every_fault_is_exhibited_or_shows_in_play() -> None:
    exhibited = {(row.peer, row.fault) for row in EXHIBITS}
    shown = {(fault.peer, fault.name) for fault in FAULTS if fault.shows}
    assert exhibited | shown == {(fault.peer, fault.name) for fault in FAULTS}
    assert all(row.faulty != row.faultless for row in EXHIBITS)
