"""Held messages edited field by field: what can be edited, what is asked for, and what does not fit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from conversation_files import Block, blocks, check
from held_messages import held_message
from snapshots import DATA, as_bytes

from kiebitz.cli.held_fields import answers, assigned, misfits, patience, receiver, sender, slots


def made(block: Block) -> Iterator[str]:
    first, *edits = block.steps
    head, sign, data = re.fullmatch(r"(.*?) ?([<>]) (.*)", first).groups()  # type: ignore[union-attr]
    message = held_message(
        1,
        as_bytes(data),
        "c2s" if sign == ">" else "s2c",
        protocol="catan" if head == "catan" else "maexchen",
        who=None if head == "unnamed" else "alice",
    )
    yield first
    yield f"    {sender(message)} → {receiver(message)}; {patience(message) or 'no peer waits'}"
    values = {slot.field: slot.value for slot in slots(message)}
    yield f"    {json.dumps(values, ensure_ascii=False)}"
    yield f"    answers: {', '.join(answers(message))}"
    # As they are they fit, and nothing is assigned.
    assert (misfits(message, values), assigned(message, values)) == ({}, "")
    for edit in edits:
        yield edit
        found = misfits(message, json.loads(edit))
        yield from (f"    {field}: {sentence}" for field, sentence in found.items())
        if not found:
            yield f"    assigns {assigned(message, json.loads(edit))}"


@pytest.mark.parametrize("block", blocks(DATA / "held_fields.txt").values(), ids=lambda block: block.title)
def test_held_messages_are_edited_field_by_field(block: Block) -> None:
    check(block, "\n".join(made(block)))


def test_a_message_of_very_many_values_is_edited_by_its_fields() -> None:
    many = held_message(1, fields={"board": [{"x": number} for number in range(100)], "token": "t"})
    assert [slot.field for slot in slots(many)] == ["board", "token"]
    few = held_message(1, fields={"board": [{"x": number} for number in range(2)], "token": "t"})
    assert [slot.field for slot in slots(few)] == ["board[0].x", "board[1].x", "token"]
    assert slots(held_message(1, fields={})) == []
