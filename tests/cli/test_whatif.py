"""`kiebitz whatif`: the game with messages dropped, edited or put in, and where it parts from what it was."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

import pytest
from cleanup import close_after_test, kept_until_end
from command import CAPTURES, Done, kiebitz
from conversation_files import Block, blocks, check
from hypothesis import given, settings
from hypothesis import strategies as st
from imported_databases import database_of
from snapshots import DATA
from strength import every, few_captures, times

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.editing.item_edits import Splice
from kiebitz.dissectors.model import Message
from kiebitz.storage.derived.derived_session import derive_session
from kiebitz.storage.diff import compare
from kiebitz.storage.read.message_queries import messages
from kiebitz.storage.read.timeline import Timeline

ONE_OF_EACH = (
    "maexchen-head-tiny.pcap",
    "schafkopf-1.3-1human-tiny.pcap",
    "catan-yaks-lobby.pcap.gz",
    "okey-head-tiny.pcap.gz",
    "cgml-tiny.pcap.gz",
)


def whatif(capture: str, *arguments: str) -> Done:
    return kiebitz("whatif", database_of(capture), *arguments)


def edits(numbers: Sequence[int], values: str) -> list[str]:
    return [word for number in numbers for word in ("--edit", f"#{number} {values}")]


EDITED = [*blocks(DATA / "edited_messages.txt").values()]


def edited(block: Block) -> tuple[str, Sequence[int], str]:
    """Return a capture, the numbers of messages, and the values that they all get."""
    capture, numbers, values = block.title.split(" ", 2)
    first, *others = map(int, re.findall(r"\d+", numbers))
    return capture, range(first, others[0] + 1) if "-" in numbers else (first, *others), values


@pytest.mark.full(but=1)
@pytest.mark.parametrize("block", every(9, EDITED, lambda block: block.title))
def test_the_game_is_another_from_the_edited_message_on(block: Block) -> None:
    capture, numbers, values = edited(block)
    done = whatif(capture, "--json", *edits(numbers, values))
    assert (done.status, done.err) == (3, "")
    first = done.json["differences"][0]
    assert first["sort"] == "changed"
    before, after = first["a"]["sentence"], first["b"]["sentence"]
    check(block, f"{first['kind']} {' '.join(first['fields'])}\n- {before}\n+ {after}")


BROADCAST = [block for block in EDITED if "-" in block.title.split()[1]]
"""Those of which all messages are copies sent by a server, in a row."""


@pytest.mark.parametrize("block", every(12, BROADCAST, lambda block: block.title))
def test_an_edit_of_one_copy_edits_all(block: Block) -> None:
    capture, numbers, values = edited(block)
    by_one = whatif(capture, "--json", *edits(numbers[1:2], values))
    by_all = whatif(capture, "--json", *edits(numbers, values))
    assert (by_one.status, by_one.json, by_one.err) == (3, by_all.json, "")


# Any session.


@cache
def _session(capture: str) -> Timeline:
    with kept_until_end():
        return open_session(database_of(capture))


@cache
def _messages(capture: str) -> list[Message]:
    return [*messages(_session(capture))]


@pytest.mark.parametrize("capture", few_captures(sorted(path.name for path in CAPTURES.glob("*.pcap*"))))
def test_without_an_alteration_nothing_differs(capture: str) -> None:
    timeline = _session(capture)
    other = derive_session(timeline, [], lambda _done, _all: None)
    close_after_test(other.connection)
    assert compare(timeline, other).equal


def said(rows: Iterable[Message]) -> list[tuple[object, ...]]:
    found = [(one.stream.id, one.direction, one.name, one.fields) for one in rows]
    return sorted(found, key=lambda one: one[:2])


@pytest.mark.full(but=1)
@pytest.mark.parametrize("capture", every(2, ONE_OF_EACH))
@settings(max_examples=times(15), deadline=None)
@given(data=st.data())
def test_any_message_can_be_missing(capture: str, data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(_messages(capture)))
    gone = Splice(row.stream.id, row.direction, row.offset, row.length, row.ts_ns, b"")
    other = derive_session(_session(capture), [gone], lambda _done, _all: None)
    close_after_test(other.connection)
    # Of each conversation: a message whose end was in the one that is gone is known to be whole later.
    assert said(messages(other)) == said(one for one in _messages(capture) if one.id != row.id)
    compare(_session(capture), other)
