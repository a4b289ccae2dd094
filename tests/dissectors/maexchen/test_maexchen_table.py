"""The Mäxchen table: what it makes of whole, partial and reordered conversations, and whom it blames."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conversation import MS
from table_driver import Play

from kiebitz.dissectors.game.state import seen_by
from kiebitz.dissectors.model import Chunk, Stream
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.maexchen.registration import MAX_ABSENT

ALL = "alice bob carl"


def a_round() -> Play:
    """Return three players, started; it is alice's turn."""
    play = Play()
    play.register("alice", "bob", "carl")
    play.start(1, "alice", "bob", "carl")
    return play


def a_round_with(turns: list[tuple[str, str, str]], verdict: list[str]) -> Play:
    """Return a round with turns (name, roll, announcement) and the server's verdict."""
    play = a_round()
    for number, (name, rolled, announced) in enumerate(turns):
        play.turn(ALL, name, rolled, announced, f"t{number}")
    for text in verdict:
        play.server(ALL, text)
    return play


def kinds(play: Play) -> list[str]:
    return [event.kind for event in play.events]


def test_four_copies_are_one_event_with_four_witnesses() -> None:
    play = a_round()
    play.turn(ALL, "alice", "5,3", "5,3", "t1")
    announced = [event for event in play.events if event.kind == "announced"]
    assert len(announced) == 1
    telling = [m for m in play.found_so_far().messages if m.event_id == announced[0].id]
    assert [m.name for m in telling] == ["ANNOUNCED"] * 3
    assert len({m.stream.id for m in telling}) == 3


def test_a_bluff_that_is_seen() -> None:
    play = a_round()
    play.turn(ALL, "alice", "3,1", "6,5", "t1")
    play.server("bob", "YOUR TURN;t2-turn")
    play.client("bob", "SEE;t2-turn")
    play.server(ALL, "PLAYER WANTS TO SEE;bob")
    play.server(ALL, "ACTUAL DICE;3,1")
    play.server(ALL, "PLAYER LOST;alice;CAUGHT_BLUFFING")
    play.server(ALL, "SCORE;alice:0,bob:1,carl:1")
    assert play.told[-10:] == [
        "round 1 starts with alice, bob, carl",
        "it is alice's turn",
        "alice rolls",
        "alice has rolled 3,1",
        "alice announces 6,5",
        "it is bob's turn",
        "bob wants to see",
        "the dice were 3,1",
        "alice lost: was caught bluffing",
        "score: alice 0, bob 1, carl 1",
    ]
    assert play.diagnostics == []
    (game,) = play.games
    assert game.result == {"losers": ["alice"], "reason": "CAUGHT_BLUFFING"}
    assert game.ended_ns is not None
    assert play.state["scores"] == {"alice": 0, "bob": 1, "carl": 1}
    assert not play.state["games"]


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


