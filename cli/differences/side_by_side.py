"""Two tables side by side, or one above the other on a narrow terminal, with differences marked.

The pictures are compared line by line, without colours. A line that differs is marked, and the differing
words are highlighted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

from kiebitz.cli.render.text.seating import NARROWEST
from kiebitz.cli.terminal.console import ellipsis
from kiebitz.cli.terminal.screen import Console, RenderableType, Style, Text
from kiebitz.dissectors.diff.align import align

_SIGN = "*"
_GAP = 3
"""Columns between two tables, with the mark in the middle."""

_MARGIN = f"{_SIGN} "
_AROUND = 2
"""Number of lines of context around a difference in the lower table."""

_STANDS_OUT = "black on #ffd75f"
_WORD = re.compile(r"\S+")


class Drawn(NamedTuple):
    """A picture of a table with lines above and below."""

    above: Sequence[Text]
    picture: RenderableType
    below: Sequence[Text] = ()


class _Line(NamedTuple):
    """A line of a picture, styled and without colours."""

    shown: Text
    letters: str


class _Pair(NamedTuple):
    """Corresponding lines of both pictures; None for a missing line."""

    a: _Line | None
    b: _Line | None

    @property
    def differs(self) -> bool:
        return self.a is None or self.b is None or self.a.letters != self.b.letters


def two_tables(console: Console, a: Drawn, b: Drawn) -> Iterator[Text]:
    """Yield the lines of both tables, to the width of the console."""
    each = (console.width - _GAP) // 2
    if each >= NARROWEST:
        pairs = _pairs(_lines(console, a.picture, each), _lines(console, b.picture, each))
        column = max((pair.a.shown.cell_len for pair in pairs if pair.a is not None), default=0)
        above = [[*_wrapped(console, one.above, each)] for one in (a, b)]
        below = [[*_wrapped(console, one.below, each)] for one in (a, b)]
        column = max([column, *(line.cell_len for lines in (above[0], below[0]) for line in lines)])
        for left, right in zip_longest(*above, fillvalue=Text()):
            yield _side_by_side(left, right, column, is_marked=False)
        for pair in pairs:
            yield _side_by_side(*_standing_out(pair), column, pair.differs)
        for left, right in zip_longest(*below, fillvalue=Text()):
            yield _side_by_side(left, right, column, is_marked=False)
    else:
        yield from _below(console, a, b, console.width - len(_MARGIN))


def one_table(console: Console, table: Drawn) -> Iterator[Text]:
    """Yield the lines of a single table."""
    yield from _wrapped(console, table.above, console.width)
    yield from _rendered(console, table.picture, console.width)
    yield from _wrapped(console, table.below, console.width)


def _side_by_side(left: Text, right: Text, column: int, is_marked: bool) -> Text:
    between = " " * (column - left.cell_len) + (_SIGN if is_marked else " ").center(_GAP)
    line = Text.assemble(left, between, right)
    line.rstrip()
    return line


def _below(console: Console, a: Drawn, b: Drawn, width: int) -> Iterator[Text]:
    """Yield the first table, and the differing lines of the second with their context."""
    pairs = _pairs(_lines(console, a.picture, width), _lines(console, b.picture, width))
    yield from _wrapped(console, a.above, console.width)
    for pair in pairs:
        if pair.a is not None:
            yield _in_margin(_standing_out(pair)[0], pair.differs)
    yield from _wrapped(console, a.below, console.width)
    yield Text()
    yield from _wrapped(console, b.above, console.width)
    differing = [place for place, pair in enumerate(pairs) if pair.differs]
    if not differing:
        yield Text(f"{' ' * len(_MARGIN)}(looks the same)", "dim")
    shown = {near for place in differing for near in range(place - _AROUND, place + _AROUND + 1)}
    last = -1
    for place, pair in enumerate(pairs):
        if place in shown and pair.b is not None:
            if place > last + 1:
                yield Text(" " * len(_MARGIN) + ellipsis(), "dim")
            yield _in_margin(_standing_out(pair)[1], pair.differs)
            last = place
    if differing and last + 1 < len(pairs):
        yield Text(" " * len(_MARGIN) + ellipsis(), "dim")
    yield from _wrapped(console, b.below, console.width)


def _in_margin(line: Text, is_marked: bool) -> Text:
    made = Text(_MARGIN if is_marked else " " * len(_MARGIN)) + line
    made.rstrip()
    return made


def _wrapped(console: Console, texts: Sequence[Text], width: int) -> Iterator[Text]:
    for text in texts:
        yield from text.lines(console, width) or [Text()]


def _lines(console: Console, picture: RenderableType, width: int) -> list[_Line]:
    without_colours = Console(width=console.width, height=console.height, no_color=True)
    shown, plain = (_rendered(each, picture, width) for each in (console, without_colours))
    return [_Line(line, letters.plain) for line, letters in zip(shown, plain, strict=True)]


def _rendered(console: Console, picture: RenderableType, width: int) -> list[Text]:
    found = []
    for line in console.render_lines(picture, console.options.update(width=width), pad=False):
        text = Text.assemble(*((segment.text, segment.style or Style.null()) for segment in line))
        text.rstrip()
        found.append(text)
    return found


def _pairs(a: Sequence[_Line], b: Sequence[_Line]) -> list[_Pair]:
    """Pair the lines of both pictures; align them by content if their numbers differ."""
    if len(a) == len(b):
        return [_Pair(*pair) for pair in zip(a, b, strict=True)]
    numbers = {letters: number for number, letters in enumerate({line.letters: 0 for line in (*a, *b)})}
    same = align([numbers[line.letters] for line in a], [numbers[line.letters] for line in b])
    found: list[_Pair] = []
    done_a = done_b = 0
    for place_a, place_b in [*sorted(same), (len(a), len(b))]:
        between = zip_longest(a[done_a:place_a], b[done_b:place_b])
        found += [_Pair(*pair) for pair in between]
        if place_a < len(a):
            found.append(_Pair(a[place_a], b[place_b]))
        done_a, done_b = place_a + 1, place_b + 1
    return found


def _standing_out(pair: _Pair) -> tuple[Text, Text]:
    """Return both lines with differing words highlighted; a missing line is empty."""
    a, b = (Text() if line is None else line.shown.copy() for line in (pair.a, pair.b))
    if pair.differs:
        words_a, words_b = ([*_WORD.finditer(line.plain)] for line in (a, b))
        if [word[0] for word in words_a] != [word[0] for word in words_b]:
            kept = _same([word[0] for word in words_a], [word[0] for word in words_b])
        else:
            # Equal words at other positions, such as the pips of a die.
            kept = _same([word.start() for word in words_a], [word.start() for word in words_b])
        for line, words, same in ((a, words_a, kept[0]), (b, words_b, kept[1])):
            for place, word in enumerate(words):
                if place not in same:
                    line.stylize(_STANDS_OUT, *word.span())
    return a, b


def _same(a: Sequence[object], b: Sequence[object]) -> tuple[set[int], set[int]]:
    """Return the indexes of the common subsequence in both."""
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return (
        {block.a + step for block in blocks for step in range(block.size)},
        {block.b + step for block in blocks for step in range(block.size)},
    )
