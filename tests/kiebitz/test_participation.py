"""The games of recorded sessions that count for `kiebitz interop`."""

from __future__ import annotations

import pytest
from command import ROOT

import kiebitz
from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.interop.participation import Participation

FOREVER = 1 << 62


@pytest.mark.full(but=4)
@pytest.mark.parametrize(
    ("capture", "begun", "played", "cancelled", "timed_out"),
    [
        ("maexchen-fork-pybots.pcap.gz", 97, 93, 2, 1),
        ("maexchen-head-port4711.pcap", 39, 30, 0, 8),
        ("catan-infrarot-game2-3p.pcap.gz", 1, 1, 0, 0),
        # The connection was lost.
        ("catan-lurche-py-3p.pcap.gz", 1, 0, 0, 0),
        ("okey-head-game-win.pcap.gz", 1, 1, 0, 0),
        ("okey-seed-malformed.pcap.gz", 2, 0, 0, 0),
        ("cgml-hands.pcap.gz", 24, 22, 2, 0),
        ("schafkopf-1.3-2humans.pcap", 7, 6, 0, 0),
        ("schafkopf-1.3-badcard.pcap", 1, 0, 1, 0),
    ],
)
def test_games_count_if_they_were_played(
    capture: str, begun: int, played: int, cancelled: int, timed_out: int
) -> None:
    with kiebitz.open(str(ROOT / "captures" / capture)) as session:
        dissector = dissector_of(session.timeline.tables()[0].protocol)
        assert dissector is not None
        found = Participation(session, dissector, [], FOREVER)
    assert (found.begun, found.played, found.cancelled, found.timed_out) == (
        begun,
        played,
        cancelled,
        timed_out,
    )
