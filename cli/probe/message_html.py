"""A message in full, as the report has it: the lines of a narrow terminal, which a telephone shows, too.

They are markup: what stands out is in a `span` whose class is its look (`bold`, `dim`, or the colour of a
flaw), and all that came from the network is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kiebitz.cli.terminal.byte_rows import ByteRows
from kiebitz.cli.terminal.message_block import message_lines
from kiebitz.cli.terminal.screen import Console, Style, Text
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.storage.session.message_detail import MessageInFull

COLUMNS = 44
"""So wide a telephone is."""

_MOST_LINES = 80
"""So many lines of a message are drawn."""

_CONSOLE = Console(width=COLUMNS)


def drawn_message(shown: MessageInFull) -> str:
    """A message: what it is, its bytes with what took them, its flaws under their places, its event."""
    return _drawn(message_lines(shown, COLUMNS))


def drawn_bytes(data: bytes, about: str) -> str:
    """Bytes that are no message, with a word about them."""
    rows = ByteRows(data, [Piece(0, len(data), 0, "markup", about)], (), COLUMNS)
    return _drawn([*rows.lines()])


def _drawn(lines: Sequence[Text]) -> str:
    kept = [_in_markup(line) for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        kept.append(f"… and {len(lines) - _MOST_LINES} lines more")
    return "\n".join(kept)


def _in_markup(line: Text) -> str:
    # Rich leaves the style of a text as a whole to whoever shows it.
    around = _CONSOLE.get_style(line.style)
    return "".join(
        _marked(segment.text, segment.style or around) for segment in line.render(_CONSOLE, end="")
    )


def _marked(raw: str, style: Style) -> str:
    text = escape(raw)
    if not text.strip():
        return text
    if style.color is not None:
        look = style.color.name
    else:
        look = "bold" if style.bold else "dim" if style.dim else ""
    return f'<span class="{look}">{text}</span>' if look else text
