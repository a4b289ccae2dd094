"""Presentation of a protocol: sentences, names, scores and statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.game.table import python_part
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import EventKind, Grammar, shortened
from kiebitz.dissectors.grammar.sentences import (
    CALLED,
    ENDING_WORDS,
    UNKNOWN,
    Phrase,
    called,
    named,
    places,
    value_at,
)
from kiebitz.dissectors.model import Direction, Event
from kiebitz.dissectors.queries import Query

if TYPE_CHECKING:
    from kiebitz.dissectors.game.view import Scene, View
    from kiebitz.dissectors.protocol_file.specification import Specification
    from kiebitz.dissectors.statistics import Statistic

_MAX_GLOSS_LENGTH = 60
"""Maximum length of a gloss in characters."""


class Presentation:
    """Words and figures for a protocol's events, messages and state; subclasses override some of them."""

    counts = "points"
    """Unit of `scores`: points, or money."""

    turn = "turn"
    """Kind of the event that reports whose turn it is."""

    moves: tuple[str, ...] = ()
    """Kinds of events that a list of turns shows, for games of many turns; the first begins a turn."""

    phrases: Mapping[str, Phrase] = MappingProxyType({})
    """Phrases for values by field of an event's data or of a message; `words` renders all others."""

    def __init__(self, grammar: Grammar, package: str = "") -> None:
        """Create the presentation of a protocol; the TOML file of a `package` has the rest."""
        self._grammar = grammar
        self._package = package

    @cached_property
    def _file(self) -> Specification | None:
        if not self._package:
            return None
        # Most commands do without.
        from kiebitz.dissectors.protocol_file.packaged import packaged_file

        return packaged_file(self._package).whole

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Statistics for `kiebitz stats`, in addition to those of `scores` and turns."""
        if self._file is None:
            return ()
        from kiebitz.dissectors.protocol_file.game.statistics import compiled_statistic

        return tuple(
            compiled_statistic(spec, self._grammar.events, self.display_name, self._package)
            for spec in self._file.statistics
        )

    @property
    def queries(self) -> tuple[Query, ...]:
        """Questions in SQL for `kiebitz export -T datasette`."""
        return () if self._file is None else self._file.queries

    def scores(self, state: State) -> dict[str, int]:
        """Return the players' scores in a state by name, if both are known."""
        return {}

    def view(self, scene: Scene) -> View | None:
        """Return the view of the table for pictures; None to show the state itself."""
        return None if self._view is None else self._view(scene)

    @cached_property
    def _view(self) -> Callable[[Scene], View] | None:
        name = None if self._file is None else self._file.view
        return None if name is None else python_part(name, self._package)

    def display_name(self, actor: str, state: State) -> str:
        """Return the name of an event's actor."""
        return actor

    def template(self, event: Event) -> str:
        """Return the sentence of an event with its fields in braces.

        Subclasses may choose the sentence by the event's data.
        """
        return self._grammar.events[event.kind].sentence_for(event.data)

    def describe(self, event: Event) -> str:
        """Return the sentence of an event; unknown values are question marks."""
        kind = self._grammar.events[event.kind]
        sentence = self._filled(self.template(event), lambda path: self._field_words(kind, path, event.data))
        to = event.data.get("to") if kind.directed else None
        return sentence if to is None else as_seen_by(self.words(to), sentence)

    def _field_words(self, kind: EventKind, path: Sequence[str], data: Mapping[str, Any]) -> str:
        value, field = value_at(data, path), path[-1]
        if field == kind.ending and isinstance(value, str) and value in ENDING_WORDS:
            return ENDING_WORDS[value]
        phrase = self.phrases.get(field)
        if phrase is not None:
            return phrase(value)
        if CALLED in data and value is not None:
            value = named(value, self._grammar.data_identifiers.get(field), called(data[CALLED]))
        return self.words(value)

    def gloss(self, name: str, direction: Direction, fields: Fields) -> str | None:
        """Return a few English words for a message, None if its name is English."""
        if not self._grammar.foreign:
            return None
        row = self._grammar.row_of(name, direction, fields)
        if row is None:
            return None
        if row.summary is None:
            return shortened(row.description, _MAX_GLOSS_LENGTH)

        def words(path: Sequence[str]) -> str:
            return self.phrases.get(path[-1], self.words)(value_at(fields, path))

        return shortened(self._filled(row.summary, words), _MAX_GLOSS_LENGTH)

    def words(self, value: Any) -> str:
        """Return the words for a value in a sentence."""
        if value is None:
            return UNKNOWN
        if isinstance(value, str):
            # An empty name must be visible.
            return value or '""'
        if isinstance(value, dict):
            return ", ".join(f"{key} {self.words(part)}" for key, part in value.items()) or "nobody"
        if isinstance(value, list):
            return ", ".join(map(self.words, value)) or "nobody"
        return str(value)

    def _filled(self, template: str, words: Callable[[Sequence[str]], str]) -> str:
        return "".join(part if isinstance(part, str) else words(part) for part in places(template))


def as_seen_by(hearer: str, sentence: str) -> str:
    """Return the sentence of an event that was reported to one client only."""
    return f"to {hearer}: {sentence}"
