"""Values of rules: selectors of messages in brackets, durations, and the impairments of a poor network."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import msgspec

from kiebitz.dissectors.errors import KiebitzError

_SELECTORS = "[2nd], [first 2], [every 3rd], [20%] or [20%, seed 7]"
"""Valid forms, for help and errors."""

_SUFFIX = re.compile(r"(?P<filter>.*?)\s*\[(?P<pick>[^\[\]]*)\]\s*", re.DOTALL)
_INDEX = re.compile(r"\s*\d+\s*", re.ASCII)
_ORDINAL = r"([1-9]\d{0,8})(?:st|nd|rd|th)"
_NUMBERED = re.compile(_ORDINAL, re.ASCII)
_EVERY = re.compile(rf"every\s+{_ORDINAL}", re.ASCII)
_FIRST = re.compile(r"first(?:\s+([1-9]\d{0,8}))?", re.ASCII)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%", re.ASCII)
_SEED = re.compile(r"seed\s+(\d{1,18})", re.ASCII)


class RuleError(KiebitzError):
    """An invalid rule; the text gives the reason and the valid form, and in the end the option."""

    is_usage = True


class Selector(msgspec.Struct, frozen=True):
    """A selection among the matching messages of a direction, counted from 1.

    It selects every `step`-th from `first` to `last`, and of those a random `share` (1.0: all).
    """

    first: int = 1
    last: int | None = None
    step: int = 1
    share: float = 1.0
    seed: int | None = None

    def takes(self, count: int, place: str) -> bool:
        """Return True if it selects message number `count` of the direction named `place`."""
        if count < self.first or (self.last is not None and count > self.last):
            return False
        if (count - self.first) % self.step:
            return False
        return self.share >= 1.0 or chance(self.seed, count, place, "pick") < self.share


ALL = Selector()


def chance(seed: int | None, count: int, place: str, purpose: str) -> float:
    """Return a number from 0 up to 1: random, or derived from the arguments if there is a seed."""
    if seed is None:
        return random.random()
    return random.Random(f"{seed} {place} {count} {purpose}").random()


def parse_share(text: str) -> float | None:
    """Return a percentage as a number from 0 to 1; None if it is none."""
    share = _SHARE.fullmatch(text)
    return None if share is None or float(share[1]) > 100 else float(share[1]) / 100


def split_selector(text: str) -> tuple[str, Selector]:
    """Split a filter from the selector in brackets after it. Raises RuleError."""
    form = _SUFFIX.fullmatch(text)
    # `Wurf[0]` is a part of a field.
    is_index = form is not None and _INDEX.fullmatch(form["pick"]) and text[form.end("filter")] == "["
    if form is None or is_index or text.count('"', 0, form.end("filter")) % 2:
        return text.strip(), ALL
    return form["filter"].strip(), _parse(form["pick"].strip())


def _parse(text: str) -> Selector:
    which, *rest = (part.strip() for part in text.split(","))
    seed = _SEED.fullmatch(rest[0]) if len(rest) == 1 else None
    share = parse_share(which)
    if share is not None and (not rest or seed):
        return Selector(share=share, seed=int(seed[1]) if seed else None)
    if not rest:
        if numbered := _NUMBERED.fullmatch(which):
            return Selector(int(numbered[1]), int(numbered[1]))
        if every := _EVERY.fullmatch(which):
            return Selector(int(every[1]), step=int(every[1]))
        if first := _FIRST.fullmatch(which):
            return Selector(last=int(first[1] or 1))
    raise RuleError(f"[{text}] is not a selector: write {_SELECTORS}")


_IMPAIRMENTS = "loss 5%, delay 80ms±20ms, reorder 2%, double 1%, rate 64kbit/s, cut 10%, reset 1%, seed 7"
"""Examples of all forms, for help and errors."""

_SHARES = ("loss", "reorder", "double", "cut", "reset")
_UDP_ONLY = ("loss", "reorder", "double")
_TCP_ONLY = ("cut", "reset")
_RATE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kM]?)bit/s", re.ASCII)
_SEED_NUMBER = re.compile(r"(\d{1,18})", re.ASCII)
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
        raise RuleError(f"a seed alone has no effect: write {_IMPAIRMENTS}")
    return msgspec.structs.replace(Impairment(), **given)


def _rate(text: str) -> float | None:
    rate = _RATE.fullmatch(text)
    return float(rate[1]) * _FACTORS[rate[2]] if rate and float(rate[1]) else None


def _seed(text: str) -> int | None:
    return int(text) if _SEED_NUMBER.fullmatch(text) else None


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
        raise RuleError(f"{part!r} is not an impairment: write {_IMPAIRMENTS}")
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
