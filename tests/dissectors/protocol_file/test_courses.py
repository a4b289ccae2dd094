"""Protocol files of real courses: the sentences of the events of a sample, and the board at its end.

In the samples, a line `= SENTENCE` is an event of the message before it, and `| CELLS` a row of the board,
below the name of its player if each has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import pytest
from conversation import sentences
from courses import COURSES, EXAMPLES, course
from inspected_captures import errors, from_then_on, holed
from strength import every, times

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import Chunk, Item, Stream
from kiebitz.dissectors.protocol_file.dissector import FileDissector, dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read
from kiebitz.dissectors.protocol_file.reading.trial import Trial
from kiebitz.dissectors.testing import CHECKS, inspect


def lines_of(sample: str, sign: str) -> list[str]:
    lines = (COURSES / f"{sample}.txt").read_text().splitlines()
    return [line[2:] for line in lines if line.startswith(f"{sign} ")]


def dissector_of(sample: str) -> FileDissector:
    reading = read(EXAMPLES[sample.split("-")[0]].read_text())
    assert not reading.remarks
    return dissector_from(reading.specification)


def items_of(sample: str) -> list[Item]:
    conversations = course(sample)
    streams = [Stream(n, each.transport, each.client, each.server, 0) for n, each in enumerate(conversations)]
    items: list[Item] = [
        Chunk(stream, piece.direction, piece.ts_ns, piece.offset, piece.data)
        for stream, each in zip(streams, conversations, strict=True)
        for piece in each.pieces
    ]
    return sorted(items, key=lambda item: item.ts_ns)


@pytest.mark.parametrize(
    "sample", sorted(path.stem for path in COURSES.glob("*.txt") if lines_of(path.stem, "="))
)
def test_events_and_board_of_a_sample(sample: str) -> None:
    dissector = dissector_of(sample)
    found = inspect(items_of(sample), dissector, forced=True)
    assert [each for each in found.diagnostics if each.severity != "note"] == []
    assert sentences(dissector, found) == lines_of(sample, "=")
    state: State = {}
    for event in found.events:
        # A game is shown as it ended.
        apply(
            state,
            [
                (path, value)
                for path, value in deepcopy(event.changes)
                if value is not None or path[:-1] != ["games"]
            ],
        )
    view = dissector.presentation.view(Scene(state, found.events))
    assert view is not None
    drawn = []
    for each in view.grid.all_boards if view.grid is not None else ():
        drawn += [each.owner] if each.owner else []
        drawn += [" ".join(token.words if token is not None else "." for token in row) for row in each.rows]
    assert drawn == lines_of(sample, "|")


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", every(1, sorted(EXAMPLES)))
def test_properties_of_all_protocols(name: str) -> None:
    reading = read(EXAMPLES[name].read_text())
    dissector = dissector_from(reading.specification)
    trial = Trial(reading, dissector)
    assert not trial.remarks
    assert max(map(len, trial.frames)) < 2_000
    for check in CHECKS:
        check(dissector, trial.frames, times(6, quick=2))


@pytest.mark.parametrize("sample", sorted(path.stem for path in COURSES.glob("*.txt")))
def test_missing_messages_cause_no_violations(sample: str) -> None:
    """The capture begins in a game, or a message over TCP is lost."""
    dissector = dissector_of(sample)

    def codes(items: Sequence[Item]) -> set[str]:
        return {violation.code for violation in errors(inspect(items, dissector, forced=True))}

    whole = codes(items_of(sample))
    for at in range(1, len(items_of(sample))):
        assert codes(from_then_on(items_of(sample), at)) <= whole, at
        if dissector.transport == "tcp":
            assert codes(holed(items_of(sample), at)) <= whole, at
