from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import pytest
from conversation import Conversation
from schafkopf_broken import (
    ANY_FLAG,
    CLIENTS,
    END,
    HAND,
    MADE,
    MODELS,
    PLACES,
    Broken,
    Place,
    joined,
    row_of,
    sound,
    steps_of,
    where,
)
from strength import a_few, every, times

from kiebitz.dissectors.grammar.packet_codec import line_types
from kiebitz.dissectors.model import (
    DIRECTIONS,
    Diagnostic,
    Direction,
    Findings,
    Message,
    Severity,
)
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.protocols.schafkopf.grammar import GRAMMAR, String

ANNA = 1
"""The number of Anna's stream."""


class Heard(NamedTuple):
    """The findings of a conversation; `start` is where the malformed bytes begin."""

    found: Findings
    start: int

    def messages(self, stream: int, direction: Direction) -> list[Message]:
        return [m for m in self.found.messages if (m.stream.id, m.direction) == (stream, direction)]


def hear(place: Place, data: bytes, clients: tuple[str, ...] = CLIENTS, by: Direction | None = None) -> Heard:
    wire = Conversation(SCHAFKOPF, 35555)
    for client in CLIENTS:
        wire.stream(client)
    at = where(place)
    start = 0
    for number, step in enumerate(steps_of(place)):
        if step.client in clients and (number != at or by is not None):
            wire.say(step.client, step.direction, step.data)
        if number == at:
            start = wire.offset("Anna", by or place.direction)
            wire.say("Anna", by or place.direction, data)
    return Heard(wire.close(), start)


@cache
def unchanged(place: Place, clients: tuple[str, ...]) -> Heard:
    return hear(place, sound(place), clients)


def told(messages: list[Message]) -> list[tuple[str, Any]]:
    return [(message.name, message.fields) for message in messages]


def added(place: Place, heard: Heard, clients: tuple[str, ...]) -> list[Diagnostic]:
    known = Counter((d.code, d.text) for d in unchanged(place, clients).found.diagnostics)
    more = []
    for diagnostic in heard.found.diagnostics:
        key = diagnostic.code, diagnostic.text
        if known[key]:
            known[key] -= 1
        else:
            more.append(diagnostic)
    return more


def check(case: Broken, clients: tuple[str, ...] = CLIENTS) -> None:
    heard = hear(case.place, case.data, clients, case.by)
    (violation,) = added(case.place, heard, clients)
    assert (violation.stream.id, violation.direction) == (ANNA, case.direction)
    assert (violation.code, violation.offset - heard.start, violation.length) == (
        case.code,
        case.offset,
        case.length,
    )
    assert violation.severity == case.severity
    assert violation.blame == ("client" if case.direction == "c2s" else "server")
    assert (violation.expected is None) == (case.expected is None)
    assert (violation.expected or "").startswith(case.expected or "")
    assert_others_are_read(case, heard, clients)


def assert_others_are_read(case: Broken, heard: Heard, clients: tuple[str, ...] = CLIENTS) -> None:
    before = [
        step
        for step in steps_of(case.place)[: where(case.place) + (case.by is not None)]
        if (step.client, step.direction) == ("Anna", case.direction)
    ]
    after = len(before) + (case.by is None) + case.swallowed
    end = heard.start + len(case.data)
    for stream, _ in enumerate(clients, 1):
        for direction in DIRECTIONS:
            expected = told(unchanged(case.place, clients).messages(stream, direction))
            messages = heard.messages(stream, direction)
            if (stream, direction) != (ANNA, case.direction):
                assert told(messages) == expected
            else:
                assert told([m for m in messages if m.offset < heard.start]) == expected[: len(before)]
                rest = [m for m in messages if m.offset >= end]
                more = len(rest) - len(expected[after:])
                assert 0 <= more <= case.swallowed
                assert told(rest[more:]) == expected[after:]


def few(cases: list[Broken]) -> list[Any]:
    """Return one in thirty of the cases in `make test`."""
    return every(30, cases, lambda case: case.title)


