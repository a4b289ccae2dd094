from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from held_messages import Relay, held_message, holding
from session_factory import Conversation
from strength import a_few, every
from watch_driver import Sight, watch

from kiebitz.services.alteration.control_client import ControlClient
from kiebitz.storage.recording.recorder import Recorder

Script = Callable[[Sight, Relay], Awaitable[None]]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "game.db")
    recorder = Recorder(path, "relay", "made up", started_ns=0)
    recorder.record(Conversation().says(b"REGISTER;alice").hears(b"REGISTERED").items)
    recorder.commit()
    yield path
    recorder.close()


def by_hand(
    database: str, script: Script, size: tuple[int, int] = (100, 30), player: str | None = None
) -> Relay:
    """Watch it while messages are held; gives the relay."""
    with holding(database) as relay:

        async def run(sight: Sight) -> None:
            await script(sight, relay)

        watch(database, run, size, hands=ControlClient(lambda: (database, 1)), player=player)
        return relay


async def shows(sight: Sight, text: str) -> None:
    await sight.until(lambda: text in sight.text, text)


async def held(sight: Sight, relay: Relay, count: int = 3) -> None:
    relay.hold(
        *(held_message(number, f"ANNOUNCE;{number},1;token".encode()) for number in range(1, count + 1))
    )
    await shows(sight, "held: ANNOUNCE from alice to the server")
    await sight.press("h")
    await shows(sight, f"held 1/{count}")


@pytest.mark.full
def test_a_line_says_what_waits_and_for_how_long(database: str) -> None:
    async def script(sight: Sight, relay: Relay) -> None:
        assert "held:" not in sight.text
        relay.hold(held_message(1, b"SCORE;alice:1", "s2c"))
        await shows(sight, "held: SCORE from the server to alice, 0.")
        assert "press h to act" in sight.text
        relay.hold(held_message(2))
        await shows(sight, "; 1 more  press h to act")
        # It continues without any input.
        shown = sight.text
        await sight.until(lambda: sight.text != shown, "its time goes on")
        relay.hold(held_message(3))
        await shows(sight, "; 2 more")

    by_hand(database, script)


@pytest.mark.full
def test_a_message_that_waits_for_too_long_is_reported(database: str) -> None:
    async def script(sight: Sight, relay: Relay) -> None:
        relay.hold(held_message(1, waited_s=3.2))
        await shows(sight, "held: ANNOUNCE from alice to the server, 3.")
        assert "s: the server waits 0.25 s" in sight.text
        await sight.press("h")
        await shows(sight, "→ alice  ANNOUNCE  the server waits 0.25 s  dice=4,2")

    by_hand(database, script)


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("keys", "done", "said", "left"),
    a_few(
        [
            ("enter", ("let go", 1), "ANNOUNCE was forwarded", "held 1/2"),
            ("down enter", ("let go", 2), "ANNOUNCE was forwarded", "held 2/2"),
            ("down down d", ("drop", 3), "ANNOUNCE was dropped", "held 2/2"),
            ("g", ("let all go", 1, 2, 3), "all held messages were forwarded", "no held messages"),
        ],
        lambda row: row[0] in ("down down d", "g"),
    ),
)
def test_effects_of_a_key_on_held_messages(
    keys: str, done: tuple[object, ...], said: str, left: str, database: str
) -> None:
    async def script(sight: Sight, relay: Relay) -> None:
        await held(sight, relay)
        assert "Enter forward  e edit  d drop  r answer  g forward all" in sight.text
        await sight.press(*keys.split())
        await shows(sight, said)
        await shows(sight, left)

    assert by_hand(database, script).engine.done == [done]


@pytest.mark.full
def test_a_message_is_edited_field_by_field(database: str) -> None:
    async def script(sight: Sight, relay: Relay) -> None:
        await held(sight, relay, 1)
        await sight.press("e")
        await shows(sight, "Edit ANNOUNCE from alice to the server")
        assert {"dice", "token", "1,1"} <= {part for line in sight.lines for part in line.strip("| ").split()}
        await sight.press("enter")
        await shows(sight, "no field was changed")
        # The grammar's message is at the field, and nothing is done.
        await sight.press("backspace", "backspace", "backspace", *"9", "comma", *"9")
        await shows(sight, "dice=9,9 does not fit")
        await sight.press("enter")
        assert relay.engine.done == []
        await sight.press("backspace", "backspace", "backspace", *"2", "comma", *"1")
        await sight.until(lambda: "does not fit" not in sight.text, "the sentence goes")
        await sight.press("tab", "end", *"x", "enter")
        await shows(sight, "the edited message was forwarded")

    assert by_hand(database, script).engine.done == [("change", 1, b"ANNOUNCE;2,1;tokenx")]


