"""An unreadable message may have been any message: the other side is not blamed for understanding it."""

from __future__ import annotations

import random

import pytest
from command import ROOT
from conversation_files import file_dissector
from file_conversations import Conversation, dissector_named, dissector_of
from inspected_captures import CAPTURES
from kiebitz_noughts.dissector import NOUGHTS
from snapshots import DATA
from strength import GAMES, few_captures, times
from unread_messages import Game, blamed, blamed_after_each, game_from, game_of, mutations, other_values

from kiebitz.dissectors.model import Direction

RECORDED = sorted(path.name for path in CAPTURES.glob("*.pcap*") if not path.name.startswith("roborally"))

DIRECTIONS = pytest.mark.parametrize("direction", ["c2s", "s2c"])


def check(game: Game, direction: Direction, most: int) -> None:
    """Check mutations of one side's messages, at most so many."""
    other = {"c2s": "server", "s2c": "client"}[direction]
    before = blamed(game, other)
    chosen = [*mutations(game, direction)]
    chosen = random.Random(1).sample(chosen, most) if most < len(chosen) else chosen
    unread, found = 0, []
    for (kind, message, _), after in blamed_after_each(game, chosen):
        unread += after is not None
        found += [
            f"{kind} in {message.name} (stream {message.stream.id}, {message.offset}): {accusation} {text}"
            for accusation, text in (after or {}).items()
            if accusation not in before
        ]
    assert not found
    assert unread or not chosen


@pytest.mark.full(but=2)
@DIRECTIONS
@pytest.mark.parametrize("capture", few_captures(RECORDED))
def test_the_other_side_is_not_blamed(capture: str, direction: Direction) -> None:
    check(game_of(capture), direction, times(100, 12))


@pytest.mark.full
@DIRECTIONS
@pytest.mark.parametrize("protocol", GAMES)
def test_after_every_mutation(protocol: str, direction: Direction) -> None:
    check(game_of(GAMES[protocol]), direction, 100_000)


# A message to one client that contradicts those to the others.


FROM_ALL_COPIES = ("out-of-turn", "cannot-pay")
"""In Catan, the turn and the hands follow from the messages to all clients."""


@pytest.mark.full(but=2)
@pytest.mark.parametrize("capture", few_captures(RECORDED))
def test_no_client_is_blamed_for_a_message_to_another_one(capture: str) -> None:
    game, chance = game_of(capture), random.Random(2)
    before = blamed(game, "client")
    chosen = [*other_values(game, chance)]
    chosen = chance.sample(chosen, min(times(100, 12), len(chosen)))
    found = [
        f"{data!r} (stream {message.stream.id}, {message.offset}): {accusation} {text}"
        for (_, message, data), after in blamed_after_each(game, chosen, readable=True)
        for accusation, text in (after or {}).items()
        if accusation not in before and accusation[0] != message.stream.id
        if not (capture.startswith("catan") and accusation[3] in FROM_ALL_COPIES)
    ]
    assert not found


# Protocol files.

ROUND = (
    *("*< START", "a< DEAL 1,2", "b< DEAL 3,4", "a> BID 1", "*< BIDS ann 1", "b> BID 2", "*< BIDS ben 2"),
    *("*< TURN ann", "a> PLAY 1", "*< PLAYED ann 1", "*< TURN ben", "b> PLAY 4", "*< PLAYED ben 4"),
    *("*< TURN ann", "a> PLAY 2", "*< PLAYED ann 2", "*< END ann 3"),
)
SEATED = ("a> NAME ann", "a< HELLO ann", "b> NAME ben", "b< HELLO ben")
SQUARES = (
    *("a> HELLO ann", "a< WELCOME", "b> HELLO ben", "b< WELCOME", "*< START ann ben", "a> PUT 1"),
    *("*< MARK ann 1", "b> PUT 5", "*< MARK ben 5", "a> PUT 2", "*< MARK ann 2", "b> PUT 9", "*< MARK ben 9"),
    *("*< WON ben", "*< START ben ann", "*< MARK ben 1"),
)
TALKS = {
    "turns": Conversation(file_dissector(DATA / "conversations" / "files_doubt.txt", "turns")).send(
        *SEATED, *ROUND, *ROUND
    ),
    "noughts": Conversation(dissector_named("noughts"), "\r\n", 3333).send(*SQUARES),
    "noughts as a plug-in": Conversation(NOUGHTS, "\r\n", 3333).send(*SQUARES),
}


@pytest.mark.full(but=1)
@DIRECTIONS
@pytest.mark.parametrize("name", [*TALKS][::-1])
def test_protocol_files_and_plugins(name: str, direction: Direction) -> None:
    talk = TALKS[name]
    check(game_from(talk.items, [talk.dissector]), direction, times(100_000, 12))


@pytest.mark.full(but=1)
@DIRECTIONS
def test_the_protocol_file_of_the_documents(direction: Direction) -> None:
    file = dissector_of((ROOT / "docs/examples/roborally.toml").read_text())
    check(game_of("roborally-1.pcap.gz", file), direction, times(1000, 8))
