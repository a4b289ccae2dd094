"""The section `[statistics]` of a protocol file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from kiebitz.dissectors.game.assembly import is_part_of
from kiebitz.dissectors.protocol_file.expressions import WHO
from kiebitz.dissectors.protocol_file.game.statistics import KIND, is_reader
from kiebitz.dissectors.protocol_file.reading.document import StatisticTable
from kiebitz.dissectors.protocol_file.reading.game_sections import GameSections, types_of
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.scope import Names, check_expression
from kiebitz.dissectors.protocol_file.reading.source import Path, Source, listed
from kiebitz.dissectors.protocol_file.specification import (
    EventSpec,
    MessageSpec,
    StatisticForm,
    StatisticSpec,
)

MAX_STATISTICS = 100

_FORMS: tuple[StatisticForm, ...] = get_args(StatisticForm)

_SHARES = 2
"""Number of different words in shares."""


def _spec(key: str, table: StatisticTable) -> StatisticSpec:
    form: StatisticForm = next((form for form in _FORMS if getattr(table, form)), "counts")
    line, words = table.line, table.words
    if isinstance(line, str):
        line = [line] if line else []
    return StatisticSpec(
        key=key,
        title=table.title or key.replace("-", " ").capitalize(),
        form=form,
        on=_names(getattr(table, form)),
        when=table.when or None,
        line=line if isinstance(line, dict) else dict.fromkeys(line),
        by=table.by or None,
        split=table.split,
        words=words if isinstance(words, dict) else {word: word for word in words},
        of=table.of,
        amount=table.amount or None,
        unit=table.unit,
        chance=table.chance,
        begins=table.begins or None,
    )


def _names(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class StatisticsSection:
    """Reads the statistics; mistakes are added to the source. The file of a `package` may name Python."""

    def __init__(
        self, source: Source, game: GameSections, messages: Sequence[MessageSpec], package: str | None
    ) -> None:
        self._source = source
        self._game = game
        self._messages = messages
        self._package = package

    def statistics(self, written: Any, events: Sequence[EventSpec]) -> Iterator[StatisticSpec]:
        """Yield the statistics of these events."""
        for number, (key, value) in enumerate(written.items() if isinstance(written, dict) else ()):
            path: Path = ("statistics", key)
            if number >= MAX_STATISTICS:
                self._source.wrong_key(path, f"more than {MAX_STATISTICS} statistics")
                return
            table = self._source.table(path, value, StatisticTable)
            if table is not None:
                self._check_keys(path, table)
                spec = _spec(key, table)
                self._check(path, spec, events, table.line)
                yield spec

    def _check_keys(self, path: Path, table: StatisticTable) -> None:
        forms = [form for form in _FORMS if getattr(table, form)]
        if len(forms) != 1:
            self._source.wrong_key(path, f"a statistic has one of {listed(_FORMS)}")
            return
        for key, of in {
            "amount": ("counts", "shares", "histogram", "course"),
            "begins": ("durations",),
            "chance": ("histogram",),
            "unit": ("course",),
            "by": ("counts", "shares", "histogram"),
            "words": ("counts", "shares", "histogram"),
        }.items():
            if getattr(table, key) != getattr(StatisticTable(), key) and forms[0] not in of:
                self._source.wrong_key((*path, key), f"{key} belongs to {listed(of)}, not to {forms[0]}")

    def _check(self, path: Path, spec: StatisticSpec, events: Sequence[EventSpec], written: Any) -> None:
        """Report mistakes in a statistic whose lines are `written` so."""
        if spec.form == "shares" and len({*(spec.words.values() or spec.line.values())}) != _SHARES:
            self._source.wrong_key(path, 'shares need two words, such as words = ["won", "lost"]')
        if any(map(is_reader, spec.on)) and self._package is not None:
            self._check_reader(path, spec)
            return
        if spec.form == "histogram" and spec.by is None:
            self._source.wrong_key(path, 'a histogram needs by, such as by = "dice"')
        if spec.form == "durations" and spec.begins is None:
            self._source.wrong_key(path, "durations need begins, such as begins = \"kind == 'turn'\"")
        known = {event.kind: event for event in events if not event.silent} or {
            row.name: EventSpec(kind=row.name, on=(row.name,)) for row in self._messages
        }
        for kind in spec.on:
            if kind not in known:
                self._source.wrong((*path, spec.form), f"no event {kind}{near(kind, known)}")
        names = self._names([known[kind] for kind in spec.on if kind in known])
        for key in ("when", "by", "amount", "begins"):
            if text := getattr(spec, key):
                check_expression(self._source, (*path, key), text, names)
        for number, text in enumerate(spec.line):
            at: Path = (*path, "line")
            if not isinstance(written, str):
                at = (*at, number if isinstance(written, list) else text)
            check_expression(self._source, at, text, names)

    def _check_reader(self, path: Path, spec: StatisticSpec) -> None:
        assert self._package is not None, "only the file of a package names Python"
        if len(spec.on) > 1 or not is_part_of(spec.on[0], self._package):
            own = self._package.rpartition(".")[2]
            self._source.wrong((*path, spec.form), f"a reader must be in the package: {own}.MODULE:CLASS")

    def _names(self, events: Iterable[EventSpec]) -> Names:
        """Return the names that expressions about events may use."""
        data = {name for event in events for name in event.data}
        chosen = [
            message
            for message in self._messages
            for event in events
            if message.name in event.on and event.direction in (None, message.direction)
        ]
        others = (WHO, KIND, *data)
        return Names(None if data else types_of(chosen), others, self._game.state, self._game.asked(chosen))
