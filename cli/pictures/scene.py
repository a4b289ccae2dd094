"""What a drawing gets to see of a table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dissectors.records import Event
from dissectors.state import State


class Scene(msgspec.Struct, frozen=True):
    """A table at a moment: its state, and the events that led there, oldest first (the last few will do).

    `names` are all players of the session in an order that stays: it gives each his colour.
    """

    state: State
    events: Sequence[Event] = ()
    names: Sequence[str] = ()
