"""The state of a protocol file's table: paths with values, doubt about them, the game, limits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.game.context import GameContext, label
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.game.table import LimitError
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.grammar.sentences import value_at
from kiebitz.dissectors.model import Game
from kiebitz.dissectors.protocol_file.expressions import Pattern, Scope
from kiebitz.dissectors.protocol_file.game.plan import GAMES, KEPT, ROOMS, PutPlan
from kiebitz.dissectors.protocol_file.values import index, step_text

MAX_CERTAIN = 1000
"""Maximum number of paths that are known to be certain again."""


class PathDoubt(msgspec.Struct, eq=False):
    """The values in doubt: those at the paths of `patterns`, unless they were put since."""

    _patterns: dict[Pattern, None] = {}
    _certain: dict[tuple[str, ...], None] = {}

    def __bool__(self) -> bool:
        """Return True if any value is in doubt."""
        return bool(self._patterns)

    def begin(self, patterns: Collection[Pattern]) -> None:
        """Doubt the values at these paths."""
        self._patterns.update(dict.fromkeys(patterns))
        for path in [path for path in self._certain if any(_meets(path, other) for other in patterns)]:
            del self._certain[path]

    def end(self, path: Sequence[str]) -> None:
        """Note that the value at a path is certain, with all values in it."""
        if not self._patterns:
            return
        end = len(path)
        for pattern in [other for other in self._patterns if other[:end] == tuple(path)]:
            del self._patterns[pattern]
        if any(_meets(path, pattern) for pattern in self._patterns):
            self._certain[tuple(path)] = None
            if len(self._certain) > MAX_CERTAIN:
                del self._certain[next(iter(self._certain))]

    def keep(self, first_steps: Collection[str]) -> None:
        """Keep only the doubt about values below these first steps of a path."""
        self._patterns = {pattern: None for pattern in self._patterns if pattern[0] in first_steps}
        self._certain = {path: None for path in self._certain if path[0] in first_steps}

    def covers(self, path: Sequence[str]) -> bool:
        """Return True if the value at a path, or a value in it, is in doubt."""
        return any(_meets(path, pattern) for pattern in self._patterns) and not any(
            tuple(path[:end]) in self._certain for end in range(1, len(path) + 1)
        )


class UnfinishedMessage(msgspec.Struct, eq=False):
    """The same doubt while a message of the other side is arriving, which may change `patterns`."""

    _doubt: PathDoubt
    _patterns: Collection[Pattern]

    def covers(self, path: Sequence[str]) -> bool:
        """Return True if the value at a path, or a value in it, is in doubt."""
        return any(_meets(path, pattern) for pattern in self._patterns) or self._doubt.covers(path)


def _meets(path: Sequence[str], pattern: Pattern) -> bool:
    """Return True if a path and a pattern lead to the same value, or one to a part of the other's."""
    return all(step is None or step == key for key, step in zip(path, pattern, strict=False))


MAX_STATE = 1 << 20
"""Maximum size of a table's state as JSON in bytes, and of everything that one message puts into it."""

MAX_VALUE = 64 << 10
"""Maximum size of a single value that is put, as JSON in bytes."""

_CHANGE_BYTES = 100
"""Memory in bytes that a change takes without its value."""

MAX_KEYS = 1000
"""Maximum number of keys of an object of the state to which events add keys."""


class Budget(msgspec.Struct):
    """Data that the parts of a table's state share.

    Attributes:
        keys: Keys of the table's state that have the parts of games, and of rooms if there are any.
        grown: Bytes that were put since the state was measured.
        put: Bytes that the current message has put.
    """

    keys: tuple[str, ...] = (GAMES,)
    grown: int = 0
    put: int = 0


class Opening(msgspec.Struct):
    """The beginning of the running game, if each client may receive a message of its own about it.

    As long as nothing else has happened, a client that leaves does not change which others
    are still to be told.
    """

    kind: str
    message: str
    told: set[int]
    awaited: Collection[int] | None = None
    """The streams that may still be told, once a client has left."""
    is_past: bool = False
    """True if other messages have had events since."""


