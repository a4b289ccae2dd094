"""The types of fields in Schafkopf's messages, and its grammar, whose tables are in `schafkopf.toml`.

The specification is an EBNF in two parts, named after the receiver: *Client-seitig* is sent by the server,
*Server-seitig* by the clients. A Paket is one token per line: a flag such as `!DRAN`, its fields, and `!END`;
only `!MODEL` ends without one, after exactly 28 lines of cards. A message is named by its flag without the
exclamation mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from kiebitz.dissectors.grammar.field_type import (
    FieldType,
    IdentifierKind,
    IdentifierKinds,
    KeysOf,
    Mismatch,
    Rename,
)
from kiebitz.dissectors.grammar.fields import unknown_word
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.grammar.invalid_values import OF_NUMBERS, OF_WORDS, Wrong, other_case
from kiebitz.dissectors.grammar.table_file import grammar_from
from kiebitz.dissectors.protocols.schafkopf.cards import FARBEN, HAND, MODI, NOBODY, SEATS, WERTE

NAME = IdentifierKind("name", of_player=True)
SEAT = IdentifierKind("seat", per_stream=True, null_values=(NOBODY,))
ROUND = IdentifierKind("round")

EMPTY = "§"
"""Written for no card, no name, no content."""

TWICE_ENCODED = EMPTY.encode().decode("latin-1")
"""The § after encoding as UTF-8 twice."""

EMPTY_SPELLINGS = (EMPTY.encode(), EMPTY.encode("cp1252"), TWICE_ENCODED.encode())
"""The encodings of § by real programs."""

END = "!END"

MODEL_LINES = 28
"""Number of lines of cards in a MODEL."""

LOST = 10
"""Added by SIEGER to the seat of a loser."""


def production(symbol: str, words: Sequence[str]) -> str:
    """Return a production in the specification's notation."""
    return f"{symbol} = " + " | ".join(f'"{word}"' for word in words)


class Nonterminal(FieldType):
    """A nonterminal of the EBNF that takes `lines` lines; `title` is its production.

    Its text is those lines, joined by line feeds. `part` is the repeated nonterminal, or the nonterminal
    itself.
    """

    lines = 1

    def __init__(self, symbol: str, title: str) -> None:
        self.symbol = symbol
        self.title = title
        self.part: Nonterminal = self

    @property
    def terminals(self) -> list[Nonterminal]:
        """The nonterminals of its single lines."""
        return [self]

    def encode(self, value: Any) -> str:
        return str(value)


class String(Nonterminal):
    """A line of any text; a name, if it has an `identifier`."""

    is_free_text = True
    _control = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

    def __init__(self, identifier: IdentifierKind | None = None) -> None:
        super().__init__("String", "String = {Zeichen}; Zeichen = UTF_8")
        self.identifier = identifier

    def decode(self, text: str) -> str:
        return text

    def remark(self, text: str) -> str | None:
        found = self._control.search(text)
        return f"there is a control character (U+{ord(found[0]):04X}) in it" if found else None

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "text"}


class Word(Nonterminal):
    """One of the words of a production."""

    wrong_texts: Sequence[Wrong] = OF_WORDS

    def __init__(self, symbol: str, *words: str, title: str | None = None) -> None:
        super().__init__(symbol, title or production(symbol, words))
        self.words = words

    def decode(self, text: str) -> Any:
        if text not in self.words:
            raise unknown_word(text, self.words, self.title)
        return text

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        if any(word != word.swapcase() for word in self.words):
            yield other_case(self.encode)

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "choice", "values": {word: ("s", word) for word in self.words}}


class Flag(Word):
    """The purpose of a MODEL: a word with an exclamation mark, which is not part of the value."""

    def __init__(self, *words: str) -> None:
        super().__init__("Flag", *(f"!{word}" for word in words))

    def decode(self, text: str) -> str:
        return text[1:] if text in self.words else super().decode(text)

    def encode(self, value: Any) -> str:
        return f"!{value}"

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "choice", "values": {word: ("s", word[1:]) for word in self.words}}


class Number(Word):
    """One of a few numbers, with a single spelling."""

    wrong_texts = (*OF_NUMBERS, Wrong("out-of-range", "a number without a meaning", "9"))

    def __init__(self, symbol: str, *numbers: int) -> None:
        super().__init__(symbol, *map(str, numbers))

    def decode(self, text: str) -> int:
        return int(super().decode(text))

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "choice", "values": {word: ("i", word) for word in self.words}}


class Seat(Number):
    """A seat, or NOBODY if it `may_be_nobody`."""

    identifier = SEAT

    def __init__(self, may_be_nobody: bool = False) -> None:
        super().__init__("Integer", *range(SEATS), *((NOBODY,) if may_be_nobody else ()))


