from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from command import TINY
from strength import GAMES, a_few
from two_rooms import two_rooms
from walks import walks
from watch_driver import Sight, take, watch

from kiebitz.cli.tui.keys import KEYS
from kiebitz.cli.tui.lists import LogTail
from kiebitz.dissectors.registry import using_copies
from kiebitz.services.protocol_files import add_protocol_files

WALKS = walks("watch.txt", "*.pcap*")


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    "title", a_few(WALKS, ["panes", "errors", "filter, player and game of the command line"])
)
def test_a_walk(title: str) -> None:
    take(WALKS[title])


def test_each_key_is_documented_and_works() -> None:
    pressed = {key for walk in walks("watch.txt", "*").values() for step in walk.steps for key in step.keys}
    bound = {name for key in KEYS for name in key.key.split(",")}
    assert bound - pressed == {"Q", "ctrl+d", "ctrl+c", "ctrl+z", "shift+up", "shift+down"}


@pytest.mark.parametrize(
    ("keys", "status"),
    a_few(
        [
            *(("q", 0), ("Q", 0), ("ctrl+d", 0), ("ctrl+c", 130)),
            *(("slash ctrl+c", 130), ("a ctrl+c", 130), ("question_mark ctrl+c", 130)),
        ],
        [("q", 0)],
    ),
)
def test_a_key_that_quits(keys: str, status: int) -> None:
    async def script(sight: Sight) -> None:
        await sight.pilot.press(*keys.split())

    assert watch(TINY, script).return_value == status


@pytest.mark.full
@pytest.mark.parametrize("protocol", a_few(GAMES, ["maexchen"]))
def test_each_pane_of_each_protocol(protocol: str) -> None:
    async def script(sight: Sight) -> None:
        await sight.at(10)
        rows = {pane: sight.rows(pane) for pane in sight.app.panes if pane != "message"}
        assert rows["events"], protocol
        assert rows["messages"]
        assert rows["streams"]
        assert all(protocol in row for row in rows["streams"] if "unknown protocol" not in row)
        for pane in sight.app.panes:
            assert sight.app.pane == pane
            shown = [row for row in rows.get(pane, ()) if row[:60].rstrip() in sight.text]
            assert shown or not rows.get(pane), f"{pane}\n{sight.text}"
            if pane == "messages":
                assert any("→" in row for row in rows[pane])
                assert any("←" in row for row in rows[pane])
            if pane == "message":
                assert "clause: " in sight.text
            await sight.press("tab")
        assert sight.app.pane == "events"
        assert all("\n" not in row for listed in rows.values() for row in listed)

    watch(GAMES[protocol], script, (100, 40))


def test_a_message_opens_at_its_error() -> None:
    """On the smallest terminal that shows it whole, the bytes are above the explanation."""

    async def script(sight: Sight) -> None:
        await sight.press("n", "n", "tab", "tab")
        place = [number for number, line in enumerate(sight.lines) if "^^^^" in line]
        (error,) = (number for number, line in enumerate(sight.lines) if "  error[" in line)
        assert place
        assert place[-1] < error
        assert "blame: client (rule)" in sight.text
        await sight.pilot.resize_terminal(80, 26)
        await sight.settle()
        assert "  error[" in sight.text

    watch(GAMES["schafkopf"], script, (80, 24))


# The picture.


@pytest.mark.full
def test_a_picture_that_is_higher_than_its_room_is_scrolled() -> None:
    async def script(sight: Sight) -> None:
        await sight.at(81)
        title = sight.lines[0]
        top = sight.lines[1:6]
        await sight.press("shift+down", "shift+down")
        assert sight.lines[0] == title
        assert sight.lines[1:4] == top[2:]
        await sight.press("shift+up", "shift+up", "shift+up")
        assert sight.lines[1:6] == top

    watch(GAMES["okey"], script, (80, 24))


@pytest.mark.usefixtures("protocol_files_forgotten")
def test_each_of_several_games_at_once_is_one_of_the_tables(tmp_path: Path) -> None:
    (walk,) = walks("watch.txt", "rooms").values()
    with two_rooms(tmp_path) as (database, _, file), using_copies({}):
        add_protocol_files([file])
        take(walk, session=database)


# Sizes.


@pytest.mark.full
@pytest.mark.parametrize("protocol", a_few(GAMES, ("catan",)))
def test_it_is_resized(protocol: str) -> None:
    async def script(sight: Sight) -> None:
        for size in ((40, 12), (240, 70), (20, 5), (1, 1), (80, 24)):
            await sight.pilot.resize_terminal(*size)
            await sight.settle()
            assert all(len(line) <= size[0] for line in sight.lines)
            assert len(sight.lines) == size[1]
        assert "q quit" in sight.text

    watch(GAMES[protocol], script)


# The recorder's output.


@pytest.mark.full
def test_the_recorder_s_output_is_in_a_pane() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"listening on 9001\n")
        file.flush()

        async def script(sight: Sight) -> None:
            await sight.press("shift+tab")
            await sight.until(lambda: "listening on 9001" in sight.text, "the line")
            assert " recorder " in sight.text
            os.write(file.fileno(), "hostile \x1b[2J\x07 ü\n".encode())
            await sight.until(lambda: "hostile \\x1b[2J\\x07 ü" in sight.text, "the next line")
            # The document is for all players, so all hands are visible.
            await sight.press("a", "down", "down", "enter")
            assert "as alice" in sight.status
            assert "recorder" not in sight.text
            os.write(file.fileno(), b"the disk is full\n")
            await sight.until(lambda: "new output of the recorder" in sight.status, "the notice")
            assert "the disk is full" not in sight.text
            await sight.press("a", "home", "enter", "shift+tab")
            assert "the disk is full" in sight.text

        watch(TINY, script, said=LogTail(file.fileno()))
