"""Requests and their answers in protocol files: `asked` in events and rules."""

from __future__ import annotations

import pytest
from conversation import sentences
from file_conversations import Conversation, dissector_of, texts
from strength import every, times

from kiebitz.dissectors.protocol_file.game.requests import MAX_BYTES, MAX_OPEN
from kiebitz.dissectors.protocol_file.reading.positions import ProtocolFileError
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
UDP_BY = BY.replace("port", 'framing = "datagrams"\nport')
JOINED = ("a> JOIN ann", "a< JOINED ann", "b> JOIN bob", "*< JOINED bob")


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
