"""Table of malformed Schafkopf conversations, with the exact bytes of each expected diagnostic.

A conversation is an artificial round of four clients with one change: a message is replaced, or bytes are
inserted. Many of the errors are derived from the grammar, each for each message; the others are handmade.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from message_cases import cases
from schafkopf_script import Script, Step

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.grammar.packet_codec import line_types
from kiebitz.dissectors.model import Direction, Severity
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.protocols.schafkopf.grammar import (
    MODEL_LINES,
    Konto,
    String,
    notation,
    symbol_of,
)


def paket(text: str) -> bytes:
    """Return a Paket's bytes: it is written with `|` for each line end."""
    return "".join(f"{line}\n" for line in text.split("|")).encode()


CLIENTS = ("Anna", "Berta", "Carl", "Dora")
"""The errors are in Anna's conversation."""

FARBE = 'Farbe = "§" | "EICHEL" | "GRAS" | "HERZ" | "SCHELLEN"'
WERT = 'Wert = "§" | "OBER" | "UNTER" | "SAU" | "ZEHN" | "KONIG" | "NEUN"'
FLAG = 'Flag = "!UPDATE" | "!ERSTE3" | "!SPIELSTDU" | "!SPIEL"'
ANY_FLAG = 'Paket = "!MODEL" | "!NAME" | '
END = '"!END"'


class Place(NamedTuple):
    """A message of Anna's conversation: the `number`th of this name, a MODEL's by its flag."""

    direction: Direction
    name: str
    number: int = 0
    rounds: str = "played"


class Broken(NamedTuple):
    """A conversation with one error and its expected diagnostic.

    The message at `place` is replaced by `data`, or, if `by` is a side, it sends `data` after that message.
    `swallowed` are the later messages of its direction that become unreadable.
    """

    title: str
    place: Place
    data: bytes
    code: str
    offset: int
    length: int
    expected: str | None
    severity: Severity = "error"
    swallowed: int = 0
    by: Direction | None = None

    @property
    def direction(self) -> Direction:
        return self.by or self.place.direction


ROUNDS = {
    "played": ("SAUSPIELgras", "NICHTS"),
    "hochzeit": ("HOCHZEIT", "HOCHZEIT", "HOCHZEIT", "NICHTS"),
}
"""Anna refuses one Hochzeit and takes the next."""


@cache
def script(rounds: str) -> list[Step]:
    made = Script(8, CLIENTS)
    for modus in ROUNDS[rounds]:
        made.round(modus)
    made.leave()
    return made.steps


def steps_of(place: Place) -> list[Step]:
    """Return the conversation in which a place is."""
    return script(place.rounds)


def label(step: Step) -> str:
    return f"MODEL {step.fields['flag']}" if step.name == "MODEL" else step.name


@cache
def where(place: Place) -> int:
    """Return the number of a step."""
    found = [
        number
        for number, step in enumerate(steps_of(place))
        if step.client == "Anna" and (step.direction, label(step)) == place[:2]
    ]
    return found[place.number]


def sound(place: Place) -> bytes:
    return steps_of(place)[where(place)].data


# Made from the grammar: each message that a conversation has, with each slip that can be made in it.

PLACES = [
    *(
        Place("s2c", name)
        for name in (
            *("NAME", "ID", "MITSPIELER", "KONTO", "DRAN", "GEKLOPFT", "BESTESSPIEL", "SPIELT"),
            *("MODUS", "KONTRA", "ENDE", "SIEGER", "BEENDEN"),
        )
    ),
    *(Place("c2s", name) for name in ("NAME", "ERSTE3", "SPIELSTDU", "KONTRA")),
    Place("s2c", "HOCHZEIT", rounds="hochzeit"),
    Place("c2s", "HOCHZEIT", rounds="hochzeit"),
    Place("c2s", "HOCHZEIT", 1, "hochzeit"),
    Place("c2s", "KARTE", rounds="hochzeit"),
]
MODELS = [
    Place("s2c", "MODEL ERSTE3"),
    Place("s2c", "MODEL SPIELSTDU"),
    Place("s2c", "MODEL SPIEL", 2),
    Place("s2c", "MODEL UPDATE", 5),
    Place("c2s", "MODEL SPIEL", 1),
]


