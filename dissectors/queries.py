"""Example SQL queries about a protocol's games: texts for other programs, which Kiebitz itself never runs.

They use the views of a session database (`docs/database.md`).
"""

from __future__ import annotations

import msgspec


class Query(msgspec.Struct, frozen=True):
    """A question: its `name` in addresses, its `title`, what its columns mean, and one SELECT."""

    name: str
    title: str
    about: str
    sql: str
