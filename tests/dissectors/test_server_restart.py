from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pytest
from inspected_captures import inspected, items_of
from strength import a_few, times

from kiebitz.dissectors.model import End, Event, Findings, Item, Stream

CAPTURES = (
    "schafkopf-1.3-1human-round.pcap",
    "schafkopf-1.3-2humans.pcap",
    "schafkopf-old-1.0.pcap",
    "catan-yaks-g1-3p.pcap.gz",
    "catan-eisfrei-game2-3p.pcap.gz",
    "catan-lurche-py-3p.pcap.gz",
    "okey-seed-game-win.pcap.gz",
    "okey-head-game-win.pcap.gz",
    "cgml-tiny.pcap.gz",
    "cgml-styles.pcap.gz",
)
SMALL = (
    "schafkopf-1.3-1human-round.pcap",
    "okey-seed-game-win.pcap.gz",
    "cgml-tiny.pcap.gz",
)
PLACES = times(6, quick=2)


def until_death(items: list[Item], reason: str) -> list[Item]:
    """Items after which all connections that are open end at once."""
    open_streams = {item.stream.id: item.stream for item in items}
    for item in items:
        if isinstance(item, End):
            del open_streams[item.stream.id]
    last = items[-1].ts_ns
    return [*items, *(End(stream, last, reason) for stream in open_streams.values())]


def from_anew(items: Iterable[Item], after: list[Item], pause_ns: int) -> Iterator[Item]:
    """Yield the same conversations again, as new connections, a pause after the end of others."""
    streams: dict[int, Stream] = {}
    shift: int | None = None
    for item in items:
        if shift is None:
            shift = after[-1].ts_ns + pause_ns - item.ts_ns
        stream = streams.get(item.stream.id)
        if stream is None:
            old = item.stream
            stream = streams[old.id] = Stream(
                1000 + old.id, old.transport, old.client, old.server, old.opened_ns + shift
            )
        yield msgspec.structs.replace(item, stream=stream, ts_ns=item.ts_ns + shift)


AT_ONCE, LATER = 50_000_000, 5_000_000_000


def blamed(found: Findings) -> Counter[tuple[str, str, str]]:
    violations = (violation for violation in found.diagnostics if violation.severity != "note")
    return Counter((violation.severity, violation.code, violation.text) for violation in violations)


def told(events: Iterable[Event]) -> list[tuple[str, str | None, object]]:
    # Rounds are counted here, not by the servers.
    return [(event.kind, event.actor, {**event.data, "round": None}) for event in events]


def results(found: Findings) -> list[dict[str, Any] | None]:
    return [game.result for game in {game.id: game for game in found.games}.values()]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("capture", "reason", "pause_ns"),
    a_few(
        [
            (capture, reason, pause_ns)
            for capture in CAPTURES
            for pause_ns in (AT_ONCE, LATER)
            for reason in ("reset", "closed")
        ],
        [(SMALL[0], "closed", AT_ONCE), *((capture, "reset", LATER) for capture in SMALL)],
        lambda row: f"{row[0]}-{row[1]}, {'at once' if row[2] == AT_ONCE else 'after a while'}",
    ),
)
def test_a_server_that_is_restarted_is_a_new_table(capture: str, reason: str, pause_ns: int) -> None:
    items = items_of(capture)
    alone = inspected(items_of(capture))
    for place in range(1, PLACES + 1):
        dead = until_death(items_of(capture)[: len(items) * place // (PLACES + 1)], reason)
        before = inspected(dead)
        both = inspected([*dead, *from_anew(items, dead, pause_ns)])
        assert told(both.events[len(before.events) :]) == told(alone.events)
        assert results(both)[-len(results(alone)) :] == results(alone)
        # Constant deviations of a server are reported once.
        assert not blamed(both) - (blamed(before) + blamed(alone))
