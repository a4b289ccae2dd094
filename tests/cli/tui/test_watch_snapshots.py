"""Screens of `kiebitz watch` as texts under `tests/snapshots/`, where each change of the look shows.

`KIEBITZ_SNAPSHOTS=write pytest --full` of this file writes them; look at the difference.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from command import ROOT
from snapshots import check
from strength import a_few
from watch_driver import Sight, watch

SNAPSHOTS = ROOT / "tests" / "snapshots"


class Shot(NamedTuple):
    """A capture, the event one is at (None for several tables), keys after that, and a terminal's size."""

    name: str
    capture: str
    place: int | None
    keys: str
    columns: int
    rows: int

    @property
    def file(self) -> Path:
        return SNAPSHOTS / f"{self.name}-{self.columns}x{self.rows}.txt"


GAMES = {
    "maexchen": ("maexchen-head-tiny.pcap", 20),
    "schafkopf": ("schafkopf-1.3-badcard.pcap", 46),
    "catan": ("catan-infrarot-game2-3p.pcap.gz", 300),
    "okey": ("okey-seed-game-win.pcap.gz", 74),
    "cgml": ("cgml-hands.pcap.gz", 120),
}
SIZES = ((40, 12), (80, 24), (120, 40), (240, 70))

SHOTS = [
    *(Shot(name, *game, "", *size) for name, game in GAMES.items() for size in SIZES),
    *(Shot(f"{name}-message", *game, "enter", 80, 24) for name, game in GAMES.items()),
    *(Shot("several", "catan-five-servers.pcapng.gz", None, "end down", *size) for size in SIZES),
    Shot("messages", "maexchen-head-tiny.pcap", 20, "tab down", 80, 24),
    Shot("diagnostics", "maexchen-head-odd.pcap", 20, "tab tab tab", 160, 45),
    Shot("keys", "maexchen-head-tiny.pcap", 20, "question_mark", 80, 24),
    Shot("an-error", "maexchen-head-odd.pcap", 1, "n n", 40, 12),
]

QUICK = {"catan-40x12"}


def name_of(shot: Shot) -> str:
    return shot.file.stem


@pytest.mark.full
@pytest.mark.parametrize("name", a_few([name_of(shot) for shot in SHOTS], QUICK))
def test_it_looks_as_it_did(name: str) -> None:
    (shot,) = (shot for shot in SHOTS if name_of(shot) == name)

    async def script(sight: Sight) -> None:
        if shot.place is not None:
            await sight.at(shot.place)
        await sight.press(*shot.keys.split())
        seen = sight.text.rstrip("\n") + "\n"
        check(shot.file, seen)

    watch(shot.capture, script, (shot.columns, shot.rows))


def test_no_snapshot_is_left_that_nothing_makes() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == {name_of(shot) for shot in SHOTS}
