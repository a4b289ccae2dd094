"""Selectors: the brackets after a filter that limit a rule to some of the matching messages.

Each direction of each stream is counted separately, so that a run does not depend on the order of clients.
"""

from __future__ import annotations

import random
import re

import msgspec

from kiebitz.dissectors.errors import KiebitzError

FORMS = "[2nd], [first 2], [every 3rd], [20%] or [20%, seed 7]"
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
    raise RuleError(f"[{text}] is not a selector: write {FORMS}")
