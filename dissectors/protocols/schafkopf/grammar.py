"""The types of fields in Schafkopf's messages, and its grammar, whose tables are in `schafkopf.toml`.

The specification is an EBNF in two parts, named after the receiver: *Client-seitig* is sent by the server,
*Server-seitig* by the clients. A Paket is one token per line: a flag such as `!DRAN`, its fields, and `!END`;
only `!MODEL` ends without one, after exactly 28 lines of cards. A message is named by its flag without the
exclamation mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from kiebitz.dissectors.grammar.field_type import (
    OF_NUMBERS,
    FieldType,
    IdentifierKind,
    KeysOf,
    Mismatch,
    Rename,
    WireType,
    Wrong,
)
from kiebitz.dissectors.grammar.fields import ListText, PartsText, Text, Word
from kiebitz.dissectors.grammar.grammar import MessageType, Path
from kiebitz.dissectors.grammar.tokens import Splitter, Token
from kiebitz.dissectors.protocol_file.packaged import packaged_grammar
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


def symbol_of(kind: FieldType) -> str:
    """Return the nonterminal of a type."""
    symbol: str = getattr(kind, "symbol", kind.title)
    return symbol


class Lines(Splitter):
    """The lines of a Paket. A § that was encoded as UTF-8 twice is one."""

    def __init__(self) -> None:
        super().__init__("\n")

    def texts(self, text: str) -> list[str]:
        texts = super().texts(text)
        if TWICE_ENCODED in text:
            return [EMPTY if each == TWICE_ENCODED else each for each in texts]
        return texts

    def tokens(self, text: str) -> list[Token]:
        tokens = super().tokens(text)
        return [
            Token(EMPTY, token.start, token.end) if token.text == TWICE_ENCODED else token for token in tokens
        ]


LINES = Lines()


class String(Text):
    """A line of any text; a name, if it has an `identifier`."""

    symbol = "String"
    title = "String = {Zeichen}; Zeichen = UTF_8"
    _control = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

    def remark(self, text: str) -> str | None:
        found = self._control.search(text)
        return f"there is a control character (U+{ord(found[0]):04X}) in it" if found else None


class Choice(Word):
    """One of the words of a production; `values` are their values, if these are not the words."""

    def __init__(
        self, symbol: str, *words: str, title: str | None = None, values: Mapping[str, Any] | None = None
    ) -> None:
        self.symbol = symbol
        super().__init__(*words, title=title or production(symbol, words or [*(values or ())]), values=values)


class Flag(Choice):
    """The purpose of a MODEL: a word with an exclamation mark, which is not part of the value."""

    def __init__(self, *words: str) -> None:
        super().__init__("Flag", values={f"!{word}": word for word in words})


class Digits(Choice):
    """One of a few numbers, with a single spelling."""

    wrong_texts = (*OF_NUMBERS, Wrong("out-of-range", "a number without a meaning", "9"))

    def __init__(self, symbol: str, *numbers: int) -> None:
        super().__init__(symbol, values={str(number): number for number in numbers})


class Seat(Digits):
    """A seat, or NOBODY if it `may_be_nobody`."""

    identifier = SEAT

    def __init__(self, may_be_nobody: bool = False) -> None:
        super().__init__("Integer", *range(SEATS), *((NOBODY,) if may_be_nobody else ()))


class Sieger(Digits):
    """A seat that won, LOST plus a seat that lost, or NOBODY."""

    def __init__(self) -> None:
        super().__init__("Sieger", *range(SEATS), NOBODY, *range(LOST, LOST + SEATS))

    def renamed(self, value: Any, rename: Rename) -> Any:
        lost = LOST if value >= LOST else 0
        return lost + SEAT.renamed(value - lost, rename)


class Konto(FieldType):
    """An amount. Real accounts may be negative, which the production does not allow."""

    symbol = "Konto"
    title = 'Konto = {("0" | "1" | … | "9")}'
    wrong_texts = OF_NUMBERS

    # At most 15 digits: a number that every reader of the database can hold.
    _number = re.compile(r"-?[0-9]{1,15}")

    def decode(self, text: str) -> int:
        if not self._number.fullmatch(text):
            problem = f'"{text[:40]}" is not an amount' if text else "the value is empty"
            raise Mismatch(0, len(text), problem, self.title, "bad-number")
        return int(text)

    def encode(self, value: Any) -> str:
        return str(value)

    def remark(self, text: str) -> str | None:
        return "an amount below zero, for which the production has no sign" if text[0] == "-" else None

    def wire_type(self) -> WireType:
        return {"kind": "number", "whole": True, "digits": 15}


class Each(ListText):
    """A repeated nonterminal, as a list."""

    def __init__(self, item: FieldType, count: int, symbol: str | None = None) -> None:
        each = " ".join([symbol_of(item)] * count)
        self.symbol = symbol or each
        title = f"{symbol} = {each}" if symbol else item.title
        super().__init__(item, LINES, least=count, most=count, is_spread=True, title=title)

    def wrong_values(self) -> Iterator[Wrong]:
        for wrong in self.item.wrong_values():
            yield wrong._replace(text=partial(self._with_one, wrong))

    def _with_one(self, wrong: Wrong, value: Sequence[Any]) -> str:
        """Return the list with the first suitable element replaced by a wrong one. Raises ValueError."""
        texts = [self.item.encode(part) for part in value]
        for number, part in enumerate(value):
            with suppress(ValueError):
                texts[number] = wrong.of(part)
                return "\n".join(texts)
        raise ValueError("none of them can")


class Karten(Each):
    """Several cards. Decoded lists are cached, as the same ones are shown again and again."""

    def __init__(self, item: FieldType, count: int, symbol: str) -> None:
        super().__init__(item, count, symbol)
        self._read = lru_cache(maxsize=4096)(super().decode_tokens)

    def decode_tokens(self, texts: Sequence[str]) -> list[Any]:
        # Copied, as the fields belong to the message.
        return self._read((*texts,)).copy()


class Karte(PartsText):
    """A card of two lines, `FARBE WERT`, or None where there is none."""

    symbol = "Karte"
    title = "Karte = Farbe Wert"
    farbe = Choice("Farbe", EMPTY, *FARBEN)
    wert = Choice("Wert", EMPTY, *WERTE)
    words = (*FARBEN, *WERTE)
    width = (2, 2)

    def __init__(self) -> None:
        super().__init__(LINES, is_spread=True)

    def part_at(self, number: int) -> tuple[Path, FieldType] | None:
        return ((), (self.farbe, self.wert)[number]) if number < 2 else None

    def decode_tokens(self, texts: Sequence[str]) -> str | None:
        farbe, wert = texts
        try:
            return _CARDS[farbe, wert]
        except KeyError:
            pass
        self.farbe.decode(farbe)
        try:
            self.wert.decode(wert)
        except Mismatch as error:
            raise error.moved(1) from None
        problem = f'"{farbe}" and "{wert}" are not a card: both are {EMPTY}, or neither'
        fitting = production("Wert", (EMPTY,) if farbe == EMPTY else WERTE)
        raise Mismatch(0, len(wert), problem, fitting, token=1)

    def encode_tokens(self, value: Any, pad: str = "") -> list[str]:
        return [EMPTY, EMPTY] if value is None else value.split(" ", 1)

    def wrong_values(self) -> Iterator[Wrong]:
        for wrong in self.farbe.wrong_values():
            yield wrong.inside("farbe", partial(self._with_wrong_line, wrong, None))
        for wrong in self.wert.wrong_values():
            yield wrong.inside("wert", partial(self._with_wrong_line, None, wrong))
        yield Wrong("half", f"a Farbe, and {EMPTY} for the Wert", f"{FARBEN[0]}\n{EMPTY}")

    def _with_wrong_line(self, farbe: Wrong | None, wert: Wrong | None, value: Any) -> str:
        """Return a card with one of its lines wrong."""
        one, other = self.encode_tokens(value)
        return f"{farbe.of(one) if farbe else one}\n{wert.of(other) if wert else other}"

    def wire_type(self) -> WireType:
        cards = {
            "\n".join(lines): ("null",) if card is None else ("s", card) for lines, card in _CARDS.items()
        }
        return {"kind": "choice", "values": cards, "tokens": 2, "spread": True, "separator": "\n"}


_CARDS: dict[tuple[str, str], str | None] = {
    (EMPTY, EMPTY): None,
    **{(farbe, wert): f"{farbe} {wert}" for farbe in FARBEN for wert in WERTE},
}


_BOOLEAN = Choice("Boolean", "JA", "NEIN")
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
    "mode": Choice("Modus", *MODI),
    "boolean": _BOOLEAN,
    "booleans": Each(_BOOLEAN, SEATS),
    "yes": Choice('"JA"', "JA", title=_BOOLEAN.title),
    "no": Choice('"NEIN"', "NEIN", title=_BOOLEAN.title),
    "seat": Seat(),
    "partner": Seat(may_be_nobody=True),
    "winner": Sieger(),
    "amount": Konto(),
    "nothing": Choice(f'"{EMPTY}"', EMPTY, title=f'"{EMPTY}"'),
}


GRAMMAR = packaged_grammar(
    __package__,
    TYPES,
    foreign=True,
    data={
        NAME: "actor name names player partner proposer leader winner",
        KeysOf(NAME): "accounts",
        SEAT: "seat seats",
        ROUND: "round",
    },
    state={
        NAME: "actor name names player partner proposer leader winner seats turn knocks kontra",
        KeysOf(NAME): "accounts players private points",
        SEAT: "seat",
        ROUND: "round",
    },
    # A client sends its own answer, the server those of all.
    variable_shape=("kontra",),
    more_words=(TWICE_ENCODED,),
)


def notation(row: MessageType) -> str:
    """Return a row's Paket in the specification's notation, such as `"!ID" Integer "!END"`."""
    end = [] if row.name == "MODEL" else [f'"{END}"']
    return " ".join([f'"!{row.name}"', *(symbol_of(field.type) for field in row.fields), *end])
