"""Invalid states: values of a sound one removed, exchanged, or too large."""

from __future__ import annotations

import copy
import random
from typing import Any

HOSTILE_NAMES = (
    "x" * 500,
    "<script>alert(1)</script>&amp;",
    "\u202eevil\u2066",
    "🎲" * 100,
    "",
    "日本語" * 60,
    "a\x1b[2J\nb\x00\ud800",
)

_JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**40,
    0.5,
    "",
    "nonsense",
    [],
    {},
    [None],
    {"": None},
    {"4": 4},
    ["EICHEL SAU"] * 40,
    ["R0A"] * 40,
    ["13:RED", None, "0:BLUE"] * 20,
    *HOSTILE_NAMES,
)


def invalid_state(state: dict[str, Any], seed: int, places: int = 3) -> dict[str, Any]:
    """Return the state with this many of its values spoilt."""
    chance = random.Random(seed)
    made = copy.deepcopy(state)
    for _ in range(places):
        found = [*_places(made)]
        if not found:
            break
        box, key = chance.choice(found)
        what = chance.randrange(4)
        if what == 0:
            del box[key]
        elif what == 1 and isinstance(box[key], list):
            box[key] = box[key] * 20
        elif what == 2 and isinstance(box, dict):
            box[chance.choice(HOSTILE_NAMES)] = box.pop(key)
        else:
            box[key] = copy.deepcopy(chance.choice(_JUNK))
    return made


def _places(value: Any) -> Any:
    keys = range(len(value)) if isinstance(value, list) else [*value] if isinstance(value, dict) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
