"""How much is done in which run: a few of what is repeated in `make test`, all of it in `make test-all`.

`make test-all` gives pytest the option `--full`. Nothing is left out for good: of a property `make test` has
fewer inputs, and of tables that are multiplied with one another (every capture in every way) a few rows. The
campaigns of hours (`make soak`, `make fuzz`) are apart from both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

_LESS = 12
"""Of so many inputs of a property `make test` makes up one."""

_LEAST = 5
"""But no fewer than this."""

_is_full = False

CEILING_S = {False: 240, True: 1200}
"""Where a test is ended that takes longer, by whether the run is a full one; far above all that they take."""

GAMES = {
    "maexchen": "maexchen-head-tiny.pcap",
    "schafkopf": "schafkopf-1.3-badcard.pcap",
    "catan": "catan-yaks-lobby.pcap.gz",
    "okey": "okey-seed-game-win.pcap.gz",
    "cgml": "cgml-tiny.pcap.gz",
}
"""A small recorded capture of each protocol."""

CAPTURES = frozenset(GAMES.values())
"""Those that `make test` takes where each recorded capture is taken."""


def choose(full: bool) -> None:
    """Say which run this is, before any test is imported."""
    global _is_full
    _is_full = full


def times(full: int, quick: int | None = None) -> int:
    """How often something is repeated: `full` times in a full run, else `quick` times, or a twelfth."""
    if _is_full:
        return full
    return quick if quick is not None else min(full, max(full // _LESS, _LEAST))


def a_few(
    rows: Iterable[T], quick: Collection[T] | Callable[[T], bool], name: Callable[[T], str] | None = None
) -> list[Any]:
    """Rows of a table for `parametrize`, of which `make test` has those in `quick` alone.

    A plain tuple has a value for each argument. `name` gives a row's name, where pytest's own will not do.
    """
    chosen = quick if callable(quick) else quick.__contains__
    rows = list(rows)
    few = [row for row in rows if chosen(row)]
    assert few, "a table of which `make test` has nothing"
    found = []
    # Thousands of rows that are collected, to be left out then, would take seconds in each process.
    for row in rows if _is_full else few:
        values: Any = row if type(row) is tuple else (row,)
        found.append(pytest.param(*values, id=name(row) if name else None))
    return found


def few_captures(names: Iterable[str]) -> list[Any]:
    """Captures for `parametrize`, of which `make test` has some of each protocol."""
    return a_few(names, CAPTURES)
