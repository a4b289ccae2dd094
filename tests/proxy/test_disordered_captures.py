from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from followed_streams import NAMES, followed, talks
from inspected_captures import CAPTURES, inspected
from packet_reordering import (
    Packets,
    duplicate_packets,
    shift_clock,
    swap_packets,
    with_late_acknowledgements,
    write_packets,
)
from strength import a_few, few_captures, times
from tcp_segments import items_of_packets

from kiebitz.dissectors.model import Chunk, Findings, Item
from kiebitz.proxy.capture.files import open_capture
from kiebitz.services.decode_as import server_ports

GAMES = [name for name in NAMES if not name.startswith(("maexchen", "catan-five"))]
"""The captures of TCP; the five servers' games are there one by one."""

Disorder = Callable[[Packets, random.Random], Packets]


def by_clocks_apart(packets: Packets, chance: random.Random) -> Packets:
    return shift_clock(packets, chance.randint(-2_000_000, 2_000_000), sort=True)


def by_jumping_clocks(packets: Packets, chance: random.Random) -> Packets:
    return shift_clock(packets, chance.choice((-50, -2, 2, 50)) * 1_000_000, sort=False)


DISORDERS: dict[str, Disorder] = {
    "1 % swapped": partial(swap_packets, share=0.01),
    "3 % swapped": partial(swap_packets, share=0.03),
    "10 % swapped": partial(swap_packets, share=0.1),
    "5 % doubled": partial(duplicate_packets, share=0.05),
    "all doubled": partial(duplicate_packets, share=1),
    "late acknowledgements": partial(with_late_acknowledgements, share=0.3),
    "two clocks": by_clocks_apart,
    "two clocks, as they were captured": by_jumping_clocks,
}

SEEDS = range(times(22, quick=1))


@cache
def packets_of(name: str) -> Packets:
    with open_capture(str(CAPTURES / name)) as capture:
        return list(capture)


def items_of(packets: Packets) -> list[Item]:
    return items_of_packets(packets, server_ports({}, "tcp"))


def said(items: list[Item]) -> Counter[tuple[str, str, bytes]]:
    whole: dict[tuple[int, str, str], bytes] = {}
    for item in items:
        if isinstance(item, Chunk):
            key = (item.stream.id, item.stream.client, item.direction)
            whole[key] = whole.get(key, b"") + item.data
    return Counter((client, direction, data) for (_, client, direction), data in whole.items())


def accused(found: Findings) -> Counter[tuple[str, str]]:
    return Counter(
        (diagnostic.severity, diagnostic.blame)
        for diagnostic in found.diagnostics
        if diagnostic.severity != "note"
    )


def outcomes(found: Findings) -> list[str]:
    latest = {game.id: (game.protocol, game.result) for game in found.games}
    return sorted(map(repr, latest.values()))


def hands(found: Findings) -> Any:
    held: dict[tuple[int, int], dict[tuple[str, ...], Any]] = {}
    for event in found.events:
        for path, value in event.changes:
            if event.game_id is not None and any(step in ("hands", "private", "hand") for step in path):
                held.setdefault((event.table_id, event.game_id), {})[tuple(path)] = value
    return held


@cache
def as_it_was(name: str) -> tuple[Counter[tuple[str, str, bytes]], Counter[tuple[str, str]], list[str], Any]:
    items = items_of(packets_of(name))
    found = inspected(items)
    return said(items), accused(found), outcomes(found), hands(found)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("disorder", DISORDERS.values(), ids=DISORDERS)
@pytest.mark.parametrize("name", a_few(GAMES, ["schafkopf-1.3-badcard.pcap", "okey-seed-game-win.pcap.gz"]))
def test_the_same_game(name: str, disorder: Disorder) -> None:
    bytes_before, accused_before, outcomes_before, hands_before = as_it_was(name)
    for seed in SEEDS:
        items = items_of(disorder(packets_of(name), random.Random(seed)))
        assert said(items) == bytes_before
        found = inspected(items)
        assert not accused(found) - accused_before
        assert outcomes(found) == outcomes_before
        assert hands(found) == hands_before


@pytest.mark.parametrize("name", few_captures(GAMES))
def test_the_same_bytes_however_far_apart(name: str) -> None:
    """Their meaning in a game is unknown: a deal may be seconds after the card that is played."""
    for seed in SEEDS:
        packets = swap_packets(packets_of(name), random.Random(seed), share=0.03, within_ns=1 << 62)
        assert said(items_of(packets)) == as_it_was(name)[0]


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    a_few([name for name in NAMES if not name.startswith("maexchen")], ["schafkopf-1.3-badcard.pcap"]),
)
def test_the_same_bytes_as_tshark(name: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        packets = swap_packets(packets_of(name), random.Random(seed), share=0.03)
        write_packets(tmp_path / "swapped.pcap", packets)
        assert talks(items_of_packets(packets)) == followed(tmp_path / "swapped.pcap")