def row_of(place: Place) -> MessageType:
    row = SCHAFKOPF.codec.decode(sound(place), place.direction).row
    assert row is not None
    return row


def lines_of(place: Place) -> list[str]:
    return sound(place).decode().splitlines()


def joined(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def slips_of_fields(place: Place) -> Iterator[Broken]:
    """Yield each line of the fields is wrong, or missing."""
    flag, *body, end = lines_of(place)
    kinds = line_types(row_of(place))
    for number, kind in enumerate(kinds):
        before = joined(flag, *body[:number])
        title = f"{place.direction} {place.name}, line {number + 1}"
        if not isinstance(kind, String) and symbol_of(kind) != '"§"':
            data = before + joined("XYZ", *body[number + 1 :], end)
            code = "bad-number" if isinstance(kind, Konto) else "bad-field"
            yield Broken(f"{title} is XYZ", place, data, code, len(before), 3, kind.title)
        rest = body[:number] + body[number + 1 :]
        if len({kind.title for kind in kinds}) == 1 and symbol_of(kind) not in ('"§"', "Konto"):
            data = joined(flag, *rest, end)
            yield Broken(
                f"{title} is missing", place, data, "missing-field", len(data) - 5, 4, kinds[-1].title
            )


def slips_of_flag(place: Place) -> Iterator[Broken]:
    flag, *rest = lines_of(place)
    title = f"{place.direction} {place.name}, flag "
    for wrong in (
        flag[1:],
        flag.lower(),
        f"{flag} ",
        f" {flag}",
        f"{flag}{flag[-1]}",
        f"{flag}\0",
        f"!{flag}",
    ):
        data = joined(wrong, *rest)
        yield Broken(title + repr(wrong), place, data, "unknown-flag", 0, len(wrong), ANY_FLAG)
    if rest[0] not in ("§", "!END"):
        # The empty name does not identify a Paket.
        data = joined(*rest)
        yield Broken(title + "missing", place, data, "stray-lines", 0, len(rest[0].encode()), ANY_FLAG)
    bom = b"\xef\xbb\xbf" + sound(place)
    yield Broken(title + "after a BOM", place, bom, "byte-order-mark", 0, 3, ANY_FLAG)


def slips_of_end(place: Place) -> Iterator[Broken]:
    data = joined(*lines_of(place)[:-1])
    title = f"{place.direction} {place.name}, end "
    if place.name != "BEENDEN":
        # Nothing comes after it: that is a stream which ends in a message.
        yield Broken(title + "missing", place, data, "missing-end", len(data), 0, END)
    for wrong in ("END", "!end", "!ENDE", "!END ", "!EDN", "!!END", "!END\0"):
        yield Broken(
            title + repr(wrong), place, data + joined(wrong), "missing-end", len(data), len(wrong), END
        )


def harmless(place: Place) -> Iterator[Broken]:
    """Yield deviations that real peers tolerate, which are notes therefore."""
    data = sound(place)
    *lines, end = lines_of(place)
    title = f"{place.direction} {place.name}, "
    at = len(joined(*lines))
    yield Broken(
        title + "a surplus field",
        place,
        joined(*lines, "mehr", end),
        "surplus-fields",
        at,
        4,
        notation(row_of(place)),
        "note",
    )
    yield Broken(title + "a second end", place, data + b"!END\n", "stray-end", len(data), 4, None, "note")
    yield Broken(title + "an empty line before", place, b"\n" + data, "empty-line", 0, 0, None, "note")


def first_bad(lines: list[str]) -> int:
    """Return the index of a MODEL's first invalid line of cards, or their number."""
    for number, line in enumerate(lines[:MODEL_LINES]):
        if number % 2 == 0 and line not in FARBE.replace('"', "").split(" ")[2::2]:
            return number
        if number % 2 == 1:
            allowed = WERT.replace('"', "").split(" ")[2::2]
            if line not in allowed or (line == "§") != (lines[number - 1] == "§"):
                return number
    return min(len(lines), MODEL_LINES)


def wrong_model(title: str, place: Place, lines: list[str]) -> Broken:
    """Return a MODEL with a line too many, missing, or wrong."""
    flags = lines_of(place)[:2]
    bad = first_bad(lines)
    data = joined(*flags, *lines)
    offset = len(joined(*flags, *lines[:bad]))
    title = f"{place.direction} {place.name}, {title}"
    if bad == len(lines):
        return Broken(title, place, data, "missing-field", offset, 0, FARBE if bad % 2 == 0 else WERT)
    length = len(lines[bad].encode())
    if bad == MODEL_LINES:
        return Broken(title, place, data, "stray-lines", offset, length, ANY_FLAG)
    expected = FARBE
    if bad % 2 == 1:
        expected = WERT
        if f'"{lines[bad]}"' in WERT:
            expected = 'Wert = "§"' if lines[bad - 1] == "§" else 'Wert = "OBER"'
    return Broken(title, place, data, "bad-field", offset, length, expected)


def slips_of_model(place: Place) -> Iterator[Broken]:
    lines = lines_of(place)[2:]
    for number, line in enumerate(lines):
        without = lines[:number] + lines[number + 1 :]
        yield wrong_model(f"27 lines, without line {number + 1}", place, without)
        doubled = [*lines[:number], line, *lines[number:]]
        yield wrong_model(f"29 lines, line {number + 1} twice", place, doubled)
        more = [*lines[:number], "", *lines[number:]]
        yield wrong_model(f"29 lines, an empty one before line {number + 1}", place, more)
        wrong = [*lines[:number], "ACHT", *lines[number + 1 :]]
        yield wrong_model(f"line {number + 1} is ACHT", place, wrong)
    for number in range(0, MODEL_LINES, 2):
        half = [*lines[:number], "EICHEL", "§", *lines[number + 2 :]]
        yield wrong_model(f"half a card at line {number + 1}", place, half)
    yield wrong_model("no card at all", place, [])
    yield wrong_model("a card less", place, lines[:-2])
    yield wrong_model("Wert before Farbe", place, [lines[1], lines[0], *lines[2:]])


def slips_of_model_flag(place: Place) -> Iterator[Broken]:
    model, flag, *cards = lines_of(place)
    title = f"{place.direction} {place.name}, flag "
    expected = FLAG if place.direction == "s2c" else 'Flag = "!SPIEL"'
    for wrong in (flag[1:], flag.lower(), f"{flag} ", "!FOO", "§", "0"):
        data = joined(model, wrong, *cards)
        length = len(wrong.encode())
        yield Broken(title + repr(wrong), place, data, "bad-field", 7, length, expected)
    yield Broken(
        title + "missing", place, joined(model, *cards), "bad-field", 7, len(cards[0].encode()), expected
    )
    yield Broken(
        title + "without !MODEL", place, joined(flag, *cards), "unknown-flag", 0, len(flag), ANY_FLAG
    )
    for wrong in ("MODEL", "!model", "!MODEL ", "!MODEL\0"):
        data = joined(wrong, flag, *cards)
        yield Broken(title + repr(wrong), place, data, "unknown-flag", 0, len(wrong), ANY_FLAG)
    data = sound(place)
    yield Broken(title + "and !END", place, data + b"!END\n", "stray-end", len(data), 4, None, "note")


MADE = [
    *(broken for place in PLACES for broken in slips_of_fields(place)),
    *(broken for place in PLACES for broken in slips_of_flag(place)),
    *(broken for place in PLACES for broken in slips_of_end(place)),
    *(broken for place in PLACES for broken in harmless(place)),
    *(broken for place in MODELS for broken in slips_of_model(place)),
    *(broken for place in MODELS for broken in slips_of_model_flag(place)),
]


# By hand.

NAME = Place("c2s", "NAME")
KNOCK = Place("c2s", "ERSTE3")
BID = Place("c2s", "SPIELSTDU")
PLAY = Place("c2s", "MODEL SPIEL")
DRAN = Place("s2c", "DRAN")
MITSPIELER = Place("s2c", "MITSPIELER")
UPDATE = Place("s2c", "MODEL UPDATE", 5)
BOOLEAN = 'Boolean = "JA" | "NEIN"'
HUGE = b"x" * 2_000_000


def malformed_place(direction: Direction, name: str | None) -> Place | None:
    """Return a case's place in a conversation, if it has one."""
    for place in (*PLACES, *MODELS[2:]):
        if (place.direction, place.name.partition(" ")[0]) == (direction, name):
            return place
    return None


def of_the_table() -> Iterator[Broken]:
    """Yield the malformed Pakete of the table of cases, in a conversation."""
    for case in cases(SCHAFKOPF, "malformed"):
        place = malformed_place(case.direction, case.name)
        ((code, offset, length),) = case.diagnostics
        assert place is not None
        title = f"{case.direction} {case.data[:60]!r}{case.data[80:100]!r}"
        yield Broken(title, place, case.data, code, offset, length, "")


def replaced(place: Place, number: int, line: bytes) -> tuple[bytes, int]:
    """Return a message with another line, and where that begins."""
    lines = sound(place).splitlines(keepends=True)
    return b"".join([*lines[:number], line, *lines[number + 1 :]]), len(b"".join(lines[:number]))


def too_long() -> Iterator[Broken]:
    end = "the end of the message"

    def broken(title: str, place: Place, data: bytes, offset: int) -> Broken:
        return Broken(title, place, data, "too-long", offset, len(data) - offset, end)

    yield broken("2 MB in a name", NAME, b"!NAME\n" + HUGE + b"\n!END\n", 6)
    yield broken("2 MB in a name, without !END", NAME, b"!NAME\n" + HUGE + b"\n", 6)
    yield broken("2 MB in place of a flag", KNOCK, HUGE + b"\n", 0)
    yield broken("2 MB in a flag", KNOCK, b"!" + HUGE + b"\nJA\n!END\n", 0)
    yield broken("2 MB in a field", DRAN, b"!DRAN\n" + HUGE + b"\n!END\n", 6)
    yield broken("2 MB in place of !END", DRAN, b"!DRAN\n0\n" + HUGE + b"\n", 8)
    yield broken("2 MB of NULs", KNOCK, bytes(2_000_000) + b"\n", 0)
    yield broken("2 MB in a hand", UPDATE, *replaced(UPDATE, 4, HUGE + b"\n"))
    yield broken("2 MB in the last line of a MODEL", PLAY, *replaced(PLAY, 29, HUGE + b"\n"))
    # Lines of 5 bytes, of which the first whose end is too far away is named.
    data = b"!NAME\nAnna\n" + b"mehr\n" * 400_000
    yield broken("no end for 2 MB", NAME, data, 11 + (FRAME_LIMIT - 11) // 5 * 5)
    data = b"".join(sound(UPDATE).splitlines(keepends=True)[:3]) + b"HERZ\n" * 400_000
    lead = len(data) - 2_000_000
    yield broken("a MODEL of 2 MB", UPDATE, data, lead + (FRAME_LIMIT - lead) // 5 * 5)


def by_hand() -> Iterator[Broken]:
    knock, bid, play = sound(KNOCK), sound(BID), sound(PLAY)
    # Answers without a question.
    early = Place("s2c", "KONTO")
    asked = "to be asked first"
    yield Broken(
        "an answer to no question", NAME, paket("!ERSTE3|JA|!END"), "unasked", 0, 16, asked, by="c2s"
    )
    for text in ("!SPIELSTDU|WENZ|!END", "!KONTRA|JA|!END", "!HOCHZEIT|NEIN|!END", "!KARTE|HERZ|SAU|!END"):
        data = paket(text)
        yield Broken(f"{text} before the deal", early, data, "unasked", 0, len(data), asked, by="c2s")
    yield Broken("a card before the deal", early, play, "unasked", 0, len(play), asked, by="c2s")
    again = "to be asked again"
    for place in (KNOCK, BID, Place("c2s", "KONTRA"), PLAY):
        data = sound(place)
        title = f"{place.name} is answered twice"
        yield Broken(title, place, data, "answered-twice", 0, len(data), again, by="c2s")
    # Wrong answers.
    knocks = '"!ERSTE3" Boolean "!END"'
    for data in (bid, play, paket("!KONTRA|JA|!END"), paket("!KARTE|HERZ|SAU|!END")):
        yield Broken(f"{data[:12]!r} instead of ERSTE3", KNOCK, data, "wrong-answer", 0, len(data), knocks)
    bids = '"!SPIELSTDU" Modus "!END"'
    yield Broken("ERSTE3 instead of a bid", BID, knock, "wrong-answer", 0, len(knock), bids)
    model = '"!MODEL" Flag Spielerhand Tisch LetzterStich'
    yield Broken(
        "KARTE instead of a MODEL", PLAY, paket("!KARTE|HERZ|SAU|!END"), "wrong-answer", 0, 21, model
    )
    # Out of turn.
    turn = Place("s2c", "MODEL UPDATE", 24, "hochzeit")
    yield Broken(
        "out of turn", turn, sound(PLAY), "out-of-turn", 0, len(sound(PLAY)), "to be asked", by="c2s"
    )
    # Line ends and blanks.
    yield Broken("all on a line", KNOCK, b"!ERSTE3 JA !END\n", "unknown-flag", 0, 15, ANY_FLAG)
    yield Broken("semicolons", KNOCK, b"!ERSTE3;JA;!END\n", "unknown-flag", 0, 15, ANY_FLAG)
    yield Broken("CR for LF", KNOCK, b"!ERSTE3\rJA\r!END\r", "unknown-flag", 0, 26, ANY_FLAG, swallowed=1)
    yield Broken("no line end before !END", KNOCK, b"!ERSTE3\nJA!END\n", "bad-field", 8, 6, BOOLEAN)
    yield Broken("no line end after a name", NAME, b"!NAME\nAnna!END\n", "missing-end", 6, 8, END)
    yield Broken("no line end after a flag", KNOCK, b"!ERSTE3JA\n!END\n", "unknown-flag", 0, 9, ANY_FLAG)
    yield Broken("two CRs", KNOCK, b"!ERSTE3\r\nJA\r\r\n!END\r\n", "bad-field", 9, 2, BOOLEAN)
    yield Broken("an empty line in it", KNOCK, b"!ERSTE3\n\nJA\n!END\n", "bad-field", 8, 0, BOOLEAN)
    # Charsets.
    yield Broken("Latin-1", NAME, b"!NAME\nAnn\xe4\n!END\n", "charset", 9, 1, "Zeichen", "note")
    yield Broken("a NUL", NAME, b"!NAME\nAn\0na\n!END\n", "unusual-value", 6, 5, "String", "note")
    wide = "!ERSTE3\nJA\n!END\n".encode("utf-16-be")
    yield Broken("UTF-16, big end first", KNOCK, wide, "utf-16", 0, 15, ANY_FLAG)
    # The last line feed's second byte comes before the next message's first, whose flag it spoils.
    wide = "!ERSTE3\nJA\n!END\n".encode("utf-16-le")
    yield Broken("UTF-16, little end first", KNOCK, wide, "utf-16", 0, 14, ANY_FLAG, swallowed=1)
    wide = "!ERSTE3\nJA\n!END\n".encode("utf-16")
    yield Broken("UTF-16 with BOM", KNOCK, wide, "utf-16", 0, 16, ANY_FLAG, swallowed=1)
    # What is no message at all.
    yield Broken(
        "HTTP", KNOCK, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "stray-lines", 0, 14, ANY_FLAG, by="c2s"
    )
    yield Broken("JSON", KNOCK, b'{"type": "ERSTE3"}\n', "stray-lines", 0, 18, ANY_FLAG, by="c2s")
    yield Broken("NULs", KNOCK, b"\0\0\0\n", "utf-16", 0, 3, ANY_FLAG, by="c2s")
    yield Broken("a surplus line", DRAN, b"0\n", "stray-lines", 0, 1, ANY_FLAG, by="s2c")
    yield Broken("a thousand of them", DRAN, b"0\n" * 1000, "stray-lines", 0, 1, ANY_FLAG, by="s2c")
    yield Broken("an empty line", DRAN, b"\n", "empty-line", 0, 0, None, "note", by="s2c")
    yield Broken("!END without more", NAME, b"!END\n", "stray-end", 0, 4, None, "note", by="c2s")
    # Unknown flags.
    for text in ("!CHAT|hallo|!END", "!PING|!END", "!GEKLOPFT|JA|JA|JA|JA|!END", "!CHAT"):
        data = paket(text)
        flag = text.partition("|")[0]
        yield Broken(
            f"{text} of a client", KNOCK, data, "unknown-flag", 0, len(flag), ANY_FLAG, "note", by="c2s"
        )
    data = paket("!KARTE|HERZ|SAU|!END")
    yield Broken("KARTE of the server", DRAN, data, "unknown-flag", 0, 6, ANY_FLAG, "note", by="s2c")
    data = paket("!SPIELSTDU|WENZ|!END")
    yield Broken("SPIELSTDU of the server", DRAN, data, "unknown-flag", 0, 10, ANY_FLAG, by="s2c")
    # Whose turn it is after a trick cannot be read: who comes next has not begun it.
    for number in (16, 24, 32):
        turn = Place("s2c", "DRAN", number)
        yield Broken(f"turn {number}", turn, b"!DRAN\n!END\n", "missing-field", 6, 4, "Integer")
    # One flag too much.
    yield Broken("DRAN twice", DRAN, b"!DRAN\n" + sound(DRAN), "missing-field", 6, 0, "Integer")
    yield Broken("MODEL twice", UPDATE, b"!MODEL\n" + sound(UPDATE), "missing-field", 7, 0, FLAG)
    yield Broken("MODEL before SPIELSTDU", BID, b"!MODEL\n" + bid, "missing-field", 7, 0, 'Flag = "!SPIEL"')
    yield Broken("MODEL before ERSTE3", KNOCK, b"!MODEL\n" + knock, "missing-field", 7, 0, 'Flag = "!SPIEL"')
    yield Broken("NAME before ERSTE3", KNOCK, b"!NAME\n" + knock, "missing-field", 6, 0, "String")
    # Too much and too little of it.
    few = joined(*sound(UPDATE).decode().splitlines()[:12])
    yield Broken("!END in a MODEL", UPDATE, few + b"!END\n", "missing-field", len(few), 4, FARBE)
    many = sound(UPDATE) + b"HERZ\nSAU\n"
    yield Broken("a card too much", UPDATE, many, "stray-lines", len(sound(UPDATE)), 4, ANY_FLAG)
    names = paket("!MITSPIELER|Anna|Berta|Carl|Dora|Emil|!END")
    fifth = '"!MITSPIELER" String String String String "!END"'
    yield Broken("five at the table", MITSPIELER, names, "surplus-fields", 33, 4, fifth, "note")
    names = paket("!MITSPIELER|Anna|Berta|Carl|!END")
    yield Broken("three at the table", MITSPIELER, names, "missing-field", 28, 4, "String")
    data = paket("!KONTRA|NEIN|NEIN|NEIN|NEIN|!END")
    kontra = Place("c2s", "KONTRA")
    yield Broken(
        "four answers",
        kontra,
        sound(kontra)[:-5] + b"JA\nJA\n!END\n",
        "surplus-fields",
        len(sound(kontra)) - 5,
        5,
        '"!KONTRA"',
        "note",
    )
    data = sound(DRAN)[:-5] + b"x\n" * 5000
    yield Broken("5,000 surplus fields", DRAN, data + b"!END\n", "surplus-fields", 8, 9999, '"!DRAN"', "note")
    yield Broken("5,000 of them and no !END", DRAN, data, "missing-end", 8, 1, END)
    konto = Place("s2c", "KONTO", 1)
    yield Broken(
        "an account below zero", konto, paket("!KONTO|-5|0|!END"), "unusual-value", 7, 2, "Konto", "note"
    )


HAND = [*of_the_table(), *too_long(), *by_hand()]
