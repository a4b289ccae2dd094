"""Noughts and crosses, the documents' example of a protocol over TCP: its lines and its table."""

from __future__ import annotations

from collections import Counter

import pytest
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
