"""A way leads to each place of a record that a live server lets it come to, and on from there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from games_in_memory import NAMES
from peers.bench import FIRST_PORT, Bench
from probe_walks import Walk, bench_of, sample
from strength import a_few

from kiebitz.dissectors.conformance.bots import Aim
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.probing import simulated_route as playing_module
from kiebitz.dissectors.probing.answer_route import AnsweringWay, only_answers
from kiebitz.dissectors.probing.baseline import Habits
from kiebitz.dissectors.probing.client_route import PlayersWay
from kiebitz.dissectors.probing.routes import RecordedWay, Way
from kiebitz.dissectors.probing.simulated_route import Goal
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.registry import BUILT_IN, dissector_of
from kiebitz.dissectors.replay.script import Line


def named(*names: str) -> Callable[[Decoded], bool]:
    return lambda decoded: decoded.valid and decoded.row is not None and decoded.row.name in names


def said_by_clients(protocol: str) -> list[str]:
    lines = (step for step in sample(protocol).steps if isinstance(step, Line))
    return [*dict.fromkeys(line.name for line in lines if line.direction == "c2s")]


def recorded(dissector: Dissector, *names: str, at_start: bool = False) -> RecordedWay:
    script = sample(dissector.protocol)
    return RecordedWay(script, "c2s", {dissector.protocol: dissector}, {}, named(*names), at_start)


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
        place = walk.go()
        assert place is not None, f"{name}: {walk.way.lost}"
        assert name_of(dissector, place.frame) == name
        assert place.others
        reached += 1
        if place.expected is None:
            continue
        # What was held back is said after acts that take nothing's place, and all goes on.
        walk.way.acted(0)
        walk.go()
        assert walk.way.is_as_usual, f"after {name} comes no {place.expected.name}"
    assert reached


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", ["REGISTER", "JOIN", "ROLL", "SEE", "ANNOUNCE"])
def test_who_only_answers_comes_to_each_message_whatever_the_dice_are(name: str, seed: int) -> None:
    assert only_answers(MAEXCHEN, "c2s")
    walk = Walk(AnsweringWay(sample("maexchen"), MAEXCHEN, {}, named(name)), bench_of("maexchen", seed))
    place = walk.go()
    assert place is not None, walk.way.lost
    assert name_of(MAEXCHEN, place.frame) == name
    assert len(place.others) == 1
    walk.way.acted(0)
    walk.go()
    assert walk.way.is_as_usual


def test_a_message_that_is_not_sent_does_not_go_on_as_usual() -> None:
    walk = Walk(AnsweringWay(sample("maexchen"), MAEXCHEN, {}, named("ROLL")), bench_of("maexchen"))
    assert walk.go() is not None
    walk.way.acted(1)
    walk.go()
    assert not walk.way.is_as_usual


@pytest.mark.parametrize(
    "make",
    [
        lambda: AnsweringWay(sample("maexchen"), MAEXCHEN, {}, named("ROLL"), at_start=True),
        lambda: recorded(MAEXCHEN, "ROLL", at_start=True),
    ],
    ids=["answering", "recorded"],
)
def test_at_the_start_a_message_comes_before_all_others(make: Callable[[], Way]) -> None:
    bench = bench_of("maexchen")
    walk = Walk(make(), bench)
    place = walk.go()
    assert place is not None
    assert name_of(MAEXCHEN, place.frame) == "ROLL"
    # The first player has come in, and the second has said nothing.
    assert [len(seat.said) for seat in bench.seats] == [1, 0]


def test_a_place_that_is_passed_by_is_followed_by_the_next() -> None:
    walk = Walk(recorded(MAEXCHEN, "ROLL"), bench_of("maexchen"))
    frames = set()
    for _ in range(3):
        place = walk.go()
        assert place is not None
        frames.add(place.frame)
        walk.way.pass_by()
    assert len(frames) == 3


def test_where_the_server_gives_other_dice_a_record_leads_nowhere() -> None:
    walk = Walk(recorded(MAEXCHEN, "SEE"), bench_of("maexchen", seed=2))
    assert walk.go() is None
    assert walk.way.lost is not None
    assert "the server says" in walk.way.lost


def test_a_record_without_such_a_message_has_no_place() -> None:
    walk = Walk(recorded(MAEXCHEN, "REGISTER_SPECTATOR"), bench_of("maexchen"))
    assert walk.go() is None
    assert walk.way.lost == "the record has no place for it"


@pytest.mark.parametrize("protocol", ["schafkopf", "catan", "okey", "cgml"])
def test_in_other_games_clients_say_things_unasked(protocol: str) -> None:
    dissector = dissector_of(protocol)
    assert dissector is not None
    assert not only_answers(dissector, "c2s")


# Simple players.


def playing(protocol: str, bench: Bench, goal: Goal, habits: Habits | None = None) -> PlayersWay:
    dissector = dissector_of(protocol)
    assert dissector is not None
    make = dissector.conformance.player
    assert make is not None
    return PlayersWay(
        dissector,
        [make(name, number, 3) for number, name in enumerate(NAMES[: dissector.conformance.seats])],
        make("Emil", 9, 0),
        ("127.0.0.1", FIRST_PORT),
        goal,
        habits or Habits(dissector, "s2c"),
        lambda: bench.now,
    )


NEVER_REACHED = {
    "maexchen": {"UNREGISTER", "ECHO"},
    "schafkopf": {"HOCHZEIT", "KARTE", "BEENDEN"},
    "catan": {"Erfindung"},
    "okey": {"LLOB", "+JOND", "+LEFT", "+NAMS", "RNAM", "HIGH", "RSTA"},
    "cgml": {"load"},
}
"""What simple players do not come to say at these servers in the time they have."""


LAST = ("disconnect", "LOGO", "+EMPT", "+PWIN", "+STAT", "+STRT", "+CATS")
"""After these nothing need come: games end, and acknowledgements are answered by nobody."""


@pytest.mark.parametrize("protocol", a_few(NEVER_REACHED, ["maexchen", "schafkopf"]))
def test_players_lead_to_each_message_whatever_the_server_does(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At the bench each message takes a millisecond of its time.
    monkeypatch.setattr(playing_module, "REACH_S", 100)
    dissector = dissector_of(protocol)
    assert dissector is not None
    names = {row.name for row in dissector.grammar.rows if row.direction == "c2s" and not row.heartbeat}
    for name in sorted(names - NEVER_REACHED[protocol]):
        # A game may be over before a card is there that can be played.
        for seed in range(2, 7):
            bench = bench_of(protocol, seed)
            walk = Walk(playing(protocol, bench, Goal(Aim(name))), bench)
            place = walk.go()
            if place is not None:
                break
        assert place is not None, f"{name}: {walk.way.lost}"
        assert name_of(dissector, place.frame) == name
        assert place.others
        walk.way.acted(0)
        walk.go(seconds=2)
        assert walk.way.is_as_usual or name in LAST, name


def test_somebody_new_says_first_what_a_player_has_just_said() -> None:
    bench = bench_of("maexchen", 3)
    walk = Walk(playing("maexchen", bench, Goal(Aim("ROLL"), early=True)), bench)
    place = walk.go()
    assert place is not None
    assert name_of(MAEXCHEN, place.frame) == "ROLL"
    assert bench.seats[-1].said == []
    assert len(place.others) == len(bench.seats) - 1


def test_a_message_that_never_comes_up_is_given_up_and_told() -> None:
    bench = bench_of("maexchen", 4)
    walk = Walk(playing("maexchen", bench, Goal(Aim("ECHO"))), bench)
    assert walk.go() is None
    assert walk.way.never
    assert walk.way.lost is not None
    assert "did not come up" in walk.way.lost


def test_in_a_game_the_answers_are_learnt_that_the_grammar_does_not_name() -> None:
    habits, bench = Habits(MAEXCHEN, "s2c"), bench_of("maexchen", 5)
    Walk(playing("maexchen", bench, Goal(), habits), bench).go()
    join, see = (MAEXCHEN.grammar.rows_named("c2s", name)[0] for name in ("JOIN", "SEE"))
    assert habits.follows(join, "ROUND STARTED", names_speaker=True)
    # Where others join, and this one did not, it is not among those who play.
    assert not habits.follows(join, "ROUND STARTED", names_speaker=False)
    assert not habits.follows(see, "ROUND STARTED", names_speaker=True)


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
    assert {*Habits(SCHAFKOPF, hears).answers_to(row)} == answers
