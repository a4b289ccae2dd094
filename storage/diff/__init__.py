"""The comparison of two sessions in databases by meaning: events, messages, diagnostics, players.

`messages` reads the sessions, `kiebitz.dissectors.diff` compares their tables.
"""

from __future__ import annotations

from kiebitz.storage.diff.compare import compare

__all__ = ["compare"]
