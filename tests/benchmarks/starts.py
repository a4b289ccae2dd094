"""Benchmark of start-up: each command's, and that of importing a short capture.

Start-up is that of `kiebitz COMMAND -h`, which loads what the command needs for its options; and of `kiebitz
events` on a session of two games, which loads what a query needs. The short captures are the first thousand
messages of those that `imports.py` imports. All figures are CPU seconds, the minimum of the rounds, as other
load on the machine can only add to one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from repeating import CAPTURES, CATAN, CGML, MAEXCHEN, OKEY, SCHAFKOPF, cut, repeat
from report import Report, new_table
from running import BUILDS, count, import_into, run

from kiebitz.cli.main import COMMANDS

MOST_START = 0.15
MOST_SHORT = 0.35
MESSAGES = 1000

_TINY = CAPTURES / "maexchen-head-tiny.pcap"
_RECORDINGS = {"maexchen": MAEXCHEN, "schafkopf": SCHAFKOPF, "catan": CATAN, "okey": OKEY, "cgml": CGML}


def measured(report: Report, rounds: int) -> None:
    """Measure all commands, and a short capture of each protocol."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _started(report, folder, rounds)
        _imported(report, folder, rounds)


def _started(report: Report, folder: Path, rounds: int) -> None:
    import_into(folder / "tiny.db", _TINY)
    database = str(folder / "tiny.db")
    commands = [[command, "-h"] for section in COMMANDS.values() for command in section]
    commands.append(["events", database])
    table = new_table("Start-up", "|".join(f"{build}: CPU s" for build in BUILDS), "kiebitz …")
    found = {}
    for words in commands:
        told = " ".join(words).replace(database, "DB")
        least = [min(run([*build, *words]).cpu for _ in range(rounds)) for build in BUILDS.values()]
        table.add_row(told, *(f"{seconds:.3f}" for seconds in least))
        found[told] = least[0]
    report.show(table)
    slowest = max(found, key=found.__getitem__)
    title = f"Start-up of the slowest command, kiebitz {slowest}: CPU s"
    report.limit(title, found[slowest], MOST_START, ".3f")


def _imported(report: Report, folder: Path, rounds: int) -> None:
    figures = "|".join(["messages", "packets", *(f"{build}: CPU s" for build in BUILDS)])
    table = new_table("Import of a short capture", figures)
    for protocol, recording in _RECORDINGS.items():
        capture = folder / f"{protocol}.pcap"
        repeat(capture, -(-MESSAGES // recording.messages), recording)
        packets = cut(capture, recording.packets * MESSAGES // recording.messages)
        database = folder / f"{protocol}.db"
        seconds = [min(import_into(database, capture, build).cpu for _ in range(rounds)) for build in BUILDS]
        messages = count(database)
        table.add_row(protocol, f"{messages:,}", f"{packets:,}", *(f"{least:.2f}" for least in seconds))
        report.limit(f"Import of {messages:,} messages, {protocol}: CPU s", seconds[0], MOST_SHORT, ".3f")
    report.show(table)
