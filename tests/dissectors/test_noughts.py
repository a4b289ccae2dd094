"""Noughts and crosses, the documents' example of a protocol over TCP: its lines and its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from kiebitz_noughts.dissector import NOUGHTS
from noughts_cases import FLAWED, SOUND
from strength import times

from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, End, Findings, Gap, Ids, Item, Stream
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.dissectors.statistics import statistics_of
from kiebitz.dissectors.testing import CHECKS, EXAMPLES, Check, decode_after_encode_is_the_identity

CASES = [*SOUND, *FLAWED]
MS = 1_000_000


class Talk:
    """Conversations with one server, a message a millisecond."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._streams: dict[str, Stream] = {}
        self._ends: dict[tuple[str, Direction], int] = {}

    def stream(self, who: str) -> Stream:
        number = len(self._streams) + 1
        made = Stream(number, "tcp", f"127.0.0.1:{40_000 + number}", "127.0.0.1:3333", 0)
        return self._streams.setdefault(who, made)

    def says(self, who: str, *lines: str, direction: Direction = "c2s") -> Talk:
        for line in lines:
            data = f"{line}\r\n".encode()
            offset = self._ends.get((who, direction), 0)
            self._ends[who, direction] = offset + len(data)
            now = len(self.items) * MS
            self.items.append(Chunk(self.stream(who), direction, now, offset, data))
        return self

    def hears(self, who: str, *lines: str) -> Talk:
        return self.says(who, *lines, direction="s2c")

    def loses(self, who: str, length: int) -> Talk:
        offset = self._ends.get((who, "s2c"), 0)
        self._ends[who, "s2c"] = offset + length
        self.items.append(Gap(self.stream(who), "s2c", len(self.items) * MS, offset, length))
        return self

    def ends(self, who: str) -> Talk:
        self.items.append(End(self.stream(who), len(self.items) * MS, "closed"))
        return self

    def found(self) -> Findings:
        inspector = Inspector([*BUILT_IN, NOUGHTS], Ids())
        for item in self.items:
            inspector.feed(item)
        inspector.finish()
        return inspector.drain()


def registered() -> Talk:
    """Alice and Bob are taken in, and a game begins."""
    talk = Talk()
    for who in ("alice", "bob"):
        talk.says(who, f"HELLO {who}").hears(who, "WELCOME")
    return talk.hears("alice", "START alice bob").hears("bob", "START alice bob")


def told(found: Findings) -> list[str]:
    return [NOUGHTS.presentation.describe(event) for event in found.events]


def test_its_rows_of_statistics_count_what_players_did() -> None:
    talk = registered()
    for line in ("MARK alice 1", "MARK bob 2", "MARK alice 5", "MARK bob 3", "MARK alice 9", "WON alice"):
        talk.hears("alice", line).hears("bob", line)
    row, points = statistics_of(NOUGHTS)
    assert (row.key, points.key) == ("squares", "course")
    read = row.reads()
    samples = Counter(sample[:2] for event in talk.found().events for sample in read(event, {}))
    assert samples == {("alice", "squares"): 3, ("bob", "squares"): 2, ("alice", "games"): 1}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_properties_of_all_protocols(check: Check) -> None:
    check(NOUGHTS, [case.data for case in CASES], times(EXAMPLES))


def test_decode_after_encode_is_the_identity() -> None:
    decode_after_encode_is_the_identity(NOUGHTS, examples=times(EXAMPLES))


def test_another_player_can_be_put_in_and_the_line_end_stays() -> None:
    assert (
        NOUGHTS.codec.rewrite(b"MARK alice 5\n", "s2c", {"name": "carol", "square": "5"}) == b"MARK carol 5\n"
    )


def test_a_game_is_reported_once_from_both_conversations() -> None:
    talk = registered()
    for move in ("MARK alice 5", "MARK bob 1", "WON alice"):
        talk.hears("alice", move).hears("bob", move)
    found = talk.says("bob", "BYE").ends("alice").found()
    assert told(found) == [
        "alice joins",
        "bob joins",
        "alice plays bob",
        "alice takes square 5",
        "bob takes square 1",
        "alice wins",
        "bob leaves",
        "alice leaves",
    ]
    assert found.diagnostics == []
    squares = ["bob", None, None, None, "alice", None, None, None, None]
    assert found.events[4].changes == [(["games", "1"], {"turn": "alice", "squares": squares})]
    assert found.games[-1].result == {"winner": "alice"}


@pytest.mark.parametrize("ahead", ["alice", "bob"])
def test_one_conversation_may_be_behind_the_other(ahead: str) -> None:
    """The copies come later, and in one go."""
    behind = "bob" if ahead == "alice" else "alice"
    talk = registered()
    lines = ["MARK alice 5", "MARK bob 1", "MARK alice 3", "MARK bob 7", "MARK alice 4"]
    found = talk.hears(ahead, *lines).hears(behind, *lines).found()
    assert len(found.events) == 3 + len(lines)


@pytest.mark.parametrize(
    ("moves", "codes"),
    [
        (("MARK bob 5",), ["out-of-turn"]),
        (("MARK alice 5", "MARK bob 5"), ["square-taken"]),
        (("MARK alice 5", "MARK alice 5"), ["out-of-turn", "square-taken"]),
        (("WON alice", "MARK bob 5"), []),
    ],
)
def test_a_server_that_breaks_a_rule_is_reported_once(moves: Sequence[str], codes: list[str]) -> None:
    talk = registered()
    for move in moves:
        talk.hears("alice", move).hears("bob", move)
    flaws = talk.found().diagnostics
    assert [flaw.code for flaw in flaws] == codes
    assert all((flaw.group, flaw.severity, flaw.blame) == ("rule", "error", "server") for flaw in flaws)


def test_after_a_gap_no_violation_is_reported_and_nothing_is_known() -> None:
    # Whether a line begins behind the gap cannot be told.
    talk = registered().loses("alice", 20).hears("alice", "MARK bob 1", "MARK bob 5")
    found = talk.found()
    assert [flaw.code for flaw in found.diagnostics] == ["gap"]
    assert found.events[-1].changes == [(["games", "1"], {"unknown": ["turn", "squares"]})]


def test_a_line_is_reported_from_where_it_begins_again_after_a_gap() -> None:
    talk = registered().loses("alice", 20).hears("alice", "e 5", "MARK bob 1")
    assert told(talk.found())[-1] == "bob takes square 1"
