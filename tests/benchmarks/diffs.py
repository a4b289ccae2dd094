"""Benchmark of `kiebitz diff` on two sessions of 100,000 messages: time and memory.

The baseline is `diff` on the output of `kiebitz messages --nl` for both; writing these texts is not counted.
A round measures all; the ratios are the medians of the rounds' ratios, since other load on the machine
varies.
The number of lines that each writes is compared as well.
"""

from __future__ import annotations

import random
import re
import statistics
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from repeating import CATAN, CGML, MAEXCHEN, OKEY, SCHAFKOPF, Recording, repeat
from report import Report, new_table
from running import KIEBITZ, Cost, run

MESSAGES = 100_000

KIEBITZ_NAME = "kiebitz diff"
DIFFERENT = 3
"""Kiebitz's exit status where two sessions differ; that of `diff` is 1."""

_DICE = re.compile(rb"(?<=;)[1-6],[1-6]")


class Pair(msgspec.Struct, frozen=True):
    """Two sessions made of repetitions of a recording, with different numbers of them.

    `made` alters the packets of the repetitions of the second further.
    """

    title: str
    recording: Recording
    first: int
    second: int
    made: Callable[[bytes, int], bytes] = lambda packets, number: packets


def with_own_dice(packets: bytearray, places: Sequence[int], number: int) -> bytes:
    """New tokens, and other dice in each repetition."""
    renewed = MAEXCHEN.renew(packets, places, number)
    chance = random.Random(number)
    return _DICE.sub(lambda found: b"%d,%d" % (chance.randint(1, 6), chance.randint(1, 6)), renewed)


def one_die(packets: bytes, number: int) -> bytes:
    """Change one announcement of the sixth repetition, in its copies for all clients."""
    if number != 6:
        return packets
    told = re.findall(rb"ANNOUNCED;\w+;[1-6],[1-6]", packets)[500]
    return packets.replace(told, told[:-1] + (b"2" if told[-1:] == b"1" else b"1"))


DICE = msgspec.structs.replace(MAEXCHEN, renew=with_own_dice)


def other_tokens(packets: bytes, number: int) -> bytes:
    return re.sub(rb"[0-9a-f]{4}(?=-[0-9a-f]{12})", lambda found: found[0][::-1], packets)


PAIRS = (
    Pair("Mäxchen, other tokens only", DICE, 0, 0, other_tokens),
    Pair("Mäxchen, one announcement", DICE, 0, 0, one_die),
    Pair("Mäxchen, all dice", DICE, 0, 1000),
    Pair("Mäxchen, begun in the middle", DICE, 0, 6),
    Pair("Schafkopf, other cards", SCHAFKOPF, 0, 3),
    Pair("Catan, other numbers, mirrored", CATAN, 0, 1),
    Pair("Okey, other tiles", OKEY, 0, 3),
    Pair("CGML, hands in another order", CGML, 0, 3),
)


def session(
    folder: Path, name: str, recording: Recording, messages: int, first: int, pair: Pair | None
) -> Path:
    """Return a database with a long session; the text of its messages is written next to it."""

    def renew(packets: bytearray, places: Sequence[int], number: int) -> bytes:
        renewed = recording.renew(packets, places, first + number)
        return pair.made(renewed, number) if pair is not None else renewed

    capture, database = folder / f"{name}.pcap", folder / f"{name}.db"
    repetitions = -(-messages // recording.messages)
    repeat(capture, repetitions, msgspec.structs.replace(recording, renew=renew))
    run([*KIEBITZ, "import", str(capture), "-w", str(database)])
    capture.unlink()
    text = folder / f"{name}.txt"
    run([*KIEBITZ, "messages", str(database), "--nl"], written=text)
    return database


def compare(
    folder: Path, pair: Pair, messages: int, rounds: int
) -> tuple[list[dict[str, Cost]], dict[str, int]]:
    """Return the costs of comparing two sessions in each round, and the number of lines written."""
    with ThreadPoolExecutor() as both:
        first = both.submit(session, folder, "a", pair.recording, messages, pair.first, None)
        b = session(folder, "b", pair.recording, messages, pair.second, pair)
        a = first.result()
    texts = [str(database.with_suffix(".txt")) for database in (a, b)]
    commands = {
        KIEBITZ_NAME: [*KIEBITZ, "diff", str(a), str(b)],
        f"{KIEBITZ_NAME} --json": [*KIEBITZ, "diff", str(a), str(b), "--json"],
        "diff": ["diff", *texts],
    }
    written = {name: folder / f"{name}.out" for name in commands}
    measured = [
        {name: run(command, (0, 1, DIFFERENT), written=written[name]) for name, command in commands.items()}
        for _ in range(rounds)
    ]
    return measured, {name: lines(path) for name, path in written.items()}


def lines(written: Path) -> int:
    with written.open("rb") as file:
        return sum(1 for _ in file)


def compared(report: Report, rounds: int) -> None:
    """Compare each pair of sessions of `MESSAGES` messages."""
    title = f"Diff of two sessions of {MESSAGES:,} messages"
    result = new_table(title, "wall s|CPU s|peak MiB|× kiebitz's CPU s|lines written", "what differs|")
    for pair in PAIRS:
        with tempfile.TemporaryDirectory() as folder:
            measured, written = compare(Path(folder), pair, MESSAGES, rounds)
        for place, name in enumerate(measured[0]):
            mine = [costs[name] for costs in measured]
            ratio = statistics.median(costs[name].cpu / costs[KIEBITZ_NAME].cpu for costs in measured)
            wall = statistics.median(cost.wall for cost in mine)
            result.add_row(
                "" if place else pair.title,
                name,
                f"{wall:.2f}",
                f"{statistics.median(cost.cpu for cost in mine):.2f}",
                f"{max(cost.peak for cost in mine):.0f}",
                f"{ratio:.2f}",
                f"{written[name]:,}",
            )
            if name == KIEBITZ_NAME:
                report.promise(f"{title}, {pair.title}: s", f"{wall:.2f}", "–", "–", "≤ 5", wall <= 5)
    report.show(result)
