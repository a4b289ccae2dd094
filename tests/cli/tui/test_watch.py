from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from command import ODD, ROOT, TINY
from conversation_files import blocks
from snapshots import DATA, as_bytes
from strength import GAMES, a_few
from two_rooms import two_rooms
from watch_driver import Sight, watch

from kiebitz.cli.tui.keys import KEYS
from kiebitz.cli.tui.lists import LogTail
from kiebitz.cli.tui.playback_speed import PlaybackSpeed
from kiebitz.dissectors.registry import using_copies
from kiebitz.services.protocol_files import add_protocol_files

SEVERAL = "catan-five-servers.pcapng.gz"


class Step(NamedTuple):
    """Keys to press or a text to type, and the texts that the screen then shows, or does not."""

    keys: str
    there: Sequence[str] = ()
    gone: Sequence[str] = ()


def step_of(line: str) -> Step:
    """Return a step of tests/data/watch.txt."""
    keys, _, rest = f" {line}".partition(" => ")
    words = [as_bytes(word).decode() for word in shlex.split(rest)]
    split = words.index("not") if "not" in words else len(words)
    return Step(keys.strip(), words[:split], words[split + 1 :])


WALKS = {title: block.steps for title, block in blocks(DATA / "watch.txt").items()}
FILTERS = [step_of(line) for line in WALKS.pop("filters")]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("walk", a_few(WALKS, ["panes", "errors"]))
def test_effects_of_a_key(walk: str) -> None:
    session, *lines = WALKS[walk]

    async def script(sight: Sight) -> None:
        done = []
        for keys, there, gone in map(step_of, lines):
            await sight.press(*keys.split())
            done.append(keys)
            for text in there:
                assert text in sight.text, f"{text} after {done}\n{sight.text}"
            for text in gone:
                assert text not in sight.text, f"{text} after {done}\n{sight.text}"

    watch(str(ROOT / session) if "/" in session else session, script)


def test_each_key_is_documented_and_works() -> None:
    pressed = {key for _, *lines in WALKS.values() for line in lines for key in step_of(line).keys.split()}
    elsewhere = {"q", "Q", "ctrl+d", "ctrl+c", "ctrl+z", "space", "plus", "equals_sign", "minus", *"hedrg"}
    bound = {name for key in KEYS for name in key.key.split(",")}
    assert bound - pressed - elsewhere == {"shift+up", "shift+down"}


@pytest.mark.parametrize(
    ("key", "status"), a_few([("q", 0), ("Q", 0), ("ctrl+d", 0), ("ctrl+c", 130)], [("q", 0)])
)
def test_a_key_that_quits(key: str, status: int) -> None:
    async def script(sight: Sight) -> None:
        await sight.pilot.press(key)

    assert watch(TINY, script).return_value == status


@pytest.mark.full
@pytest.mark.parametrize("before", a_few(["slash", "a", "question_mark"], ["slash"]))
def test_ctrl_c_quits_whatever_is_open(before: str) -> None:
    async def script(sight: Sight) -> None:
        await sight.pilot.press(before, "ctrl+c")

    assert watch(TINY, script).return_value == 130


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


# Playing.


@pytest.mark.full
def test_it_plays_to_the_end() -> None:
    async def script(sight: Sight) -> None:
        await sight.pilot.press("space")
        await sight.until(lambda: sight.place == 26 and "paused" in sight.status, "the end")

    watch(TINY, script, pace=PlaybackSpeed(1024.0))


@pytest.mark.full
def test_it_plays_at_a_pace_and_begins_again_after_the_end() -> None:
    async def script(sight: Sight) -> None:
        await sight.at(25)
        await sight.pilot.press("space")
        assert "playing an event every 1 s" in sight.status
        await sight.until(lambda: sight.place == 26 and "paused" in sight.status, "the end")
        await sight.pilot.press("space")
        await sight.until(lambda: sight.place < 10, "the beginning")
        await sight.pilot.press("left")
        assert "paused" in sight.status

    watch(TINY, script, pace=PlaybackSpeed(every_s=1.0))


@pytest.mark.full
@pytest.mark.parametrize(
    ("keys", "how"),
    a_few(
        [
            ("", "playing 1x"),
            ("plus", "playing 2x"),
            ("equals_sign plus", "playing 4x"),
            ("minus minus", "playing 0.25x"),
            ("minus plus", "playing 1x"),
        ],
        [("equals_sign plus", "playing 4x")],
    ),
)
def test_how_fast_it_plays(keys: str, how: str) -> None:
    async def script(sight: Sight) -> None:
        await sight.pilot.press("space", *keys.split())
        await sight.pilot.pause()
        assert how in sight.status
        await sight.pilot.press("space")
        assert "paused" in sight.status

    watch("catan-niedlichepixel-game2-3p.pcap.gz", script)


@pytest.mark.full
def test_a_silence_is_shortened_and_reported() -> None:
    async def script(sight: Sight) -> None:
        # Half a minute passed before the last one left.
        await sight.at(51)
        await sight.pilot.press("space")
        await sight.pilot.pause()
        assert "18 s pause, shortened" in sight.status
        await sight.until(lambda: sight.place == 52, "the next event")

    watch(GAMES["schafkopf"], script, pace=PlaybackSpeed(max_gap_s=1.0))


