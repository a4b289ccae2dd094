"""Table of malformed Okey conversations, with the exact bytes of each expected diagnostic.

A conversation is an artificial game of four, in either dialect, with one line replaced or added.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from message_cases import cases
from okey_script import Script, Step
from okey_talk import four

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT
from kiebitz.dissectors.model import Direction, Severity
from kiebitz.dissectors.protocols.okey.dissector import OKEY

CLIENTS = ("ada", "ben", "cem", "dilek")


@cache
def script(head: bool) -> Script:
    """Return a game in which ada begins, and wins in the end."""
    made = next(
        each
        for seed in range(100)
        if (each := Script(seed, head)) and begins(each) and each.tables[1].turn == 0
    )
    table = made.tables[1]
    made.play(table, 8)
    made.chat("ada", "Schöner Zug!")
    made.win(table)
    made.logout(*CLIENTS)
    return made


def begins(made: Script) -> bool:
    four(made, 1, *CLIENTS)
    return True


class Place(NamedTuple):
    """The `number`th message of a name in a client's conversation."""

    direction: Direction
    name: str
    number: int = 0
    client: str = "ada"


class Broken(NamedTuple):
    """A conversation with one error and its expected diagnostic.

    The message at `place` is replaced by `data`, or, if `by` is a side, it sends `data` after that message.
    """

    title: str
    place: Place
    data: bytes
    code: str
    offset: int
    length: int
    expected: str = ""
    severity: Severity = "error"
    by: Direction | None = None
    head: bool = False

    @property
    def direction(self) -> Direction:
        return self.by or self.place.direction


@cache
def where(place: Place, head: bool) -> int:
    """Return the number of a step."""
    found = [
        number
        for number, step in enumerate(script(head).steps)
        if (step.client, step.direction, step.name) == (place.client, place.direction, place.name)
    ]
    return found[place.number]


def step(place: Place, head: bool = False) -> Step:
    return script(head).steps[where(place, head)]


# Places where a client's message has no effect: before the game, and in it.
LOGGED_IN = Place("s2c", "+LOGI")
IN_LOBBY = Place("s2c", "+JLOB")
IN_GAME = Place("c2s", "+STRT")
FIRST_PUT = Place("c2s", "PUTT")


def of_the_table() -> Iterator[Broken]:
    """Yield the malformed lines of the table of cases, added to sound ones; and the tolerated ones."""
    malformed = cases(OKEY, "malformed")
    for severity, some in (("error", malformed), ("note", cases(OKEY, "loose"))):
        for case in some:
            ((code, offset, length),) = case.diagnostics
            if (
                case.name in ("PUTT", "DRAW", "LLPL", "REDY", "+PING", "NAME", "JLOB", "LOGI")
                and case not in malformed
            ):
                # These would be more than a slip there.
                continue
            # The server's are put in where nothing that they might mean is open.
            place = IN_LOBBY if case.direction == "c2s" else LOGGED_IN
            title = f"{case.direction} {case.data[:50]!r}"
            assert severity in ("error", "note")
            grade: Severity = "error" if severity == "error" else "note"
            yield Broken(title, place, case.data, code, offset, length, "", grade, case.direction)


def line(text: str) -> bytes:
    return f"{text}\r\n".encode()


def out_of_order(head: bool) -> Iterator[Broken]:
    """Yield requests that are not allowed at their time."""

    def broken(
        title: str, place: Place, text: str, code: str, expected: str, severity: Severity = "error"
    ) -> Broken:
        data = line(text)
        dialect = "head" if head else "seed"
        return Broken(f"{dialect}: {title}", place, data, code, 0, len(data), expected, severity, "c2s", head)

    for name in ("DRAW m", "PUTT 1:RED 2:RED", "WINC", "REDY"):
        yield broken(f"{name} outside a lobby", LOGGED_IN, name, "outside-lobby", "JLOB before it")
    yield broken("CATC l outside a lobby", LOGGED_IN, "CATC l x", "outside-lobby", "JLOB", "warning")
    for name in ("DRAW m", "PUTT 1:RED 2:RED", "WINC"):
        yield broken(f"{name} before the game", IN_LOBBY, name, "no-game", "STRT before it")
    turn = "a STAT with this player's index before it"
    waiting = Place("c2s", "+STRT", client="cem")
    for name in ("DRAW m", "DRAW e", "PUTT 1:RED 2:RED"):
        yield broken(f"{name} out of turn", waiting, name, "not-your-turn", turn)
    yield broken("DRAW of who begins", IN_GAME, "DRAW m", "must-put", "PUTT")
    yield broken("a second DRAW", Place("s2c", "+DRAW"), "DRAW e", "must-put", "PUTT")
    yield broken("PUTT before DRAW", your_turn(head), "PUTT 1:RED 2:RED", "must-draw", "DRAW")
    for name in ("DRAW m", "PUTT 1:RED 2:RED", "WINC"):
        last = Place("s2c", "+PUTT", -1)
        yield broken(f"{name} after the end", last, name, "after-end", "REDY", "warning")
    for name in ("+STAT", "+PWIN", "+EMPT", "+CATS", "+STRT"):
        yield broken(f"{name} for nothing", LOGGED_IN, name, "unasked", f"{name[1:]} before it", "warning")


