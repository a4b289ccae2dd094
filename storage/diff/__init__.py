"""The difference of two sessions by meaning: which events, messages, games and players are others.

The way through: `side` (a session is read, each event by `meaning`, its players by `players`) → `tables`,
`matching` (of players), `games` → `events` (`align` puts equal ones beside each other, `pairing` the others,
`handles` looks at names) → `result`.
"""

from __future__ import annotations

from kiebitz.storage.diff.compare import compare
from kiebitz.storage.diff.result import Difference

__all__ = ["Difference", "compare"]