class Sieger(Number):
    """A seat that won, LOST plus a seat that lost, or NOBODY."""

    def __init__(self) -> None:
        super().__init__("Sieger", *range(SEATS), NOBODY, *range(LOST, LOST + SEATS))

    def renamed(self, value: Any, rename: Rename) -> Any:
        lost = LOST if value >= LOST else 0
        return lost + SEAT.renamed(value - lost, rename)


class Konto(Nonterminal):
    """An amount. Real accounts may be negative, which the production does not allow."""

    wrong_texts = OF_NUMBERS

    # At most 15 digits: a number that every reader of the database can hold.
    _number = re.compile(r"-?[0-9]{1,15}")

    def __init__(self) -> None:
        super().__init__("Konto", 'Konto = {("0" | "1" | … | "9")}')

    def decode(self, text: str) -> int:
        if not self._number.fullmatch(text):
            problem = f'"{text[:40]}" is not an amount' if text else "the value is empty"
            raise Mismatch(0, len(text), problem, self.title, "bad-number")
        return int(text)

    def remark(self, text: str) -> str | None:
        return "an amount below zero, for which the production has no sign" if text[0] == "-" else None

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "number", "whole": True, "digits": 15}


class Each(Nonterminal):
    """A repeated nonterminal, as a list."""

    def __init__(self, part: Nonterminal, count: int, symbol: str | None = None) -> None:
        each = " ".join([part.symbol] * count)
        super().__init__(symbol or each, f"{symbol} = {each}" if symbol else part.title)
        self.part = part
        self.parts = (part,)
        self.lines = count * part.lines

    @property
    def terminals(self) -> list[Nonterminal]:
        return self.part.terminals * (self.lines // self.part.lines)

    def decode(self, text: str) -> list[Any]:
        lines = text.split("\n")
        step = self.part.lines
        parts = ["\n".join(lines[first : first + step]) for first in range(0, self.lines, step)]
        values: list[Any] = []
        for part in parts:
            try:
                values.append(self.part.decode(part))
            except Mismatch as error:
                at = sum(len(before) + 1 for before in parts[: len(values)])
                raise Mismatch(
                    at + error.start, at + error.end, str(error), error.expected, error.code
                ) from error
        return values

    def encode(self, value: Any) -> str:
        return "\n".join(map(self.part.encode, value))

    def remark(self, text: str) -> str | None:
        return next(filter(None, map(self.part.remark, text.split("\n"))), None)

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> list[Any]:
        return [change(self.part, part) for part in value]

    def wrong_values(self) -> Iterator[Wrong]:
        for wrong in self.part.wrong_values():
            yield wrong._replace(text=partial(self._with_one, wrong))

    def _with_one(self, wrong: Wrong, value: Sequence[Any]) -> str:
        """Return the list with the first suitable element replaced by a wrong one. Raises ValueError."""
        texts = [self.part.encode(part) for part in value]
        for number, part in enumerate(value):
            with suppress(ValueError):
                texts[number] = wrong.of(part)
                return "\n".join(texts)
        raise ValueError("none of them can")

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "paket_each", "item": self.part.wire_type(), "lines": self.lines}


class Karten(Each):
    """Several cards. Decoded lists are cached, as the same ones are shown again and again."""

    def __init__(self, part: Nonterminal, count: int, symbol: str) -> None:
        super().__init__(part, count, symbol)
        self._read = lru_cache(maxsize=4096)(super().decode)

    def decode(self, text: str) -> list[Any]:
        # Copied, as the fields belong to the message.
        return self._read(text).copy()


class Karte(Nonterminal):
    """A card, `FARBE WERT`, or None where there is none."""

    lines = 2
    farbe = Word("Farbe", EMPTY, *FARBEN)
    wert = Word("Wert", EMPTY, *WERTE)
    words = (*FARBEN, *WERTE)

    def __init__(self) -> None:
        super().__init__("Karte", "Karte = Farbe Wert")

    @property
    def terminals(self) -> list[Nonterminal]:
        return [self.farbe, self.wert]

    def decode(self, text: str) -> str | None:
        if text in _CARDS:
            return _CARDS[text]
        raise self._violation(text)

    def encode(self, value: Any) -> str:
        return f"{EMPTY}\n{EMPTY}" if value is None else value.replace(" ", "\n", 1)

    def wrong_values(self) -> Iterator[Wrong]:
        for wrong in self.farbe.wrong_values():
            yield wrong.inside("farbe", partial(self._with_wrong_line, wrong, None))
        for wrong in self.wert.wrong_values():
            yield wrong.inside("wert", partial(self._with_wrong_line, None, wrong))
        yield Wrong("half", f"a Farbe, and {EMPTY} for the Wert", f"{FARBEN[0]}\n{EMPTY}")

    def _with_wrong_line(self, farbe: Wrong | None, wert: Wrong | None, value: Any) -> str:
        """Return a card with one of its lines wrong."""
        one, _, other = self.encode(value).partition("\n")
        return f"{farbe.of(one) if farbe else one}\n{wert.of(other) if wert else other}"

    def _violation(self, text: str) -> Mismatch:
        """Return the error in one of the two lines."""
        farbe, _, wert = text.partition("\n")
        try:
            self.farbe.decode(farbe)
        except Mismatch as error:
            return error
        try:
            self.wert.decode(wert)
        except Mismatch as error:
            return Mismatch(len(farbe) + 1, len(text), str(error), error.expected, error.code)
        problem = f'"{farbe}" and "{wert}" are not a card: both are {EMPTY}, or neither'
        fitting = production("Wert", (EMPTY,) if farbe == EMPTY else WERTE)
        return Mismatch(len(farbe) + 1, len(text), problem, fitting)

    def wire_type(self) -> Mapping[str, Any]:
        cards = {text: ("null",) if card is None else ("s", card) for text, card in _CARDS.items()}
        return {"kind": "choice", "values": cards, "lines": self.lines}