VERDICTS = [
    # (turns as (player, rolled, announced)), the server's message, whether it is right
    ([("alice", "5,3", "5,3"), ("bob", "4,1", "4,1")], ["PLAYER LOST;bob;ANNOUNCED_LOSING_DICE"], True),
    ([("alice", "5,3", "5,3"), ("bob", "5,3", "5,3")], ["PLAYER LOST;bob;ANNOUNCED_LOSING_DICE"], True),
    ([("alice", "5,3", "5,3"), ("bob", "6,1", "6,1")], ["PLAYER LOST;bob;ANNOUNCED_LOSING_DICE"], False),
    ([("alice", "5,3", "5,3")], ["PLAYER LOST;alice;ANNOUNCED_LOSING_DICE"], False),
    (
        [("alice", "5,3", "5,3")],
        ["PLAYER WANTS TO SEE;bob", "ACTUAL DICE;5,3", "PLAYER LOST;bob;SEE_FAILED"],
        True,
    ),
    (
        [("alice", "5,3", "5,3")],
        ["PLAYER WANTS TO SEE;bob", "ACTUAL DICE;5,3", "PLAYER LOST;alice;CAUGHT_BLUFFING"],
        False,
    ),
    (
        [("alice", "5,3", "6,5")],
        ["PLAYER WANTS TO SEE;bob", "ACTUAL DICE;5,3", "PLAYER LOST;bob;SEE_FAILED"],
        False,
    ),
    ([("alice", "2,1", "2,1")], ["ACTUAL DICE;2,1", "PLAYER LOST;bob,carl;MIA"], True),
    ([("alice", "2,1", "2,1")], ["ACTUAL DICE;2,1", "PLAYER LOST;bob;MIA"], False),
    ([("alice", "5,3", "2,1")], ["ACTUAL DICE;5,3", "PLAYER LOST;alice;LIED_ABOUT_MIA"], True),
    ([("alice", "2,1", "2,1")], ["ACTUAL DICE;2,1", "PLAYER LOST;alice;LIED_ABOUT_MIA"], False),
    ([], ["PLAYER WANTS TO SEE;alice", "PLAYER LOST;alice;SEE_BEFORE_FIRST_ROLL"], True),
    (
        [("alice", "5,3", "5,3")],
        ["PLAYER WANTS TO SEE;bob", "PLAYER LOST;bob;SEE_BEFORE_FIRST_ROLL"],
        False,
    ),
    ([], ["PLAYER LOST;bob;DID_NOT_TAKE_TURN"], False),
    ([], ["PLAYER LOST;alice;INVALID_TURN"], True),
    ([], ["PLAYER LOST;alice;mag keine Würfel"], True),
]


@pytest.mark.parametrize(("turns", "verdict", "right"), VERDICTS)
def test_the_reason_of_a_loss_is_held_against_the_dice(
    turns: list[tuple[str, str, str]], verdict: list[str], right: bool
) -> None:
    play = a_round_with(turns, verdict)
    wrong = [violation for violation in play.diagnostics if violation.code == "wrong-verdict"]
    assert [violation.blame for violation in wrong] == ([] if right else ["server"])


@pytest.mark.parametrize(
    ("turns", "verdict", "objection"),
    [
        ([], ["PLAYER LOST;dora;INVALID_TURN"], "dora does not play in this round"),
        (
            [("alice", "5,3", "5,3"), ("bob", "4,1", "4,1")],
            ["PLAYER LOST;bob;ANNOUNCED_LOSING_DICE", "PLAYER LOST;alice;ANNOUNCED_LOSING_DICE"],
            "bob had lost this round already",
        ),
    ],
)
def test_a_loss_that_contradicts_the_round(
    turns: list[tuple[str, str, str]], verdict: list[str], objection: str
) -> None:
    play = a_round_with(turns, verdict)
    [wrong] = [violation for violation in play.diagnostics if violation.code == "wrong-verdict"]
    assert wrong.blame == "server"
    assert wrong.text.endswith(objection)


@pytest.mark.parametrize(
    ("turns", "verdict", "missing"),
    [
        ([("alice", "5,3", "5,3")], ["PLAYER WANTS TO SEE;bob", "PLAYER LOST;bob;SEE_FAILED"], "the dice"),
        ([("alice", "5,3", "2,1")], ["PLAYER LOST;alice;LIED_ABOUT_MIA"], "the dice"),
        ([], ["PLAYER LOST;alice;ANNOUNCED_LOSING_DICE"], "the announcement"),
        ([], ["ACTUAL DICE;5,3", "PLAYER LOST;alice;CAUGHT_BLUFFING"], "the announcement"),
    ],
)
def test_a_loss_that_no_message_explains_has_a_note(
    turns: list[tuple[str, str, str]], verdict: list[str], missing: str
) -> None:
    play = a_round_with(turns, verdict)
    [note] = [one for one in play.notes if one.code == "loss-unexplained"]
    assert note.blame == "unknown"
    assert note.text.endswith(f": no message has shown {missing}")


def test_other_points_for_the_same_round() -> None:
    play = a_round()
    play.turn(ALL, "alice", "5,3", "5,3", "a")
    play.turn(ALL, "bob", "4,1", "4,1", "b")
    play.server(ALL, "PLAYER LOST;bob;ANNOUNCED_LOSING_DICE")
    play.server(ALL, "SCORE;alice:1,bob:0,carl:1")
    play.server(ALL, "SCORE;alice:2,bob:0,carl:1")
    (violation,) = play.diagnostics
    assert (violation.code, violation.blame) == ("wrong-score", "server")
    assert violation.text == "alice has 2 points and should have 1"


