from __future__ import annotations

import pytest
from table_driver import Play

from kiebitz.dissectors.game.state import seen_by
from kiebitz.dissectors.model import Fault

ALL = "alice bob carl"


def played(number: int = 1) -> Play:
    """Return three players and a round that alice has lost: alice 0, bob 1, carl 1."""
    play = Play()
    play.register(*ALL.split())
    lose(play, number, "alice:0,bob:1,carl:1", *ALL.split())
    return play


def lose(play: Play, number: int, scores: str, *players: str) -> None:
    everybody, first = " ".join(players), players[0]
    play.start(number, *players)
    play.turn(everybody, first, "5,3", "5,3", f"a{number}{first}")
    play.turn(everybody, players[1], "6,1", "3,1", f"b{number}{first}")
    play.server(everybody, f"PLAYER LOST;{players[1]};ANNOUNCED_LOSING_DICE")
    play.server(everybody, f"SCORE;{scores}")


def wrong(play: Play) -> list[tuple[str, str]]:
    return [(violation.severity, violation.code) for violation in play.diagnostics]


def restarts(play: Play) -> int:
    return sum(note.code == "restarted" for note in play.notes)


# A fork's dialect.


def test_unregistered_players_leave_the_table() -> None:
    play = Play()
    play.register(*ALL.split())
    play.server("carl", "ROUND STARTING;carl-join")
    play.client("carl", "JOIN;carl-join")
    play.client("carl", "UNREGISTER;")
    play.server("carl", "UNREGISTERED")
    assert play.told[-1] == "carl is no longer registered"
    assert set(play.state["players"]) == {"alice", "bob"}
    (part,) = seen_by(play.state, "carl")["games"].values()
    assert part["private"] == {}
    # The server still lists those that had joined the round, and their points.
    play.server("alice bob", "ROUND STARTED;1;alice,carl,bob")
    play.server("alice bob", "SCORE;alice:0,bob:1,carl:1")
    assert set(play.state["players"]) == {"alice", "bob"}
    play.register("carl")
    assert set(play.state["players"]) == {"alice", "bob", "carl"}
    assert wrong(play) == []


def test_a_spectator_unregisters() -> None:
    play = Play()
    play.client("eve", "REGISTER_SPECTATOR;eve")
    play.server("eve", "REGISTERED")
    play.client("eve", "UNREGISTER")
    play.server("eve", "UNREGISTERED")
    assert play.state["players"] == {}
    assert wrong(play) == []


def test_a_rejected_request_to_be_forgotten_changes_nothing() -> None:
    play = played()
    play.client("bob", "UNREGISTER")
    lose(play, 2, "alice:1,bob:1,carl:2", *ALL.split())
    assert set(play.state["players"]) == {"alice", "bob", "carl"}
    assert "unregistered" not in {event.kind for event in play.events}
    assert wrong(play) == []


def test_heartbeats_and_echoes_are_noted_once_and_change_nothing() -> None:
    play = played()
    state, events = play.state, len(play.events)
    for _ in range(3):
        play.server(ALL, "HEARTBEAT")
        play.client("stranger", "ECHO;are you there?")
        play.server("stranger", "ECHOING;are you there?")
    assert (play.state, len(play.events)) == (state, events)
    assert wrong(play) == []
    notes = [note.text.split()[0] for note in play.notes]
    assert notes == ["ROUND", "ROUND", "HEARTBEAT", "ECHO", "ECHOING"]


def test_an_echo_does_not_make_a_stranger_known() -> None:
    play = played()
    play.client("stranger", "ECHO;x")
    play.server("stranger", "ECHOING;x")
    play.client("stranger", "JOIN;made-up")
    assert wrong(play) == [("error", "not-registered")]


@pytest.mark.parametrize("scores", ["alice:1,bob:2,carl:2", "alice:0,bob:1,carl:1"])
def test_points_that_a_spectator_is_reported_in_mid_round_end_nothing(scores: str) -> None:
    play = played()
    play.client("eve", "REGISTER_SPECTATOR;eve")
    play.server("eve", "REGISTERED")
    play.start(2, *ALL.split())
    play.client("mallory", "REGISTER_SPECTATOR;mallory")
    play.server("mallory", "REGISTERED")
    before = len(play.events)
    play.server("eve mallory", f"SCORE;{scores}")
    assert len(play.events) == before
    (part,) = play.state["games"].values()
    assert (part["round"], part["phase"]) == (2, "started")
    play.turn(ALL, "alice", "5,3", "5,3", "x")
    play.turn(ALL, "bob", "6,1", "3,1", "y")
    play.server(ALL, "PLAYER LOST;bob;ANNOUNCED_LOSING_DICE")
    play.server(ALL + " eve mallory", "SCORE;alice:1,bob:1,carl:2")
    assert play.told[-1] == "score: alice 1, bob 1, carl 2"
    assert len(play.games) == 2
    assert wrong(play) == []


