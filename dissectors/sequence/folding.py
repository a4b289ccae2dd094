"""Folding of a broadcast's copies into one arrow.

Copies report the same event or, if they report none, have the same content. An arrow waits for its copies
as long as a copy can belong to a broadcast; altered messages and messages with problems stay on their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator

from kiebitz.dissectors.game.broadcast_dedup import LATEST_COPY_NS
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.sequence.model import Arrow, Step

_MAX_WAITING = 500
"""Maximum number of steps that wait for copies."""


Connected = Callable[[int, int], int]
"""Function that returns the number of clients connected to a server's lifeline at a time (ns)."""


def fold(steps: Iterable[Step], connected: Connected) -> Iterator[Step]:
    """Yield the steps, given in order, with all copies of a broadcast as one arrow.

    An arrow to all connected clients, of several, is marked.
    """
    waiting: deque[Step] = deque()
    broadcasts: dict[Hashable, Arrow] = {}
    for step in steps:
        while waiting and (step.ts_ns - waiting[0].ts_ns > LATEST_COPY_NS or len(waiting) > _MAX_WAITING):
            yield _finished(waiting.popleft(), broadcasts, connected)
        key = _key(step)
        known = broadcasts.get(key)
        if isinstance(step, Arrow) and key is not None:
            if known is not None and step.clients[0] not in known.clients:
                _add_copy(known, step)
                continue
            # The same message once more on one connection is another one.
            broadcasts[key] = step
        waiting.append(step)
    while waiting:
        yield _finished(waiting.popleft(), broadcasts, connected)


def _key(step: Step) -> Hashable:
    """Return what the copies of a broadcast have in common; None if a step cannot be one."""
    if not isinstance(step, Arrow) or step.direction == "c2s" or step.problems or step.altered is not None:
        return None
    return step.server, step.name, step.event if step.event is not None else to_json(step.fields)


def _add_copy(arrow: Arrow, copy: Arrow) -> None:
    arrow.clients.append(copy.clients[0])
    names = [*arrow.fields, *(name for name in copy.fields if name not in arrow.fields)]
    arrow.differing.update(
        name
        for name in names
        if name not in arrow.fields or name not in copy.fields or arrow.fields[name] != copy.fields[name]
    )


def _finished(step: Step, broadcasts: dict[Hashable, Arrow], connected: Connected) -> Step:
    if isinstance(step, Arrow):
        key = _key(step)
        if broadcasts.get(key) is step:
            del broadcasts[key]
        step.is_to_all = 1 < len(step.clients) >= connected(step.server, step.ts_ns)
    return step