@pytest.mark.parametrize(
    ("case", "clients"),
    a_few(
        [(case, clients) for case in HAND for clients in (CLIENTS, CLIENTS[:1])],
        lambda row: HAND.index(row[0]) % 20 == (0 if row[1] == CLIENTS else 10),
        lambda row: f"{row[0].title}-{'all' if row[1] == CLIENTS else 'one'} heard",
    ),
)
def test_a_diagnostic_is_reported_once_and_at_the_right_byte(case: Broken, clients: tuple[str, ...]) -> None:
    check(case, clients)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("case", few(MADE))
def test_a_slip_of_any_message_is_reported_once_and_at_the_right_byte(case: Broken) -> None:
    check(case, ("Anna",))


# Streams that end in a message.

ENDS = [(place, reason) for place in (*PLACES, *MODELS) for reason in ("closed", "reset", "end")]


def expected_next(place: Place, complete: list[str]) -> str:
    if not complete:
        return ANY_FLAG
    kinds = line_types(row_of(place))
    return kinds[len(complete) - 1].title if len(complete) <= len(kinds) else END


def hear_cut(place: Place, cut: int, reason: str) -> Heard:
    wire = Conversation(SCHAFKOPF, 35555)
    for client in CLIENTS:
        wire.stream(client)
    for step in steps_of(place)[: where(place)]:
        if step.client == "Anna":
            wire.say("Anna", step.direction, step.data)
    start = wire.offset("Anna", place.direction)
    if cut:
        wire.say("Anna", place.direction, sound(place)[:cut])
    return Heard(wire.close(reason), start)


def places_in(data: bytes) -> list[int]:
    places = [*range(1, len(data))]
    some = times(len(data), quick=8)
    return places if len(places) <= 2 * some else places[:some] + places[-some:]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("place", "reason"),
    a_few(
        ENDS,
        lambda row: ENDS.index(row) % 16 == 0,
        lambda row: " ".join(map(str, (*row[0], row[1]))),
    ),
)
def test_a_stream_that_ends_in_a_message(place: Place, reason: str) -> None:
    """The side that ends the stream is blamed; no side if only the capture ends."""
    data = sound(place)
    before = hear_cut(place, 0, reason)
    known = {(d.code, d.text) for d in before.found.diagnostics}
    for cut in places_in(data):
        heard = hear_cut(place, cut, reason)
        told_now = [
            d for d in heard.found.diagnostics if (d.code, d.text) not in known and d.code != "dialect"
        ]
        messages = heard.messages(ANNA, place.direction)
        assert messages[-1].offset + messages[-1].length == heard.start + cut
        if reason == "end":
            assert told_now == []
            continue
        (violation,) = told_now
        assert (violation.offset, violation.length) == (heard.start + cut, 0)
        assert violation.blame == ("client" if place.direction == "c2s" else "server")
        if cut == len(data) - 1:
            assert (violation.code, violation.severity, violation.expected) == (
                "no-line-end",
                "note",
                "a line feed",
            )
            assert messages[-1].name == place.name.partition(" ")[0]
            continue
        complete = data[:cut].decode(errors="replace").split("\n")[:-1]
        assert violation.code == "truncated"
        # A BEENDEN is often cut short, and what has begun like one may be one.
        harmless = place.name == "BEENDEN" or b"!BEENDEN".startswith(data[:cut])
        assert violation.severity == ("note" if harmless else "error")
        assert violation.expected is not None
        assert expected_next(place, complete) in violation.expected


