from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from held_messages import holding
from session_factory import Conversation, recording
from strength import a_few
from walks import deeds_of, walks
from watch_driver import take

from kiebitz.services.alteration.control_client import ControlClient

WALKS = walks("watch.txt", "held")
SIZES = "40x12", "60x20", "200x50"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    with recording(tmp_path / "game.db", Conversation().says(b"REGISTER;alice").hears(b"REGISTERED")):
        yield str(tmp_path / "game.db")


@pytest.mark.parametrize("title", a_few(WALKS, ["held: keys"]))
def test_a_walk(title: str, database: str) -> None:
    walk = WALKS[title]
    for size in SIZES if title.endswith("any terminal") else ["100x30"]:
        sized = walk._replace(options={"size": size, **walk.options})
        with holding(database) as relay:
            hands = ControlClient(lambda: (database, 1))
            take(sized, deeds_of(relay), session=database, hands=hands)
