"""Conversion of view texts to terminal text: cut to a width, with a colour for each player.

Okey's tiles and racks as text: ivory with coloured numbers, and a letter for each colour.

The letter serves terminals and eyes without colours: `12b` is the blue 12. A rack has two rows of places,
some of them empty; beside the table it is vertical.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kiebitz.cli.render.text.canvas import ASCII, OWN_SUITS, SUIT_STYLES, Glyphs, shorten, without_accents
from kiebitz.cli.terminal.console import encodable
from kiebitz.cli.terminal.screen import AnyConsole, Text
from kiebitz.dissectors.game.view import (
    SIGNS,
    Card,
    Deck,
    Element,
    Group,
    Hand,
    Line,
    Name,
    Piece,
    Span,
    Suit,
    Tile,
    Token,
    Tone,
)

TILE_WIDTH = 3

RACK_COLUMNS = 12
"""Places in each of the two rows of a rack."""

_IVORY = "on #ffffd7"
_INKS = {"RED": "#d70000", "BLUE": "#0000d7", "YELLOW": "#af5f00", "BLACK": "#000000"}
"""Colours readable on ivory: a brownish yellow; black is readable on a black terminal, too."""

_JOKER = "#8700af"
_LETTERS = {"RED": "r", "BLUE": "b", "YELLOW": "y", "BLACK": "k"}


def tile_letters(tile: Tile, glyphs: Glyphs) -> Text:
    """Return a tile in its shortest form."""
    if not tile.number:
        return Text(glyphs.joker, f"bold {_JOKER} {_IVORY}")
    return Text(f"{tile.number}{_LETTERS[tile.colour]}", f"bold {_INKS[tile.colour]} {_IVORY}")


def tile_face(tile: Piece | None, glyphs: Glyphs) -> Text:
    """Return a tile, or an empty place, in `TILE_WIDTH` cells."""
    if not isinstance(tile, Tile):
        return Text(glyphs.dot.center(TILE_WIDTH), "dim")
    face = tile_letters(tile, glyphs)
    if not tile.number:
        face.pad(1)
    face.pad_left(TILE_WIDTH - face.cell_len)
    return face


def legend(glyphs: Glyphs) -> Text:
    """Return the legend of the letters."""
    colours = ", ".join(f"{letter} {colour.lower()}" for colour, letter in _LETTERS.items())
    return Text(f"tiles: {colours}, {glyphs.joker} joker, [ ] just drawn", "dim")


def rack(hand: Hand, glyphs: Glyphs) -> list[Text]:
    """Return a rack in two lines; the tile just drawn is in brackets."""
    return [_line(row, glyphs) for row in _rows(hand)]


def rack_on_end(hand: Hand, glyphs: Glyphs) -> list[Text]:
    """Return a rack in two columns, its upper row first."""
    return [_line(places, glyphs) for places in zip(*_rows(hand), strict=True)]


_Slot = tuple[Piece | None, bool]
"""The tile of a place, and whether it was just drawn."""


def _rows(hand: Hand) -> list[list[_Slot]]:
    places = [(tile, place == hand.drawn) for place, tile in enumerate(hand.pieces[: 2 * RACK_COLUMNS])]
    places += [(None, False)] * (2 * RACK_COLUMNS - len(places))
    return [places[:RACK_COLUMNS], places[RACK_COLUMNS:]]


def _line(places: Iterable[_Slot], glyphs: Glyphs) -> Text:
    line, closing = Text(), " "
    for tile, drawn in places:
        line.append("[" if drawn else closing, "bold")
        line.append_text(tile_face(tile, glyphs))
        closing = "]" if drawn else " "
    return line.append(closing, "bold")


COLOURS = ("#0087ff", "#d75f00", "#00875f", "#af5fd7", "#d70087", "#5f8700", "#008787", "#875fff", "#af8700")
"""Middle tones, readable on black and on white; rich uses the nearest ones of a terminal."""

NAME_IN_WORDS = 14

STYLES: dict[Tone, str] = {"": "", "strong": "bold", "good": "green", "bad": "bold red", "faint": "dim"}


class Pen(msgspec.Struct, eq=False):
    """Writer of a view's texts. The order of `names` gives each player a stable colour."""

    console: AnyConsole
    encoding: str
    glyphs: Glyphs
    names: Sequence[str]

    @property
    def between(self) -> str:
        """The separator of facts on a line."""
        return f" {self.glyphs.dot} "

    def introduce(self, names: Iterable[str]) -> None:
        """Assign colours to new names."""
        self.names = [*self.names, *sorted({*names} - {*self.names})]

    def words(self, text: str, width: int = 200) -> Text:
        """Return a text from the network in the terminal's characters, cut to a width."""
        return self.line(encodable(text[: 4 * width], self.encoding), width)

    def line(self, words: str, width: int, style: str = "") -> Text:
        """Return a text of our own cut to `width` cells."""
        return Text(shorten(words, width, self.glyphs), style)

    def span(self, span: Span) -> Text:
        """Return words in their tone."""
        words = self.words(span.text)
        words.stylize(STYLES[span.tone])
        return words

    def render(self, line: Line, name_width: int = NAME_IN_WORDS) -> Text:
        """Return a line of words, names and pieces."""
        return Text().join(self._element(element, name_width) for element in line)

    def _element(self, element: Element, name_width: int) -> Text:
        match element:
            case str():
                return self.words(element.replace("×", self.glyphs.times))
            case Span():
                return self.span(element)
            case Name():
                return self.name(element.name, name_width)
            case Suit():
                return Text(
                    f"{self._sign(element).rstrip()} {self._suit_name(element)}", _suit_style(element)
                )
            case tuple():
                return Text(" ").join(map(self.piece, element))
        return self.piece(element)

    def piece(self, piece: Piece) -> Text:
        """Return a piece in its shortest form, such as `♥S`."""
        match piece:
            case Card():
                return Text(self._sign(piece.suit) + piece.letters, _suit_style(piece.suit))
            case Tile():
                return tile_letters(piece, self.glyphs)
            case Token():
                return self.token(piece)

    def token(self, token: Token, width: int = 9) -> Text:
        """Return a token's text in its owner's colour."""
        words = self.words(token.words, width)
        words.stylize(f"bold {self._colour(token.owner)}")
        return words

    def coloured(self, sign: str, owner: str) -> Text:
        """Return a sign of our own in the colour of its owner, if it has one."""
        return Text(sign, f"bold {self._colour(owner)}")

    def card_face(self, card: Card, deck: Deck) -> Text:
        """Return a card on the table; all cards of a deck have the same width."""
        sign = self._sign(card.suit)
        if not deck.in_words:
            face = self.piece(card)
            face.pad_right(self.face_width(deck) - face.cell_len)
            return face
        word = without_accents(card.value) if self.glyphs is ASCII else card.value
        # Signs two cells wide look separated enough.
        sign = sign.ljust(1 if self.glyphs is OWN_SUITS else 2)
        return Text(sign + word.ljust(deck.longest), _suit_style(card.suit))

    def face_width(self, deck: Deck) -> int:
        """Return the width of a card's face in cells."""
        sign = Text(self.glyphs.suits[0]).cell_len
        return (2 if deck.in_words else sign) + deck.longest

    def suit_legend(self, deck: Deck) -> str:
        """Return the legend of the signs that replace suits; empty if the suits' own signs are used."""
        if self.glyphs is OWN_SUITS:
            return ""
        return " ".join(f"{self._sign(suit)} {self._suit_name(suit)}" for suit in deck.suits)

    def _sign(self, suit: Suit) -> str:
        return suit.letter if self.glyphs is ASCII else self.glyphs.suits[SIGNS.index(suit.sign)]

    def _suit_name(self, suit: Suit) -> str:
        return without_accents(suit.name) if self.glyphs is ASCII else suit.name

    def wrap(self, text: Text, width: int, height: int) -> list[Text]:
        """Return a text in at most `height` lines of at most `width` cells."""
        lines = text.lines(self.console, width)
        if len(lines) > height:
            lines = lines[:height]
            last = lines[-1]
            if last.cell_len > width - len(self.glyphs.ellipsis):
                last.set_length(width - len(self.glyphs.ellipsis))
            last.append(self.glyphs.ellipsis)
        for line in lines:
            line.rstrip()
        return lines

    def name(self, name: str, width: int = NAME_IN_WORDS) -> Text:
        """Return a player's name in their colour."""
        text = self.words(name or '""', width)
        text.stylize(self._colour(name))
        return text

    def marked(self, name: str, to_move: bool, width: int) -> Text:
        """Return a player's name, marked if it is their turn."""
        if not to_move:
            return self.name(name, width)
        text = self.name(name, width - 2)
        text.stylize("bold reverse")
        return Text.assemble((f"{self.glyphs.turn} ", "bold"), text)

    def listing(self, group: Group, width: int, most: int) -> list[Text]:
        """Return a group in at most `most` lines, with as many names as fit."""
        line = self.words(f"{group.title}: ", width)
        line.stylize("dim")
        for number, (name, said) in enumerate(group.members):
            about = f" ({self.words(said, 40)})" if said else ""
            entry = Text.assemble(", " if number else "", self.name(name), about)
            left = len(group.members) - number
            room = width - (len(f" and {left} more") if left > 1 else 0)
            if len(self.wrap(line + entry, room, most + 1)) > most and number:
                line.append(f" and {left} more", "dim")
                break
            line.append_text(entry)
        return self.wrap(line, width, most)

    def _colour(self, name: str) -> str:
        return COLOURS[self.names.index(name) % len(COLOURS)] if name in self.names else ""


def _suit_style(suit: Suit) -> str:
    return SUIT_STYLES[SIGNS.index(suit.sign)]
