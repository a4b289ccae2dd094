"""Visibility: the parts of a table's state that a player could know.

Addresses of clients are omitted, as players do not know them.
"""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Any

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State, seen_by, seen_change
from kiebitz.dissectors.grammar.field_type import IdentifierKind, KeysOf
from kiebitz.dissectors.grammar.sentences import value_at
from kiebitz.dissectors.model import Change, Event

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
    revealed = []
    for path in dissector.grammar.events[event.kind].changed_paths(event.game_id, event.data):
        part = value_at(whole, path)
        if part is None or not addresses.isdisjoint(path):
            continue
        change = seen_change(path, _without(part, addresses), *names)
        if change is not None:
            revealed.append(change)
    return revealed


def initial_view(dissector: Dissector | None, whole: State, names: Collection[str]) -> State:
    """Return a table's first recorded state as a player with these names sees it."""
    addresses = _address_keys(dissector) if dissector is not None else set()
    state: State = _without(seen_by(whole, *names), addresses)
    return state


def _address_keys(dissector: Dissector) -> set[str]:
    """Return the keys of a protocol's state that contain addresses of clients."""
    handles = dissector.grammar.state_identifiers
    return {key for key, handle in handles.items() if handle in (_ADDRESS, KeysOf(_ADDRESS))}


def _without(state: Any, keys: Set[str]) -> Any:
    """Return a state, or a part of one, without these keys at any depth."""
    if not isinstance(state, dict):
        return state
    return {key: _without(part, keys) for key, part in state.items() if key not in keys}
