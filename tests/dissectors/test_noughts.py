"""Noughts and crosses, the documents' example of a protocol over TCP: its lines and its table."""

from __future__ import annotations

from collections import Counter

from kiebitz_noughts.dissector import NOUGHTS
from noughts_talk import registered

from kiebitz.dissectors.statistics import statistics_of


def test_its_rows_of_statistics_count_what_players_did() -> None:
    talk = registered()
    for line in ("MARK alice 1", "MARK bob 2", "MARK alice 5", "MARK bob 3", "MARK alice 9", "WON alice"):
        talk.send(f"*< {line}")
    row, points = statistics_of(NOUGHTS)
    assert (row.key, points.key) == ("squares", "course")
    read = row.reads()
    samples = Counter(sample[:2] for event in talk.found().events for sample in read(event, {}))
    assert samples == {("alice", "squares"): 3, ("bob", "squares"): 2, ("alice", "games"): 1}


def test_another_player_can_be_put_in_and_the_line_end_stays() -> None:
    assert (
        NOUGHTS.codec.rewrite(b"MARK alice 5\n", "s2c", {"name": "carol", "square": "5"}) == b"MARK carol 5\n"
    )