def test_a_canceled_rounds_score_is_an_event_after_a_spectator_heard_it() -> None:
    play = played()
    play.server(ALL, "ROUND STARTING;x")
    play.client("eve", "REGISTER_SPECTATOR;eve")
    play.server("eve", "REGISTERED")
    play.server("eve", "SCORE;alice:0,bob:1,carl:1")
    play.server(ALL + " eve", "ROUND CANCELED;NO_PLAYERS")
    play.server(ALL + " eve", "SCORE;alice:0,bob:1,carl:1")
    assert [event.kind for event in play.events][-3:] == ["registered", "round_canceled", "score"]
    assert play.events[-1].game_id is not None


# A restarted server.


def test_a_silent_server_was_restarted_when_clients_register_again() -> None:
    play = played(7)
    play.client("alice", "REGISTER;alice", after_ms=3000)
    play.server("alice", "REGISTERED")
    assert set(play.state["players"]) == {"alice"}
    assert "scores" not in play.state
    play.register("bob")
    lose(play, 1, "alice:1,bob:0", "alice", "bob")
    assert play.state["scores"] == {"alice": 1, "bob": 0}
    assert restarts(play) == 1
    assert wrong(play) == []


def test_a_dead_port_means_that_a_server_begins_again() -> None:
    play = played()
    play.client("bob", "JOIN;bob-join-2")
    play.inspector.feed(Fault(play.stream("bob"), "c2s", play.now_ns, 0, "port-unreachable", "nobody there"))
    play.register("bob", "alice")
    play.server("alice bob", "ROUND CANCELED;NO_PLAYERS")
    play.server("alice bob", "SCORE;")
    assert "scores" not in play.state
    assert set(play.state["players"]) == {"alice", "bob"}
    assert restarts(play) == 1
    assert [violation for violation in wrong(play) if violation != ("warning", "port-unreachable")] == [
        ("warning", "unasked"),
    ]


@pytest.mark.parametrize("number", [1, 2, 8])
def test_a_quick_restart_causes_no_violation(number: int) -> None:
    play = played(7)
    # Whatever the number of its first round is, and whether all have come back or not.
    play.register("new-alice", "new-bob")
    lose(play, number, "new-alice:1,new-bob:0", "new-alice", "new-bob")
    assert play.state["scores"] == {"new-alice": 1, "new-bob": 0}
    assert set(play.state["players"]) == {"new-alice", "new-bob"}
    assert restarts(play) == 1
    assert wrong(play) == []


def test_a_restart_in_mid_round_causes_no_violation() -> None:
    play = played(7)
    play.start(8, *ALL.split())
    play.turn(ALL, "alice", "5,3", "5,3", "x")
    play.client("bob", "REGISTER;bob", after_ms=2000)
    play.server("bob", "REGISTERED")
    play.register("carl")
    lose(play, 1, "bob:1,carl:0", "bob", "carl")
    assert wrong(play) == []
    assert [game.result is None for game in play.games] == [False, True, False]


def test_a_round_number_that_falls_is_a_new_start() -> None:
    play = played(7)
    lose(play, 1, "alice:1,bob:0,carl:1", *ALL.split())
    assert restarts(play) == 1
    assert wrong(play) == []


def test_wrong_points_are_reported_after_a_newcomer_has_registered() -> None:
    play = played()
    play.register("dora")
    lose(play, 2, "alice:1,bob:7,carl:2", *ALL.split())
    assert wrong(play) == [("error", "wrong-score")]
    assert restarts(play) == 0


def test_wrong_points_are_reported_even_among_newcomers() -> None:
    play = played()
    for name in ALL.split():
        play.client(name, "UNREGISTER")
        play.server(name, "UNREGISTERED")
    play.register("dora", "emil")
    lose(play, 2, "alice:0,bob:1,carl:1,dora:1,emil:5", "dora", "emil")
    assert wrong(play) == [("error", "wrong-score")]
    assert restarts(play) == 0


@pytest.mark.parametrize(("later_ms", "rounds"), [(1, 1), (500, 2)])
def test_copies_of_a_registration_may_be_captured_first(later_ms: float, rounds: int) -> None:
    play = Play()
    play.register("alice")
    play.client("bob", "REGISTER;bob")
    play.server("alice", "ROUND STARTING;a")
    play.server("bob", "REGISTERED", after_ms=later_ms)
    play.server("bob", "ROUND STARTING;b")
    assert [event.kind for event in play.events].count("round_starting") == rounds
    assert wrong(play) == []
