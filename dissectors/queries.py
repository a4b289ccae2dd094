"""Example SQL queries about a protocol's games, for other programs; Kiebitz itself never runs them.

They use the views of a session database (`docs/database.md`).
"""

from __future__ import annotations

import msgspec


class Query(msgspec.Struct, frozen=True):
    """An example query: its `name` in addresses, its `title`, the meaning of its columns, and one SELECT."""

    name: str
    title: str
    about: str
    sql: str
