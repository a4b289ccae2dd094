"""Messages of a Catan server and its clients as captured: complete, of some clients only, reordered or cut.

A `Moment` among the steps has the true state after the steps before it.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from catan_island import Truth

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import (
    Chunk,
    Diagnostic,
    Direction,
    End,
    Findings,
    Gap,
    Ids,
    Item,
    Stream,
)
from kiebitz.dissectors.registry import BUILT_IN

MS = 1_000_000


class Step(NamedTuple):
    """The messages of a client and the server, in milliseconds after the previous step.

    `lost` ones are not captured. A step without messages is the end of the conversation.
    """

    client: str
    direction: Direction
    data: bytes
    after_ms: float = 1
    lost: bool = False


class Moment(NamedTuple):
    """The true state; `game` is the number of games so far, 0 before the first."""

    truth: Truth
    game: int


def items(steps: Iterable[Step | Moment], heard: Collection[str] | None = None) -> Iterator[Item | Moment]:
    """Yield the steps as captured: each client is a stream; only the clients in `heard` are captured."""
    now_ns = MS
    streams: dict[str, Stream] = {}
    count = 0
    offsets: dict[tuple[str, Direction], int] = {}
    for step in steps:
        if isinstance(step, Moment):
            yield step
            continue
        now_ns += round(step.after_ms * MS)
        client, direction, data = step.client, step.direction, step.data
        if heard is not None and client not in heard:
            continue
        if client not in streams:
            count += 1
            offsets[client, "c2s"] = offsets[client, "s2c"] = 0
            streams[client] = Stream(count, "tcp", f"127.0.0.1:{40_000 + count}", "127.0.0.1:7000", now_ns)
        stream = streams[client]
        if not data:
            stream.close_reason = "closed"
            yield End(streams.pop(client), now_ns, "closed")
            continue
        offset = offsets[client, direction]
        offsets[client, direction] = offset + len(data)
        if step.lost:
            yield Gap(stream, direction, now_ns, offset, len(data))
        else:
            yield Chunk(stream, direction, now_ns, offset, data)
    for stream in streams.values():
        yield End(stream, now_ns, "closed")


def found(steps: Iterable[Step | Moment], heard: Collection[str] | None = None) -> Findings:
    """Return the findings of an inspector."""
    inspector = Inspector(BUILT_IN, Ids())
    for item in items(steps, heard):
        if not isinstance(item, Moment):
            inspector.feed(item)
    inspector.finish()
    return inspector.drain()


def mixed(steps: Sequence[Step | Moment], rng: random.Random) -> list[Step | Moment]:
    """Delay the server's messages to some clients relative to the others.

    Order within a conversation stays, a request precedes its consequences, and all clients are up to date at
    each
    moment.
    """
    waiting = list(steps)
    found: list[Step | Moment] = []
    while waiting:
        place, skipped = 0, set[str]()
        while place + 1 < len(waiting) and place < 12 and rng.random() < 0.6:
            step = waiting[place]
            if isinstance(step, Moment) or step.direction == "c2s":
                break
            skipped.add(step.client)
            place += 1
        step = waiting[place]
        if isinstance(step, Moment) or step.client in skipped:
            place = 0
        # Pauses are the server's, whichever client is the first after them.
        first, chosen = waiting[0], waiting[place]
        if not isinstance(first, Moment) and not isinstance(chosen, Moment):
            waiting[0] = first._replace(after_ms=chosen.after_ms)
            waiting[place] = chosen._replace(after_ms=first.after_ms)
        found.append(waiting.pop(place))
    return found


# What is found in it.


def told(findings: Findings, kind: str) -> list[dict[str, Any]]:
    """Return the data of the events of this kind, without unknown values."""
    return [
        {key: value for key, value in event.data.items() if value is not None}
        for event in findings.events
        if event.kind == kind
    ]


def wrong(findings: Findings) -> list[Diagnostic]:
    """Return all that is more than a note, but for what the network did."""
    return [
        diagnostic
        for diagnostic in findings.diagnostics
        if diagnostic.severity != "note" and diagnostic.group != "network"
    ]


def state_of(steps: Sequence[Step | Moment], clients: Collection[str] | None = None) -> State:
    """Return the state before the streams end, from all conversations or from those of some clients."""
    inspector, state = Inspector(BUILT_IN, Ids()), State()
    stream = captured(steps, clients)
    last_ns = stream[-1].ts_ns
    for item in stream:
        if not isinstance(item, End) or item.ts_ns < last_ns:
            inspector.feed(item)
    inspector.finish()
    for event in inspector.drain().events:
        apply(state, event.changes)
    return state


def game_part(state: State) -> dict[str, Any]:
    """Return the one game that is on."""
    (part,) = state["games"].values()
    assert isinstance(part, dict)
    return part


def captured(steps: Sequence[Step | Moment], heard: Collection[str] | None = None) -> list[Item]:
    return [item for item in items(steps, heard) if not isinstance(item, Moment)]
