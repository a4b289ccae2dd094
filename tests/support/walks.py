"""Walks through a user interface as texts: what is done, `=>`, what is shown then, after `not` what is not.

A block of a file is a walk. Its first line is the session, with options such as `size=80x24`. A step is keys
(`down*3` is three), or a deed with its arguments. Words are quoted as in a shell. A step is waited for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from typing import Any, NamedTuple

from conversation_files import Block, blocks
from held_messages import QUICK_S, Relay, held_message
from processes_and_rows import until
from snapshots import DATA, as_words

_REPEATED = re.compile(r"(?P<key>.+?)(?:\*(?P<count>\d+))?")


class Step(NamedTuple):
    """A step: its words before `=>`, and the expectations that hold after it, or do not."""

    line: str
    words: list[str]
    there: list[str]
    gone: list[str]

    @property
    def keys(self) -> list[str]:
        """The keys to press."""
        found = (_REPEATED.fullmatch(word) for word in self.words)
        return [key["key"] for key in found if key for _ in range(int(key["count"] or 1))]

    def deed(self, deeds: Mapping[str, Callable[..., Any]]) -> Any:
        """Do the deed that the first word names, if it names one; else return None."""
        name, *arguments = self.words or [""]
        return deeds[name](*arguments) or True if name in deeds else None


def step_of(line: str) -> Step:
    """Return a step of a walk."""
    done, _, shown = f" {line}".partition(" => ")
    words = as_words(shown)
    split = words.index("not") if "not" in words else len(words)
    return Step(line, as_words(done), words[:split], words[split + 1 :])


class Walk(NamedTuple):
    """A walk: a session, its options, and the steps."""

    block: Block
    session: str
    options: dict[str, str]
    steps: Sequence[Step]


def walks(file: str, *sessions: str) -> dict[str, Walk]:
    """Return the walks in a file of tests/data, by their titles, whose session has one of these patterns."""
    found = ((title, _walk_of(block)) for title, block in blocks(DATA / file).items())
    return {title: walk for title, walk in found if any(fnmatch(walk.session, one) for one in sessions)}


def _walk_of(block: Block) -> Walk:
    first, *lines = block.steps
    session, *options = as_words(first)
    pairs = (option.partition("=") for option in options)
    return Walk(block, session, {name: value for name, _, value in pairs}, [*map(step_of, lines)])


def deeds_of(relay: Relay) -> dict[str, Callable[..., None]]:
    """Return what happens at a relay that holds messages.

    `hold 1 SCORE;alice:1 s2c 3.2` holds a message since 3.2 s, `held 3` three announcements; `decide drop 2`
    is another viewer's decision; `done drop 2 | let go 1` are the decisions since; `ends` ends the relay.
    """

    def hold(number: str, text: str, direction: Any = "c2s", waited_s: str = "0", who: str = "alice") -> None:
        relay.hold(held_message(int(number), text.encode(), direction, waited_s=float(waited_s), who=who))

    def held(count: str) -> None:
        relay.hold(*(held_message(n, f"ANNOUNCE;{n},1;token".encode()) for n in range(1, int(count) + 1)))

    def done(*expected: str) -> None:
        until(lambda: _words(relay.engine.done) == " ".join(expected), f"{expected} is done", QUICK_S)
        relay.engine.done.clear()

    def decide(do: Any, number: str) -> None:
        relay.do(lambda: relay.engine.act(do, int(number), ""))

    return {"hold": hold, "held": held, "done": done, "decide": decide, "ends": relay.end}


def _words(deeds: Iterable[Iterable[object]]) -> str:
    parts = ((part.decode() if isinstance(part, bytes) else str(part) for part in deed) for deed in deeds)
    return " | ".join(map(" ".join, parts))
