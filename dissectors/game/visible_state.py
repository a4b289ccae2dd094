"""Visibility: the parts of a table's state that a player could know.

Addresses of clients are omitted, as players do not know them, and so are values that are computed from those
of several players.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from copy import copy
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State, seen_by, seen_change
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.field_type import IdentifierKind, KeysOf
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.grammar.sentences import value_at
from kiebitz.dissectors.identity import OTHERS
from kiebitz.dissectors.model import Change, Direction, Event, Findings, Ids, Message, Stream, TableInfo

_ADDRESS = IdentifierKind("address")
"""The handle of a client's address in the states of protocols."""


def revealed_changes(
    dissector: Dissector, event: Event, whole: State, names: Collection[str]
) -> list[Change]:
    """Return the parts of the state that an event reveals entirely, without the private ones of others.

    Args:
        dissector: The protocol of the event.
        event: An event of a kind that the protocol knows.
        whole: The state of the event's table after it.
        names: The names of the observer at that time.
    """
    addresses = _address_keys(dissector)
    revealed: list[Change] = []
    for path in dissector.grammar.events[event.kind].changed_paths(event.game_id, event.data):
        part = value_at(whole, path)
        if part is None or not addresses.isdisjoint(path):
            continue
        revealed.append((path, _without(part, addresses)))
    return visible_changes(dissector, revealed, names)


def initial_view(dissector: Dissector | None, whole: State, names: Collection[str]) -> State:
    """Return a table's first recorded state as a player with these names sees it."""
    addresses = _address_keys(dissector) if dissector is not None else set()
    state: State = _without(visible_state(dissector, whole, names), addresses)
    return state


def visible_state(dissector: Dissector | None, whole: State, names: Collection[str]) -> State:
    """Return a table's state as a player with these names sees it, if all its events were visible."""
    state: State = seen_by(whole, *names)
    for path in dissector.identity.hidden_state if dissector is not None else ():
        _remove(state, path, names)
    return state


def visible_changes(
    dissector: Dissector | None, changes: Iterable[Change], names: Collection[str]
) -> list[Change]:
    """Return the changes that a player with these names sees, without those private to others."""
    patterns = dissector.identity.hidden_state if dissector is not None else ()
    seen = []
    for path, value in changes:
        change = seen_change(path, value, *names)
        inside = [pattern for pattern in patterns if _agree(path, pattern, names)]
        if change is None or any(len(pattern) <= len(path) for pattern in inside):
            continue
        for pattern in inside:
            _remove(change[1], pattern[len(path) :], names)
        seen.append(change)
    return seen


def _agree(path: Sequence[str], pattern: Sequence[str | None], names: Collection[str]) -> bool:
    """Return True if a path and a pattern of hidden paths are equal as far as both go."""
    return all(
        wanted is None or (step not in names if wanted == OTHERS else step == wanted)
        for step, wanted in zip(path, pattern, strict=False)
    )


def _remove(state: Any, pattern: Sequence[str | None], names: Collection[str]) -> None:
    """Remove the values at the paths that a pattern describes."""
    if not isinstance(state, dict):
        return
    for step in [step for step in state if _agree([step], pattern, names)]:
        if len(pattern) == 1:
            del state[step]
        else:
            _remove(state[step], pattern[1:], names)


def _address_keys(dissector: Dissector) -> set[str]:
    """Return the keys of a protocol's state that contain addresses of clients."""
    handles = dissector.grammar.state_identifiers
    return {key for key, handle in handles.items() if handle in (_ADDRESS, KeysOf(_ADDRESS))}


def _without(state: Any, keys: Set[str]) -> Any:
    """Return a state, or a part of one, without these keys at any depth."""
    if not isinstance(state, dict):
        return state
    return {key: _without(part, keys) for key, part in state.items() if key not in keys}


def broadcasts_only(dissector: Dissector) -> Dissector:
    """Return a dissector whose tables handle broadcasts only."""

    def table(info: TableInfo, ids: Ids, findings: Findings) -> GameTable:
        hidden = Findings()
        whole = dissector.table(info, Ids(), hidden)
        return _BroadcastTable(dissector.table(info, ids, findings), whole, hidden)

    limited = copy(dissector)
    limited.table = table
    return limited


class _BroadcastTable(GameTable):
    """A table that passes broadcasts on to another one.

    The end or the loss of one client's connection is not told to the others. Of several games at once, a
    table of the `whole` traffic knows which client plays which; nothing else of it is used.
    """

    def __init__(self, table: GameTable, whole: GameTable, hidden: Findings) -> None:
        super().__init__(table.context)
        self._table = table
        self._whole = whole if table.share_rooms(whole) else None
        self._hidden = hidden

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        if row.broadcast and message.direction == "s2c":
            self._table.message(message, row, valid, frame)
        if self._whole is not None:
            self._whole.message(msgspec.structs.replace(message), row, valid, frame)
            for part in msgspec.structs.astuple(self._hidden):
                part.clear()

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        return

    def undecided(self) -> int | None:
        return self._table.undecided()
