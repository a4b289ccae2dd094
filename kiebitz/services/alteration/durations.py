"""Durations of delays: `500ms`, `2s`, `500ms±100ms`."""

from __future__ import annotations

import re

import msgspec

from kiebitz.dissectors.errors import KiebitzError

_TIME = r"(\d{1,6}(?:\.\d{1,6})?)\s*(ms|s)"
_FORM = re.compile(rf"{_TIME}(?:\s*(?:±|\+-|\+/-)\s*{_TIME})?", re.ASCII)
_UNITS = {"ms": 1_000_000, "s": 1_000_000_000}

MAX_NS = 3_600_000_000_000
"""Maximum delay: one hour."""


class DurationError(KiebitzError):
    """An invalid duration; the text shows the valid forms."""


class Duration(msgspec.Struct, frozen=True):
    """A time in nanoseconds with a random deviation of at most `spread_ns`."""

    ns: int
    spread_ns: int = 0

    def at(self, chance: float) -> int:
        """Return the duration for a random number from 0 to 1."""
        return max(0, round(self.ns + (2 * chance - 1) * self.spread_ns))


def parse_duration(text: str) -> Duration:
    """Parse a duration. Raises DurationError."""
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise DurationError(f"{text.strip()!r} is not a duration: write 500ms, 2s or 500ms±100ms")
    ns = round(float(form[1]) * _UNITS[form[2]])
    spread = round(float(form[3]) * _UNITS[form[4]]) if form[3] else 0
    if ns + spread > MAX_NS:
        raise DurationError(f"{text.strip()!r} is longer than an hour")
    return Duration(ns, spread)
