"""Regular expressions of protocol files, matched in time linear in the text, within one budget for the file.

`re` and `regex` backtrack: a few characters can keep them busy for years, and a timeout for each text is no
limit for all. So a pattern is parsed by the standard library and compiled to a non-deterministic automaton,
whose deterministic states are made when a text leads to them. Look-around, back references, and possessive
and atomic groups cannot be matched in this way, and are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, NamedTuple

from kiebitz.dissectors.filters.expressions import (
    PARSER,
    PatternWriter,
    parse_pattern,
)
from kiebitz.dissectors.game.table import LimitError

_COMPILER: Any = import_module("re._compiler")
"""The standard library's compiler of what `PARSER` has parsed."""

MAX_NODES = 1_000
"""Maximum size of a pattern: its characters and classes, with its repetitions written out."""

MAX_FILE_NODES = 20_000
"""Maximum size of all patterns of a file together."""

MAX_WORK = 2_000_000
"""Number of steps that the patterns of a file may take beyond `WORK_PER_CHARACTER`: about a second."""

WORK_PER_CHARACTER = 8
"""Number of steps per character of a text that do not count against the budget."""

_MAX_MOVES = 5_000
"""Maximum number of cached moves of a pattern."""

_REFUSED = {
    "ASSERT": "look-around",
    "ASSERT_NOT": "look-around",
    "GROUPREF": "back references",
    "GROUPREF_EXISTS": "back references",
    "POSSESSIVE_REPEAT": "possessive repetitions",
    "ATOMIC_GROUP": "atomic groups",
}


class Budget:
    """The budget of all patterns of one protocol file."""

    def __init__(self) -> None:
        self._nodes = MAX_FILE_NODES
        self._work = MAX_WORK
        self._patterns: dict[tuple[str, bool], Pattern] = {}

    def pattern(self, text: str, whole: bool) -> Pattern:
        """Return a compiled pattern. Raises ValueError with a sentence if it is none, or too large."""
        found = self._patterns.get((text, whole))
        if found is None:
            parsed = _parsed(text)
            size = PatternWriter().size(parsed)
            if size > MAX_NODES:
                raise ValueError(
                    f"with its repetitions written out this pattern has over {MAX_NODES:,} characters"
                )
            self._nodes -= size
            if self._nodes < 0:
                raise ValueError(
                    "with their repetitions written out the patterns of this file have over"
                    f" {MAX_FILE_NODES:,} characters"
                )
            found = self._patterns[text, whole] = Pattern(parsed, whole, self)
        return found

    def charge(self, steps: int) -> None:
        """Take steps off the budget. Raises LimitError if nothing is left."""
        self._work -= steps
        if self._work < 0:
            raise LimitError("the regular expressions of the protocol file take too long")

    def refill(self, characters: int) -> None:
        """Allow the steps for a text of this length."""
        self._work = min(MAX_WORK, self._work + WORK_PER_CHARACTER * characters)


_current: ContextVar[Budget | None] = ContextVar("budget of patterns", default=None)


@contextmanager
def one_budget() -> Iterator[None]:
    """Let all patterns that are compiled in the context share a budget."""
    token = _current.set(Budget())
    try:
        yield
    finally:
        _current.reset(token)


def matcher(pattern: str, whole: bool = True) -> Callable[[str], bool]:
    """Return a predicate of texts that a pattern matches as a whole, or that contain it.

    It raises LimitError if the file's patterns have used up their budget.

    Raises:
        ValueError: The text is no pattern, or one that is not available; the text is a sentence.
    """
    try:
        return (_current.get() or Budget()).pattern(pattern, whole).matches
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _parsed(text: str) -> Any:
    try:
        return parse_pattern(text)
    except RecursionError as error:
        raise ValueError(f"not a regular expression: {error}") from None


class _Node(NamedTuple):
    """A node of the automaton: one that reads a character, has conditions, or leads on at once.

    A condition is on what is before and after a place in a text: a `_side`, or nothing at the text's end.
    """

    test: Callable[[str], object] | None
    condition: Callable[[str, str], object] | None
    following: tuple[int, ...]


def _side(character: str) -> str:
    """Return a character that is like another one in all conditions."""
    if character == "\n":
        return character
    if not (character.isalnum() or character == "_"):
        return " "
    return "a" if character.isascii() else "ä"


class _State:
    """A deterministic state: the nodes that may be next, after a character of some kind."""

    __slots__ = ("before", "moves", "nodes")

    def __init__(self, nodes: frozenset[int], before: str) -> None:
        self.nodes = nodes
        self.before = before
        self.moves: dict[str, _State] = {}


