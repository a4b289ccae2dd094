"""A way leads to each place of a record that a live server lets it come to, and on from there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from games_in_memory import NAMES
from peers.bench import FIRST_PORT, Bench
from probe_walks import Walk, bench_of, sample
from strength import a_few

from kiebitz.dissectors.conformance.bots import TargetMessage
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.probing import simulated_route as playing_module
from kiebitz.dissectors.probing.baseline import NEXT_UNKNOWN, NEXT_WAITS, Baseline
from kiebitz.dissectors.probing.client_route import ClientRoute
from kiebitz.dissectors.probing.routes import RecordedRoute
from kiebitz.dissectors.probing.simulated_route import RouteGoal
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.registry import BUILT_IN, dissector_of
from kiebitz.dissectors.replay.script import RecordedLine


def named(*names: str) -> Callable[[Decoded], bool]:
    return lambda decoded: decoded.valid and decoded.row is not None and decoded.row.name in names


def said_by_clients(protocol: str) -> list[str]:
    lines = (step for step in sample(protocol).steps if isinstance(step, RecordedLine))
    return [*dict.fromkeys(line.name for line in lines if line.direction == "c2s")]


def recorded(dissector: Dissector, *names: str, at_start: bool = False) -> RecordedRoute:
    script = sample(dissector.protocol)
    return RecordedRoute(script, "c2s", {dissector.protocol: dissector}, {}, named(*names), at_start)


def name_of(dissector: Dissector, frame: bytes) -> str:
    row = dissector.codec.decode(frame, "c2s").row
    assert row is not None
    return row.name


@pytest.mark.parametrize("protocol", a_few([each.protocol for each in BUILT_IN], ["schafkopf", "okey"]))
def test_a_record_leads_to_each_message_in_it(protocol: str) -> None:
    dissector = dissector_of(protocol)
    assert dissector is not None
    reached = 0
    for name in said_by_clients(protocol):
        if any(row.heartbeat for row in dissector.grammar.rows_named("c2s", name)):
            continue
        walk = Walk(recorded(dissector, name), bench_of(protocol))
        point = walk.go()
        assert point is not None, f"{name}: {walk.route.lost}"
        assert name_of(dissector, point.frame) == name
        assert point.others
        reached += 1
        if point.expected is None:
            continue
        # Held data is sent after acts that replace nothing, and the game continues.
        walk.route.confirm_actions(0)
        walk.go()
        assert walk.route.continued_normally, f"after {name} comes no {point.expected.name}"
    assert reached


def test_at_the_start_a_message_comes_before_all_others() -> None:
    bench = bench_of("maexchen")
    walk = Walk(recorded(MAEXCHEN, "ROLL", at_start=True), bench)
    point = walk.go()
    assert point is not None
    assert name_of(MAEXCHEN, point.frame) == "ROLL"
    # The first player is connected, and the second silent.
    assert [len(seat.said) for seat in bench.seats] == [1, 0]


def test_a_place_that_is_passed_by_is_followed_by_the_next() -> None:
    walk = Walk(recorded(MAEXCHEN, "ROLL"), bench_of("maexchen"))
    frames = set()
    for _ in range(3):
        point = walk.go()
        assert point is not None
        frames.add(point.frame)
        walk.route.skip_point()
    assert len(frames) == 3


def test_where_the_server_gives_other_dice_a_record_leads_nowhere() -> None:
    walk = Walk(recorded(MAEXCHEN, "SEE"), bench_of("maexchen", seed=2))
    assert walk.go() is None
    assert walk.route.lost is not None
    assert "the server says" in walk.route.lost


def test_a_record_without_such_a_message_has_no_place() -> None:
    walk = Walk(recorded(MAEXCHEN, "REGISTER_SPECTATOR"), bench_of("maexchen"))
    assert walk.go() is None
    assert walk.route.lost == "the record has no point to inject it"


# Simple players.


def playing(protocol: str, bench: Bench, goal: RouteGoal, baseline: Baseline | None = None) -> ClientRoute:
    dissector = dissector_of(protocol)
    assert dissector is not None
    make = dissector.conformance.bot
    assert make is not None
    return ClientRoute(
        dissector,
        [make(name, number, 3) for number, name in enumerate(NAMES[: dissector.conformance.seats])],
        make("Emil", 9, 0),
        ("127.0.0.1", FIRST_PORT),
        goal,
        baseline or Baseline(dissector, "s2c"),
        lambda: bench.now,
    )


NEVER_REACHED = {
    "maexchen": {"UNREGISTER", "ECHO"},
    "schafkopf": {"HOCHZEIT", "KARTE", "BEENDEN"},
    "catan": {"Erfindung"},
    "okey": {"LLOB", "+JOND", "+LEFT", "+NAMS", "RNAM", "HIGH", "RSTA"},
    "cgml": {"load"},
}


LAST = ("disconnect", "LOGO", "+EMPT", "+PWIN", "+STAT", "+STRT", "+CATS")


@pytest.mark.parametrize("protocol", a_few(NEVER_REACHED, ["maexchen", "schafkopf"]))
def test_players_lead_to_each_message_whatever_the_server_does(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At the bench each message takes a millisecond of its time.
    monkeypatch.setattr(playing_module, "MAX_SEARCH_S", 100)
    dissector = dissector_of(protocol)
    assert dissector is not None
    names = {row.name for row in dissector.grammar.rows if row.direction == "c2s" and not row.heartbeat}
    for name in sorted(names - NEVER_REACHED[protocol]):
        # A game may be over before a card is there that can be played.
        for seed in range(2, 7):
            bench = bench_of(protocol, seed)
            walk = Walk(playing(protocol, bench, RouteGoal(TargetMessage(name))), bench)
            point = walk.go()
            if point is not None:
                break
        assert point is not None, f"{name}: {walk.route.lost}"
        assert name_of(dissector, point.frame) == name
        assert point.others
        walk.route.confirm_actions(0)
        walk.go(seconds=2)
        assert walk.route.continued_normally or name in LAST, name


def test_after_enough_places_without_a_next_message_a_heartbeat_is_the_next() -> None:
    bench = bench_of("okey", 3)
    walk = Walk(playing("okey", bench, RouteGoal(TargetMessage("DRAW"))), bench)
    points = []
    for _ in range(8):
        point = walk.go()
        assert point is not None
        points.append(point)
        walk.route.skip_point()
    assert all(point.waits or point.following is None for point in points[1:])
    assert [point.heartbeat for point in points] == 3 * [None] + 5 * [b"PING\r\n"]


def test_a_new_client_repeats_a_player_s_message() -> None:
    bench = bench_of("maexchen", 3)
    walk = Walk(playing("maexchen", bench, RouteGoal(TargetMessage("ROLL"), early=True)), bench)
    point = walk.go()
    assert point is not None
    assert name_of(MAEXCHEN, point.frame) == "ROLL"
    assert bench.seats[-1].said == []
    assert len(point.others) == len(bench.seats) - 1


def test_a_server_may_end_the_connections_of_players_that_have_logged_out() -> None:
    bench = bench_of("okey", 3)
    walk = Walk(playing("okey", bench, RouteGoal()), bench)
    walk.go()
    gone = {
        number
        for number, seat in enumerate(bench.seats, 1)
        if "LOGO" in [name_of(OKEY, frame) for frame in seat.said]
    }
    assert gone
    assert gone == {*filter(walk.route.is_finished_on, range(1, len(bench.seats) + 1))}


def test_a_message_that_never_comes_up_is_given_up_and_told() -> None:
    bench = bench_of("maexchen", 4)
    walk = Walk(playing("maexchen", bench, RouteGoal(TargetMessage("ECHO"))), bench)
    assert walk.go() is None
    assert walk.route.never_came_up
    assert walk.route.lost is not None
    assert "did not come up" in walk.route.lost


def test_in_a_game_the_answers_are_learnt_that_the_grammar_does_not_name() -> None:
    baseline, bench = Baseline(MAEXCHEN, "s2c"), bench_of("maexchen", 5)
    Walk(playing("maexchen", bench, RouteGoal(), baseline), bench).go()
    join, see = (MAEXCHEN.grammar.rows_named("c2s", name)[0] for name in ("JOIN", "SEE"))
    assert baseline.follows(join, "ROUND STARTED", names_speaker=True)
    # Where others join, and this one did not, it is not among those who play.
    assert not baseline.follows(join, "ROUND STARTED", names_speaker=False)
    assert not baseline.follows(see, "ROUND STARTED", names_speaker=True)


@pytest.mark.parametrize(
    ("protocol", "name", "waits", "why"),
    [
        ("maexchen", "JOIN", False, NEXT_WAITS),
        ("maexchen", "REGISTER", False, NEXT_WAITS),
        ("maexchen", "REGISTER", True, NEXT_UNKNOWN),
        # The next round has another answer to the same question.
        ("maexchen", "JOIN", True, None),
        # It was not sent in the game.
        ("maexchen", "ECHO", False, None),
        # A heartbeat may always follow.
        ("okey", "DRAW", False, None),
    ],
)
def test_in_a_game_it_is_learnt_if_the_next_message_waits(
    protocol: str, name: str, waits: bool, why: str | None
) -> None:
    dissector = dissector_of(protocol)
    assert dissector is not None
    baseline, bench = Baseline(dissector, "s2c"), bench_of(protocol, 5)
    Walk(playing(protocol, bench, RouteGoal(), baseline), bench).go()
    (row, *_) = dissector.grammar.rows_named("c2s", name)
    assert baseline.why_no_next(row, waits) == why


def test_a_player_is_passed_over_if_the_others_go_on() -> None:
    baseline, bench = Baseline(MAEXCHEN, "s2c"), bench_of("maexchen", 5)
    Walk(playing("maexchen", bench, RouteGoal(), baseline), bench).go()
    bench = bench_of("maexchen", 5)
    walk = Walk(playing("maexchen", bench, RouteGoal(TargetMessage("JOIN")), baseline), bench)
    assert walk.go() is not None
    # Nothing is sent in its place.
    walk.route.confirm_actions(1)
    assert not walk.route.is_passed_over
    walk.go(seconds=2)
    assert walk.route.is_passed_over
    assert not walk.route.continued_normally
    walk.route.discard_passing_over()
    assert not walk.route.is_passed_over


@pytest.mark.parametrize(
    ("asked", "hears", "name", "answers"),
    [
        ("s2c", "c2s", "NAME", {"NAME"}),
        ("s2c", "c2s", "MODEL", {"MODEL", "SPIELSTDU", "ERSTE3"}),
        # It is the answer, though the question is called the same.
        ("c2s", "s2c", "NAME", set()),
        ("c2s", "s2c", "MODEL", set()),
    ],
)
def test_an_answer_goes_the_other_way(
    asked: Direction, hears: Direction, name: str, answers: set[str]
) -> None:
    row = SCHAFKOPF.grammar.rows_named(asked, name)[0]
    assert {*Baseline(SCHAFKOPF, hears).answers_to(row)} == answers
