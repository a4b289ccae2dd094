"""States of a Catan table: an island of seven fields, and whatever a state may say."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kiebitz.dissectors.protocols.catan.board import Hex, spot
from kiebitz.dissectors.protocols.catan.words import FARBEN, FELDER, GEBÄUDE, HÄFEN, KARTEN, ROHSTOFFE, STATUS


def key(*places: Hex) -> str:
    return " ".join(f"{x},{y}" for x, y in spot(places))


def island(slant: int = 1, **part: Any) -> dict[str, Any]:
    """Return a game on seven fields whose types are their names, so that each can be found in a picture."""
    ring = [(0, 0), (1, 0), (1, -slant), (0, -1), (-1, 0), (-1, slant), (0, 1)]
    fields = [
        {"at": list(place), "type": f"F{number}", "number": 2 + number} for number, place in enumerate(ring)
    ]
    return {
        "games": {
            "7": {
                "board": {"fields": fields, "harbours": [], "slant": slant},
                "players": {"1": {"name": "Anna", "colour": "Rot"}, "2": {"name": "Bert", "colour": "Blau"}},
                **part,
            }
        }
    }


# With any state.

_COUNTS = st.integers(-(10**12), 10**12) | st.lists(st.integers(0, 10**6), min_size=2, max_size=2)
_HAND = st.dictionaries(st.sampled_from(ROHSTOFFE), _COUNTS)
NAMES = ["Anna", "", "a\x1b[2Jb\n", "日本語" * 20, "x" * 5000, "\ud800", "<&>"]
_SMALL = st.integers(-3, 3)
_PLACES = st.lists(_SMALL, min_size=2, max_size=2) | st.sampled_from([[9, 9], [10**12, -5]])
_NUMBERS = st.integers(1, 8)
_NEAR = st.builds(
    lambda x, y, more: key((x, y), *((x + across, y + up) for across, up in more)),
    _SMALL,
    _SMALL,
    st.lists(st.tuples(st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=2, unique=True),
)
_PLAYER = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(NAMES),
        "colour": st.sampled_from(FARBEN),
        "status": st.sampled_from(STATUS),
        **dict.fromkeys(("points", "resources", "cards", "knights"), st.integers(-(10**12), 10**12)),
    },
)
_PLAYERS = st.dictionaries(_NUMBERS.map(str), _PLAYER, max_size=8)
_BOARD = st.fixed_dictionaries(
    {},
    optional={
        "fields": st.lists(
            st.fixed_dictionaries(
                {"at": _PLACES, "type": st.sampled_from(FELDER)},
                optional={"number": st.integers(-(10**9), 10**9) | st.integers(2, 12)},
            ),
            max_size=40,
        ),
        "harbours": st.lists(
            st.fixed_dictionaries(
                {"at": st.lists(_PLACES, min_size=1, max_size=3), "type": st.sampled_from(HÄFEN)}
            ),
            max_size=9,
        ),
        "slant": st.sampled_from([1, -1]),
    },
)
_GAME = st.fixed_dictionaries(
    {},
    optional={
        "board": _BOARD,
        "robber": _PLACES,
        "buildings": st.dictionaries(
            _NEAR, st.fixed_dictionaries({"owner": _NUMBERS, "type": st.sampled_from(GEBÄUDE)}), max_size=30
        ),
        "players": _PLAYERS,
        "private": st.dictionaries(
            st.sampled_from(NAMES),
            st.fixed_dictionaries(
                {}, optional={"resources": _HAND, "cards": st.dictionaries(st.sampled_from(KARTEN), _COUNTS)}
            ),
        ),
        "bank": _HAND,
        "trades": st.dictionaries(
            _NUMBERS.map(str),
            st.fixed_dictionaries(
                {},
                optional={
                    "player": _NUMBERS,
                    "offer": _HAND,
                    "demand": _HAND,
                    "accepted": st.lists(_NUMBERS),
                },
            ),
        ),
        "dice": st.lists(st.integers(-1, 10**6), max_size=3),
        "phase": st.sampled_from(STATUS),
        "unknown": st.lists(st.sampled_from(["board", "players"])),
        **dict.fromkeys(("turn", "winner", "longest_road", "largest_army"), st.integers(-1, 8)),
    },
)
STATES = st.fixed_dictionaries(
    {},
    optional={
        "server": st.fixed_dictionaries({"version": st.sampled_from(NAMES)}),
        "players": st.dictionaries(
            st.sampled_from(NAMES),
            st.fixed_dictionaries({}, optional={"id": _NUMBERS, "colour": st.sampled_from(FARBEN)}),
        ),
        "games": st.dictionaries(st.sampled_from("79"), _GAME, max_size=2),
    },
)
"""States whose board cannot be drawn, None for an empty one, and the reason that is shown."""
