"""Statistics of protocol files: what each form counts, from which values, and in which order."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from conversation_files import Block, blocks, check
from file_conversations import Conversation, dissector_of
from snapshots import DATA

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


@pytest.mark.parametrize(
    "block", blocks(DATA / "protocol_files" / "statistics.txt").values(), ids=lambda block: block.title
)
def test_what_is_counted(block: Block) -> None:
    (entry,) = block.steps
    found = counted(entry) or {"kind": "nothing"}
    lines = found.get("lines", found.get("counts"))
    check(block, f"{entry}\n    {found['kind']}: {json.dumps(lines)}")


def test_a_message_has_a_bounded_number_of_samples() -> None:
    names = ",".join(f"p{number}" for number in range(MAX_SAMPLES * 2))
    found = counted('counts = "over", line = "names", by = "names"', f"*< OVER {names} true")
    assert sum(map(sum, (line.values() for line in found["lines"].values()))) == MAX_LINES
    assert found["left_out"] == MAX_SAMPLES - MAX_LINES
