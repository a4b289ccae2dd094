"""The difference of two sessions by meaning: which events, messages, games and players differ.

The steps: `loader` (reads a session; `normalize` each event, `players`) → `matching` (of players),
`games` → `events` (`align` pairs equal ones, `pairing` the others, `handles` compares identifiers) →
`result`.
"""

from __future__ import annotations

from kiebitz.storage.diff.compare import compare
from kiebitz.storage.diff.result import Difference

__all__ = ["Difference", "compare"]