class GameState(msgspec.Struct, eq=False):
    """The state of a table, or of a room, with at most one running game.

    The part of a game is at `games` and its number. Paths lead into the part of the running game; if no game
    is on, into the part of the room, or the table's state. Without rooms, those that begin with `players` or
    `private` always lead into the table's state. What exceeds a limit raises LimitError before it is copied.
    """

    _context: GameContext
    budget: Budget
    room: str | None = None
    game: Game | None = None
    doubt: PathDoubt = msgspec.field(default_factory=PathDoubt)
    """The doubt about values of the state."""
    opening: Opening | None = None

    @property
    def states(self) -> Sequence[Mapping[str, Any]]:
        """The parts in which a path is looked up, in this order."""
        if self.game is None and self.room is None:
            return (self._context.state,)
        return self._part(), self._context.state

    @property
    def _home(self) -> tuple[str, ...]:
        """The path of the part of the running game, of the room, or of the table."""
        if self.game is not None:
            return GAMES, str(self.game.id)
        return () if self.room is None else (ROOMS, self.room)

    def _part(self) -> State:
        part = value_at(self._context.state, self._home)
        return part if isinstance(part, dict) else {}

    def has_begun(self, kind: str, receiver: int | None) -> bool:
        """Return True if the game began with a message to other clients, which this stream receives now."""
        opening = self.opening
        if self.game is None or opening is None or receiver is None:
            return False
        is_awaited = opening.awaited is None or receiver in opening.awaited
        if opening.kind != kind or receiver in opening.told or not is_awaited:
            return False
        opening.told.add(receiver)
        return True

    def leave(self, others: Collection[int]) -> None:
        """Handle that a client leaves; `others` are the streams that remain."""
        opening = self.opening
        if opening is not None and opening.awaited is None:
            opening.awaited = () if opening.is_past else tuple(others)

    def put_all(self, plans: Sequence[PutPlan], scope: Scope) -> None:
        """Make changes of the state, all by the values before them; a path with an unknown step is none."""
        changes = []
        for plan in plans:
            expression = plan.expression
            scope.is_doubtful = False
            value = plan.value if expression is None else expression(scope)
            steps = plan.keys or [step(scope) if callable(step) else step for step in plan.steps]
            changes.append((plan, steps, value, scope.is_doubtful))
        for plan, steps, value, is_doubtful in changes:
            if is_doubtful:
                self.doubt.begin([plan.path])
            if plan.keys is not None:
                self.set(value, plan.keys, is_doubtful)
                continue
            for each, part in _single(steps, value, plan.is_computed):
                self.set(part, [label(step_text(step)) for step in each], is_doubtful)

    def set(self, value: Any, keys: Sequence[str], is_doubtful: bool = False) -> None:
        """Set a value at a path, or remove it if it is None."""
        if not is_doubtful:
            self.doubt.end(keys)
        if keys[0] in self.budget.keys:
            # The keys of the running games, and of rooms.
            keys = (f"{keys[0]}_", *keys[1:])
        above = () if self.room is None and keys[0] in KEPT else self._home
        value = self._limited(value)
        place: Any = self._context.state
        for step in above:
            place = place.get(step, {})
        for number, key in enumerate(keys):
            if isinstance(place, list):
                # A list is replaced as a whole, as changes have no indexes.
                changed = _replaced(place, keys[number:], value)
                if changed is not None:
                    self._charge(len(to_json(changed)))
                    self._context.set_state(changed, *above, *keys[:number])
                return
            if not isinstance(place, dict):
                break
            if value is not None and len(place) >= MAX_KEYS and key not in place:
                return
            place = place.get(key)
        self._set(value, (*above, *keys))

    def add_player(self, name: str) -> None:
        """Add a player of whom nothing else is known."""
        if name not in self._entries("players"):
            self.set({}, ("players", name))

    def _set(self, value: Any, path: tuple[str, ...]) -> None:
        if not isinstance(value, dict) or not any(isinstance(part, dict) for part in value.values()):
            self._context.set_state(value, *path)
            return
        if len(path) > _MAX_DEPTH:
            return
        # Each object belongs to the state alone, so that later changes do not alter this one.
        self._context.set_state({}, *path)
        for key, part in value.items():
            self._set(part, (*path, key))

    def _limited(self, value: Any) -> Any:
        """Return a value as the state keeps it."""
        if isinstance(value, str):
            value = label(value)
            self._charge(len(value))
            return value
        size = len(to_json(value)) if isinstance(value, dict | list | tuple) else 0
        if size > MAX_VALUE:
            raise LimitError(f"a value of {size:,} bytes is put, and {MAX_VALUE:,} are allowed")
        self._charge(size)
        return value

    def _charge(self, size: int) -> None:
        """Count a change before it is made."""
        self.budget.put += size + _CHANGE_BYTES
        self._context.decoded_bytes += size + _CHANGE_BYTES
        if self.budget.put > MAX_STATE:
            raise LimitError(f"one message puts more than {MAX_STATE:,} bytes")

    def begin_message(self) -> None:
        """Begin to count what a message puts."""
        self.budget.put = 0

    def measure(self) -> None:
        """Raise LimitError if the state has become too large."""
        self.budget.grown += self.budget.put
        if self.budget.grown > MAX_STATE:
            size = len(to_json(self._context.state))
            # It is measured again when as much was put as is left.
            self.budget.grown = size
            if size > MAX_STATE:
                raise LimitError(f"the state has more than {MAX_STATE:,} bytes")

    def open(self, label: str, ts_ns: int) -> Game:
        """Begin a game; what was put since the last one belongs to it."""
        context = self._context
        if self.room is None:
            of_table = {*KEPT, *self.budget.keys}
            before = {key: value for key, value in context.state.items() if key not in of_table}
        else:
            before = dict(self._part())
        self._charge(len(to_json(before)))
        if self.room is not None:
            context.set_state(None, *self._home)
        for key in before if self.room is None else ():
            context.set_state(None, key)
        self.game = context.open_game(label, ts_ns)
        above = (GAMES, str(self.game.id))
        context.set_state({}, *above)
        for key, value in before.items():
            self._set(value, (*above, key))
        return self.game

    def close(self, result: dict[str, Any], ts_ns: int) -> None:
        """End the game, if one is on, and remove its state."""
        game = self.game
        if game is not None:
            game.ended_ns, game.result = ts_ns, result
            self._context.changed_game(game)
            self._context.set_state(None, GAMES, str(game.id))
        self.game = None
        self.doubt.keep(KEPT if self.room is None else ())
        if self.room is None:
            for key in [key for key in self._context.state if key not in ("players", *self.budget.keys)]:
                self._context.set_state(None, key)

    def drop(self, ts_ns: int) -> None:
        """Remove a room: it is the oldest of too many."""
        self.close({}, ts_ns)
        self._context.set_state(None, *self._home)

    def rename(self, old: str, new: str) -> None:
        """Replace a player's id by the name wherever the state has it."""
        state = self._context.state
        for key in [*state]:
            if key not in self.budget.keys:
                self._rename_in((key,), state.get(key), old, new)
        for above in self.budget.keys:
            for number, part in [*self._entries(above).items()]:
                for key, value in [*part.items()] if isinstance(part, dict) else ():
                    self._rename_in((above, number, key), value, old, new)

    def _rename_in(self, path: tuple[str, ...], value: Any, old: str, new: str) -> None:
        renamed = _renamed(value, old, new, 0)
        if renamed is not value:
            self._charge(len(to_json(renamed)))
            self._context.set_state(None, *path)
            self._set(renamed, path)

    def _entries(self, key: str) -> Mapping[str, Any]:
        found = self._context.state.get(key)
        return found if isinstance(found, dict) else {}


