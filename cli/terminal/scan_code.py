"""A QR code for the terminal, with two rows of modules per line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import segno

from kiebitz.cli.terminal.console import can_write
from kiebitz.cli.terminal.screen import Console, Text

_QUIET_ZONE = 4
"""Light modules around a code (ISO/IEC 18004, 9.1)."""

_DARK = {(False, False): " ", (False, True): "▄", (True, False): "▀", (True, True): "█"}
"""The character for an upper and a lower module, each dark or not, in black on white."""

_LIGHT = {(not above, not below): letter for (above, below), letter in _DARK.items()}
"""The same for light characters on a dark background, as on most terminals."""


def show_scan_code(text: str, stderr: bool = False) -> None:
    """Draw the QR code of a text on stdout or stderr, or print why it cannot be shown."""
    console = Console(stderr=stderr)
    modules = code_of(text)
    columns, rows = len(modules[0]), (len(modules) + 1) // 2
    if not can_write("".join(_DARK.values()), console.encoding):
        _say(console, "QR code not shown: it requires a terminal with UTF-8")
        return
    # The cursor takes one more row.
    if columns > console.width or rows + 1 > console.height:
        room = f"it requires {columns} columns and {rows + 1} rows"
        _say(console, f"QR code not shown: {room}; enlarge the terminal and restart")
        return
    # Black on white works on any terminal. Without colours, the background is unknown.
    has_colours = console.color_system is not None and not console.no_color
    for line in half_blocks(modules, are_dark=has_colours):
        console.print(Text(line, "#000000 on #ffffff" if has_colours else ""), soft_wrap=True)


def code_of(text: str) -> list[list[bool]]:
    """Return the modules of a text's QR code, row by row, with the quiet zone; True is dark."""
    made = segno.make(text, error="l", micro=False)
    return [[bool(module) for module in row] for row in made.matrix_iter(border=_QUIET_ZONE)]


def half_blocks(modules: Sequence[Sequence[bool]], are_dark: bool) -> list[str]:
    """Return the lines of a QR code; `are_dark` if characters are darker than the background."""
    letters = _DARK if are_dark else _LIGHT
    # A QR code has an odd number of rows; the missing one is light.
    pairs = zip_longest(modules[::2], modules[1::2], fillvalue=[False] * len(modules[0]))
    return ["".join(letters[pair] for pair in zip(*rows, strict=True)) for rows in pairs]


def _say(console: Console, sentence: str) -> None:
    console.print(Text(sentence), soft_wrap=True)
