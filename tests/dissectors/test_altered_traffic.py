"""Recorded games of all protocols, with their bytes cut otherwise, and with packets missing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from inspected_captures import (
    CAPTURES,
    bytewise,
    errors,
    from_then_on,
    holed,
    inspected,
    items_of,
    joined,
    told,
)
from packet_reordering import Packets, imported, packets_of
from strength import a_few, times

from kiebitz.dissectors.model import Gap, Item

NAMES = [
    next(CAPTURES.glob(f"{path.name.removesuffix('.truth.json')}.pcap*")).name
    for path in sorted(CAPTURES.glob("*.truth.json"))
    if not path.name.startswith("maexchen")
]
DATAGRAMS = ["maexchen-head-tiny.pcap", "maexchen-old-20111003.pcap", "maexchen-two-servers-restart.pcapng"]
"""Captures of UDP; in the last one the players answer after the next question."""


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", a_few(NAMES, ["schafkopf-1.3-crlf.pcap", "okey-seed-tiny.pcap.gz"]))
@pytest.mark.parametrize("recut", [bytewise, joined])
def test_how_the_bytes_are_cut_does_not_matter(
    name: str, recut: Callable[[Iterable[Item]], Iterable[Item]]
) -> None:
    items = items_of(name)
    whole, cut = (told(inspected(each)) for each in (items, recut(items)))
    for found in (whole, cut):
        # Several servers' tables are created in another order, with the same content.
        found[1].sort(key=repr)
    assert cut == whole


@pytest.mark.parametrize("name", a_few(NAMES, ["schafkopf-1.3-2humans.pcap", "okey-seed-tiny.pcap.gz"]))
def test_missing_packets_cause_no_violations(name: str) -> None:
    items = items_of(name)
    whole = inspected(items)
    codes = {violation.code for violation in errors(whole)}
    for first in [*range(3, 60, 8)][: times(8, quick=2)]:
        altered = holed(items, first)
        missing = {item.ts_ns for item in altered if isinstance(item, Gap)}
        found = inspected(altered)
        assert {violation.code for violation in errors(found)} <= codes, first
        # One segment may have the end of a round and all that follows.
        left = sum(event.ts_ns not in missing for event in whole.events)
        assert len(found.events) >= 0.7 * left, first


@pytest.mark.parametrize("name", a_few(NAMES, ["schafkopf-1.3-2humans.pcap", "okey-seed-game-win.pcap.gz"]))
def test_a_capture_that_begins_in_a_game_causes_no_violations(name: str) -> None:
    items = items_of(name)
    codes = {violation.code for violation in errors(inspected(items))}
    for begin in range(1, len(items), max(1, len(items) // times(40, quick=10))):
        found = inspected(from_then_on(items, begin))
        assert {violation.code for violation in errors(found)} <= codes, begin


@pytest.mark.parametrize("name", a_few(DATAGRAMS, DATAGRAMS[2:]))
def test_missing_datagrams_cause_no_violations(name: str, tmp_path: Path) -> None:
    """Some are lost, or the capture begins or ends in a game."""

    def codes(captured: Packets) -> set[str]:
        rows = imported(captured, tmp_path)[1]("SELECT code FROM diagnostics WHERE severity = 'error'")
        return {code for (code,) in rows}

    packets = packets_of(CAPTURES / name)
    whole = codes(packets)
    for seed in range(times(40, quick=6)):
        chance = random.Random(seed)
        at, lost = chance.randrange(len(packets)), chance.sample(range(len(packets)), 3)
        left = [packet for number, packet in enumerate(packets) if number not in lost]
        for part in (left, packets[at:], packets[:at]):
            assert codes(part) <= whole, (seed, at, lost)
