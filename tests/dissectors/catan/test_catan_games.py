"""Random games of Catan, compared with the true course of the game.

They are seen from all conversations, from one, from any moment on, with reordered copies, and with parts
missing or out of place.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator
from typing import Any, cast

import pytest
from catan_island import spot
from catan_play import NAMES, Dialect, Server
from catan_random import RandomGame
from catan_wire import Moment, Step, captured, found, game_part, items, mixed, wrong
from hypothesis import given, settings
from hypothesis import strategies as st
from inspected_captures import bytewise, errors, from_then_on, inspected, joined
from inspected_captures import told as all_told
from strength import times

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Ids, Item
from kiebitz.dissectors.protocols.catan.game import place_text
from kiebitz.dissectors.registry import BUILT_IN

DIALECTS = st.builds(
    Dialect,
    confirms=st.sampled_from(("before", "after", "never")),
    costs=st.sampled_from(("before", "after")),
    ascii=st.booleans(),
    unbekannt=st.booleans(),
    discards_told=st.booleans(),
    thefts_told=st.booleans(),
    robber_too=st.booleans(),
)
SEEDS = st.integers(0, 10**9)


def moments(stream: Iterable[Item | Moment]) -> Iterator[tuple[State, Moment]]:
    inspector, state = Inspector(BUILT_IN, Ids()), State()
    for item in stream:
        if not isinstance(item, Moment):
            inspector.feed(item)
            continue
        new = inspector.drain()
        assert wrong(new) == []
        for event in new.events:
            apply(state, event.changes)
        if item.game and state.get("games"):
            yield state, item
    inspector.finish()
    assert wrong(inspector.drain()) == []


# What is found is what is true.


def holds(count: Any, true: int) -> bool:
    return count is None or (count[0] <= true <= count[1] if isinstance(count, list) else count == true)


def may_be_true(state: State, moment: Moment, server: Server) -> None:
    part, truth = game_part(state), moment.truth
    for number, hand in truth.hands.items():
        private = part.get("private", {}).get(server.names[number], {})
        for kind, count in hand.items():
            assert holds(private.get("resources", {}).get(kind), count), (number, kind)
        for card, count in truth.cards[number].items():
            assert holds(private.get("cards", {}).get(card), count), (number, card)
    for kind, count in truth.bank.items():
        assert holds(part.get("bank", {}).get(kind), count), kind


def public_is_true(state: State, moment: Moment, server: Server) -> None:
    part, truth = game_part(state), moment.truth

    def shown(place: tuple[int, int]) -> tuple[int, int]:
        return place[0], -place[1] if server.mirrored else place[1]

    assert part.get("buildings", {}) == {
        place_text(spot(*map(shown, at))): {"owner": owner, "type": typ}
        for at, (owner, typ) in truth.buildings.items()
    }
    assert tuple(part["robber"]) == shown(truth.robber)
    assert (part["dice"], part.get("turn")) == (truth.dice, truth.turn)
    assert (part.get("longest_road"), part.get("largest_army")) == (truth.longest, truth.army)
    assert {*part.get("trades", {})} == {*map(str, truth.trades)}
    for number, knights in truth.knights.items():
        assert part["players"][str(number)]["knights"] == knights


def all_is_true(state: State, moment: Moment, server: Server) -> None:
    public_is_true(state, moment, server)
    part, truth = game_part(state), moment.truth
    for number, hand in truth.hands.items():
        player, private = part["players"][str(number)], part["private"][server.names[number]]
        assert player["resources"] == sum(hand.values())
        assert player["cards"] == sum(truth.cards[number].values())
        assert player["points"] == truth.points[number]
        assert private == {"resources": hand, "cards": truth.cards[number]}
    assert part["bank"] == truth.bank


@settings(max_examples=times(25, 2), deadline=None)
@given(SEEDS, DIALECTS, st.booleans())
def test_all_conversations_together_are_complete(seed: int, dialect: Dialect, mirrored: bool) -> None:
    game = RandomGame(seed, dialect=dialect, mirrored=mirrored)
    game.play(25)
    game.play(5)
    seen = 0
    for state, moment in moments(items(game.server.steps)):
        all_is_true(state, moment, game.server)
        seen += 1
    assert seen >= 60


@pytest.mark.full
@settings(max_examples=times(25, 3), deadline=None)
@given(SEEDS, DIALECTS, st.booleans())
def test_in_whatever_order_the_copies_come(seed: int, dialect: Dialect, mirrored: bool) -> None:
    # Messages to two players only may come later than a third player's next one.
    game = RandomGame(seed, dialect=dialect._replace(thefts_told=True), mirrored=mirrored)
    game.play(25)
    for state, moment in moments(items(mixed(game.server.steps, random.Random(seed)))):
        all_is_true(state, moment, game.server)


@pytest.mark.full
@settings(max_examples=times(25, 3), deadline=None)
@given(SEEDS, DIALECTS, st.booleans(), st.sampled_from(NAMES[:3]))
def test_one_conversation_has_public_and_possible_values(
    seed: int, dialect: Dialect, mirrored: bool, alone: str
) -> None:
    game = RandomGame(seed, dialect=dialect._replace(thefts_told=True), mirrored=mirrored)
    game.play(25)
    own = game.server.ids[alone]
    for state, moment in moments(items(game.server.steps, [alone])):
        public_is_true(state, moment, game.server)
        may_be_true(state, moment, game.server)
        private = game_part(state)["private"][alone]
        assert private == {"resources": moment.truth.hands[own], "cards": moment.truth.cards[own]}


@pytest.mark.full
@settings(max_examples=times(25), deadline=None)
@given(SEEDS, DIALECTS, st.sampled_from((None, ("Anna",), ("Bert", "Cleo"))), st.floats(0, 1))
def test_from_any_moment_on_what_is_known_may_be_true(
    seed: int, dialect: Dialect, heard: Collection[str] | None, begin: float
) -> None:
    game = RandomGame(seed, dialect=dialect._replace(thefts_told=True))
    game.play(15)
    # A late copy of an earlier message would count twice, so none is late here.
    stream = list(items(game.server.steps, heard))
    # Moments pass through, as all that is no chunk.
    late = from_then_on(cast(list[Item], stream), int(begin * len(stream)))
    for state, moment in moments(late):
        may_be_true(state, moment, game.server)


@pytest.mark.full
@settings(max_examples=times(25), deadline=None)
@given(SEEDS, DIALECTS, st.sampled_from((None, ("Anna",), ("Bert", "Cleo"))), st.floats(0, 1))
def test_from_any_moment_on_no_violation_is_reported(
    seed: int, dialect: Dialect, heard: Collection[str] | None, begin: float
) -> None:
    game = RandomGame(seed, dialect=dialect)
    game.play(15)
    stream = captured(mixed(game.server.steps, random.Random(seed)), heard)
    assert errors(inspected(from_then_on(stream, int(begin * len(stream))))) == []


@pytest.mark.full
@settings(max_examples=times(25), deadline=None)
@given(SEEDS, DIALECTS, st.sampled_from((None, ("Anna",), ("Bert", "Cleo"))), st.floats(0.005, 0.2))
def test_missing_packets_cause_no_violations(
    seed: int, dialect: Dialect, heard: Collection[str] | None, lost: float
) -> None:
    game = RandomGame(seed, dialect=dialect)
    game.play(20)
    rng = random.Random(seed)
    steps = [
        step if isinstance(step, Moment) else step._replace(lost=rng.random() < lost)
        for step in mixed(game.server.steps, rng)
    ]
    assert errors(found(steps, heard)) == []


@pytest.mark.full
@settings(max_examples=times(5, 1), deadline=None)
@given(SEEDS, DIALECTS)
def test_how_the_bytes_are_cut_does_not_matter(seed: int, dialect: Dialect) -> None:
    game = RandomGame(seed, dialect=dialect)
    game.play(5)
    stream = captured(game.server.steps)
    whole = all_told(inspected(captured(game.server.steps)))
    assert all_told(inspected(bytewise(stream))) == whole
    assert all_told(inspected(joined(captured(game.server.steps)))) == whole


@pytest.mark.full
@settings(max_examples=times(60), deadline=None)
@given(SEEDS, DIALECTS, st.integers(1, 12))
def test_misplaced_messages_keep_the_timeline_sound(seed: int, dialect: Dialect, spoilt: int) -> None:
    game = RandomGame(seed, dialect=dialect)
    game.play(6)
    rng = random.Random(seed)
    steps = [step for step in game.server.steps if isinstance(step, Step)]
    for _ in range(spoilt):
        here, there = rng.randrange(len(steps)), rng.randrange(len(steps))
        match rng.randrange(4):
            case 0:
                del steps[here : here + rng.randrange(1, 9)]
            case 1:
                steps.insert(here, steps[there])
            case 2:
                steps[here], steps[there] = steps[there], steps[here]
            case 3:
                digit = rng.choice((b"0", b"1", b"2", b"7", b"2000000000"))
                steps[here] = steps[here]._replace(data=steps[here].data.replace(b"1", digit, 1))
    findings = found(steps)
    assert [event.seq for event in findings.events] == [*range(1, len(findings.events) + 1)]
    known = {event.id for event in findings.events} | {None}
    assert all(message.event_id in known for message in findings.messages)
