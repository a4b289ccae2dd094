"""`kiebitz watch --reload`: the session dissected again while it is watched."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue

import pytest
from dice_file import DICE, OTHER, capture_game, write_file
from terminals import OnTerminal
from watch_driver import Sight, watch

from kiebitz.services.protocol_files import add_protocol_files
from kiebitz.services.reloading import Dissected, Reloader


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
    app.viewer.followed.session.close()


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
