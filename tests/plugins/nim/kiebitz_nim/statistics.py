"""Statistics of Nim that depend on what came before."""

from __future__ import annotations

from collections.abc import Iterable

from kiebitz.dissectors.statistics import Sample
from kiebitz.protocol import Event, State


class Openings:
    """Matches taken with the first move of a game."""

    def __init__(self) -> None:
        self._is_first = False

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        if event.kind == "taken" and self._is_first:
            yield Sample(event.data["name"], "one" if event.data["count"] == 1 else "more")
        self._is_first = event.kind == "started"
