"""The colours of severities."""

from __future__ import annotations

from kiebitz.dissectors.model import Severity

COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}
"""By severity, most severe first."""
