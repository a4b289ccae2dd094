"""Requests and their answers in protocol files: `asked` in events and rules."""

from __future__ import annotations

import pytest
from conversation import sentences, state_of
from file_conversations import Conversation, dissector_of, texts
from strength import every, times

from kiebitz.dissectors.protocol_file.game.requests import MAX_BYTES, MAX_OPEN
from kiebitz.dissectors.protocol_file.reading.errors import ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.reader import read
from kiebitz.dissectors.testing import CHECKS, EXAMPLES, Check

FILE = """protocol = "hangman"
port = 4711
[messages]
JOIN = "c: name=player"
JOINED = "s*: name=player < JOIN"
GUESS = "c: letter=text trial=integer to?=player"
HIT = "s: trial=integer n=integer < GUESS"
MISS = "s: trial=integer < GUESS"
WRONG = "s*: name=player < GUESS"
OVER = "s*: < GUESS"
VOTE = "s*: about=text"
YES = "c: < VOTE"
ERROR = "s: text=rest < GUESS JOIN"
TRIED = "s: trial=integer name?=player < GUESS"
[identity]
login = "JOIN"
[events]
hit = { on = "HIT", say = "{who}: {asked.letter} {n} times", put = { "found.{asked.letter}" = "n" } }
wrong = { on = "WRONG", say = "{name}: {asked} {asked.letter}" }
yes = { on = "YES", say = "{who} agrees: {asked.about}" }
error = { on = "ERROR", say = "{asked}: {text}" }
tried = { on = "TRIED", say = "{name} tries {asked.letter}" }
[events.miss]
on = "MISS"
when = "asked.letter != 'Q'"
say = "{who}: no {asked.letter}"
put = { last = "asked.letter" }
[events.over]
on = "OVER"
ends = true
actor = "asked.to"
result = { word = "asked.letter" }
say = "{asked.who} is over: {asked.letter}"
[rules.trial]
on = ["HIT", "MISS"]
unless = "trial == asked.trial"
say = "{trial} for {known} ({asked.letter})"
"""
BY = FILE.replace("port", 'answers = { by = "trial" }\nport')
UDP = FILE.replace("port", 'framing = "datagrams"\nport')
UDP_BY = BY.replace("port", 'framing = "datagrams"\nport')
BOTH = FILE.replace(
    "port", 'answers = [{ by = ["trial", "name"], of = ["trial", "to"] }, { by = "trial" }]\nport'
)
FILES = {"": FILE, "by": BY, "both": BOTH, "udp": UDP, "udp_by": UDP_BY}
JOINED = ("a> JOIN ann", "a< JOINED ann", "b> JOIN bob", "*< JOINED bob")


TALKS = """
# The oldest one is answered first.
a> GUESS E 1
a< HIT 1 2
= ann: E 2 times

a> GUESS E 1
a> GUESS X 2
a< MISS 1
= ann: no E
a< MISS 3
= ann: no X
! 3 for 2 (X)

a> GUESS E 1
b> GUESS X 7
a< HIT 1 2
= ann: E 2 times
b< HIT 7 1
= bob: X 1 times

# Another kind of answer answers it, too.
a> GUESS E 1
a< ERROR no
= GUESS: no
a> GUESS X 2
a< MISS 2
= ann: no X

# A condition.
a> GUESS Q 1
a< MISS 1
a> GUESS X 2
a< MISS 2
= ann: no X

# Without a request, its values are unknown.
a< HIT 1 2
= ann: ? 2 times
a< MISS 1

a> GUESS E 1
a< MISS 1
= ann: no E
a< HIT 9 1
= ann: ? 1 times

# A message to all answers the request of its player; if it names none, the only one.
a> GUESS E 1
b> GUESS X 1
*< WRONG bob
= bob: GUESS X
*< WRONG ann
= ann: GUESS E

# The only one, if the named player has asked nothing.
b> GUESS X 1
*< WRONG ann
= ann: GUESS X

b> GUESS X 1
c> GUESS Y 1
*< WRONG ann
= ann: ? ?

b> GUESS X 1 ann
*< OVER
= bob is over: X

a> GUESS E 1
b> GUESS X 1 ann
*< OVER
= ? is over: ?

# A question to all is asked on each connection.
*< VOTE war
b> YES
= bob agrees: war
a> YES
= ann agrees: war
a> YES
= ann agrees: ?

# A connection that ends takes its requests with it.
b> GUESS X 1
b.
*< OVER
= ? is over: ?

# After content that was not read, rules do not know the request; events show a guess, the newest one.
a> GUESS E 1
a! 9
a< HIT 1 1
a> GUESS X 2
a< MISS 9
= ann: no X
a> GUESS Y 3
a< MISS 9
= ann: no Y

a> GUESS E 1
a< WHAT
a> GUESS X 2
a< MISS 9
= ann: no X

# An unreadable request comes after the open ones.
a> GUESS E 1
a> GUES X 2
a< MISS 9
= ann: no E
! 9 for 1 (E)
a< MISS 9

# Other connections are certain.
a! 9
a< MISS 1
b> GUESS X 2
b< MISS 9
= bob: no X
! 9 for 2 (X)

# A reference: in any order, and certain whatever was not read.
by
a> GUESS E 1
a> GUESS X 2
a< HIT 2 1
= ann: X 1 times
a< MISS 1
= ann: no E

by
a> GUESS E 1
a< WHAT
a> GUESS X 2
a< MISS 2
= ann: no X
a< MISS 3

# Several references: two values, or one.
both
a> GUESS E 1 bob
a> GUESS X 1 ann
a> GUESS Y 2
a< TRIED 1 ann
= ann tries X
a< MISS 2
= ann: no Y
a< TRIED 1 bob
= bob tries E

# A message about another player's request, before and after its answer; each message is about another one.
a> GUESS E 1
b< TRIED 1 ann
= ann tries E
a< MISS 1
= ann: no E
b< TRIED 1 ann
= ann tries ?
a> GUESS X 2
a< MISS 2
= ann: no X
b< TRIED 2 ann
= ann tries X

# Nothing shows whose request it is, unless it repeats the reference.
a> GUESS E 1
b< TRIED 1
= ? tries ?

by
a> GUESS E 1
a> GUESS X 2
b< TRIED 1
= ? tries E
b< MISS 2
= bob: no X

# Datagrams may be lost.
udp
a> GUESS E 1
a> GUESS X 2
a< MISS 9
= ann: no X
a> GUESS Y 3
a< MISS 9
= ann: no Y

udp_by
a> GUESS E 1
a> GUESS E 1
a> GUESS X 2
a< MISS 1
= ann: no E
a< HIT 2 1
= ann: X 1 times
"""
"""Conversations: messages, after each the sentences of its events (=) and violations (!)."""


