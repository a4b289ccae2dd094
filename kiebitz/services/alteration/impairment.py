"""`--impair`: simulation of a poor network.

Over UDP, datagrams are lost, duplicated, delayed or reordered. A byte stream loses nothing: it is delayed,
slowed down, cut into smaller chunks, or reset.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from kiebitz.services.alteration.selectors import RuleError, parse_share

FORMS = "loss 5%, delay 80ms±20ms, reorder 2%, double 1%, rate 64kbit/s, cut 10%, reset 1%, seed 7"
"""Examples of all forms, for help and errors."""

_SHARES = ("loss", "reorder", "double", "cut", "reset")
_UDP_ONLY = ("loss", "reorder", "double")
_TCP_ONLY = ("cut", "reset")
_RATE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kM]?)bit/s", re.ASCII)
_SEED = re.compile(r"(\d{1,18})", re.ASCII)
_FACTORS = {"": 1, "k": 1000, "M": 1_000_000}


class Impairment(msgspec.Struct, frozen=True):
    """Probabilities (0 to 1) per datagram or chunk of a byte stream; `rate` in bits per second."""

    loss: float = 0.0
    delay: Duration | None = None
    reorder: float = 0.0
    double: float = 0.0
    rate: float | None = None
    cut: float = 0.0
    reset: float = 0.0
    seed: int | None = None

    def only_for(self, transport: str) -> list[str]:
        """Return the names of its impairments that have no effect on this transport."""
        names = _TCP_ONLY if transport == "udp" else _UDP_ONLY
        return [name for name in names if getattr(self, name)]


def parse_impairment(text: str) -> Impairment:
    """Parse an impairment. Raises RuleError."""
    given: dict[str, float | Duration] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition(" ")
        if name in given:
            raise RuleError(f"{name} is given twice")
        given[name] = _parse_value(part.strip(), name, value.strip())
    if not given.keys() - {"seed"}:
        raise RuleError(f"a seed alone has no effect: write {FORMS}")
    return msgspec.structs.replace(Impairment(), **given)


def _rate(text: str) -> float | None:
    rate = _RATE.fullmatch(text)
    return float(rate[1]) * _FACTORS[rate[2]] if rate and float(rate[1]) else None


def _seed(text: str) -> int | None:
    return int(text) if _SEED.fullmatch(text) else None


_VALUES: dict[str, tuple[Callable[[str], float | None], str, str]] = {
    **dict.fromkeys(_SHARES, (parse_share, "a percentage", "5%")),
    "rate": (_rate, "a rate", "64kbit/s"),
    "seed": (_seed, "a seed", "7"),
}
"""Reader of a value, what it is, and an example."""


def _parse_value(part: str, name: str, value: str) -> float | Duration:
    if name == "delay":
        return parse_duration(value)
    if name not in _VALUES:
        raise RuleError(f"{part!r} is not an impairment: write {FORMS}")
    read, what, example = _VALUES[name]
    found = read(value)
    if found is None:
        raise RuleError(f"{part!r} is not {what}: write {name} {example}")
    return found


_TIME = r"(\d{1,6}(?:\.\d{1,6})?)\s*(ms|s)"
_FORM = re.compile(rf"{_TIME}(?:\s*(?:±|\+-|\+/-)\s*{_TIME})?", re.ASCII)
_UNITS = {"ms": 1_000_000, "s": 1_000_000_000}

_MAX_NS = 3_600_000_000_000
"""Maximum delay: one hour."""


class Duration(msgspec.Struct, frozen=True):
    """A time in nanoseconds with a random deviation of at most `spread_ns`."""

    ns: int
    spread_ns: int = 0

    def at(self, chance: float) -> int:
        """Return the duration for a random number from 0 to 1."""
        return max(0, round(self.ns + (2 * chance - 1) * self.spread_ns))


def parse_duration(text: str) -> Duration:
    """Parse a duration. Raises RuleError."""
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise RuleError(f"{text.strip()!r} is not a duration: write 500ms, 2s or 500ms±100ms")
    ns = round(float(form[1]) * _UNITS[form[2]])
    spread = round(float(form[3]) * _UNITS[form[4]]) if form[3] else 0
    if ns + spread > _MAX_NS:
        raise RuleError(f"{text.strip()!r} is longer than an hour")
    return Duration(ns, spread)
