"""How grave flaws are: in which colour, and how many there are of each, in words."""

from __future__ import annotations

from kiebitz.dissectors.model import Severity

COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}
"""The gravest first."""
