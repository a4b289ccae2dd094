"""Conversations as text files, with the events, diagnostics and state that follow.

A file contains blocks, each with a title after `==`. Unindented lines are steps, a millisecond apart:

    a > ROLL␊                 the client a sends; b < ROLLED 3␊ is the server's message to b
    a b < ROLLED 3␊           a copy to each, a tenth of a millisecond apart
    +250 a > ROLL␊            250 ms after the step before
    a !< 20                   20 bytes to a are lost; !> from a; with ?, how many is unknown
    a . reset                 the connection of a ends
    as: TITLE                 the steps of another block, without its findings
    end                       the capture ends

Indented lines are findings, which KIEBITZ_SNAPSHOTS=write rewrites. `a:9001` is a connection to another port.
A block with the title `protocol NAME` is a protocol file; the step `by NAME` in another block is about it.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from conversation import Conversation, games_of, state_of
from file_conversations import dissector_of
from snapshots import as_bytes, compare, marked

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import Direction, Event, Findings, Game
from kiebitz.dissectors.testing import check_consistent

_STEP = re.compile(r"(?:\+(?P<ms>[\d.]+) )?(?P<names>.+?) (?P<sign>!?[<>]|\.) (?P<text>.*)")


class Block(NamedTuple):
    """A block of a file: its title, its text, and its steps."""

    path: Path
    title: str
    text: str

    @property
    def steps(self) -> list[str]:
        """The lines without the findings."""
        return [line for line in self.text.splitlines() if line and not line.startswith("    ")]


@cache
def blocks(path: Path) -> dict[str, Block]:
    """Return the blocks of a file by their titles."""
    found = {}
    for text in re.split(r"^== ", path.read_text(), flags=re.MULTILINE)[1:]:
        title, _, rest = text.partition("\n")
        assert title not in found, f"{path}: {title} is there twice"
        found[title] = Block(path, title, rest.rstrip("\n"))
    return found


def conversations(path: Path) -> list[Block]:
    """Return the blocks of a file that are conversations."""
    return [block for title, block in blocks(path).items() if not title.startswith("protocol ")]


@cache
def file_dissector(path: Path, name: str) -> Dissector:
    """Return the dissector for a protocol file in a file of conversations."""
    return dissector_of(blocks(path)[f"protocol {name}"].text)


def check(block: Block, made: str) -> None:
    """Compare the text of a block with one made anew, or write that into the file."""
    if os.environ.get("KIEBITZ_SNAPSHOTS") == "write":
        old, new = (f"== {block.title}\n{text}\n" for text in (block.text, made))
        block.path.write_text(block.path.read_text().replace(old, new))
    else:
        compare(f"{block.path.name}: {block.title}", block.text, made)


def played(block: Block, talk: Conversation) -> str:
    """Return the steps of a block, each followed by its findings."""
    lines: list[str | Event] = []
    all_found = Findings()
    for step in block.steps:
        take(talk, step, block)
        found = talk.inspector.drain()
        for name in Findings.__struct_fields__:
            getattr(all_found, name).extend(getattr(found, name))
        lines.append(step)
        if not step.startswith("as: "):
            lines += [*found.events, *_diagnostics(found, all_found)]
    check_consistent(talk.dissector, all_found)
    lines += [_game(game) for game in games_of(all_found)]
    lines += [f"    {name} {as_json(value)}" for name, value in state_of(all_found).items()]
    # Copies of a message can follow.
    copies = Counter(message.event_id for message in all_found.messages)
    texts = [line if isinstance(line, str) else _event(talk, line, copies[line.id]) for line in lines]
    return "\n".join(marked(text.encode(), ()) if text.startswith("    ") else text for text in texts)


def take(talk: Conversation, step: str, block: Block) -> None:
    """Feed a step of a block."""
    if step == "end":
        talk.inspector.finish()
    elif step.startswith("as: "):
        other = blocks(block.path)[step.removeprefix("as: ")]
        for each in other.steps[:-1] if other.steps[-1] == "end" else other.steps:
            take(talk, each, other)
    elif not step.startswith(("#", "by ")):
        _feed(talk, step)


def _feed(talk: Conversation, text: str) -> None:
    step = _STEP.fullmatch(text)
    assert step, f"no step: {text}"
    after_ms = float(step["ms"] or 1)
    direction: Direction = "c2s" if ">" in step["sign"] else "s2c"
    for name in step["names"].split(" "):
        client, _, port = name.partition(":")
        if step["sign"] == ".":
            talk.wait((after_ms - 1) / 1000)
            talk.end(client, step["text"], int(port or 0))
        elif step["sign"] in "<>":
            talk.say(client, direction, as_bytes(step["text"]), after_ms, int(port or 0))
        elif step["text"] == "?":
            talk.miss_beginning(client, direction)
        else:
            talk.lose(client, direction, int(step["text"]), int(port or 0))
        after_ms = 0.1


def _diagnostics(found: Findings, all_found: Findings) -> Iterator[str]:
    starts = {message.id: message.offset for message in all_found.messages}
    for one in found.diagnostics:
        place = f"{one.offset - starts.get(one.message_id or 0, 0)}+{one.length}"
        text = " | ".join(part for part in (one.text, one.expected, one.clause) if part)
        yield f"    {one.severity} {one.code}, {one.blame}, {one.direction} {place}: {text}"


def _event(talk: Conversation, event: Event, copies: int) -> str:
    game = f" in game {event.game_id}" if event.game_id is not None else ""
    actor = f" of {event.actor}" if event.actor is not None else ""
    sentence = talk.dissector.presentation.describe(event)
    changes = "; ".join(f"{'.'.join(map(str, path))} = {as_json(value)}" for path, value in event.changes)
    return f"    {event.kind}{actor}{game}, {copies}x: {sentence} | {as_json(event.data)} | {changes}"


def _game(game: Game) -> str:
    end = "goes on" if game.ended_ns is None else f"ends {as_json(game.result)}"
    return f"    game {game.id} {game.label}: {end}"


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
