"""Datagrams that were captured twice count once, and those that were sent twice are judged."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, kiebitz
from packet_reordering import Packets, by_time, duplicate_packets, imported, packets_of, write_packets
from strength import a_few

from kiebitz.proxy.capture.duplicate_packets import (
    DUPLICATE_NS,
    FREQUENT_DUPLICATE_NS,
    MAX_REMEMBERED,
    UNIDENTIFIED_DUPLICATE_NS,
    DuplicateDetector,
)
from kiebitz.proxy.capture.packets import Datagram, RawPacket

GAMES = ("maexchen-head-port4711.pcap", "maexchen-old-20111003.pcap")
TWICE = "captured-twice"


def found(packets: Packets, folder: Path) -> tuple[list[Any], list[Any], list[Any], int]:
    _, query = imported(packets, folder)
    diagnostics = query("SELECT code, severity, blame, stream_id, offset FROM diagnostics")
    copies = [diagnostic for diagnostic in diagnostics if diagnostic[0] == TWICE]
    assert {(severity, blame) for _, severity, blame, *_ in copies} <= {("note", "network")}
    assert len({stream for *_, stream, _ in copies}) == len(copies)
    return (
        query("SELECT stream_id, direction, name, fields, offset FROM messages"),
        query("SELECT kind, actor, data, changes FROM events"),
        sorted(diagnostic for diagnostic in diagnostics if diagnostic[0] != TWICE),
        len(copies),
    )


def as_it_is(packet: bytes) -> bytes:
    return packet


def other_link_header(packet: bytes) -> bytes:
    return b"\x02" * 12 + b"\x81\x00\x00\x05" + packet[12:22] + bytes([packet[22] - 1]) + packet[23:]


def without_identification(packets: Packets) -> Packets:
    return [(ts_ns, link, data[:18] + b"\0\0" + data[20:], size) for ts_ns, link, data, size in packets]


def with_copies(
    packets: Packets, share: float, change: Callable[[bytes], bytes], later_ns: int = 200_000
) -> Packets:
    """Return a share of the packets a second time, a moment later, as `change` has it."""
    chance = random.Random(5)
    copies: list[RawPacket] = []
    for ts_ns, linktype, data, _ in packets:
        if chance.random() < share:
            again = change(data)
            copies.append((ts_ns + later_ns, linktype, again, len(again)))
    return by_time(packets + copies)


def accused(diagnostics: list[Any]) -> Counter[tuple[str, str, str]]:
    return Counter((code, severity, blame) for code, severity, blame, *_ in diagnostics)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("share", a_few([0.05, 1], [0.05]))
@pytest.mark.parametrize("change", [as_it_is, other_link_header])
@pytest.mark.parametrize(
    "prepare", [list, without_identification], ids=["identified", "without identification"]
)
@pytest.mark.parametrize("name", a_few(GAMES, GAMES[:1]))
def test_the_same_game(
    name: str,
    prepare: Callable[[Packets], Packets],
    change: Callable[[bytes], bytes],
    share: float,
    tmp_path: Path,
) -> None:
    packets = packets_of(CAPTURES / name)
    before = found(packets, tmp_path)
    after = found(with_copies(prepare(packets), share, change), tmp_path)
    assert before[3] == 0
    assert after[3] > 0
    if prepare is without_identification:
        # What was really sent twice at once counts once there, and makes nothing of its own.
        assert after[1] == before[1]
        assert not accused(after[2]) - accused(before[2])
    else:
        assert after[:3] == before[:3]


@pytest.mark.full
def test_copies_that_other_packets_overtake(tmp_path: Path) -> None:
    packets = packets_of(CAPTURES / GAMES[0])
    for seed in range(3):
        after = found(duplicate_packets(packets, random.Random(seed), 0.3), tmp_path)
        assert after[:3] == found(packets, tmp_path)[:3]


def test_real_duplicates_are_judged(tmp_path: Path) -> None:
    def sent_again(packet: bytes) -> bytes:
        number = (int.from_bytes(packet[18:20], "big") + 1) % 65_536 or 1
        return packet[:18] + number.to_bytes(2, "big") + packet[20:]

    before, after = (
        found(packets, tmp_path)
        for packets in (
            packets_of(CAPTURES / GAMES[0]),
            with_copies(packets_of(CAPTURES / GAMES[0]), 0.05, sent_again),
        )
    )
    assert after[3] == 0
    assert len(after[0]) > len(before[0])
    assert ("used-token", "client") in {(code, blame) for code, _, blame, *_ in after[2]}


A, B, OTHER = (b"flow", b"a", 0, 7), (b"flow", b"b", 0, 7), (b"other flow", b"a", 0, 7)
A8 = (b"flow", b"a", 0, 8)
A0, B0 = (b"flow", b"a", 0, 0), (b"flow", b"b", 0, 0)


@pytest.mark.parametrize(
    ("sent", "copies"),
    [
        # Datagrams with their times, and which of them are copies.
        ([(A, 0), (A, 0)], "-c"),
        ([(A, 0), (A, DUPLICATE_NS - 1)], "-c"),
        ([(A, 0), (A, DUPLICATE_NS)], "--"),
        ([(A, 0), (A, -1_000_000)], "-c"),
        ([(A, 0), (B, 0)], "--"),
        ([(A, 0), (A8, 0)], "--"),
        ([(A, 0), (OTHER, 0)], "--"),
        # Without identification immediate copies are the same, and news may be the same words: with no other
        # message in between, with one, and repeated.
        ([(A0, 0), (A0, DUPLICATE_NS - 1)], "-c"),
        ([(A0, 0), (A0, DUPLICATE_NS)], "--"),
        ([(A0, 0), (B0, 1), (A0, UNIDENTIFIED_DUPLICATE_NS - 1)], "--c"),
        ([(A0, 0), (B0, 1), (A0, UNIDENTIFIED_DUPLICATE_NS)], "---"),
        ([(A0, -DUPLICATE_NS), (A0, 0), (B0, 1), (A0, FREQUENT_DUPLICATE_NS - 1)], "---c"),
        ([(A0, -DUPLICATE_NS), (A0, 0), (B0, 1), (A0, FREQUENT_DUPLICATE_NS)], "----"),
        # A copy counts from the first, or a repeated message would be recorded only once.
        ([(A0, 0), (A0, DUPLICATE_NS - 1), (A0, DUPLICATE_NS)], "-c-"),
    ],
)
def test_copies(sent: list[tuple[Datagram, int]], copies: str) -> None:
    repeats = DuplicateDetector()
    found = [repeats.is_duplicate(datagram, 10**12 + ts_ns) for datagram, ts_ns in sent]
    assert found == [sign == "c" for sign in copies]


def test_remembered_state_is_bounded() -> None:
    repeats = DuplicateDetector()
    for number in range(3 * MAX_REMEMBERED):
        for ts_ns in (0, DUPLICATE_NS):
            repeats.is_duplicate((b"flow %d" % number, b"", 0, number % 2), ts_ns)
        assert len(repeats._first_ns) <= MAX_REMEMBERED
        assert len(repeats._latest) <= MAX_REMEMBERED
        assert len(repeats._frequent) <= MAX_REMEMBERED


def test_the_note_lasts(tmp_path: Path) -> None:
    """`check` shows it without failing, and `redissect` keeps it with its severity."""
    write_packets(
        tmp_path / "twice.pcap", with_copies(packets_of(CAPTURES / "maexchen-head-tiny.pcap"), 1, as_it_is)
    )
    database = str(tmp_path / "game.db")
    kiebitz("import", str(tmp_path / "twice.pcap"), "-w", database)
    before = kiebitz("check", database)
    assert "a datagram was captured twice: it counts once" in before.out
    kiebitz("redissect", database)
    assert kiebitz("check", database).out == before.out
