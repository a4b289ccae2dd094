"""The section `[statistics]` of a protocol file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kiebitz.dissectors.game.assembly import is_part_of
from kiebitz.dissectors.protocol_file.expressions import WHO
from kiebitz.dissectors.protocol_file.game.statistics import KIND, is_reader
from kiebitz.dissectors.protocol_file.reading.game_sections import GameSections, types_of
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.scope import Names, check_expression
from kiebitz.dissectors.protocol_file.reading.source import Path, Source, listed
from kiebitz.dissectors.protocol_file.sections import STATISTIC_FORMS, EventSpec, StatisticSpec
from kiebitz.dissectors.protocol_file.specification import MessageSpec

MAX_STATISTICS = 100

_SHARES = 2
"""Number of different words in shares."""

_FORMS_OF = {
    "amount": ("counts", "shares", "histogram", "course"),
    "begins": ("durations",),
    "chance": ("histogram",),
    "unit": ("course",),
    "by": ("counts", "shares", "histogram"),
    "words": ("counts", "shares", "histogram"),
}
"""The forms of the keys that not all have."""


class StatisticsSection:
    """Checks the statistics; mistakes are added to the source. The file of a `package` may name Python."""

    def __init__(
        self,
        source: Source,
        game: GameSections,
        messages: Sequence[MessageSpec],
        events: Mapping[str, EventSpec],
        data: Mapping[str, Sequence[str]],
        package: str | None,
    ) -> None:
        self._source = source
        self._game = game
        self._messages = messages
        self._events = {key: event for key, event in events.items() if not event.silent} or {
            row.name: EventSpec(key=row.name, on=(row.name,)) for row in messages
        }
        self._data = data
        self._package = package

    def check(self, statistics: Sequence[StatisticSpec]) -> None:
        """Report mistakes in statistics."""
        for spec in statistics[:MAX_STATISTICS]:
            self._check(("statistics", spec.key), spec)
        for spec in statistics[MAX_STATISTICS : MAX_STATISTICS + 1]:
            self._source.wrong_key(("statistics", spec.key), f"more than {MAX_STATISTICS} statistics")

    def _check(self, path: Path, spec: StatisticSpec) -> None:
        forms = [form for form in STATISTIC_FORMS if getattr(spec, form)]
        if len(forms) != 1:
            self._source.wrong_key(path, f"a statistic has one of {listed(STATISTIC_FORMS)}")
        for key, of in _FORMS_OF.items() if len(forms) == 1 else ():
            if getattr(spec, key) != getattr(StatisticSpec(), key) and spec.form not in of:
                self._source.wrong_key((*path, key), f"{key} belongs to {listed(of)}, not to {spec.form}")
        if spec.form == "shares" and len({*(spec.word_of.values() or spec.lines.values())}) != _SHARES:
            self._source.wrong_key(path, 'shares need two words, such as words = ["won", "lost"]')
        if any(map(is_reader, spec.on)) and self._package is not None:
            self._check_reader(path, spec)
            return
        if spec.form == "histogram" and not spec.by:
            self._source.wrong_key(path, 'a histogram needs by, such as by = "dice"')
        if spec.form == "durations" and not spec.begins:
            self._source.wrong_key(path, "durations need begins, such as begins = \"kind == 'turn'\"")
        events = self._events
        for kind in spec.on:
            if kind not in events:
                self._source.wrong((*path, spec.form), f"no event {kind}{near(kind, events)}")
        names = self._names([events[kind] for kind in spec.on if kind in events])
        for key in ("when", "by", "amount", "begins"):
            if text := getattr(spec, key):
                check_expression(self._source, (*path, key), text, names)
        for number, text in enumerate(spec.lines):
            step = text if isinstance(spec.line, dict) else number
            check_expression(self._source, (*path, "line", step), text, names)

    def _check_reader(self, path: Path, spec: StatisticSpec) -> None:
        assert self._package is not None, "only the file of a package names Python"
        if len(spec.on) > 1 or not is_part_of(spec.on[0], self._package):
            own = self._package.rpartition(".")[2]
            self._source.wrong((*path, spec.form), f"a reader must be in the package: {own}.MODULE:CLASS")

    def _names(self, events: Sequence[EventSpec]) -> Names:
        """Return the names that expressions about events may use."""
        data = {name for event in events for name in self._data.get(event.key, ())}
        chosen = [
            message
            for message in self._messages
            for event in events
            if event.selects(message.name, message.direction)
        ]
        others = (WHO, KIND, *data)
        return Names(None if data else types_of(chosen), others, self._game.state, self._game.asked(chosen))
