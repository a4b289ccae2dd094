"""Conversations as text files, with the events, diagnostics and state that follow.

A file contains blocks, each with a title after `==`. Unindented lines are steps, a millisecond apart:

    a > ROLL␊                 the client a sends; b < ROLLED 3␊ is the server's message to b
    a b < ROLLED 3␊           a copy to each, a tenth of a millisecond apart
    +250 a > ROLL␊            250 ms after the step before
    a !< 20                   20 bytes to a are lost; !> from a; with ?, how many is unknown
    a . reset                 the connection of a ends; port-unreachable: a message is rejected
    as: TITLE                 the steps of another block, without its findings and its end
    as: TITLE, 7-12           its steps 7 to 12, of a variation; 7-, all from there on
    only a b                  in the first line: only these connections are captured
    end                       the capture ends

Indented lines are findings, which KIEBITZ_SNAPSHOTS=write rewrites. `a:9001` is a connection to another port.
Of a variation only what differs from the other block follows: below `as` the messages and findings that the
other one does not have (`+`), in the end those that are missing (`-`), and other games.
A block with the title `protocol NAME` is a protocol file; the step `by NAME` in another block is about it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from conversation import Conversation, games_of, state_of
from file_conversations import dissector_of
from snapshots import DATA, as_bytes, compare, marked

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import Direction, Event, Fault, Findings, Game
from kiebitz.dissectors.testing import check_consistent

PROTOCOLS = DATA / "protocol_files" / "protocols.txt"
"""Protocol files of tests that are about single messages."""

_AS = re.compile(r"as: (?P<title>.+?)(?:, (?P<first>\d+)-(?P<last>\d*))?")
_STEP = re.compile(r"(?:\+(?P<ms>[\d.]+) )?(?P<names>.+?) (?P<sign>!?[<>]|\.) (?P<text>.*)")


class Block(NamedTuple):
    """A block of a file: its title, its text, and its steps."""

    path: Path
    title: str
    text: str

    @property
    def steps(self) -> list[str]:
        """The lines without the findings."""
        return [step for step, _ in self.found]

    @property
    def found(self) -> list[tuple[str, list[str]]]:
        """The steps, each with the findings below it; some blocks have findings alone."""
        found: list[tuple[str, list[str]]] = []
        for line in filter(None, self.text.splitlines()):
            if not line.startswith("    "):
                found.append((line, []))
            elif found:
                found[-1][1].append(line[4:])
        return found

    @property
    def all_steps(self) -> tuple[str, ...]:
        """The steps that are fed but the end, with those of other blocks."""
        return _all_steps(self)

    def repeated(self, copied: re.Match[str]) -> tuple[Block, range]:
        """Return the block that a step repeats, and the indices of its steps."""
        other = blocks(self.path)[copied["title"]]
        end = int(copied["last"] or len(other.all_steps))
        assert end <= len(other.all_steps), f"{self.path}: {other.title} has no step {end}"
        return other, range(int(copied["first"] or 1) - 1, end)


@cache
def _all_steps(block: Block) -> tuple[str, ...]:
    steps: list[str] = []
    for step in block.steps:
        if copied := _AS.fullmatch(step):
            other, numbers = block.repeated(copied)
            steps += [other.all_steps[number] for number in numbers]
        elif step != "end" and not step.startswith(("#", "by ", "only ")):
            steps.append(step)
    return tuple(steps)


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


def frames_by(path: Path, *names: str) -> list[bytes]:
    """Return the different messages of all conversations by some protocol files."""
    found: dict[bytes, None] = {}
    for block in conversations(path):
        if block.steps[0].removeprefix("by ") in names:
            steps = (_STEP.fullmatch(step) for step in block.all_steps)
            found |= {as_bytes(step["text"]): None for step in steps if step and step["sign"] in "<>"}
    return [*found]


def check(block: Block, made: str) -> None:
    """Compare the text of a block with one made anew, or write that into the file."""
    if os.environ.get("KIEBITZ_SNAPSHOTS") == "write":
        old, new = (f"== {block.title}\n{text}\n" for text in (block.text, made))
        with block.path.open("r+") as file:
            # Other processes write other blocks.
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            # Another test may have written the same.
            assert old in text or new in text, f"{block.title} has no text that ends with an empty line"
            text = text.replace(old, new)
            file.seek(0)
            file.truncate()
            file.write(text)
    else:
        compare(f"{block.path.name}: {block.title}", block.text, made)


def check_below(block: Block, lines: Iterable[str]) -> None:
    """Check that a block has these lines, indented, below its steps."""
    below = (f"    {marked(line.encode(), ()) or '␊'}" for line in lines)
    check(block, "\n".join([*block.steps, *below]))


Line = tuple[bool, str | Event]
"""A finding, and whether it is a message, which only variations show."""


class _Play:
    """A conversation whose steps are fed one by one."""

    def __init__(self, talk: Conversation, heard: frozenset[str]) -> None:
        self.talk = talk
        self.heard = heard
        self.found = Findings()
        self.lines: list[list[Line]] = []
        """The findings after each step."""
        self.games: list[dict[int, str]] = [{}]
        """The games before the first step, and after each, as lines."""
        self._copies: dict[int, list[int]] = {}
        """The steps in which messages report an event."""

    def take(self, step: str) -> list[Line]:
        """Feed a step, and return what is found."""
        _feed(self.talk, step, self.heard)
        new = self.talk.inspector.drain()
        for name in Findings.__struct_fields__:
            getattr(self.found, name).extend(getattr(new, name))
        names = {stream.id: name for (name, _), stream in self.talk.streams.items()}
        lines: list[Line] = []
        for message in new.messages:
            sign = ">" if message.direction == "c2s" else "<"
            said = f"{names[message.stream.id]} {sign} {message.name} {message.fields_json}"
            lines.append((True, f"    {said}"))
            if message.event_id is not None:
                self._copies.setdefault(message.event_id, []).append(len(self.lines))
        lines += [(False, event) for event in new.events]
        lines += [(False, line) for line in _diagnostics(new, self.found)]
        self.lines.append(lines)
        self.games.append(self.games[-1] | {game.id: game_line(game) for game in new.games})
        return lines

    def text(self, line: str | Event, last: int | None = None) -> str:
        """Return an event as a line, with its copies until the last step; and lines as they are."""
        if isinstance(line, Event):
            steps = self._copies.get(line.id, [])
            copies = len(steps) if last is None else sum(step < last for step in steps)
            return _event(self.talk, line, copies)
        return line


@cache
def _alone(new: Callable[[], Conversation], block: Block, heard: frozenset[str]) -> _Play:
    """Return a block that is repeated by others, by itself."""
    play = _Play(new(), heard)
    for step in block.all_steps:
        play.take(step)
    return play


def played(block: Block, new: Callable[[], Conversation]) -> str:
    """Return the steps of a block, each followed by its findings."""
    first = block.steps[0]
    heard = frozenset(first.split(" ")[1:]) if first.startswith("only ") else frozenset[str]()
    play = _Play(new(), heard)
    repeated: dict[str, set[int]] = {}
    shown: list[tuple[str, bool, str | Event]] = []
    for step in block.steps:
        shown.append(("step", False, step))
        copied = _AS.fullmatch(step)
        if not copied:
            shown += [("own", *line) for line in play.take(step)]
            continue
        other, numbers = block.repeated(copied)
        found = [line for number in numbers for line in play.take(other.all_steps[number])]
        if copied["first"]:
            repeated.setdefault(other.title, set()).update(numbers)
            shown += [("repeated", *line) for line in found]
    check_consistent(play.talk.dissector, play.found)
    missing: Counter[str] = Counter()
    ends = [game_line(game) for game in games_of(play.found)]
    for title, covered in repeated.items():
        alone, last = _alone(new, blocks(block.path)[title], heard), max(covered) + 1
        missing.update(
            alone.text(line, last)
            for number, lines in enumerate(alone.lines[:last])
            for is_message, line in lines
            if number in covered or not is_message
        )
        ends = [game for game in ends if game not in alone.games[last].values()]
    texts: list[str] = []
    for kind, is_message, line in shown:
        text = play.text(line)
        if kind == "step":
            texts.append(text)
        elif kind == "own" and not is_message:
            texts.append(marked(text.encode(), ()))
        elif kind == "repeated" and not missing[text]:
            texts.append(marked(f"    + {text.removeprefix('    ')}".encode(), ()))
        missing[text] -= kind != "step" and missing[text] > 0
    ends = [*(f"    - {line.removeprefix('    ')}" for line in missing.elements()), *ends]
    if not repeated:
        ends += [f"    {name} {as_json(value)}" for name, value in state_of(play.found).items()]
    return "\n".join([*texts, *(marked(line.encode(), ()) for line in ends)])


def _feed(talk: Conversation, text: str, heard: Collection[str] = ()) -> None:
    if text == "end":
        talk.inspector.finish()
    if text == "end" or text.startswith(("#", "by ", "only ")):
        return
    step = _STEP.fullmatch(text)
    assert step, f"no step: {text}"
    after_ms = float(step["ms"] or 1)
    direction: Direction = "c2s" if ">" in step["sign"] else "s2c"
    for name in step["names"].split(" "):
        client, _, port = name.partition(":")
        if heard and client not in heard:
            talk.wait(after_ms / 1000)
        elif step["sign"] == ".":
            talk.wait((after_ms - 1) / 1000)
            if step["text"] == "port-unreachable":
                talk.feed(Fault(talk.stream(client), "c2s", talk.now_ns, 0, step["text"], "nobody there"))
            else:
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


def game_line(game: Game) -> str:
    end = "goes on" if game.ended_ns is None else f"ends {as_json(game.result)}"
    return f"    game {game.id} {game.label}: {end}"


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
