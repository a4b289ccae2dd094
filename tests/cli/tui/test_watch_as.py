"""`kiebitz watch --as`: no pane shows what only other players know.

In a recorded session all values hidden from the player are overwritten with a word that is then searched for.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from command import CAPTURES, kiebitz
from secret_values import PLAYERS, SECRET, with_secrets
from strength import a_few, times
from watch_driver import Sight, watch

from kiebitz.dissectors.model import PUBLIC


@pytest.mark.parametrize("protocol", a_few(PLAYERS, ("schafkopf",)))
def test_no_hidden_values_are_shown(protocol: str, tmp_path: Path) -> None:
    capture, player = PLAYERS[protocol]
    database = tmp_path / "game.db"
    assert kiebitz("import", str(CAPTURES / capture), "-w", str(database)).status == 0
    with_secrets(database, player)

    async def script(sight: Sight) -> None:
        assert any(SECRET in row for row in sight.rows("messages"))
        players = sight.viewer.followed.players()
        await sight.press("a", "home", *["down"] * (players.index(player) + 1), "enter")
        assert f"as {player}" in sight.status
        count = len(sight.rows("events"))
        assert count
        for pane in sight.app.panes:
            if pane != "message":
                assert not any(SECRET in row for row in sight.rows(pane)), pane
        for place in sorted({*range(1, count, max(count // times(3, 1), 1)), count}):
            await sight.at(place)
            for _ in sight.app.panes:
                assert SECRET not in sight.text, sight.text
                if sight.app.pane == "message":
                    assert not any(SECRET in row for row in sight.rows("message"))
                await sight.press("tab")
        await sight.press("home")
        for _ in range(times(5, 2)):
            await sight.press("n")
            assert SECRET not in sight.text

    watch(str(database), script, (150, 60))


@pytest.mark.full
def test_a_notice_of_before_is_not_shown_to_a_player(tmp_path: Path) -> None:
    async def script(sight: Sight) -> None:
        await sight.press("end", "N")
        assert "error[" in sight.status
        await sight.press("a", "home", "down", "down", "enter")
        assert "error[" not in sight.status

    watch("schafkopf-1.3-badcard.pcap", script)


def test_the_public_view_lists_what_was_sent_to_all() -> None:
    async def script(sight: Sight) -> None:
        rows = sight.rows("messages")
        assert rows
        assert all("all players" in row for row in rows)
        assert not any(hidden in "".join(rows) for hidden in ("YOUR TURN", "ROLLED", "REGISTER"))

    watch("maexchen-head-tiny.pcap", script, player=PUBLIC)