def your_turn(head: bool) -> Place:
    """Return the place of the first status with ada's next turn."""
    number = [
        each.fields["currentplayeridx"]
        for each in script(head).steps
        if (each.client, each.name) == ("ada", "STAT")
    ].index(0)
    return Place("s2c", "STAT", number)


def unasked_answers() -> Iterator[Broken]:
    for text in (
        *("+LOGI x", "+NAME x", "+LPLA x", '+LLPL " "', '+LGAM o " "', "+JLOB f", "+REDY", "+DRAW 1:RED"),
        *("+PUTT t f", "+CATC b x", "+PING", "+WINC 1:RED"),
    ):
        data = line(text)
        name = text.split(" ")[0]
        expected = f"{name[1:]} before it"
        place = Place("s2c", "+JLOB")
        yield Broken(f"{text} for nothing", place, data, "unasked", 0, len(data), expected, by="s2c")


def wrong_puts(head: bool) -> Iterator[Broken]:
    """Yield violations of the rules of a put, for a known rack."""
    sent = step(FIRST_PUT, head)
    tile: str = sent.fields["tile"]
    deck: list[str | None] = sent.fields["deck"]
    pad = "%" if head else " "
    held = [each for each in deck if each is not None]
    alien = next(f"{n}:{c}" for n in range(1, 14) for c in ("RED", "BLUE") if f"{n}:{c}" not in (*held, tile))

    def put(what: str, slots: list[str | None]) -> bytes:
        written = " ".join(each if each is not None else f'\\"{pad}\\"' for each in slots)
        return line(f'PUTT {what} "{written}{pad}"')

    def broken(title: str, what: str, slots: list[str | None], code: str, at: str, expected: str) -> Broken:
        data = put(what, slots)
        offset = data.index(at.encode()) if at else 0
        dialect = "head" if head else "seed"
        return Broken(
            f"{dialect}: {title}", FIRST_PUT, data, code, offset, len(at.encode()), expected, head=head
        )

    whole = put("x", deck).decode()[len("PUTT x ") : -2]
    yield broken("a tile that is not held", alien, deck, "not-held", alien, "one of ")
    yield broken("no tile", f'"{pad}"', deck, "not-held", f'"{pad}"', "one of ")
    first = deck.index(held[0])
    with_alien = [*deck[:first], alien, *deck[first + 1 :]]
    yield broken("a deck with a tile that is not held", tile, with_alien, "wrong-deck", alien, "")
    empty = deck.index(None)
    with_more = [*deck[:empty], alien, *deck[empty + 1 :]]
    yield broken("a deck with a tile more", tile, with_more, "wrong-deck", alien, "")
    without = [*deck[:first], None, *deck[first + 1 :]]
    fewer = put("x", without).decode()[len("PUTT x ") : -2]
    yield broken("a deck with a tile less", tile, without, "wrong-deck", fewer, "")
    kept = [*deck[:empty], tile, *deck[empty + 1 :]]
    case = broken("a deck that still has the tile", tile, kept, "wrong-deck", tile, "")
    # Reported at the last of them: the others are held.
    data = case.data
    at = data.rindex(f" {tile} ".encode()) + 1 if f" {tile} ".encode() in data[12:] else data.index(b'"') + 1
    yield case._replace(offset=at)
    assert whole


def wrong_deals() -> Iterator[Broken]:
    """Yield deals of a server against the rules."""
    place = Place("s2c", "STRT")
    deck = [*map(str, step(place).fields["startdeck"])]
    second = Place("s2c", "STRT", client="ben")
    own = [*map(str, step(second).fields["startdeck"])]

    def broken(title: str, place: Place, tiles: list[str], severity: Severity = "error") -> Broken:
        written = f'"{" ".join(tiles)} "'
        data = line(f"STRT {written} {CLIENTS.index(place.client)}")
        return Broken(title, place, data, "wrong-deal", 5, len(written), "14 tiles, one more", severity)

    yield broken("13 tiles", second, own[:13])
    yield broken("16 tiles", second, [*own, "1:RED", "1:BLUE"])
    yield broken("two begin", second, [*own, next(tile for tile in own if own.count(tile) == 1)], "warning")
    yield broken("a tile thrice", second, [own[0]] * 3 + own[3:])
    twice = next(tile for tile in deck if deck.count(tile) == 1)
    yield broken("a tile thrice in two decks", second, [twice] * 2 + own[2:], "warning")


def too_long() -> Iterator[Broken]:
    end = "the end of the message"
    for title, data in (
        ("2 MB of chat", b"CATC b " + b"x" * 2_000_000 + b"\r\n"),
        ("2 MB of quotation marks", b"CATC b " + b'"' * 2_000_000 + b"\r\n"),
        ("2 MB of NULs", bytes(2_000_000) + b"\n"),
        ("a deck of 2 MB", b'PUTT 1:RED "' + b"1:RED " * 400_000 + b'"\r\n'),
    ):
        assert len(data) > FRAME_LIMIT
        yield Broken(title, IN_LOBBY, data, "too-long", 0, len(data), end, by="c2s")


BROKEN = [
    *of_the_table(),
    *(broken for head in (False, True) for broken in out_of_order(head)),
    *unasked_answers(),
    *(broken for head in (False, True) for broken in wrong_puts(head)),
    *wrong_deals(),
    *too_long(),
]
