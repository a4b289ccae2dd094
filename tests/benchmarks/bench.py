"""All figures in one run: what `make bench` does.

    python tests/benchmarks/bench.py

Prints every table, and at the end what is promised beside what was measured; writes all of it to RESULTS.md.
It takes about twenty minutes. Let nothing else run meanwhile.
"""

from __future__ import annotations

import time
from pathlib import Path

import corpus
import diffs
import imports
import queries
import relay_altering
import relay_tcp
import relay_udp
import relay_watched
import starts
import taps
from relays import present
from report import Report, machine

RESULTS = Path(__file__).with_name("RESULTS.md")

RELAY_ROUNDS = 3
OWN_ROUNDS = 2
"""Where the relay is compared with itself."""
RELAY_SECONDS = 2.0
CAPTURES = 60
MOST_MINUTES = 20


def main() -> None:
    report, begin = Report(), time.monotonic()
    introduction = [
        "# Results of the last full run",
        "Written by `make bench`; [README.md](README.md) says what is measured, and how to read it.",
        machine(),
    ]
    relay_udp.compared(report, present(), RELAY_ROUNDS, RELAY_SECONDS)
    relay_tcp.compared(report, present(), RELAY_ROUNDS, RELAY_SECONDS)
    relay_altering.compared(report, present(), OWN_ROUNDS, RELAY_SECONDS)
    relay_watched.compared(report, present(), OWN_ROUNDS, RELAY_SECONDS)
    starts.measured(report, starts.ROUNDS)
    for subject in imports.SUBJECTS.values():
        imports.imported(report, subject, imports.REPETITIONS, imports.ROUNDS)
    queries.answered(report, queries.MESSAGES, queries.ROUNDS, explain=False)
    diffs.compared(report, diffs.MESSAGES, diffs.ROUNDS)
    corpus.added(report, CAPTURES, rounds=1)
    corpus.asked(report, queries.MESSAGES)
    taps.measured(report, taps.REPETITIONS)
    minutes = (time.monotonic() - begin) / 60
    report.promise(
        "All of this: minutes", f"{minutes:.0f}", "–", "–", f"≤ {MOST_MINUTES}", minutes <= MOST_MINUTES
    )
    report.console.print(report.summary(), highlight=False)
    report.write(RESULTS, introduction)
    report.console.print(f"Written to {RESULTS}.", highlight=False)


if __name__ == "__main__":
    main()
