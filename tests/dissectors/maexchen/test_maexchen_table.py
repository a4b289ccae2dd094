"""The Mäxchen table: what it makes of whole, partial and reordered conversations, and whom it blames."""

from __future__ import annotations

import pytest
from conversation import MS
from message_cases import Case, cases
from table_driver import Play

from kiebitz.dissectors.game.state import seen_by
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Ids, Stream
from kiebitz.dissectors.protocols.maexchen.dice import MIA, ROLLS, beats
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.maexchen.registration import MAX_ABSENT

ALL = "alice bob carl"


def a_round() -> Play:
    """Return three players, started; it is alice's turn."""
    play = Play()
    play.register("alice", "bob", "carl")
    play.start(1, "alice", "bob", "carl")
    return play


def test_the_state_hides_a_roll_from_the_others() -> None:
    play = a_round()
    play.turn(ALL, "alice", "3,1", "6,5", "t1")
    (part,) = play.state["games"].values()
    assert part["private"] == {"alice": {"dice": "3,1", "bluff": True}}
    assert part["announced"] == {"name": "alice", "dice": "6,5"}
    (hidden,) = seen_by(play.state, "bob")["games"].values()
    assert hidden["private"] == {}
    rolled = next(event for event in play.events if event.kind == "rolled")
    assert MAEXCHEN.identity.seen_by(rolled, "alice") is rolled
    assert MAEXCHEN.identity.seen_by(rolled, "bob") is None


def test_a_long_silent_player_is_still_known() -> None:
    play = a_round()
    play.end("alice", "idle")
    silent = play.stream("alice")
    again = Stream(99, "udp", silent.client, silent.server, play.now_ns)
    token = b"YOUR TURN;after-a-long-time"
    play.inspector.feed(Chunk(again, "s2c", play.now_ns + MS, 0, token))
    turn = next(event for event in play.events if event.kind == "turn")
    assert turn.actor == "alice"


def test_departed_players_are_evicted() -> None:
    play = Play()
    names = [f"player{number}" for number in range(MAX_ABSENT + 20)]
    for name in names:
        play.register(name)
        play.end(name, "idle")
    play.register("last")
    assert list(play.state["players"]) == [*names[20:], "last"]


def test_names_known_from_the_server_only_are_evicted() -> None:
    play = a_round()
    told = [f"player{number}" for number in range(MAX_ABSENT + 20)]
    for name in told:
        play.server("alice", f"SCORE;alice:1,{name}:0")
    play.register("last")
    assert sorted(play.state["players"]) == sorted([*told[20:], "alice", "bob", "carl", "last"])
    assert sorted(play.state["scores"]) == sorted([*told[20:], "alice"])


def test_a_player_whose_conversation_was_over_is_known_when_he_comes_back() -> None:
    play = a_round()
    play.end("bob", "idle")
    known = play.stream("bob").client
    back = Stream(9, "udp", known, "127.0.0.1:9000", play.now_ns)
    data = b"ROUND STARTING;t"
    play.inspector.feed(Chunk(back, "s2c", play.now_ns, 0, data))
    play.inspector.feed(Chunk(back, "c2s", play.now_ns, 0, b"JOIN;t"))
    assert [event.actor for event in play.events if event.kind == "joined"][-1] == "bob"


def test_one_conversation_that_registers_name_after_name() -> None:
    play = Play()
    for number in range(MAX_ABSENT + 200):
        play.client("somebody", f"REGISTER;player{number}")
        play.server("somebody", "REGISTERED")
    assert MAX_ABSENT < len(play.state["players"]) < MAX_ABSENT + 100


@pytest.mark.parametrize("case", cases(MAEXCHEN, "sound"), ids=lambda case: repr(case.data[:40]))
def test_a_truncated_datagram_is_no_violation(case: Case) -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:9000", 0)
    inspector = Inspector([MAEXCHEN], Ids(), {("udp", 9000): MAEXCHEN})
    inspector.feed(Chunk(stream, case.direction, 1, 0, case.data[:3], missing=len(case.data) - 3))
    found = inspector.drain()
    assert found.messages == []
    (violation,) = found.diagnostics
    assert (violation.code, violation.group, violation.blame) == ("cut-off", "network", "network")
    assert (violation.offset, violation.length) == (0, len(case.data))


def test_the_order_of_the_rolls() -> None:
    assert ROLLS[:3] == ("3,1", "3,2", "4,1")
    assert ROLLS[13:16] == ("6,5", "1,1", "2,2")
    assert ROLLS[-1] == MIA
    assert beats("1,1", "6,5")
    assert beats("4,1", "4,1") is False
    assert beats("7,7", "4,1") is None
