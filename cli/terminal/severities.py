"""How grave flaws are: in which colour, and how many there are of each, in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kiebitz.dissectors.records import Severity

COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}
"""The gravest first."""

GRAVITY: tuple[Severity, ...] = tuple(COLOURS)


def gravest_of(severities: Collection[str]) -> Severity | None:
    """The gravest of some severities; None if there are none."""
    return next((severity for severity in GRAVITY if severity in severities), None)


def in_words(count: Mapping[str, int]) -> str:
    """As in `3 errors, 1 warning, no notes`."""
    return ", ".join(
        f"{count[severity] or 'no'} {severity}{'' if count[severity] == 1 else 's'}" for severity in COLOURS
    )