def test_points_that_do_not_follow_from_the_rounds_are_the_servers_fault() -> None:
    play = a_round()
    for number in (1, 2):
        if number > 1:
            play.start(number, "alice", "bob", "carl")
        play.turn(ALL, "alice", "5,3", "5,3", f"{number}a")
        play.turn(ALL, "bob", "4,1", "4,1", f"{number}b")
        play.server(ALL, "PLAYER LOST;bob;ANNOUNCED_LOSING_DICE")
        play.server(ALL, f"SCORE;alice:{number},bob:{number - 1},carl:{number}")
    (violation,) = play.diagnostics
    assert (violation.code, violation.blame) == ("wrong-score", "server")
    assert violation.text == "bob has 1 points and should have 0"


TOKENS = [
    ("ROLL;t1-turx", "wrong-token", "error", (5 + 6, 1)),
    ("ROLL;bob-join-1", "foreign-token", "error", None),
    ("JOIN;t1-turn", "wrong-answer", "error", None),
    ("ANNOUNCE;6,6;t1-turn", "wrong-answer", "error", None),
    ("JOIN;alice-join-1", "used-token", "error", None),
]


@pytest.mark.parametrize(("text", "code", "severity", "at"), TOKENS)
def test_tokens_are_checked(text: str, code: str, severity: str, at: tuple[int, int] | None) -> None:
    play = a_round()
    play.server("alice", "YOUR TURN;t1-turn")
    play.client("alice", text)
    play.client("alice", "ROLL;t1-turn")
    play.server(ALL, "PLAYER ROLLS;alice")
    (violation,) = play.diagnostics
    assert (violation.code, violation.severity, violation.blame) == (code, severity, "client")
    if at is not None:
        message = next(m for m in play.found_so_far().messages if m.id == violation.message_id)
        assert (violation.offset - message.offset, violation.length) == at


def test_an_answer_after_its_window_is_late() -> None:
    play = a_round()
    play.server("alice", "YOUR TURN;t1-turn")
    play.server(ALL, "PLAYER LOST;alice;DID_NOT_TAKE_TURN", after_ms=250)
    play.client("alice", "ROLL;t1-turn", after_ms=50)
    late = [violation for violation in play.diagnostics if violation.code == "late"]
    assert [(violation.severity, violation.blame) for violation in late] == [("warning", "client")]
    assert late[0].text.startswith("300 ms after YOUR TURN")


def test_a_missing_answer_is_reported_at_the_request() -> None:
    play = a_round()
    play.server("alice", "YOUR TURN;t1-turn")
    play.server(ALL, "PLAYER LOST;alice;DID_NOT_TAKE_TURN", after_ms=250)
    (violation,) = play.diagnostics
    assert (violation.code, violation.direction, violation.blame) == ("no-answer", "s2c", "client")


def test_one_diagnostic_is_one_diagnostic_even_if_the_turn_is_lost_by_it() -> None:
    play = a_round()
    play.server("alice", "YOUR TURN;t1-turn")
    play.client("alice", "ROLL;t1-turn\n")
    play.server(ALL, "PLAYER LOST;alice;DID_NOT_TAKE_TURN", after_ms=250)
    assert [violation.code for violation in play.diagnostics] == ["bad-token"]


def test_a_right_answer_that_the_server_did_not_take() -> None:
    play = a_round()
    play.server("alice", "YOUR TURN;t1-turn")
    play.client("alice", "ROLL;t1-turn", after_ms=10)
    play.server(ALL, "PLAYER LOST;alice;DID_NOT_TAKE_TURN", after_ms=250)
    assert [(violation.code, violation.severity) for violation in play.diagnostics] == [
        ("answer-ignored", "warning")
    ]


def test_a_stranger_whom_the_server_never_answers_is_not_registered() -> None:
    play = a_round()
    play.client("stranger", "JOIN;abc")
    play.server("alice", "YOUR TURN;t1-turn")
    (violation,) = play.diagnostics
    assert (violation.code, violation.blame) == ("not-registered", "client")