class Pattern:
    """A compiled pattern."""

    def __init__(self, parsed: Any, whole: bool, budget: Budget) -> None:
        self._budget = budget
        self._nodes: list[_Node] = []
        self._has_conditions = False
        end = self._final = self._add(_Node(None, None, ()))
        if not whole:
            end = self._any(end)
        first = self._sequence(parsed, parsed.state.flags, end)
        if not whole:
            first = self._any(first)
        self._first = frozenset((first,))
        self._forget()

    def matches(self, text: str) -> bool:
        """Return True if the text matches. Raises LimitError if the budget is used up."""
        self._budget.refill(len(text))
        state = self._start
        last = len(text) - 1
        for place, character in enumerate(text):
            key = character
            if character == "\n" and place == last and self._has_conditions:
                # `$` matches before it.
                key = "\n\n"
            following = state.moves.get(key)
            state = following if following is not None else self._move(state, character, key)
            if not state.nodes:
                return False
        return self._final in self._reachable(state, "")

    def _forget(self) -> None:
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._moves = 0
        self._start = self._state(self._first, "")

    def _state(self, nodes: frozenset[int], before: str) -> _State:
        key = nodes, before
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = _State(nodes, before)
        return found

    def _move(self, state: _State, character: str, key: str) -> _State:
        side = _side(character) if self._has_conditions else ""
        # A line feed is the last one if nothing follows it.
        after = side + " " if key == "\n" else side
        reached: set[int] = set()
        for number in self._reachable(state, after):
            node = self._nodes[number]
            if node.test is not None and node.test(character):
                reached.update(node.following)
        self._moves += 1
        if self._moves > _MAX_MOVES:
            self._forget()
        found = self._state(frozenset(reached), side)
        state.moves[key] = found
        return found

    def _reachable(self, state: _State, after: str) -> set[int]:
        """Return the nodes that can be reached without a character."""
        seen = set(state.nodes)
        waiting = [*seen]
        while waiting:
            node = self._nodes[waiting.pop()]
            if node.test is not None or (
                node.condition is not None and not node.condition(state.before, after)
            ):
                continue
            for number in node.following:
                if number not in seen:
                    seen.add(number)
                    waiting.append(number)
        self._budget.charge(len(seen))
        return seen

    # Compilation, from the end to the beginning: each part gets the number of the node after it.

    def _add(self, node: _Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _any(self, after: int) -> int:
        """Add a repetition of any character."""
        loop = self._add(_Node(None, None, (after, len(self._nodes) + 1)))
        self._add(_Node(lambda character: True, None, (loop,)))
        return loop

    def _sequence(self, parts: Iterable[Any], flags: int, after: int) -> int:
        for kind, value in reversed([*parts]):
            after = self._part(str(kind), value, flags, after)
        return after

    def _part(self, kind: str, value: Any, flags: int, after: int) -> int:
        if kind in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return self._add(_Node(self._test(kind, value, flags), None, (after,)))
        if kind == "BRANCH":
            choices = tuple(self._sequence(branch, flags, after) for branch in value[1])
            return self._add(_Node(None, None, choices))
        if kind == "SUBPATTERN":
            _, added, removed, inner = value
            return self._sequence(inner, (flags | added) & ~removed, after)
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = value
            return self._repeat(int(least), most, inner, flags, after)
        if kind == "AT":
            self._has_conditions = True
            place = _compiled(kind, value, flags)
            return self._add(
                _Node(None, lambda before, after: place.match(before + after, len(before)), (after,))
            )
        if kind == "FAILURE":
            return self._add(_Node(None, None, ()))
        title = _REFUSED.get(kind, kind)
        raise ValueError(f"{title} in regular expressions are not available in protocol files")

    def _repeat(self, least: int, most: Any, inner: Any, flags: int, after: int) -> int:
        entry = after
        if most == PARSER.MAXREPEAT:
            entry = self._add(_Node(None, None, ()))
            body = self._sequence(inner, flags, entry)
            self._nodes[entry] = _Node(None, None, (body, after))
        else:
            for _ in range(int(most) - least):
                entry = self._add(_Node(None, None, (self._sequence(inner, flags, entry), after)))
        for _ in range(least):
            entry = self._sequence(inner, flags, entry)
        return entry

    def _test(self, kind: str, value: Any, flags: int) -> Callable[[str], object]:
        if kind == "LITERAL" and not flags & re.IGNORECASE:
            return chr(value).__eq__
        # A single character cannot keep it busy.
        return _compiled(kind, value, flags).fullmatch


def _compiled(kind: str, value: Any, flags: int) -> re.Pattern[str]:
    """Return the standard library's pattern of one part."""
    state = PARSER.State()
    state.flags = flags
    parsed = PARSER.SubPattern(state, [(getattr(PARSER, kind), value)])
    compiled: re.Pattern[str] = _COMPILER.compile(parsed, flags)
    return compiled
