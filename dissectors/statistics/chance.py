"""Pearson's χ² test of observed values against chance, and its conclusion in a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import msgspec

LEAST_EXPECTED = 5
"""Least expected number of each value for a trustworthy test."""

_MOST_STEPS = 10_000
_TINY = 1e-300
_PRECISION = 1e-14

_RARE, _VERY_RARE = 0.05, 0.001


class Chance(msgspec.Struct, frozen=True):
    """The result of a test: expected numbers, and the distance of the observed ones from them.

    `chi_squared`, `degrees` (of freedom) and `p` are None if there are too few samples; `says` is the
    conclusion.
    """

    expected: dict[str, float]
    seen: int
    enough: int
    """Least number of samples for a judgement."""
    chi_squared: float | None
    degrees: int
    p: float | None
    says: str


def chance_test(of: str, observed: Mapping[str, int], chances: Mapping[str, Fraction]) -> Chance:
    """Test observed values against their probabilities; there must be some. `of` names the samples."""
    seen = sum(observed.values())
    expected = {value: float(seen * chance) for value, chance in chances.items()}
    enough = math.ceil(LEAST_EXPECTED / min(chances.values()))
    degrees = len(chances) - 1
    chi_squared = p = None
    if seen >= enough:
        chi_squared = sum(
            (observed.get(value, 0) - wanted) ** 2 / wanted for value, wanted in expected.items()
        )
        p = upper_gamma(degrees / 2, chi_squared / 2)
    says = f"{seen:,} {of}: {_conclusion(p, enough)}"
    return Chance(expected, seen, enough, chi_squared, degrees, p, says)


def _conclusion(p: float | None, enough: int) -> str:
    """Return the conclusion of a test; without one, the number of samples that it needs."""
    if p is None:
        return (
            f"too few to tell fair from unfair. The test needs {enough:,}, so that each value is expected"
            f" {LEAST_EXPECTED} times."
        )
    if p >= _RARE:
        return (
            f"nothing speaks against chance, which is at least this uneven in {p:.0%} of such records. That"
            " does not prove it fair: a small bias would not show."
        )
    if p >= _VERY_RARE:
        return (
            f"unusual. Chance is at least this uneven in one of {round(1 / p):,} such records, so one among"
            " many records may be chance. A larger record can show more."
        )
    return (
        f"hardly chance, which is this uneven in less than one of {round(1 / _VERY_RARE):,} such records."
        " That does not say who or what is to blame."
    )


def upper_gamma(a: float, x: float) -> float:
    """Return the regularised upper incomplete gamma function Q(a, x), for a above 0 and x not below.

    By the series of its complement where that converges quickly, else by Lentz's continued fraction.
    """
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    return 1.0 - scale * _series(a, x) if x < a + 1 else scale * _fraction(a, x)


def _series(a: float, x: float) -> float:
    term = total = 1.0 / a
    for step in range(1, _MOST_STEPS):
        term *= x / (a + step)
        total += term
        if term < total * _PRECISION:
            break
    return total


def _fraction(a: float, x: float) -> float:
    """Return 1 / (x+1-a - 1(1-a) / (x+3-a - 2(2-a) / (x+5-a - …)))."""
    below = x + 1.0 - a
    c, d = 1.0 / _TINY, 1.0 / below
    found = d
    for step in range(1, _MOST_STEPS):
        above = step * (a - step)
        below += 2.0
        d = 1.0 / _nonzero(above * d + below)
        c = _nonzero(below + above / c)
        found *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return found


def _nonzero(value: float) -> float:
    """Return a divisor that is not 0."""
    return value if abs(value) > _TINY else _TINY