def test_clients_alone_are_not_accused_of_unknown_tokens() -> None:
    play = Play()
    play.client("alice", "JOIN;abc")
    play.client("alice", "ROLL;def")
    assert play.diagnostics == []


def test_one_conversation_has_the_round_without_others_dice() -> None:
    play = Play()
    play.register("bob")
    play.server("bob", "ROUND STARTING;bob-join")
    play.client("bob", "JOIN;bob-join")
    play.server("bob", "ROUND STARTED;4;alice,bob")
    play.server("bob", "PLAYER ROLLS;alice")
    play.server("bob", "ANNOUNCED;alice;5,3")
    play.server("bob", "YOUR TURN;t1-turn")
    play.client("bob", "SEE;t1-turn")
    play.server("bob", "PLAYER WANTS TO SEE;bob")
    play.server("bob", "ACTUAL DICE;5,3")
    play.server("bob", "PLAYER LOST;bob;SEE_FAILED")
    play.server("bob", "SCORE;alice:9,bob:3")
    assert play.diagnostics == []
    assert "rolled" not in kinds(play)
    assert play.games[0].label == "round 4"


def test_from_mid_round_on_the_rest_is_reported_and_unknown_values_named() -> None:
    play = Play()
    play.server(ALL, "ANNOUNCED;alice;5,3")
    (part,) = play.state["games"].values()
    assert part["unknown"] == ["players", "round"]
    play.server("bob", "YOUR TURN;t1-turn")
    play.client("bob", "ROLL;t1-turn")
    play.server(ALL, "PLAYER ROLLS;bob")
    play.server("bob", "ROLLED;6,5;t1-roll")
    play.client("bob", "ANNOUNCE;6,5;t1-roll")
    play.server(ALL, "ANNOUNCED;bob;6,5")
    rolled = next(event for event in play.events if event.kind == "rolled")
    assert rolled.actor == "bob"
    assert play.diagnostics == []


def test_a_name_is_taken_over_by_a_new_port() -> None:
    play = Play()
    play.register("alice")
    play.client("alice2", "REGISTER;alice")
    play.server("alice2", "REGISTERED")
    assert play.state["players"]["alice"]["address"] == play.stream("alice2").client


def test_two_names_behind_one_address_receive_copies() -> None:
    play = Play()
    play.client("both", "REGISTER;doppel1")
    play.server("both", "REGISTERED")
    play.client("both", "REGISTER;doppel2")
    play.server("both", "REGISTERED")
    play.register("carl")
    play.server("both carl both", "ROUND CANCELED;NO_PLAYERS")
    play.server("both carl both", "SCORE;")
    assert kinds(play).count("round_canceled") == 1
    assert kinds(play).count("score") == 1


def starts(play: Play, number: int, everybody: str) -> None:
    """Start a round of alice and bob with these players' conversations captured."""
    for name in everybody.split():
        play.server(name, f"ROUND STARTING;{name}-join-{number}")
        play.client(name, f"JOIN;{name}-join-{number}")
    play.server(everybody, f"ROUND STARTED;{number};alice,bob", after_ms=250)


def announced_otherwise(play: Play, everybody: str) -> None:
    play.server("alice", "YOUR TURN;t-turn")
    play.client("alice", "ROLL;t-turn")
    play.server(everybody, "PLAYER ROLLS;alice")
    play.server("alice", "ROLLED;3,1;t-roll")
    play.client("alice", "ANNOUNCE;5,3;t-roll")
    play.server(everybody, "ANNOUNCED;alice;6,3")


def shown_otherwise(play: Play, everybody: str) -> None:
    play.turn(everybody, "alice", "3,1", "6,5", "t")
    play.server(everybody, "PLAYER WANTS TO SEE;bob")
    play.server(everybody, "ACTUAL DICE;4,1")


def wrong_points(play: Play, everybody: str) -> None:
    for number in (1, 2):
        if number > 1:
            starts(play, number, everybody)
        play.turn(everybody, "alice", "5,3", "5,3", f"{number}a")
        play.server(everybody, "PLAYER ROLLS;bob")
        play.server(everybody, "ANNOUNCED;bob;4,1")
        play.server(everybody, "PLAYER LOST;bob;ANNOUNCED_LOSING_DICE")
        play.server(everybody, f"SCORE;alice:{number},bob:{number - 1}")