# The filter line.


@pytest.mark.full
@pytest.mark.parametrize(
    "text",
    a_few([typed.keys for typed in FILTERS], ("act<tab>",)),
)
def test_the_filter_line(text: str) -> None:
    (typed,) = (typed for typed in FILTERS if typed.keys == text)

    async def script(sight: Sight) -> None:
        await sight.press("slash")
        text, _, key = typed.keys.partition("<")
        await sight.write(text)
        if key:
            await sight.press(key.rstrip(">"))
        for text in typed.there:
            await sight.until(lambda text=text: text in sight.text, text)  # type: ignore[misc]  # cannot infer its type
        # A completion stays where it is.
        await sight.pilot.pause(0.25 if "tab" in key else 0)
        await sight.settle()
        for text in typed.there:
            assert text in sight.text, sight.text
        for text in typed.gone:
            assert text not in sight.text, sight.text

    watch(TINY, script)


@pytest.mark.full
def test_a_filter_filters_messages_and_diagnostics_too() -> None:
    async def script(sight: Sight) -> None:
        all_of_them = len(sight.rows("messages"))
        await sight.press("slash")
        await sight.write('msg == "ROLL"')
        await sight.press("enter")
        rows = sight.rows("messages")
        assert 0 < len(rows) < all_of_them
        assert all("  ROLL" in row for row in rows)
        await sight.press("slash")
        assert 'msg == "ROLL"' in sight.text
        await sight.press("escape")
        assert len(sight.rows("messages")) == all_of_them

    watch(TINY, script)


def test_filter_player_and_game_of_the_command_line() -> None:
    async def script(sight: Sight) -> None:
        assert "as alice" in sight.status
        assert '/kind == "rolled"' in sight.status
        rows = sight.rows("events")
        assert rows
        assert all("alice has rolled" in row for row in rows)

    watch(TINY, script, player="alice", wanted='kind == "rolled"', game=1)


# The mouse.


@pytest.mark.full
def test_a_click_on_the_timeline_and_on_a_row() -> None:
    async def script(sight: Sight) -> None:
        bar = sight.app.query_one("#bar").region
        await sight.pilot.click(offset=(bar.x + bar.width - 1, bar.y))
        await sight.settle()
        assert "#26 of 26" in sight.status
        await sight.pilot.click(offset=(bar.x, bar.y))
        await sight.settle()
        assert "#1 of 26" in sight.status
        events = sight.app.query_one("#events").region
        await sight.pilot.click(offset=(events.x + 3, events.y + 2))
        await sight.settle()
        assert "#3 of 26" in sight.status
        await sight.press("tab")
        listing = sight.app.query_one("#messages").region
        await sight.pilot.click(offset=(listing.x + 3, listing.y + 2), times=2)
        await sight.settle()
        assert "#3 REGISTER: " in sight.text

    watch(TINY, script, (100, 40))


@pytest.mark.full
def test_a_click_on_one_of_several_tables() -> None:
    async def script(sight: Sight) -> None:
        row = next(number for number, line in enumerate(sight.lines) if "127.0.0.1:4654" in line)
        await sight.pilot.click(offset=(3, row + 1))
        await sight.settle()
        assert "127.0.0.1:4654" in sight.text
        assert "127.0.0.1:10003" not in sight.text

    watch(SEVERAL, script)


@pytest.mark.usefixtures("protocol_files_forgotten")
def test_each_of_several_games_at_once_is_one_of_the_tables(tmp_path: Path) -> None:
    async def script(sight: Sight) -> None:
        await sight.press("end", "left", "left")
        await sight.press("t")
        assert "game 1 of 2" in sight.text
        assert [name in sight.text for name in ("ann moves", "bob moves", "events ")] == [True, True, False]
        await sight.press("enter")
        assert "game 1" in sight.text
        assert "x 3" in sight.text
        await sight.press("t", "down", "enter")
        assert "x 4" in sight.text
        # The other game is over, and the chosen one, too.
        await sight.press("end", "t")
        assert "there is only one table and game" in sight.text

    with two_rooms(tmp_path) as (database, _, file), using_copies({}):
        add_protocol_files([file])
        watch(database, script, (100, 30))


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


@pytest.mark.full
def test_all_keys_and_all_players_can_be_reached_in_40_columns() -> None:
    async def script(sight: Sight) -> None:
        await sight.press("question_mark", *["down"] * 30)
        assert "Ctrl-Z" in sight.text
        await sight.press("q", "home", "a", "end", "enter")
        # A client that the server rejected has no connection of its name, so only secrets are hidden.
        assert "(1 of 355)  as\n" in sight.status

    watch(ODD, script, (40, 12))


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
            await sight.press("a", "down", "enter")
            assert "as alice" in sight.status
            assert "recorder" not in sight.text
            os.write(file.fileno(), b"the disk is full\n")
            await sight.until(lambda: "new output of the recorder" in sight.status, "the notice")
            assert "the disk is full" not in sight.text
            await sight.press("a", "home", "enter", "shift+tab")
            assert "the disk is full" in sight.text

        watch(TINY, script, said=LogTail(file.fileno()))
