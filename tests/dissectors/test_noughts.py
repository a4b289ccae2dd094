"""Noughts and crosses, the documents' example of a protocol over TCP: its lines and its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from conversation import sentences
from kiebitz_noughts.dissector import NOUGHTS
from message_cases import CASES
from noughts_talk import registered
from strength import times

from kiebitz.dissectors.statistics import statistics_of
from kiebitz.dissectors.testing import CHECKS, EXAMPLES, Check, decode_after_encode_is_the_identity


def test_its_rows_of_statistics_count_what_players_did() -> None:
    talk = registered()
    for line in ("MARK alice 1", "MARK bob 2", "MARK alice 5", "MARK bob 3", "MARK alice 9", "WON alice"):
        talk.send(f"*< {line}")
    row, points = statistics_of(NOUGHTS)
    assert (row.key, points.key) == ("squares", "course")
    read = row.reads()
    samples = Counter(sample[:2] for event in talk.found().events for sample in read(event, {}))
    assert samples == {("alice", "squares"): 3, ("bob", "squares"): 2, ("alice", "games"): 1}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_properties_of_all_protocols(check: Check) -> None:
    check(NOUGHTS, [case.data for case in CASES[NOUGHTS]], times(EXAMPLES, quick=2))


def test_decode_after_encode_is_the_identity() -> None:
    decode_after_encode_is_the_identity(NOUGHTS, examples=times(EXAMPLES))


def test_another_player_can_be_put_in_and_the_line_end_stays() -> None:
    assert (
        NOUGHTS.codec.rewrite(b"MARK alice 5\n", "s2c", {"name": "carol", "square": "5"}) == b"MARK carol 5\n"
    )


def test_a_game_is_reported_once_from_both_conversations() -> None:
    talk = registered()
    for move in ("MARK alice 5", "MARK bob 1", "WON alice"):
        talk.send(f"*< {move}")
    found = talk.send("bob> BYE", "alice.").found()
    assert sentences(NOUGHTS, found) == [
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
    found = talk.send(*(f"{name}< {line}" for name in (ahead, behind) for line in lines)).found()
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
        talk.send(f"*< {move}")
    violations = talk.found().diagnostics
    assert [violation.code for violation in violations] == codes
    assert all(
        (violation.group, violation.severity, violation.blame) == ("rule", "error", "server")
        for violation in violations
    )


def test_after_a_gap_no_violation_is_reported_and_nothing_is_known() -> None:
    # It is unknown whether a line begins after the gap.
    talk = registered().send("alice! 20", "alice< MARK bob 1", "alice< MARK bob 5")
    found = talk.found()
    assert [violation.code for violation in found.diagnostics] == ["gap"]
    assert found.events[-1].changes == [(["games", "1"], {"unknown": ["turn", "squares"]})]


def test_a_line_is_reported_from_where_it_begins_again_after_a_gap() -> None:
    talk = registered().send("alice! 20", "alice< e 5", "alice< MARK bob 1")
    assert sentences(NOUGHTS, talk.found())[-1] == "bob takes square 1"