@pytest.mark.parametrize("talk", TALKS.strip().split("\n\n"), ids=lambda talk: talk.partition("\n")[0])
def test_the_answered_request(talk: str) -> None:
    lines = [line for line in talk.split("\n") if line[0] != "#"]
    dissector = dissector_of(FILES[lines.pop(0) if lines[0] in FILES else ""])
    found = Conversation(dissector).send(*JOINED, *(line for line in lines if line[0] not in "=!")).found()
    told = [event for event in found.events if event.kind != "connected"]
    assert [dissector.presentation.describe(event) for event in told] == [
        line[2:] for line in lines if line[0] == "="
    ]
    assert texts(found) == [line[2:] for line in lines if line[0] == "!"]


NAMELESS = """protocol = "village"
port = 4711
[messages]
NAME = "s:"
VOTE = "s: about=text"
"CREATE ROOM" = "c: room=text"
MADE = 's: room=text < "CREATE ROOM"'
_ = ["s: text=rest", "c: number=1..9 < VOTE", "c: text=rest < NAME"]
[events]
greeted = { on = "_", from = "server", say = "{text}" }
named = { on = "_", from = "client", when = "asked == 'NAME'", say = "a client is {text}" }
voted = { on = "_", from = "client", when = "asked == 'VOTE'", say = "{number} for {asked.about}" }
made = { on = "MADE", say = "{asked} {room}" }
"""


def test_a_message_without_a_name_is_what_was_asked_for() -> None:
    talk = Conversation(dissector_of(NAMELESS))
    talk.send("a< Welcome to the village", "a< NAME", "a> ann maria", "a< VOTE bob", "a> 3")
    talk.send("a> CREATE ROOM den", "a< MADE den", "a> ", "a> x")
    found = talk.found()
    assert [talk.dissector.presentation.describe(event) for event in found.events] == [
        "Welcome to the village",
        "a client is ann maria",
        "3 for bob",
        "CREATE ROOM den",
    ]
    names = [message.name for message in found.messages]
    assert names == ["_", "NAME", "_", "VOTE", "_", "CREATE ROOM", "MADE", "unreadable", "_"]
    assert [each.code for each in found.diagnostics] == ["empty-message"]


def test_players_without_names_are_numbered() -> None:
    text = """protocol = "nobody"
[messages]
HELLO = "c:"
SEAT = "s: colour=b|w"
MOVE = "c: x=integer"
[identity]
ROLE
[events]
moved = { on = "MOVE", say = "{who} moves to {x}" }
"""
    for role, greeting in (('login = "HELLO"', "{}> HELLO"), ('given = "SEAT"', "{}< SEAT b")):
        talk = Conversation(dissector_of(text.replace("ROLE", role)))
        for name in ("a", "b", "a"):
            talk.send(greeting.format(name), f"{name}> MOVE 1")
        # The number of a player who has left is free again.
        talk.send("a.", greeting.format("c"), "b> MOVE 2", "c> MOVE 3")
        moves = [event for event in talk.found().events if event.kind == "moved"]
        assert [talk.dissector.presentation.describe(event) for event in moves] == [
            "player 1 moves to 1",
            "player 2 moves to 1",
            "player 1 moves to 1",
            "player 2 moves to 2",
            "player 1 moves to 3",
        ]


