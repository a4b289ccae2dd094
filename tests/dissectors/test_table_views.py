"""Views of tables in words (tests/data/views.txt)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conversation_files import Block, blocks, check_below
from game_scenes import okey, said, scene, view
from snapshots import DATA
from terminal_scenes import event

from kiebitz.dissectors.game.view import Hand, Line, Scene, Seat, View
from kiebitz.dissectors.model import Event

BLOCKS = blocks(DATA / "views.txt")


def lines(made: View) -> Iterator[str]:
    """Yield the parts of a view in words."""
    if made.title:
        yield f"title: {' | '.join(made.title)}"
    if made.idle:
        yield f"idle: {made.idle}"
    yield f"story: {' | '.join(map(said, made.story))}"
    if made.contract is not None:
        parts = joined((*made.contract.parts, *made.contract.additions))
        suit = made.contract.suit.name if made.contract.suit else "none"
        yield f"contract: {parts}; level: {made.contract.level}; suit: {suit}"
    if made.dice is not None:
        yield f"dice: {made.dice.roll} {made.dice.faces}"
    for pile in made.piles:
        yield f"pile {said(pile.label)}: {pile.words}"
    for call in made.calls:
        yield f"{call.name} {call.verb} {call.words} {call.dice} {call.tone}"
    for fact in made.facts:
        yield f"{said(fact.title)}: {joined(fact.items)}"
    for group in made.groups:
        yield f"{group.title}: {', '.join(' '.join(member).strip() for member in group.members)}"
    if made.unknown:
        yield f"unknown: {made.unknown}"
    yield f"seats: {', '.join(seat.name for seat in made.seats)}"
    for seat in made.seats:
        yield f"seat of {seat.name}: {'; '.join(filter(None, seat_words(seat)))}"


def seat_words(seat: Seat) -> Iterator[str]:
    yield seat.state
    yield ", ".join(mark.text for mark in seat.marks)
    yield ", ".join(figure.words for figure in seat.figures)
    if seat.says is not None:
        yield f"{seat.says.verb} {seat.says.words}"
    if seat.hand is not None:
        yield f"holds {hand_words(seat.hand)}"
    if seat.lies is not None:
        yield f"lies {seat.lies.words}"
    yield "takes the trick" * seat.takes
    if seat.pile is not None:
        yield f"pile {said(seat.pile.label)}: {seat.pile.words}{', fresh' * seat.pile.fresh}"


def hand_words(hand: Hand) -> str:
    pieces = [piece.words if piece else "–" for piece in hand.pieces]
    drawn = [] if hand.drawn is None else [f"drawn is {hand.drawn}"]
    return ", ".join([*pieces, f"{hand.hidden} hidden", *drawn])


def joined(items: tuple[Line, ...]) -> str:
    return ", ".join(map(said, items))


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_state_is_seen_so(block: Block) -> None:
    game = block.steps[0]
    seen = [line.rstrip() for line in lines(view(game, *scene(block.steps)))]
    usual = [] if block.title == game else [line.rstrip() for line in lines(view(game, *scene([game])))]
    shown = [line for line in seen if line not in usual]
    headings = {line.partition(":")[0] for line in seen}
    shown += [f"- {line}" for line in usual if line.partition(":")[0] not in headings]
    check_below(block, shown)


def test_the_game_of_the_latest_event_is_that_of_a_game_which_is_on() -> None:
    state = okey()
    state["games"]["12"] = {}
    events = [event(1, "status"), Event(2, 1, None, 2, 2, "chat", None, {}, [])]
    assert Scene(state, events).game()[0] == "7"
