"""How many cells of a terminal a text takes, as rich reckons: this much of it loads at once."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

__all__ = ["cell_len", "set_cell_size"]
