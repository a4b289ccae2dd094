"""The types of fields in messages of CGML 1.19, and its grammar, whose tables are in `cgml.toml`.

A message is named by its element; if several share a name, the value of `status` or `type` distinguishes
them. Fields have the names of the attributes and elements, which are English, though sometimes misspelt
(`dial` deals, `winer` wins). Words of licitovaný mariáš are glossed: *flek* is a double, *štych* a trick,
*talon* the two cards that the winner of the bidding (*licitace*) exchanges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from kiebitz.dissectors.grammar.field_type import (
    FieldType,
    IdentifierKind,
    KeysOf,
    Mismatch,
    Rename,
    Replace,
    WireType,
    Wrong,
)
from kiebitz.dissectors.grammar.fields import Number, Text, Word, is_version
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.grammar.xml.codec import XmlCodec
from kiebitz.dissectors.grammar.xml.markup import location_of as location_in
from kiebitz.dissectors.protocol_file.packaged import packaged_codec, packaged_grammar
from kiebitz.dissectors.protocols.cgml.cards import HAND, LADDER, PACK
from kiebitz.dissectors.suggestions import with_suggestion

_MAX_QUOTED = 40
_VERSIONS = frozenset(f"1.{minor}" for minor in range(20))


class Range(Number):
    """An integer from `least` to `most`."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__(title=f"a whole number from {least} to {most}")
        self.least, self.most = least, most

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("out-of-range", f"a number above {self.most}", str(self.most + 1))

    def decode(self, text: str) -> int:
        number = int(super().decode(text))
        if not self.least <= number <= self.most:
            problem = f"{number} is not from {self.least} to {self.most}"
            raise Mismatch(0, len(text), problem, self.title, "out-of-range")
        return number

    def wire_type(self) -> WireType:
        return {"kind": "number", "whole": True, "digits": 15, "min": self.least, "max": self.most}


class Card(Word):
    """A card's code, clause 5; None if it is hidden."""

    occurs_once = True

    def __init__(self, hidden: bool) -> None:
        title = "a card: R, B, G or A and 07, 08, 09, 10, 0J, 0Q, 0K or 0A"
        values: dict[str, Any] = {card: card for card in PACK}
        super().__init__(
            title=title + (", or none" if hidden else ""), values=values | ({"": None} if hidden else {})
        )

    def decode(self, text: str) -> Any:
        try:
            return super().decode(text)
        except Mismatch as error:
            if re.fullmatch("T(0[1-9]|1[0-9]|2[0-2])|J00", text):
                problem = f"{text} is a card, but not one of this game"
            elif not text:
                problem = "the card is missing"
            else:
                # Suggest only other case or a missing zero, as all codes look alike.
                short = text.upper() if len(text) == 3 else f"{text[:1]}0{text[1:]}"
                problem = with_suggestion(
                    f'"{text[:_MAX_QUOTED]}" is not a card', short if short in PACK else None
                )
            raise Mismatch(0, len(text), problem, self.title, "bad-card") from error

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("other-pack", "a card of another game, a tarock", "T18")
        yield Wrong("no-height", "a card without a height", "R")


class Version(Text):
    """The version of CGML; other texts in its place may be names."""

    title = "1.0 to 1.19"

    def remark(self, text: str) -> str | None:
        return None if text in _VERSIONS else f"version {text[:_MAX_QUOTED]} is not known"

    def anonymized(self, value: Any, replace: Replace, rename: Rename) -> str:
        return value if is_version(value) else replace(value)


class Pattern(FieldType):
    """A text that matches a pattern; with an `identifier` it is a name."""

    def __init__(self, pattern: str, title: str, identifier: IdentifierKind | None = None) -> None:
        self.identifier = identifier
        self.pattern = re.compile(pattern, re.ASCII)
        self.title = title

    def decode(self, text: str) -> str:
        if not self.pattern.fullmatch(text):
            problem = f'"{text[:_MAX_QUOTED]}" is not {self.title}' if text else "the text is empty"
            raise Mismatch(0, len(text), problem, self.title)
        return text

    def encode(self, value: Any) -> str:
        return str(value)

    def wire_type(self) -> WireType:
        return {"kind": "text", "limit": "its pattern is not checked"}


PLAYER = IdentifierKind("player", of_player=True, global_=True)
NAME = IdentifierKind("name", of_player=True, null_values=("",))
GROUP = IdentifierKind("group")
URL = IdentifierKind("url", of_server=True)
ADDRESS = IdentifierKind("address")

TYPES: dict[str, FieldType] = {
    "version": Version(),
    "id": Number(PLAYER),
    "name": Text(NAME),
    "race": Word(title="one of human, bot", values={"human": "human", "bot": "bot", "": None}),
    "amount": Number(),
    "count": Range(1, 100),
    "url": Pattern(
        r"[A-Za-z0-9._-]{1,253}:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\]:[0-9]{1,5}",
        "an address and a port, as in 127.0.0.1:7002",
        URL,
    ),
    "group": Number(GROUP),
    "cards": Card(hidden=True),
    "card": Card(hidden=False),
    "game": Word(*LADDER, title="a game of table 3-1: " + ", ".join(LADDER)),
    "bid": Word(*LADDER, "YES", "NO"),
    "trumps": Pattern("[rgba](:[rgba])?", "r, g, b or a, and after a colon a second one if the game has it"),
    "level": Pattern("[0-9]{1,6}(:[0-9]{1,6})?", "a level, and after a colon that of the game against"),
    "number": Range(1, HAND),
    "load": Range(0, 100),
}

GRAMMAR = packaged_grammar(
    __package__,
    TYPES,
    data={
        PLAYER: "actor player players id winner winners losers",
        NAME: "name",
        KeysOf(PLAYER): f"money {CALLED}",
        GROUP: "group",
        URL: "url",
    },
    state={
        PLAYER: "players accepted seats player turn declarer winner",
        NAME: "name",
        KeysOf(PLAYER): "hands private money",
        KeysOf(GROUP): "groups",
        GROUP: "group",
        URL: "url",
        KeysOf(URL): "servers",
        KeysOf(ADDRESS): "loads",
    },
    aliases={"id": "name"},
    # A client sends one player, a server all of them.
    variable_shape=("player",),
    more_words=(
        "xml",
        "encoding",
        "standalone",
        "yes",
        "no",
        "CDATA",
        "DOCTYPE",
        "ENTITY",
        "SYSTEM",
        "PUBLIC",
        "UTF",
        "ISO",
    ),
)

CODEC: XmlCodec = packaged_codec(__package__, GRAMMAR)

location_of = partial(location_in, envelope=CODEC.format.envelope)
"""Returns the offset and length in bytes of a part of a message's element."""
