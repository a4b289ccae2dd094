"""Run all benchmarks, as `make bench` does, or some of them: `python tests/benchmarks/bench.py [NAME …]`.

Prints every table, then the promised and the measured values; a run of all writes RESULTS.md. It takes about
twenty-five minutes; nothing else should run meanwhile.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

sys.path.append(str(Path(__file__).parents[1] / "support"))

import corpus
import diffs
import growths
import imports
import page_latency
import probes
import queries
import relay_altering
import relay_tcp
import relay_udp
import relay_watched
import starts
import taps
from report import Report

RESULTS = Path(__file__).with_name("RESULTS.md")
MOST_MINUTES = 25

Benchmark = Callable[[Report, int], None]

BENCHMARKS: dict[str, tuple[Benchmark, int]] = {
    "relay_udp": (relay_udp.compared, 3),
    "relay_tcp": (relay_tcp.compared, 3),
    "relay_altering": (relay_altering.compared, 2),
    "relay_watched": (relay_watched.compared, 2),
    "page_latency": (page_latency.compared, 2),
    "starts": (starts.measured, 5),
    "imports": (imports.imported, 1),
    "queries": (queries.answered, 7),
    "diffs": (diffs.compared, 1),
    "growths": (growths.measured, 1),
    "corpus": (corpus.measured, 1),
    "taps": (taps.measured, 1),
    "probes": (probes.measured, 1),
}
"""Benchmark and its number of rounds, by name."""


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, type=click.Choice([*BENCHMARKS]))
@click.option("--rounds", type=int, help="How often each is measured.")
def main(names: tuple[str, ...], rounds: int | None) -> None:
    report, begin = Report(), time.monotonic()
    failed = []
    for name in names or BENCHMARKS:
        measure, usual = BENCHMARKS[name]
        try:
            measure(report, rounds or usual)
        except Exception as error:
            # The others' results took minutes.
            report.show(f"{name} failed: {error}")
            failed.append(name)
    if not names:
        report.limit("All of this: minutes", (time.monotonic() - begin) / 60, MOST_MINUTES, ".0f")
    report.end(None if names else RESULTS)
    if failed:
        raise click.ClickException(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
