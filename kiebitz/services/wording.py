"""Counts and severities in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kiebitz.dissectors.model import Severity

GRAVITY: tuple[Severity, ...] = ("error", "warning", "note")
"""The severities, gravest first."""


def gravest_of(severities: Collection[str]) -> Severity | None:
    """Return the gravest of some severities; None if there are none."""
    return next((severity for severity in GRAVITY if severity in severities), None)


def in_words(count: Mapping[str, int]) -> str:
    """Return counts of severities in words, as in `3 errors, 1 warning, no notes`."""
    return ", ".join(
        f"{count[severity] or 'no'} {severity}{'' if count[severity] == 1 else 's'}" for severity in GRAVITY
    )


def counted(count: int, what: str, several: str | None = None) -> str:
    """Return a count with its noun, as in `1 case` and `2,000 cases`; `several` is an irregular plural."""
    return f"{count:,} {what if count == 1 else several or f'{what}s'}"


def in_series(names: Sequence[str]) -> str:
    """Return names as in `alice, bob and carl`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
