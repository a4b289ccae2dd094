"""One message in full, on a terminal: each production beside the bytes it took, each flaw under its place."""

from __future__ import annotations

from kiebitz.cli.terminal.screen import Text
from kiebitz.storage.in_full import MessageInFull


def message_lines(shown: MessageInFull, columns: int) -> list[Text]:
    """The lines of a message for a terminal of so many columns, 30 at the least."""
    return [Text(f"#{shown.message.id} {shown.message.name}")]