_CARDS: dict[str, str | None] = {
    f"{EMPTY}\n{EMPTY}": None,
    **{f"{farbe}\n{wert}": f"{farbe} {wert}" for farbe in FARBEN for wert in WERTE},
}


_BOOLEAN = Word("Boolean", "JA", "NEIN")
_KARTE = Karte()
MODEL_FLAG = Flag("UPDATE", "ERSTE3", "SPIELSTDU", "SPIEL")

TYPES: dict[str, FieldType] = {
    "question": MODEL_FLAG,
    "answer": Flag("SPIEL"),
    "hand": Karten(_KARTE, HAND, "Spielerhand"),
    "table": Karten(_KARTE, SEATS, "Tisch"),
    "trick": Karten(_KARTE, SEATS, "LetzterStich"),
    "card": _KARTE,
    "text": String(),
    "name": String(NAME),
    "names": Each(String(NAME), SEATS),
    "mode": Word("Modus", *MODI),
    "boolean": _BOOLEAN,
    "booleans": Each(_BOOLEAN, SEATS),
    "yes": Word('"JA"', "JA", title=_BOOLEAN.title),
    "no": Word('"NEIN"', "NEIN", title=_BOOLEAN.title),
    "seat": Seat(),
    "partner": Seat(may_be_nobody=True),
    "winner": Sieger(),
    "amount": Konto(),
    "nothing": Word(f'"{EMPTY}"', EMPTY, title=f'"{EMPTY}"'),
}

# Identifiers in the data of the events, and in the state. Seats rotate with the rounds.
DATA_IDENTIFIERS: IdentifierKinds = {
    "actor": NAME,
    "name": NAME,
    "names": NAME,
    "player": NAME,
    "partner": NAME,
    "proposer": NAME,
    "leader": NAME,
    "winner": NAME,
    "accounts": KeysOf(NAME),
    "seat": SEAT,
    "seats": SEAT,
    "round": ROUND,
}
STATE_IDENTIFIERS: IdentifierKinds = {
    **DATA_IDENTIFIERS,
    "players": KeysOf(NAME),
    "private": KeysOf(NAME),
    "points": KeysOf(NAME),
    "seats": NAME,
    "turn": NAME,
    "knocks": NAME,
    "kontra": NAME,
}

GRAMMAR = grammar_from(
    __package__,
    TYPES,
    foreign=True,
    data_identifiers=DATA_IDENTIFIERS,
    state_identifiers=STATE_IDENTIFIERS,
    # A client sends its own answer, the server those of all.
    variable_shape=("kontra",),
    more_words=(END, TWICE_ENCODED),
)


def kinds(row: MessageType) -> list[Nonterminal]:
    """Return the nonterminals of a row's fields."""
    found = [field.type for field in row.fields if isinstance(field.type, Nonterminal)]
    assert len(found) == len(row.fields)
    return found


def notation(row: MessageType) -> str:
    """Return a row's Paket in the specification's notation, such as `"!ID" Integer "!END"`."""
    end = [] if row.name == "MODEL" else [f'"{END}"']
    return " ".join([f'"!{row.name}"', *(kind.symbol for kind in kinds(row)), *end])


def terminals(row: MessageType) -> list[Nonterminal]:
    """Return the nonterminals of the lines after a row's flag."""
    return [line for kind in kinds(row) for line in kind.terminals]


def line_count(row: MessageType) -> int:
    """Return the number of lines of a row's fields."""
    return sum(kind.lines for kind in kinds(row))


def text_lines(row: MessageType) -> int:
    """Return the number of lines, from the first on, that may be any text."""
    return line_count(row) if any(isinstance(kind.part, String) for kind in kinds(row)) else 0
