"""A complete message in HTML for the report, in lines as narrow as a phone's screen.

Emphasis is a `span` with its style as class (`bold`, `dim`, or the colour of a diagnostic); data from the
network is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kiebitz.cli.terminal.byte_rows import ByteRows
from kiebitz.cli.terminal.message_block import message_lines
from kiebitz.cli.terminal.screen import Console, Style, Text
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.storage.session.message_detail import MessageDetail

COLUMNS = 44
"""Width of a phone's screen in columns."""

_MAX_LINES = 80
"""Maximum number of lines per message."""

_CONSOLE = Console(width=COLUMNS)


def render_message(shown: MessageDetail) -> str:
    """Render a message: its header, its annotated bytes with diagnostics, and its event."""
    return _render_lines(message_lines(shown, COLUMNS))


def render_bytes(data: bytes, about: str) -> str:
    """Render bytes that are no message, with a remark about them."""
    rows = ByteRows(data, [Piece(0, len(data), 0, "markup", about)], (), COLUMNS)
    return _render_lines([*rows.lines()])


def _render_lines(lines: Sequence[Text]) -> str:
    kept = [_in_markup(line) for line in lines[:_MAX_LINES]]
    if len(lines) > _MAX_LINES:
        kept.append(f"… and {len(lines) - _MAX_LINES} lines more")
    return "\n".join(kept)


def _in_markup(line: Text) -> str:
    # Rich leaves the style of a whole text to its console.
    around = _CONSOLE.get_style(line.style)
    return "".join(_span(segment.text, segment.style or around) for segment in line.render(_CONSOLE, end=""))


def _span(raw: str, style: Style) -> str:
    text = escape(raw)
    if not text.strip():
        return text
    if style.color is not None:
        look = style.color.name
    else:
        look = "bold" if style.bold else "dim" if style.dim else ""
    return f'<span class="{look}">{text}</span>' if look else text
