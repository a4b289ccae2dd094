"""An unreadable message may have been any message: the other side is not blamed for understanding it."""

from __future__ import annotations

import random

import pytest
from command import ROOT
from file_conversations import Conversation, dissector_named, dissector_of
from inspected_captures import CAPTURES
from kiebitz_noughts.dissector import NOUGHTS
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


@pytest.mark.full(but=5)
@DIRECTIONS
@pytest.mark.parametrize("capture", few_captures(RECORDED))
def test_the_other_side_is_not_blamed(capture: str, direction: Direction) -> None:
    check(game_of(capture), direction, times(400, 12))


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
    chosen = chance.sample(chosen, min(times(200, 12), len(chosen)))
    found = [
        f"{data!r} (stream {message.stream.id}, {message.offset}): {accusation} {text}"
        for (_, message, data), after in blamed_after_each(game, chosen, readable=True)
        for accusation, text in (after or {}).items()
        if accusation not in before and accusation[0] != message.stream.id
        if not (capture.startswith("catan") and accusation[3] in FROM_ALL_COPIES)
    ]
    assert not found


# Protocol files.

TURNS = """\
protocol = "turns"
title = "Turns"
port = 4711
framing = "lines"
format = "words"
[messages]
NAME = "c: name=player"
HELLO = "s: name=player < NAME"
BID = "c: bid=integer"
BIDS = "s*: name=player bid=integer"
TURN = "s*: name=player"
PLAY = "c: card=text"
PLAYED = "s*: name=player card=text"
DEAL = "s: cards=[text]"
START = "s*:"
END = "s*: name=player points=integer"
[identity]
login = "NAME"
[events]
started = { on = "START", opens = true, say = "a game begins", put = { count = 0 } }
ended = { on = "END", ends = true, say = "{name} wins", result = { winner = "name" } }
dealt = { on = "DEAL", say = "{who} has {cards}", put = { "private.{who}.hand" = "cards" } }
bid = { on = "BID", say = "{who} bids {bid}", put = { "bids.{who}" = "bid" } }
turn = { on = "TURN", turn = true, say = "it is {name}'s turn" }
asked = { on = "PLAY", say = "{who} wants to play {card}", put = { "wanted.{who}" = "card" } }
played = { on = "PLAYED", say = "{name} plays {card}", put = { count = "count + 1", latest = "card" } }
high = { on = "PLAYED", when = "count > 1", say = "late", put = { "late.{name}" = "count" } }
[rules]
other-bid = { on = "BIDS", unless = "bids.{name} == bid", say = "{name} bid {known}" }
not-your-turn = { on = "PLAY", unless = "who == turn", say = "it is {known}'s turn" }
out-of-turn = { on = "PLAYED", unless = "name == turn", say = "it is {known}'s turn" }
other-card = { on = "PLAYED", unless = "wanted.{name} == card", say = "{name} wanted {known}" }
not-held = { on = "PLAY", unless = "card in private.{who}.hand", say = "{who} has {known}" }
wrong-count = { on = "END", unless = "points == count", say = "{known} cards were played" }
"""
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
    "turns": Conversation(dissector_of(TURNS)).send(*SEATED, *ROUND, *ROUND),
    "noughts": Conversation(dissector_named("noughts"), "\r\n", 3333).send(*SQUARES),
    "noughts as a plug-in": Conversation(NOUGHTS, "\r\n", 3333).send(*SQUARES),
}


@pytest.mark.full(but=1)
@DIRECTIONS
@pytest.mark.parametrize("name", [*TALKS][::-1])
def test_protocol_files_and_plugins(name: str, direction: Direction) -> None:
    talk = TALKS[name]
    check(game_from(talk.items, [talk.dissector]), direction, times(100_000, 12))


@DIRECTIONS
def test_the_protocol_file_of_the_documents(direction: Direction) -> None:
    file = dissector_of((ROOT / "docs/examples/roborally.toml").read_text())
    check(game_of("roborally-1.pcap.gz", file), direction, times(1000, 8))


# The state becomes certain again.

CERTAIN_AGAIN = [
    # A value that is put again.
    ("a< \ufeffTURN ann", ["*< TURN ann", "b> PLAY 3"], ["not-your-turn"]),
    ("a< \ufeffTURN ann", ["*< TURN ann", "*< PLAYED ben 3"], ["out-of-turn"]),
    ("a> \ufeffBID 3", ["a> BID 4", "*< BIDS ann 5"], ["other-bid"]),
    ("a> BID x", ["b> BID 4", "*< BIDS ben 5"], ["other-bid"]),
    # A value that no message of that side can put.
    ("a> PLAYED", ["*< TURN ann", "b> PLAY 3"], ["not-your-turn"]),
    ("b> PLAYED", ["*< TURN ben", "b> PLAY 1"], ["not-held"]),
    # A value that follows from one in doubt is in doubt, as is what depends on it.
    ("*< NOTHING", ["*< TURN ann", "a> PLAY 1", "*< PLAYED ann 1", "*< END ann 9"], []),
    ("a> NOTHING", ["*< TURN ann", "a> PLAY 1", "*< PLAYED ann 1", "*< END ann 9"], ["wrong-count"]),
    # Another game.
    ("*< NOTHING", ["*< END ann 0", "*< START", "*< TURN ann", "*< END ann 9"], ["wrong-count"]),
]


@pytest.mark.parametrize(("unread", "then", "codes"), CERTAIN_AGAIN)
def test_doubt_ends(unread: str, then: list[str], codes: list[str]) -> None:
    talk = Conversation(dissector_of(TURNS))
    talk.send(*SEATED, "*< START", "a< DEAL 1,2", "b< DEAL 3,4", "a> BID 1", "b> BID 2", unread, *then)
    broken = {one.message_id for one in talk.found().diagnostics if one.group == "malformed"}
    assert [one.code for one in talk.found().diagnostics if one.message_id not in broken] == codes
