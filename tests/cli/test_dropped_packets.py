"""Packets that the capturing machine has dropped, in the library and on the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import kiebitz
from served_pages import serving
from snapshots import DATA

import kiebitz as library


@pytest.mark.parametrize("is_stored", [False, True])
def test_the_library_and_the_page_show_them(is_stored: bool, tmp_path: Path) -> None:
    path = str(DATA / "dropped.pcapng")
    if is_stored:
        kiebitz("import", path, "-w", str(tmp_path / "game.db"))
        path = str(tmp_path / "game.db")
        assert "17 packets were dropped" in kiebitz("sessions", path).out
    with library.open(path) as session:
        assert session.lacks == "17 packets were dropped by the capturing machine"
        lacks = session.lacks
    with serving(path) as server:
        (session_record,) = server.well("api/sessions")["sessions"]
    assert session_record["lacks"] == lacks
