"""A table's state as one player sees it."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Event

if TYPE_CHECKING:
    from kiebitz.storage.read.visibility import Visibility

_CHECKPOINT_EVENTS = 200
"""Events between two stored states of a player's view."""

_MAX_CHECKPOINTS = 256
"""Maximum number of stored states of a view; beyond it every second one is dropped."""


class PlayerState:
    """A table's state as one player sees it, accumulated from the events that it saw."""

    def __init__(self, shape: object, seq: int, state: State) -> None:
        self.shape = shape
        self._seq = seq
        self._state = state
        self._every = _CHECKPOINT_EVENTS
        self._checkpoints = [(seq, msgspec.json.encode(state))]
        self._back: tuple[int, State] = (-1, {})
        """The last requested earlier state, as its successors are usually requested next."""

    def at(self, visibility: Visibility, player: str, table_id: int, seq: int, final_ns: int | None) -> State:
        """Return the state after event `seq`; an unseen event later than `final_ns` may still be reported."""
        if seq >= self._seq:
            return self._advance(visibility, player, table_id, seq, final_ns)
        at, state = self._back
        place = bisect_right(self._checkpoints, seq, key=lambda checkpoint: checkpoint[0]) - 1
        first, stored = self._checkpoints[max(place, 0)]
        if not first <= at <= seq:
            at, state = first, msgspec.json.decode(stored)
        for event in visibility.timeline.events_between(table_id, at, seq):
            if visibility.seen(event, player) is not None:
                _apply_event(visibility, player, event, state)
        self._back = seq, state
        return state

    def _advance(
        self, visibility: Visibility, player: str, table_id: int, seq: int, final_ns: int | None
    ) -> State:
        state, is_kept = self._state, True
        for event in visibility.timeline.events_between(table_id, self._seq, seq):
            is_seen = visibility.seen(event, player) is not None
            is_kept = is_kept and (is_seen or final_ns is None or event.ts_ns < final_ns)
            if not is_kept and state is self._state:
                state = msgspec.json.decode(msgspec.json.encode(state))
            if is_seen:
                _apply_event(visibility, player, event, state)
            if is_kept:
                self._seq = event.seq
                if event.seq >= self._checkpoints[-1][0] + self._every:
                    self._add_checkpoint()
        return state

    def _add_checkpoint(self) -> None:
        self._checkpoints.append((self._seq, msgspec.json.encode(self._state)))
        if len(self._checkpoints) > _MAX_CHECKPOINTS:
            del self._checkpoints[1::2]
            self._every *= 2


def _apply_event(visibility: Visibility, player: str, event: Event, state: State) -> None:
    """Apply the changes of an event that a player sees to the player's state."""
    apply(state, visibility.changes(event, player))
    apply(state, visibility.revealed(event, player))