@pytest.mark.parametrize(
    ("data", "direction", "code", "offset", "severity"),
    [
        (b"!DRAN\nx\n", "s2c", "bad-field", 6, "error"),
        (b"!DRAN\n0\n!ENDE\n", "s2c", "missing-end", 8, "error"),
        (b"!NAME\nAnna\nEND\n", "c2s", "missing-end", 11, "error"),
        (b"!KARTE\nEICHEL\n\xc2\xa7\n", "c2s", "bad-field", 14, "error"),
        (b"!NAME\nAnna\nmehr\n", "c2s", "truncated", 16, "error"),
        (b"!KARTEN", "c2s", "unknown-flag", 0, "error"),
        (b"!CHAT\nhallo", "c2s", "unknown-flag", 0, "note"),
        (b"hallo", "c2s", "stray-lines", 0, "error"),
        (b"!END", "c2s", "stray-end", 0, "note"),
        (b"!END", "s2c", "truncated", 4, "error"),
        (b"!", "s2c", "truncated", 1, "note"),
        ("!NAME\nAnna\n!END\n".encode("utf-16"), "c2s", "utf-16", 0, "error"),
        (b"!NAME\nA\xe4", "c2s", "truncated", 8, "error"),
        (b"x" * 2_000_000, "c2s", "too-long", 0, "error"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_stream_that_ends_with_a_diagnostic(
    data: bytes, direction: Direction, code: str, offset: int, severity: Severity
) -> None:
    wire = Conversation(SCHAFKOPF, 35555)
    for client in CLIENTS:
        wire.stream(client)
    wire.say("Anna", direction, data)
    (violation,) = wire.close().diagnostics
    assert (violation.code, violation.offset, violation.severity) == (code, offset, severity)


# A message that breaks off, and the next one right behind it.

BROKEN_OFF = [
    *(Place("s2c", name) for name in ("NAME", "MITSPIELER", "KONTO", "GEKLOPFT", "BESTESSPIEL", "SPIELT")),
    *(Place("s2c", "DRAN", number) for number in (0, 1)),
    *(Place("s2c", name) for name in ("ENDE", "SIEGER")),
    *(Place("c2s", name) for name in ("NAME", "ERSTE3", "SPIELSTDU", "KONTRA")),
    Place("s2c", "HOCHZEIT", rounds="hochzeit"),
    Place("c2s", "KARTE", rounds="hochzeit"),
    *MODELS,
]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    "place",
    a_few(
        BROKEN_OFF, lambda place: BROKEN_OFF.index(place) % 8 == 0, lambda place: " ".join(map(str, place))
    ),
)
def test_a_message_that_breaks_off_before_the_next_one(place: Place) -> None:
    """The diagnostics are right if a message is cut at any byte and the next one follows.

    - Cut between two lines, the next flag reports what is missing; the next message is read. A missing text
      is an
      exception if the next message has exactly the lines of a whole Paket: then it is one.
    - Cut in a line, that line and the next flag are one: the error is reported there, and the next message is
      lost. A line of text may be anything, so its error is reported after it, if at all.

    All messages after the next one are read in either case.
    """
    data = sound(place)
    following = next(
        step.data
        for step in steps_of(place)[where(place) + 1 :]
        if (step.client, step.direction) == ("Anna", place.direction)
    )
    flag = following.splitlines()[0]
    kinds = line_types(row_of(place))
    for cut in places_in(data):
        kept = data[:cut]
        heard = hear(place, kept, ("Anna",))
        violations = [
            violation for violation in added(place, heard, ("Anna",)) if violation.severity != "note"
        ]
        at = kept.rfind(b"\n") + 1
        number = kept.count(b"\n") - 1
        whole_lines = at == cut
        is_text = 0 <= number < len(kinds) and isinstance(kinds[number], String)
        case = Broken("", place, kept, "", 0, 0, None, swallowed=0 if whole_lines else 1)
        if (
            whole_lines
            and is_text
            and joined(*following.decode().splitlines()[: len(kinds) - number]) + b"!END\n" == following
        ):
            assert violations == []
            continue
        assert_others_are_read(case, heard, ("Anna",))
        if is_text and not whole_lines:
            assert len(violations) <= 1
            assert all(violation.offset - heard.start > cut for violation in violations)
            continue
        (violation,) = violations
        assert violation.blame == ("client" if place.direction == "c2s" else "server")
        if whole_lines:
            assert (violation.offset - heard.start, violation.length) == (cut, 0)
            rows = GRAMMAR.rows_named(place.direction, row_of(place).name)
            if number in [len(line_types(row)) for row in rows]:
                assert (violation.code, violation.expected) == ("missing-end", END)
            else:
                assert (violation.code, violation.expected) == ("missing-field", kinds[number].title)
        else:
            assert (violation.offset - heard.start, violation.length) == (at, cut - at + len(flag))
