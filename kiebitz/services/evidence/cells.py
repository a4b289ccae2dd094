"""The terminal width of a text, from the part of rich that loads fast."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

__all__ = ["cell_len", "set_cell_size"]
