from __future__ import annotations

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


# A restarted server.


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
