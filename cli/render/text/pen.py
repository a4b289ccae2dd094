"""How texts get onto a terminal: no wider than there is room for, and each player in his colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kiebitz.cli.render.text.canvas import Glyphs, shorten
from kiebitz.cli.terminal.screen import AnyConsole, Text

COLOURS = ("#0087ff", "#d75f00", "#00875f", "#af5fd7", "#d70087", "#5f8700", "#008787", "#875fff", "#af8700")
"""Middle tones, to be read on black and on white; rich takes the nearest that a terminal has."""

NAME_IN_WORDS = 14


class Pen(msgspec.Struct, eq=False):
    """Writes what a scene says. `names` are all players in an order that stays: it gives each his colour."""

    console: AnyConsole
    encoding: str
    glyphs: Glyphs
    names: Sequence[str]

    @property
    def between(self) -> str:
        """What stands between facts on a line."""
        return f" {self.glyphs.dot} "

    def introduce(self, names: Iterable[str]) -> None:
        """Give a colour to names, too, that nobody knew before."""
        self.names = [*self.names, *sorted({*names} - {*self.names})]

    def words(self, text: str, width: int = 200) -> Text:
        """A text from the network, in letters that the terminal has, and short."""
        known = text[: 4 * width].encode(self.encoding, "backslashreplace").decode(self.encoding)
        return self.line(known, width)

    def line(self, words: str, width: int, style: str = "") -> Text:
        """Words of ours on a line of at most `width` cells."""
        return Text(shorten(words, width, self.glyphs), style)

    def wrap(self, text: Text, width: int, height: int) -> list[Text]:
        """A text in lines of at most `width` cells, and in at most `height` of them."""
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
        """A player's name in his colour."""
        text = self.words(name or '""', width)
        text.stylize(self._colour(name))
        return text

    def marked(self, name: str, to_move: bool, width: int) -> Text:
        """A player's name, marked if it is his turn."""
        if not to_move:
            return self.name(name, width)
        text = self.name(name, width - 2)
        text.stylize("bold reverse")
        return Text.assemble((f"{self.glyphs.turn} ", "bold"), text)

    def listing(self, title: str, names: Sequence[str], about: Mapping[str, int | str], width: int) -> Text:
        """A title and as many names, with what is said about each, as fit on a line."""
        line = Text(title, "dim")
        for number, name in enumerate(names):
            said = f" {about[name]}" if name in about else ""
            entry = Text.assemble(", " if number else "", self.name(name), said)
            left = len(names) - number
            if line.cell_len + entry.cell_len > width - (len(f" and {left} more") if left > 1 else 0):
                return line.append(f" and {left} more", "dim")
            line.append_text(entry)
        return line

    def _colour(self, name: str) -> str:
        return COLOURS[self.names.index(name) % len(COLOURS)] if name in self.names else ""
