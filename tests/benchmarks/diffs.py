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
from running import KIEBITZ, Cost, import_into, run

MESSAGES = 100_000

KIEBITZ_NAME = "kiebitz diff"
DIFFERENT = 3
"""Kiebitz's exit status where two sessions differ; that of `diff` is 1."""

_DICE = re.compile(rb"(?<=;)[1-6],[1-6]")


class Pair(msgspec.Struct, frozen=True):
    """Two sessions made of repetitions of a recording.

    The second begins with another one's number; `made` alters the packets of its repetitions further.
    """

    title: str
    recording: Recording
    begins: int
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
    Pair("Mäxchen, other tokens only", DICE, 0, other_tokens),
    Pair("Mäxchen, one announcement", DICE, 0, one_die),
    Pair("Mäxchen, all dice", DICE, 1000),
    Pair("Mäxchen, begun in the middle", DICE, 6),
    Pair("Schafkopf, other cards", SCHAFKOPF, 3),
    Pair("Catan, other numbers, mirrored", CATAN, 1),
    Pair("Okey, other tiles", OKEY, 3),
    Pair("CGML, hands in another order", CGML, 3),
)


def session(database: Path, pair: Pair, is_second: bool) -> None:
    """Write a database with a long session, and the text of its messages next to it."""

    def renew(packets: bytearray, places: Sequence[int], number: int) -> bytes:
        renewed = pair.recording.renew(packets, places, number + pair.begins * is_second)
        return pair.made(renewed, number) if is_second else renewed

    capture = database.with_suffix(".pcap")
    repetitions = -(-MESSAGES // pair.recording.messages)
    repeat(capture, repetitions, msgspec.structs.replace(pair.recording, renew=renew))
    import_into(database, capture)
    capture.unlink()
    run([*KIEBITZ, "messages", str(database), "--nl"], written=database.with_suffix(".txt"))


def compare(folder: Path, pair: Pair, rounds: int) -> tuple[list[dict[str, Cost]], dict[str, int]]:
    """Return the costs of comparing two sessions in each round, and the number of lines written."""
    databases = [folder / "a.db", folder / "b.db"]
    with ThreadPoolExecutor() as both:
        list(both.map(session, databases, [pair] * 2, [False, True]))
    ours = [*KIEBITZ, "diff", *map(str, databases)]
    commands = {
        KIEBITZ_NAME: ours,
        f"{KIEBITZ_NAME} --json": [*ours, "--json"],
        "diff": ["diff", *(str(database.with_suffix(".txt")) for database in databases)],
    }
    written = {name: folder / f"{name}.out" for name in commands}
    measured = [
        {name: run(command, (0, 1, DIFFERENT), written=written[name]) for name, command in commands.items()}
        for _ in range(rounds)
    ]
    return measured, {name: path.read_bytes().count(b"\n") for name, path in written.items()}


def compared(report: Report, rounds: int) -> None:
    """Compare each pair of sessions of `MESSAGES` messages."""
    title = f"Diff of two sessions of {MESSAGES:,} messages"
    result = new_table(title, "wall s|CPU s|peak MiB|× kiebitz's CPU s|lines written", "what differs|")
    for pair in PAIRS:
        with tempfile.TemporaryDirectory() as folder:
            measured, written = compare(Path(folder), pair, rounds)
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
                report.limit(f"{title}, {pair.title}: s", wall, 5)
    report.show(result)
