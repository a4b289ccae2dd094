"""Extent of a run: `make test` runs a part of the tests, `make test-all` all of them.

`make test-all` passes the option `--full` to pytest. `make test` has fewer inputs of each property and a few
rows of long tables. It leaves out tests marked `full`: those that show what another test shows, in another
mode, transport or protocol, and those that take long. Of a table marked `full(but=n)` it runs `n` rows. The
campaigns of hours (`make soak`, `make fuzz`) are separate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

_LESS = 16
"""Divisor of the number of a property's inputs in `make test`."""

_LEAST = 5
"""But no fewer than this."""

_is_full = False

CEILING_S = {False: 240, True: 1200}
"""Timeout of a test in seconds, by whether the run is a full one; far above normal durations."""

GAMES = {
    "maexchen": "maexchen-head-tiny.pcap",
    "schafkopf": "schafkopf-1.3-badcard.pcap",
    "catan": "catan-yaks-lobby.pcap.gz",
    "okey": "okey-seed-game-win.pcap.gz",
    "cgml": "cgml-tiny.pcap.gz",
}
"""A small recorded capture of each protocol."""

CAPTURES = frozenset(GAMES.values())
"""The captures for `make test`, where the full run uses all recorded ones."""


def choose(full: bool) -> None:
    """Set the kind of run, before any test is imported."""
    global _is_full
    _is_full = full


def times(full: int, quick: int | None = None) -> int:
    """Return the number of repetitions: `full` in a full run, else `quick`, or a sixteenth."""
    if _is_full:
        return full
    return quick if quick is not None else min(full, max(full // _LESS, _LEAST))


def a_few(
    rows: Iterable[T], quick: Collection[T] | Callable[[T], bool], name: Callable[[T], str] | None = None
) -> list[Any]:
    """Return rows for `parametrize`, in `make test` only those in `quick`.

    A plain tuple has a value for each argument. `name` gives a row's name, where pytest's own will not do.
    """
    chosen = quick if callable(quick) else quick.__contains__
    rows = list(rows)
    few = [row for row in rows if chosen(row)]
    assert few, "a table of which `make test` has nothing"
    # Thousands of rows that are collected, to be left out then, would take seconds in each process.
    return [_as_parameters(row, name) for row in (rows if _is_full else few)]


def is_left_out(function: object) -> bool:
    """True for a test of which `make test` has nothing: one that is marked `full`, without `but`."""
    marks = getattr(function, "pytestmark", ())
    return any(mark.name == "full" and not mark.kwargs for mark in marks)


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return the tests marked `full`; of a table marked `full(but=n)` all but `n` rows that lie far apart."""
    tables: dict[str, list[tuple[pytest.Item, pytest.Mark]]] = {}
    for item in items:
        mark = item.get_closest_marker("full")
        if mark is not None:
            tables.setdefault(item.nodeid.partition("[")[0], []).append((item, mark))
    found: set[pytest.Item] = set()
    for table in tables.values():
        but = table[0][1].kwargs.get("but", 0)
        kept = {place * len(table) // but for place in range(but)}
        found.update(item for place, (item, _) in enumerate(table) if place not in kept)
    return found


def every(share: int, rows: Iterable[T], name: Callable[[T], str] | None = None) -> list[Any]:
    """Return rows for `parametrize`, in `make test` only one in `share`, from the first one on."""
    return [_as_parameters(row, name) for row in list(rows)[:: times(1, share)]]


def _as_parameters(row: T, name: Callable[[T], str] | None) -> Any:
    if isinstance(row, type(pytest.param())):
        return row
    values: Any = row if type(row) is tuple else (row,)
    return pytest.param(*values, id=name(row) if name else None)


def few_captures(names: Iterable[str]) -> list[Any]:
    """Return captures for `parametrize`, in `make test` some of each protocol."""
    return a_few(names, CAPTURES)
