"""`kiebitz watch --as`: no pane shows what only other players know.

`kiebitz watch --reload`: the session dissected again while it is watched.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from dice_file import DICE, OTHER, capture_game, write_file
from screens import Filled
from secret_worlds import pairs_of
from strength import a_few, times
from watch_driver import Sight, watch

from kiebitz.dissectors.model import PUBLIC

WORLDS = (
    *("maexchen-head-tiny.pcap", "schafkopf-1.3-badcard.pcap", "catan-lurche-py-3p.pcap.gz"),
    *("okey-seed-game-win.pcap.gz", "cgml-tiny.pcap.gz"),
)


@pytest.mark.parametrize("capture", a_few(WORLDS, ["schafkopf-1.3-badcard.pcap"]))
def test_other_hidden_values_change_nothing_for_a_player(capture: str, tmp_path: Path) -> None:
    player, *paths = next(pairs_of(capture, tmp_path))
    whole: list[list[str]] = []
    seen: list[list[str]] = []

    async def script(sight: Sight) -> None:
        whole.append([row for pane in ("events", "messages") for row in sight.rows(pane)])
        players = sight.viewer.followed.players()
        await sight.press("a", "home", *["down"] * (players.index(player) + 1), "enter")
        assert f"as {player}" in sight.status
        count = len(sight.rows("events"))
        assert count
        shown = [row for pane in sight.app.panes if pane != "message" for row in sight.rows(pane)]
        for place in sorted({*range(1, count, max(count // times(3, 1), 1)), count}):
            await sight.at(place)
            for _ in sight.app.panes:
                shown += [sight.text, *(sight.rows("message") if sight.app.pane == "message" else ())]
                await sight.press("tab")
        await sight.press("home")
        for _ in range(times(5, 2)):
            await sight.press("n")
            shown.append(sight.text)
        seen.append(shown)

    for path in paths:
        watch(path, script, (150, 60))
    assert whole[0] != whole[1]
    assert seen[0] == seen[1]


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


@pytest.mark.usefixtures("protocol_files_forgotten")
@pytest.mark.full
def test_a_saved_file_changes_what_is_shown(tmp_path: Path) -> None:
    capture, file = capture_game(tmp_path), write_file(tmp_path)
    with Filled("watch", capture, "-P", file, "--reload", columns=120, rows=40) as watch:
        watch.until("alice rolls 5")
        watch.type(b"\x1b[F")
        assert "bob rolls 2" in watch.until("#6 of 6")
        write_file(tmp_path, OTHER)
        watch.until("bob throws a 2")
        assert "#6 of 6" in watch.until("dissected again")
        write_file(tmp_path, DICE.replace("pips=pips", "pips=pipz"))
        assert "bob throws a 2" in watch.until("^")
        write_file(tmp_path, DICE.replace('"dice"', '"pips"', 1))
        screen = watch.until("bob rolls 2")
        assert "#6 of 6" in screen
        assert "^" not in screen
        write_file(tmp_path, DICE.replace("JOIN", "ENTER").replace("ROLL", "THROW"))
        assert "closed database" not in watch.until("no game yet")
        write_file(tmp_path)
        watch.until("alice rolls 5")
        watch.type(b"q")
        assert watch.ended() == 0, watch.lines
