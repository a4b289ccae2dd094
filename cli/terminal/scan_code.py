"""A QR code on a terminal, for a phone to scan: two rows of its modules in a line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import segno

from kiebitz.cli.terminal.screen import Console, Text

_QUIET_ZONE = 4
"""Light modules around a code (ISO/IEC 18004, 9.1)."""

_DARK = {(False, False): " ", (False, True): "▄", (True, False): "▀", (True, True): "█"}
"""The character for an upper and a lower module, each dark or not, in black on white."""

_LIGHT = {(not above, not below): letter for (above, below), letter in _DARK.items()}
"""The same where the letters are light, as on most terminals."""


def show_scan_code(text: str, stderr: bool = False) -> None:
    """Draw the code of a text on stdout, or on stderr, which is a terminal; or say why it is left out."""
    console = Console(stderr=stderr)
    modules = code_of(text)
    columns, rows = len(modules[0]), (len(modules) + 1) // 2
    try:
        "".join(_DARK.values()).encode(console.encoding)
    except UnicodeEncodeError:
        _say(console, "the code to scan is left out: it takes a terminal with UTF-8")
        return
    # One more row is the cursor's.
    if columns > console.width or rows + 1 > console.height:
        room = f"it takes a terminal of {columns} columns and {rows + 1} rows"
        _say(console, f"the code to scan is left out: {room}; make this one larger, and start again")
        return
    # Black on white is right on any terminal. Without colours nobody knows what its letters are on.
    has_colours = console.color_system is not None and not console.no_color
    for line in half_blocks(modules, are_dark=has_colours):
        console.print(Text(line, "#000000 on #ffffff" if has_colours else ""), soft_wrap=True)


def code_of(text: str) -> list[list[bool]]:
    """The modules of a text's code, row by row, with the quiet zone: whether each is dark."""
    made = segno.make(text, error="l", micro=False)
    return [[bool(module) for module in row] for row in made.matrix_iter(border=_QUIET_ZONE)]


def half_blocks(modules: Sequence[Sequence[bool]], are_dark: bool) -> list[str]:
    """The lines of a code; `are_dark` says whether the letters are darker than what they stand on."""
    letters = _DARK if are_dark else _LIGHT
    # A code has an odd number of rows: below the last one it is light, too.
    pairs = zip_longest(modules[::2], modules[1::2], fillvalue=[False] * len(modules[0]))
    return ["".join(letters[pair] for pair in zip(*rows, strict=True)) for rows in pairs]


def _say(console: Console, sentence: str) -> None:
    console.print(Text(sentence), soft_wrap=True)
