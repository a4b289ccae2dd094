from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import pytest
from inspected_captures import CAPTURES, inspected, items_of
from okey_broken import BROKEN, CLIENTS, Broken, script, where
from okey_talk import Talk
from strength import every

from kiebitz.dissectors.model import Chunk, Diagnostic, Direction, Findings

NEEDS_ALL = ("a tile thrice in two decks", "two begin")


class Heard(NamedTuple):
    """The findings of a conversation; `start` is where the malformed bytes begin in their direction."""

    found: Findings
    start: int
    streams: dict[str, int]


def hear(case: Broken | None, head: bool, clients: tuple[str, ...]) -> Heard:
    talk = Talk()
    start = 0
    at = where(case.place, head) if case is not None else -1
    for number, step in enumerate(script(head).steps):
        said = case is None or number != at or case.by is not None
        if step.client in clients and said:
            talk.say(step.client, step.direction, step.data)
        if case is not None and number == at:
            start = talk.offset(case.place.client, case.direction)
            talk.say(case.place.client, case.direction, case.data)
    return Heard(talk.close("end"), start, {name: stream.id for (name, _), stream in talk.streams.items()})


@cache
def unchanged(head: bool, clients: tuple[str, ...]) -> Heard:
    return hear(None, head, clients)


def added(case: Broken, heard: Heard, clients: tuple[str, ...]) -> list[Diagnostic]:
    known = Counter(
        (violation.code, violation.text) for violation in unchanged(case.head, clients).found.diagnostics
    )
    more = []
    for violation in heard.found.diagnostics:
        if known[violation.code, violation.text]:
            known[violation.code, violation.text] -= 1
        elif violation.code != "dialect":
            more.append(violation)
    return more


def told(heard: Heard, client: str, direction: Direction) -> list[tuple[str, Any, int]]:
    return [
        (message.name, message.fields, message.offset)
        for message in heard.found.messages
        if (message.stream.id, message.direction) == (heard.streams[client], direction)
    ]


@pytest.mark.parametrize("alone", [False, True], ids=["all heard", "one heard"])
@pytest.mark.parametrize("case", every(10, BROKEN), ids=lambda case: case.title)
def test_a_diagnostic_is_reported_once_and_at_the_right_byte(case: Broken, alone: bool) -> None:
    clients = (case.place.client,) if alone else CLIENTS
    if case.title in NEEDS_ALL and alone:
        return
    heard = hear(case, case.head, clients)
    (violation,) = added(case, heard, clients)
    assert (violation.code, violation.severity) == (case.code, case.severity)
    assert (violation.direction, violation.offset - heard.start, violation.length) == (
        case.direction,
        case.offset,
        case.length,
    )
    assert violation.blame == ("client" if case.direction == "c2s" else "server")
    assert violation.expected is not None
    assert violation.expected.startswith(case.expected)
    # Everything else is read as if it were not there.
    for client in clients:
        for direction in ("c2s", "s2c"):
            expected = [said[:2] for said in told(unchanged(case.head, clients), client, direction)]
            got = told(heard, client, direction)
            if (client, direction) == (case.place.client, case.direction):
                before = [said[:2] for said in got if said[2] < heard.start]
                after = [said[:2] for said in got if said[2] >= heard.start + len(case.data)]
                assert before == expected[: len(before)]
                assert after == expected[len(expected) - len(after) :]
                assert len(before) + len(after) == len(expected) - (case.by is None)
            else:
                assert [said[:2] for said in got] == expected


@pytest.mark.parametrize("name", ["okey-seed-malformed", "okey-head-malformed"])
def test_real_clients_that_send_rubbish(name: str) -> None:
    """Each line that was malformed on purpose is reported at its bytes; nothing else is an error."""
    items = items_of(f"{name}.pcap.gz")
    found = inspected(items)
    sent: dict[tuple[int, Direction], bytearray] = {}
    for item in items:
        if isinstance(item, Chunk):
            sent.setdefault((item.stream.id, item.direction), bytearray()).extend(item.data)
    truth = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    ports = {connection["conn"]: connection["local_port"] for connection in truth["connections"]}
    wrong = Counter(
        (f"127.0.0.1:{ports[event['conn']]}", bytes.fromhex(event["hex"]))
        for event in truth["events"]
        if event["ev"] == "malformed"
    )
    violations = Counter(
        violation.message_id for violation in found.diagnostics if violation.code != "dialect"
    )
    for message in found.messages:
        data = bytes(
            sent[message.stream.id, message.direction][message.offset : message.offset + message.length]
        )
        key = (message.stream.client, data.rstrip(b"\r\n"))
        if message.direction == "c2s" and wrong[key]:
            # A line that is sent twice was right the first time.
            accepted = data.startswith((b"CATC b ", b"DRAW m", b"LLOB", b"PUTT 0:YELLOW"))
            assert violations[message.id] or accepted, data
    errors = [violation for violation in found.diagnostics if violation.severity == "error"]
    for violation in errors:
        [message] = [message for message in found.messages if message.id == violation.message_id]
        data = bytes(
            sent[message.stream.id, message.direction][message.offset : message.offset + message.length]
        )
        assert wrong[message.stream.client, data.rstrip(b"\r\n")]
        assert violation.blame == "client"
    assert len(errors) > 40