def _single(steps: Sequence[Any], value: Any, is_computed: bool) -> Iterator[tuple[Sequence[Any], Any]]:
    """Yield a path and its value; or one for each element if a step is a list.

    The value of each path then is the element in its place of a computed list, or the same for all. Nothing
    is yielded if a step is unknown, or a list does not fit.
    """
    several = [number for number, step in enumerate(steps) if isinstance(step, list | tuple)]
    if any(step is None or isinstance(step, dict | bool) for step in steps):
        return
    if not several:
        yield steps, value
        return
    (place, *others) = several
    elements = steps[place]
    is_list = is_computed and isinstance(value, list | tuple)
    if others or (is_list and len(value) != len(elements)):
        return
    for number, element in enumerate(elements[:MAX_KEYS]):
        if not isinstance(element, dict | list | tuple | bool) and element is not None:
            each = [*steps[:place], element, *steps[place + 1 :]]
            yield each, value[number] if is_list else value


_MAX_DEPTH = 40
"""Maximum number of steps of a path; what is nested deeper is not kept."""

_MAX_RENAMED_DEPTH = 3
"""Maximum depth at which ids are replaced by names."""


def _renamed(value: Any, old: str, new: str, depth: int) -> Any:
    """Return a value with a name in place of an id, or the same object if it does not have it."""
    if isinstance(value, str):
        return new if value == old else value
    if depth >= _MAX_RENAMED_DEPTH or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        parts = [_renamed(part, old, new, depth + 1) for part in value]
        return parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    renamed = {
        new if key == old and new not in value else key: _renamed(part, old, new, depth + 1)
        for key, part in value.items()
    }
    same = all(a is b for a, b in zip(renamed.values(), value.values(), strict=True))
    return value if same and [*renamed] == [*value] else renamed


def _replaced(whole: list[Any], steps: Sequence[str], value: Any) -> list[Any] | None:
    """Return a list with another value at a path within it, None if there is no such place.

    The place after the last element is one, too.
    """
    place = index(steps[0])
    if place is None or place > len(whole) or (place == len(whole) and value is None):
        return None
    if len(steps) > 1:
        inner = whole[place] if place < len(whole) else None
        if isinstance(inner, list):
            value = _replaced(inner, steps[1:], value)
            if value is None:
                return None
        else:
            value = _with(inner if isinstance(inner, dict) else {}, steps[1:], value)
    elif value is None:
        return [*whole[:place], *whole[place + 1 :]]
    return [*whole[:place], value, *whole[place + 1 :]]


def _with(whole: Mapping[str, Any], keys: Sequence[str], value: Any) -> dict[str, Any]:
    """Return an object with another value at a path of keys."""
    key, *rest = keys
    if rest:
        inner = whole.get(key)
        value = _with(inner if isinstance(inner, dict) else {}, rest, value)
    changed = {**whole, key: value}
    if value is None:
        del changed[key]
    return changed
