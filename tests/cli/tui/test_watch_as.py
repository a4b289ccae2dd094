"""`kiebitz watch --as`: no pane shows what only other players know.

In a recorded session all values hidden from the player are overwritten with a word that is then searched for.

`kiebitz watch --reload`: the session dissected again while it is watched.
"""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue

import pytest
from command import CAPTURES, kiebitz
from dice_file import DICE, OTHER, capture_game, write_file
from secret_values import PLAYERS, SECRET, with_secrets
from strength import a_few, times
from terminals import OnTerminal
from watch_driver import Sight, watch

from kiebitz.dissectors.model import PUBLIC
from kiebitz.services.protocol_files import add_protocol_files
from kiebitz.services.reloading import Dissected, Reloader


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


@pytest.mark.usefixtures("protocol_files_forgotten")
@pytest.mark.full
def test_a_saved_file_changes_what_is_shown(tmp_path: Path) -> None:
    capture, file = capture_game(tmp_path), write_file(tmp_path)

    put: SimpleQueue[Dissected | list[str] | tuple[str, ...]] = SimpleQueue()

    async def script(sight: Sight) -> None:
        sight.app.reloads = put
        reloader.start()
        try:
            await sight.press("end")
            assert "bob rolls 2" in sight.text
            place = sight.place
            write_file(tmp_path, OTHER)
            await sight.until(lambda: "bob throws a 2" in sight.text, "the new sentence")
            assert sight.place == place
            assert "dissected again" in sight.status
            write_file(tmp_path, DICE.replace("pips=pips", "pips=pipz"))
            await sight.until(lambda: "^" in sight.status, "the mistake")
            assert "bob throws a 2" in sight.text
            write_file(tmp_path, DICE.replace('"dice"', '"pips"', 1))
            await sight.until(lambda: "bob rolls 2" in sight.text, "the repaired file")
            assert sight.place == place
            assert "^" not in sight.status
            write_file(tmp_path, DICE.replace("JOIN", "ENTER").replace("ROLL", "THROW"))
            await sight.until(lambda: "no game yet" in sight.text, "a file that fits nothing")
            assert "closed database" not in sight.text
            write_file(tmp_path)
            await sight.until(lambda: "alice rolls 5" in sight.text, "the right file")
        finally:
            reloader.close()

    add_protocol_files([file])
    reloader = Reloader([file], [capture], lambda found: put.put(found[0]), put.put)
    app = watch(capture, script, size=(120, 40))
    app.viewer.followed.close()


@pytest.mark.usefixtures("protocol_files_forgotten")
@pytest.mark.full
def test_the_command_on_a_terminal(tmp_path: Path) -> None:
    capture = capture_game(tmp_path)
    file = write_file(tmp_path)
    with OnTerminal("watch", capture, "-P", file, "--reload", columns=120, rows=40) as terminal:
        terminal.read_until(lambda written: b"alice rolls 5" in written)
        write_file(tmp_path, OTHER)
        terminal.read_until(lambda written: b"alice throws a 5" in written)
        terminal.type(b"q")
        assert terminal.ended() == 0, terminal.lines