@pytest.mark.parametrize("everybody", ["alice bob", "alice"])
@pytest.mark.parametrize(
    ("says", "code"),
    [(announced_otherwise, "other-dice"), (shown_otherwise, "other-dice"), (wrong_points, "wrong-score")],
)
def test_a_server_is_accused_for_sure_only_by_several_conversations(
    says: Callable[[Play, str], None], code: str, everybody: str
) -> None:
    play = Play()
    play.register(*everybody.split())
    starts(play, 1, everybody)
    says(play, everybody)
    sure = " " in everybody
    [violation] = [violation for violation in play.diagnostics if violation.code == code]
    assert (violation.severity, violation.blame) == (("error", "server") if sure else ("warning", "unknown"))
    assert violation.text.endswith("holds one conversation only") is not sure


def test_a_turn_that_is_skipped_may_be_missing() -> None:
    play = a_round()
    play.server(ALL, "PLAYER ROLLS;bob")
    [violation] = play.diagnostics
    assert (violation.code, violation.severity, violation.blame) == ("out-of-turn", "warning", "unknown")


@pytest.mark.parametrize("refusal", ["REJECTED;INVALID_NAME", "REJECTED"])
def test_whose_name_was_refused_cannot_answer(refusal: str) -> None:
    play = Play()
    play.client("x", "REGISTER;grün er")
    play.server("x", refusal)
    play.client("x", "JOIN;whatever")
    assert play.diagnostics[-1].code == "not-registered"
    refused = {"invalid-name", "name-taken"} & {
        violation.code for violation in play.found_so_far().diagnostics
    }
    assert refused == {"name-taken" if refusal == "REJECTED" else "invalid-name"}


def test_a_refused_name_is_pointed_at() -> None:
    play = Play()
    play.client("x", "REGISTER;grün er")
    play.server("x", "REJECTED;INVALID_NAME")
    (violation,) = play.diagnostics
    assert (violation.code, violation.direction, violation.blame) == ("invalid-name", "c2s", "client")
    assert (violation.offset, violation.length) == (len("REGISTER;grün".encode()), 1)


def test_the_oldest_dialect_shows_rolls_by_answers_only() -> None:
    play = Play()
    for name in ("alice", "bob"):
        play.client(name, f"REGISTER;{name};geheim")
        play.server(name, "REGISTERED;0")
        play.server(name, f"ROUND STARTING;{name}-join")
        play.client(name, f"JOIN;{name}-join")
    both = "alice bob"
    play.server(both, "ROUND STARTED;alice,bob", after_ms=250)
    play.server("alice", "YOUR TURN;t1")
    play.client("alice", "ROLL;t1")
    play.server("alice", "ROLLED;5,3;t2")
    play.client("alice", "ANNOUNCE;5,3;t2")
    play.server(both, "ANNOUNCED;alice;5,3")
    play.server("bob", "YOUR TURN;t3")
    play.client("bob", "SEE;t3")
    play.server(both, "ACTUAL DICE;5,3")
    play.server(both, "PLAYER LOST;bob;saw that the announcement was true")
    play.server(both, "SCORE;alice:1,bob:0")
    assert play.diagnostics == []
    assert [kind for kind in kinds(play) if kind in ("rolls", "rolled", "wants_to_see", "lost")] == [
        "rolls",
        "rolled",
        "wants_to_see",
        "lost",
    ]


def test_each_dialect_is_noted_once() -> None:
    play = a_round()
    play.server(ALL, "PLAYER LOST;alice;DID_NOT_TAKE_TURN")
    play.server(ALL, "SCORE;alice:0,bob:1,carl:1")
    play.start(2, "alice", "bob", "carl")
    texts = [note.text for note in play.notes]
    assert len(texts) == len(set(texts)) == 2


def test_a_lost_copy_does_no_harm_and_a_late_one_finds_its_event() -> None:
    play = a_round()
    play.server("alice carl", "PLAYER ROLLS;alice")
    play.server(ALL, "ANNOUNCED;alice;5,3")
    play.server("bob", "PLAYER ROLLS;alice")
    assert kinds(play).count("rolls") == 1
    assert kinds(play).count("announced") == 1


