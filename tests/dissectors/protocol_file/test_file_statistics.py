"""Statistics of protocol files: what each form counts, from which values, and in which order."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from file_conversations import Conversation, dissector_of

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.protocol_file.game.statistics import MAX_SAMPLES
from kiebitz.dissectors.statistics import statistics_of
from kiebitz.dissectors.statistics.accumulators import MAX_LINES, Accumulator, count, results_of

FILE = """protocol = "dice"
[messages]
START = "s*: name=player"
ROLL = "s*: name=player dice=[1..6,] why=text"
PAY = "s*: name=player to=player amount=integer"
OVER = "s*: names=[text,] ok=bool"
BID = "c: name=text amount=integer why=text"
HIGH = "s: other=integer < BID"
[events]
started = { on = "START", opens = true, say = "{name} begins", put = { banker = "name" } }
rolled = { on = "ROLL", say = "{name} rolls {dice}", turn = true }
paid = { on = "PAY", say = "{name} pays {to}" }
over = { on = "OVER", ends = true, say = "over" }
bid = { on = "HIGH", say = "{asked.name} bids" }
[statistics]
"""

TALK = (
    "*< START ann",
    *("*< ROLL ann 1,2 game", "*< ROLL bob 6,6 game", "*< ROLL bob 3 test"),
    *("*< PAY ann bob 5", "*< PAY bob ann -2", "*< PAY bob bob 7"),
    *("*< ROLL ann 2,2 game", "*< OVER ann,cid true", "*< PAY ann bob 1"),
    *("a> BID ann 3 bold", "a< HIGH 7", "b> BID bob 1 shy", "b< HIGH 2"),
)


def counted(entry: str, *talk: str) -> Any:
    """Return the result of one statistic about a conversation of ann and bob."""
    dissector = dissector_of(FILE + f"it = {{ {entry} }}")
    found = Conversation(dissector).send("a> x", "b> x", *(talk or TALK)).found()
    statistic = next(each for each in statistics_of(dissector) if each.key == "it")
    both, state = [(statistic.reads(), Accumulator(statistic))], State()
    for event in found.events:
        apply(state, event.changes)
        count(both, event, state, event.ts_ns / 1e9, counts=True)
    return next(iter(json.loads(msgspec.json.encode(results_of([both[0][1]])))), None)


CASES: dict[str, tuple[str, Any]] = {
    "the answered request": (
        'counts = "bid", by = "asked.why", line = "asked.name", amount = "other - asked.amount", '
        "when = \"asked == 'BID'\"",
        {"ann": {"bold": 4, "shy": 0}, "bob": {"bold": 0, "shy": 1}},
    ),
    "who acts": ('counts = "rolled"', {"ann": {"count": 2}, "bob": {"count": 2}}),
    "several kinds": (
        'counts = ["paid", "rolled"], when = "name != banker", words = { rolled = "rolls", paid = "pays" }',
        {"bob": {"rolls": 2, "pays": 2}},
    ),
    "of another": ('counts = "paid", line = "to"', {"bob": {"count": 3}, "ann": {"count": 1}}),
    "of several": (
        'counts = "paid", when = "amount > 0", line = { name = "paid", to = "got" }',
        {"ann": {"paid": 2, "got": 0}, "bob": {"paid": 1, "got": 3}},
    ),
    "of a list": ('counts = "over", line = "names"', {"ann": {"count": 1}, "cid": {"count": 1}}),
    "a number": ('counts = "paid", amount = "amount"', {"ann": {"count": 6}, "bob": {"count": 7}}),
    "some values": (
        'counts = "rolled", by = "dice", words = ["6", "2"]',
        {"bob": {"6": 2, "2": 0}, "ann": {"6": 0, "2": 3}},
    ),
    "part of a text": (
        'counts = "rolled", by = "why", split = "e"',
        {"ann": {"gam": 2, "": 2, "t": 0, "st": 0}, "bob": {"gam": 1, "": 1, "t": 1, "st": 1}},
    ),
    "share": (
        'shares = "rolled", by = "dice.# == 2", words = { true = "two", false = "one" }',
        {"ann": {"part": 2, "all": 2}, "bob": {"part": 1, "all": 2}},
    ),
    "histogram": (
        'histogram = "rolled", when = "dice.# > 1", by = "dice[0] + dice[1]", chance = { 3 = 2, 12 = 1 }',
        {"3": 1, "12": 1},
    ),
    "so far": (
        'course = "paid", unit = "payments"',
        {"ann": [[0.011, 1], [0.021, 2]], "bob": [[0.013, 1], [0.015, 2]]},
    ),
    "amount": (
        'course = "paid", amount = "amount - 1"',
        {"ann": [[0.011, 4], [0.021, 0]], "bob": [[0.013, -3], [0.015, 6]]},
    ),
    "unknown": ('counts = "paid", when = "turn == name && known(banker.x)"', None),
    "durations": (
        'durations = ["rolled", "paid"], begins = "kind == \'rolled\'"',
        {"ann": [1, 0.006, 0.006], "bob": [1, 0.006, 0.006]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_counted(name: str) -> None:
    entry, expected = CASES[name]
    found = counted(entry)
    if expected is None or found is None:
        assert found is expected
        return
    lines = found.get("lines", found.get("counts"))
    if found["kind"] == "durations":
        lines = {line: [times["count"], times["mean"], times["longest"]] for line, times in lines.items()}
    assert lines == expected
    if found["kind"] == "counts":
        assert [*next(iter(lines.values()))] == [*next(iter(expected.values()))]


def test_a_message_has_a_bounded_number_of_samples() -> None:
    names = ",".join(f"p{number}" for number in range(MAX_SAMPLES * 2))
    found = counted('counts = "over", line = "names", by = "names"', f"*< OVER {names} true")
    assert sum(map(sum, (line.values() for line in found["lines"].values()))) == MAX_LINES
    assert found["left_out"] == MAX_SAMPLES - MAX_LINES