def test_values_of_a_request_are_put_and_are_the_result() -> None:
    dissector = dissector_of(
        FILE.replace('on = "JOINED"', "").replace(
            "[events]", '[events]\nnew = { on = "JOINED", opens = true }'
        )
    )
    found = (
        Conversation(dissector)
        .send(*JOINED, "a> GUESS E 1", "a< HIT 1 2", "a> GUESS XYZ 2 bob", "*< OVER")
        .found()
    )
    assert [event.actor for event in found.events][-1] == "bob"
    assert found.games[-1].result == {"word": "XYZ"}


def test_a_put_from_a_guess_is_in_doubt() -> None:
    rule = '\n[rules.last]\non = "JOIN"\nwhen = "last == \'X\'"\nsay = "{last}"\n'
    lines = ["a> GUESS X 1", "a< MISS 1", "c> JOIN carl"]
    for text, violations in ((FILE, ["X"]), (UDP, [])):
        found = Conversation(dissector_of(text + rule)).send(*JOINED, *lines).found()
        assert texts(found) == violations
        assert state_of(found)["last"] == "X"


def test_open_requests_are_bounded() -> None:
    lines = [f"a> GUESS x{number} {number}" for number in range(MAX_OPEN + 1)]
    dissector = dissector_of(FILE)
    found = Conversation(dissector).send(*JOINED, *lines, "a< MISS 9", "a< MISS 9").found()
    # The first ones are forgotten, so that nothing is certain.
    assert sentences(dissector, found)[-1] == f"ann: no x{MAX_OPEN}"
    assert texts(found) == []


def test_the_fields_of_open_requests_are_bounded() -> None:
    letter = "x" * 200_000
    count = MAX_BYTES // len(letter)
    lines = [f"a> GUESS {letter} {number}" for number in range(count + 1)]
    answers = [f"a< MISS {number + 1}" for number in range(count + 1)]
    found = Conversation(dissector_of(FILE)).send(*JOINED, *lines, *answers).found()
    assert len(texts(found)) == count


ANSWERS_NONE = "the message answers none: its row needs < with a message of the other side"
WRITE_STATE = "write state.asked, as asked is the request that a message answers"
MISTAKES = [
    ("asked.letter", "asked.lettr", "the request has no field lettr: did you mean letter?"),
    ("asked.letter", "asked.letter.x", "letter has no part x"),
    ("asked.letter", "asked[1 + 1]", "the request has no field {…}"),
    ('n=integer < GUESS"', 'n=integer"', ANSWERS_NONE),
    ('n=integer < GUESS"', 'n=integer < MISS"', ANSWERS_NONE),
    ('by = "trial"', 'by = "trail"', "no answer has a field trail: did you mean trial?"),
    ('by = "trial"', 'by = "trial", of = "to_"', "no answered message has a field to_: did you mean to?"),
    ('by = "trial"', 'of = "trial"', "by is missing"),
    ('by = "trial"', 'by = "trial.x"', "trial has no part x"),
    ('by = "trial"', 'by = ["trial", "n"], of = "trial"', "by and of have as many fields each"),
    (
        '{ by = "trial" }',
        '[{ by = "trial" }, { by = "trail" }]',
        "no answer has a field trail: did you mean trial?",
    ),
    ("put = { last = ", "put = { asked = ", WRITE_STATE),
    ("[events]", '[board]\ntext = "{asked.letter}"\n[events]', "asked is not put by any event"),
]


@pytest.mark.parametrize(("right", "wrong", "problem"), MISTAKES)
def test_what_can_never_work_is_a_mistake(right: str, wrong: str, problem: str) -> None:
    text = BY.replace(right, wrong)
    if problem == WRITE_STATE:
        text += '[rules.state]\non = "VOTE"\nwhen = "asked == 1"\nsay = "x"\n'
    with pytest.raises(ProtocolFileError) as raised:
        read(text)
    found = raised.value.all
    assert problem in {mistake.message for mistake in found}
    for mistake in found:
        if "asked" in mistake.place.line:
            assert "asked" in mistake.place.line[mistake.place.position :][: mistake.place.length]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("text", every(1, [FILE, BY, UDP_BY]))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_properties_of_all_protocols(check: Check, text: str) -> None:
    lines = (
        "JOIN ann",
        "GUESS E 1",
        "GUESS X 2 bob",
        "HIT 1 1",
        "MISS 2",
        "WRONG ann",
        "OVER",
        "VOTE war",
        "YES",
        "ERROR x",
    )
    end = "" if "datagrams" in text else "\n"
    check(dissector_of(text), [f"{line}{end}".encode() for line in lines], times(EXAMPLES // 2, quick=2))