def test_score_before_the_loss_still_belongs_to_the_round() -> None:
    play = a_round()
    play.turn(ALL, "alice", "5,3", "5,3", "t1")
    play.turn(ALL, "bob", "4,1", "4,1", "t2")
    play.server(ALL, "SCORE;alice:1,bob:0,carl:1")
    play.server(ALL, "PLAYER LOST;bob;ANNOUNCED_LOSING_DICE")
    (game,) = play.games
    assert game.result == {"losers": ["bob"], "reason": "ANNOUNCED_LOSING_DICE"}
    assert play.diagnostics == []


def test_a_one_player_round_is_called_off_and_keeps_its_point() -> None:
    play = Play()
    play.register("alice")
    play.start(1, "alice")
    play.server("alice", "ROUND CANCELED;ONLY_ONE_PLAYER")
    play.server("alice", "SCORE;alice:1")
    play.start(2, "alice")
    play.server("alice", "ROUND CANCELED;ONLY_ONE_PLAYER")
    play.server("alice", "SCORE;alice:2")
    assert play.diagnostics == []
    assert [game.result for game in play.games] == [{"canceled": "ONLY_ONE_PLAYER"}] * 2


def test_a_straggler_of_a_round_that_is_over_does_not_bring_it_back() -> None:
    play = a_round()
    play.turn(ALL, "alice", "5,3", "5,3", "t1")
    play.server(ALL, "PLAYER LOST;bob;DID_NOT_TAKE_TURN")
    play.server(ALL, "SCORE;alice:1,bob:0,carl:1")
    play.server(ALL, "ANNOUNCED;bob;6,5")
    assert play.state["games"] == {}
    assert len(play.games) == 1


def test_a_long_silent_player_is_still_known() -> None:
    play = a_round()
    play.end("alice", "idle")
    silent = play.stream("alice")
    again = Stream(99, "udp", silent.client, silent.server, play.now_ns)
    token = b"YOUR TURN;after-a-long-time"
    play.inspector.feed(Chunk(again, "s2c", play.now_ns + MS, 0, token))
    turn = next(event for event in play.events if event.kind == "turn")
    assert turn.actor == "alice"


def test_one_conversation_alone_accuses_no_server_of_an_error() -> None:
    play = Play()
    play.register("bob")
    play.server("bob", "ROUND STARTED;4;alice,bob")
    play.server("bob", "PLAYER ROLLS;alice")
    play.server("bob", "ANNOUNCED;alice;5,3")
    play.server("bob", "PLAYER LOST;alice;ANNOUNCED_LOSING_DICE")
    assert [(violation.code, violation.severity, violation.blame) for violation in play.diagnostics] == [
        ("wrong-verdict", "warning", "unknown")
    ]


def test_inferred_values_are_marked() -> None:
    play = Play()
    play.register("bob", "zuschauer")
    play.server("zuschauer", "ROUND STARTED;4;alice,bob")
    play.server("zuschauer", "ANNOUNCED;alice;5,3")
    (part,) = play.state["games"].values()
    assert part["turn"] == "bob"
    assert part["inferred"] == ["turn"]
    play.server("bob", "YOUR TURN;t1")
    (part,) = play.state["games"].values()
    assert "inferred" not in part


def test_old_servers_register_that_gives_no_name_as_undefined() -> None:
    play = Play()
    play.client("x", "REGISTER")
    play.server("x", "REGISTERED")
    assert [event.data for event in play.events] == [{"name": "undefined"}]
    assert [violation.code for violation in play.diagnostics] == ["missing-field"]


def test_names_with_commas_are_put_together_again() -> None:
    play = Play()
    for client, name in (("x", "a,b"), ("y", "c")):
        play.client(client, f"REGISTER;{name}")
        play.server(client, "REGISTERED")
    play.server("x y", "ROUND STARTED;c,a,b")
    started = next(event for event in play.events if event.kind == "round_started")
    assert started.data["players"] == ["c", "a,b"]


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
