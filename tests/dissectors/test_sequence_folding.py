"""Copies of a broadcast become one arrow, and nothing else does."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times

from kiebitz.dissectors.sequence.model import Arrow, Note, Problem, Step, fold

SECOND = 1_000_000_000
SERVER = 9


def copy(at_ns: int, client: int, **more: Any) -> Arrow:
    fields = {"name": "ROLLED", "fields": {"dice": "2,1"}, "direction": "s2c", **more}
    return Arrow(at_ns, at_ns / SECOND, 1, server=SERVER, clients=[client], **fields)


def folded(*steps: Step, connected: int = 3) -> list[list[int]]:
    return [step.clients for step in fold(steps, lambda server, ts_ns: connected) if isinstance(step, Arrow)]


PROBLEM = Problem("error", "malformed", "it is")


@pytest.mark.parametrize(
    ("more", "arrows"),
    [
        ({}, [[0, 1, 2]]),
        ({"event": 7}, [[0, 1, 2]]),
        ({"direction": "c2s"}, [[0], [1], [2]]),
        ({"altered": "delay"}, [[0], [1], [2]]),
        ({"problems": (PROBLEM,)}, [[0], [1], [2]]),
    ],
)
def test_what_is_a_broadcast(more: dict[str, Any], arrows: list[list[int]]) -> None:
    assert folded(*(copy(client, client, **more) for client in range(3))) == arrows


def test_copies_of_one_event_may_differ() -> None:
    own = [copy(client, client, event=7, fields={"token": client, "round": 1}) for client in range(2)]
    (arrow,) = fold(own, lambda server, ts_ns: 2)
    assert isinstance(arrow, Arrow)
    assert (arrow.content, arrow.is_to_all) == ("token=… round=1", True)


def test_equal_messages_without_an_event_must_have_the_same_content() -> None:
    assert folded(copy(0, 0), copy(1, 1, fields={"dice": "6,6"}), copy(2, 2)) == [[0, 2], [1]]


def test_a_message_that_is_repeated_on_a_connection_is_another_one() -> None:
    assert folded(copy(0, 0), copy(1, 1), copy(2, 0), copy(3, 1)) == [[0, 1], [0, 1]]


def test_a_late_copy_is_a_message_of_its_own() -> None:
    assert folded(copy(0, 0), copy(2 * SECOND, 1), copy(2 * SECOND + 1, 2)) == [[0, 1], [2]]


def test_an_arrow_to_all_is_marked() -> None:
    connected = {0: 2, 1: 3, 2: 1}
    for number, (clients, is_to_all) in enumerate([([0, 1], True), ([0, 1], False), ([0], False)]):
        copies = [copy(number, client) for client in clients]
        (arrow,) = fold(copies, lambda server, ts_ns: connected[ts_ns])
        assert isinstance(arrow, Arrow)
        assert arrow.is_to_all is is_to_all


STEPS = st.lists(
    st.builds(
        lambda after, client, event, dice, direction: (after, client, event, dice, direction),
        st.integers(0, SECOND),
        st.integers(0, 3),
        st.none() | st.integers(1, 3),
        st.sampled_from(["1,1", "2,2"]),
        st.sampled_from(["c2s", "s2c", "note"]),
    ),
    max_size=40,
)


@settings(max_examples=times(300))
@given(STEPS)
def test_no_copy_is_lost_and_the_order_stays(given_steps: list[tuple[Any, ...]]) -> None:
    steps: list[Step] = []
    now = 0
    for number, (after, client, event, dice, direction) in enumerate(given_steps):
        now += after
        if direction == "note":
            steps.append(Note(now, now / SECOND, number, "a note", 0, 1))
        else:
            steps.append(copy(now, client, event=event, fields={"dice": dice}, direction=direction))
    before = Counter(client for step in steps if isinstance(step, Arrow) for client in step.clients)
    found = list(fold(steps, lambda server, ts_ns: 4))
    assert Counter(client for step in found if isinstance(step, Arrow) for client in step.clients) == before
    assert sum(isinstance(step, Note) for step in found) == sum(isinstance(step, Note) for step in steps)
    assert [step.ts_ns for step in found] == sorted(step.ts_ns for step in found)
    for step in found:
        if isinstance(step, Arrow):
            assert len(step.clients) == len({*step.clients})
            assert len(step.clients) == 1 or step.direction == "s2c"
