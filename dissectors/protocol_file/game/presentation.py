"""Presentation of a protocol file: sentences of its events, scores, statistics, and the board."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.dissectors.game.assembly import python_part
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.game.view import Scene, View
from kiebitz.dissectors.grammar.grammar import Grammar, shortened
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.presentation import Presentation
from kiebitz.dissectors.protocol_file.game.board import Board, states_of
from kiebitz.dissectors.protocol_file.game.plan import Plan
from kiebitz.dissectors.protocol_file.game.statistics import compiled_statistic
from kiebitz.dissectors.protocol_file.specification import Specification
from kiebitz.dissectors.protocol_file.templates import value_words
from kiebitz.dissectors.queries import Query
from kiebitz.dissectors.statistics import Counts, Sample, Statistic, of_each

_MAX_PLAIN_VALUE = 60
"""Maximum length of a field's value in the sentence of a message, in characters."""


class FilePresentation(Presentation):
    """Words and figures of a protocol that is described by a file."""

    def __init__(self, specification: Specification, plan: Plan, grammar: Grammar, package: str = "") -> None:
        super().__init__(grammar, package)
        self._own_statistics = tuple(
            compiled_statistic(spec, grammar.events, self.display_name, package)
            for spec in specification.statistics
        )
        self._plan = plan
        self._board = Board(specification.board)
        self._plain_kinds = frozenset(event.kind for event in plan.events if event.say is None)
        self._received = _received(plan)
        self.counts = self._board.unit
        turns = [event.kind for event in plan.events if event.spec.turn]
        self.turn = turns[0] if turns else ""

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Those of the file, and the number of events of each kind, by player."""
        kinds = [event.kind for event in self._plan.events if not event.spec.silent]
        reads = of_each(*kinds, give=_actions)
        all_kinds = Counts(key="events", title="Events", reads=reads, columns=tuple(kinds))
        return (*self._own_statistics, *((all_kinds,) if kinds else ()))

    @property
    def queries(self) -> tuple[Query, ...]:
        return self._plan.specification.queries

    def scores(self, state: State) -> dict[str, int]:
        return self._board.scores(state, states_of(state))

    def empty_grid(self, states: Sequence[State]) -> str | None:
        """Return why the grid is empty in all of these states although there are values for it, or None."""
        return self._board.empty_grid(states)

    def view(self, scene: Scene) -> View | None:
        view = self._plan.specification.view
        return self._board.view(scene) if view is None else python_part(view, self._package)(scene)

    def words(self, value: Any) -> str:
        return value_words(value)

    def describe(self, event: Event) -> str:
        return super().describe(event) if event.kind not in self._plain_kinds else self._plain(event)

    def _plain(self, event: Event) -> str:
        """Return the sentence of an event that has none in the file."""
        parts = [event.kind]
        for key, value in event.data.items():
            if value is not None and value != event.actor:
                parts.append(f"{key} {shortened(value_words(value), _MAX_PLAIN_VALUE)}")
        sentence = " ".join(parts)
        if event.actor is None:
            return sentence
        return (
            f"to {event.actor}: {sentence}" if event.kind in self._received else f"{event.actor}: {sentence}"
        )


def _received(plan: Plan) -> frozenset[str]:
    """Return the kinds of events that a server only reports to the player that they are about."""
    ways: dict[str, list[bool]] = {}
    for row in plan.rows:
        for event in row.events:
            is_told = row.row.direction == "s2c" and not row.row.broadcast and row.role.who is None
            ways.setdefault(event.kind, []).append(is_told)
    return frozenset(kind for kind, told in ways.items() if all(told))


def _actions(event: Event) -> Iterable[Sample]:
    if event.actor is not None:
        yield Sample(event.actor, event.kind)