@pytest.mark.full
def test_the_relay_s_refusal_is_shown_at_the_input(database: str) -> None:
    async def script(sight: Sight, relay: Relay) -> None:
        await held(sight, relay, 1)
        await sight.press("e", *"3")
        relay.do(lambda: relay.engine.act("let-go", 1, ""))
        await sight.press("backspace", "backspace", "backspace", "backspace", *"2", "comma", *"1", "enter")
        await shows(sight, "message 1 is no longer held")
        await sight.press("escape")
        await shows(sight, "no held messages")

    assert by_hand(database, script).engine.done == [("let go", 1)]


@pytest.mark.full
def test_the_sender_is_answered(database: str) -> None:
    async def script(sight: Sight, relay: Relay) -> None:
        await held(sight, relay, 1)
        await sight.press("r")
        await shows(sight, "Answer alice as the server; ANNOUNCE remains held")
        await sight.write("REJETED")
        await sight.press("enter")
        await shows(sight, "did you mean REJECTED?")
        await sight.press(*["backspace"] * 4)
        # The names of the grammar complete it.
        await sight.until(lambda: "REJECTED" in sight.text, "it is completed")
        await sight.press("right", "enter")
        await shows(sight, "ANNOUNCE was answered")
        await shows(sight, "held 1/1")

    assert by_hand(database, script).engine.done == [("answer", 1, b"REJECTED")]


@pytest.mark.full
def test_a_decision_never_applies_to_another_message(database: str) -> None:
    async def script(sight: Sight, relay: Relay) -> None:
        await held(sight, relay)
        await sight.press("down")
        relay.do(lambda: relay.engine.act("drop", 2, ""))
        await shows(sight, "held 0/2")
        await sight.press("enter")
        await shows(sight, "select a message")
        await sight.press("down", "enter")
        await shows(sight, "ANNOUNCE was forwarded")

    assert by_hand(database, script).engine.done == [("drop", 2), ("let go", 1)]


@pytest.mark.full
def test_a_player_s_view_shows_nothing_of_it(database: str) -> None:
    async def script(sight: Sight, relay: Relay) -> None:
        relay.hold(held_message(1))
        await sight.press("h")
        await shows(sight, "no relay holds messages here")
        assert "ANNOUNCE" not in sight.text
        await sight.press("a", "up", "up", "enter")
        await shows(sight, "held: ANNOUNCE")
        await sight.press("h")
        await shows(sight, "held 1/1")
        await sight.press("a", "down", "enter")
        await sight.until(lambda: "ANNOUNCE" not in sight.text, "it is hidden")
        assert " events " in sight.text

    by_hand(database, script, player="alice")


@pytest.mark.full
def test_with_the_relay_the_pane_goes(database: str) -> None:
    async def script(sight: Sight, relay: Relay) -> None:
        await held(sight, relay, 1)
        relay.end()
        await sight.until(lambda: "held" not in sight.text, "it is gone")
        assert " events " in sight.text
        await sight.press("h")
        await shows(sight, "no relay holds messages here")
        await sight.press("e", "d", "r", "g")

    by_hand(database, script)


@pytest.mark.full
def test_in_a_recorded_session_there_is_nothing_of_it() -> None:
    async def script(sight: Sight) -> None:
        assert "held" not in sight.text
        await sight.press("h")
        await shows(sight, "no relay holds messages here: start one with kiebitz relay --hold")
        await sight.press("e", "d", "r", "g")

    watch("maexchen-head-tiny.pcap", script)


@pytest.mark.full
@pytest.mark.parametrize(
    "size",
    every(3, [pytest.param(size, id="{}x{}".format(*size)) for size in ((40, 12), (60, 20), (200, 50))]),
)
def test_there_is_room_for_it_on_any_terminal(size: tuple[int, int], database: str) -> None:
    async def script(sight: Sight, relay: Relay) -> None:
        relay.hold(held_message(1, waited_s=3.0))
        await shows(sight, "ANNOUNCE from alice")
        await sight.until(lambda: "the server waits 0.25 s" in " ".join(sight.text.split()), "for how long")
        await sight.press("h")
        await shows(sight, "held 1/1")
        await shows(sight, "→ alice  ANNOUNCE")
        await sight.press("e")
        await shows(sight, "dice")
        await sight.press("escape", "r")
        await shows(sight, "Answer alice")
        await sight.press("escape", "enter")
        await shows(sight, "no held messages")

    by_hand(database, script, size)


@pytest.mark.full
def test_names_and_values_of_peers_are_only_text(database: str) -> None:
    hostile = "\x1b[31mred\u202e[bold]"

    async def script(sight: Sight, relay: Relay) -> None:
        relay.hold(held_message(1, f"REGISTER;{hostile}".encode(), who=hostile))
        await shows(sight, "\\x1b[31mred")
        await sight.press("h", "e")
        await shows(sight, "Edit ")
        for keys in ((), ("escape", "r")):
            await sight.press(*keys)
            assert "\x1b" not in sight.text
            assert "\u202e" not in sight.text
            assert "[bold]" in sight.text

    by_hand(database, script)
