"""A session in which Kiebitz has altered messages: it is recorded, nobody is blamed, and it can be undone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import CAPTURES
from passed_on import Deed, altered_session, bytes_of, some
from strength import GAMES, times

from kiebitz.cli.sessions import open_session
from kiebitz.storage.derived import as_sent
from kiebitz.storage.diff import compare
from kiebitz.storage.timeline import Timeline
from kiebitz.storage.traffic import MessageRow, diagnostics

SECOND = 1_000_000_000

Making = Callable[[Timeline, MessageRow], Deed]

DEEDS: dict[str, Making] = {
    "drop": lambda _, row: Deed(row, "drop"),
    "double": lambda timeline, row: Deed(row, "double", bytes_of(timeline, row), kept=True),
    "change": lambda timeline, row: Deed(row, "change", bytes_of(timeline, _other(timeline, row))),
    "delay": lambda timeline, row: Deed(row, "delay", bytes_of(timeline, row), late_ns=SECOND // 2),
}


def _other(timeline: Timeline, row: MessageRow) -> MessageRow:
    """Another message of the same name and direction, if there is one; else any that goes this way."""
    every = [other for other in some(timeline, 10_000) if other.direction == row.direction]
    alike = [other for other in every if other.name == row.name and other.fields != row.fields]
    return (alike or every)[0]


def _accused(timeline: Timeline) -> set[tuple[str, str, str]]:
    return {(d.severity, d.code, d.text) for d in diagnostics(timeline, "d.severity <> 'note'")}


@pytest.mark.parametrize("action", DEEDS)
@pytest.mark.parametrize("protocol", GAMES)
def test_nobody_is_blamed_and_all_can_be_undone(tmp_path: Path, protocol: str, action: str) -> None:
    capture = str(CAPTURES / GAMES[protocol])
    before = open_session(capture)
    accused = _accused(before)
    for number, row in enumerate(some(before, times(40, 2))):
        deed = DEEDS[action](before, row)
        after = altered_session(tmp_path / f"{number}.db", capture, [deed])
        assert _accused(after) <= accused, row
        sent = (None, None, None) if deed.kept else (row.ts_ns, bytes_of(before, row), row.name)
        alterations = after.connection.execute("SELECT action, sent_ns, original, name FROM alterations")
        assert alterations.fetchall() == [(action, *sent)]
        undone = as_sent(after, lambda done, total: None)
        assert compare(before, undone).equal, row
        for timeline in (after, undone):
            timeline.connection.close()
    before.connection.close()
