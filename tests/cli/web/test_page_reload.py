"""`kiebitz serve --reload` in a browser: a saved protocol file changes the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Look, Sight
from dice_file import DICE, OTHER, capture_game, write_file
from served_pages import serving

pytestmark = pytest.mark.full


def shows(sight: Sight, selector: str, text: str) -> bool:
    """Return whether a part of the page contains a text; False while the page loads itself again."""
    from playwright.sync_api import Error

    try:
        return text in sight.text(selector)
    except Error:
        return False


@pytest.mark.usefixtures("protocol_files_forgotten")
def test_a_saved_file_changes_the_page(tmp_path: Path, look: Look) -> None:
    capture = capture_game(tmp_path)
    file = write_file(tmp_path)
    with serving(capture, "-P", file, "--reload") as server:
        sight = look(server.at(table=1, at=5))
        sight.until(lambda: shows(sight, "#pane-events", "alice rolls 5"), "the events")
        # The page loads itself again and may break off a request; the server ends first.
        sight.expect("ERR_(ABORTED|CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET)")
        write_file(tmp_path, OTHER)
        sight.until(lambda: shows(sight, "#pane-events", "alice throws a 5"), "the new sentence")
        assert sight.seq == 5
        write_file(tmp_path, DICE.replace("pips=pips", "pips=pipz"))
        sight.until(lambda: "^" in sight.text("#notice"), "the mistake")
        assert "alice throws a 5" in sight.text("#pane-events")
        write_file(tmp_path)
        sight.until(lambda: shows(sight, "#pane-events", "alice rolls 5"), "the repaired file")
        sight.until(lambda: "^" not in sight.text("#notice"), "no mistake")
