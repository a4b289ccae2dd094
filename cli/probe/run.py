"""A run of `kiebitz probe`: the test run with its progress display, and its outputs."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

from kiebitz.cli.probe.ci_output import (
    append_summary,
    commands_off,
    show_annotations,
    write_junit_results,
)
from kiebitz.cli.probe.html_report import render_message, write_page
from kiebitz.cli.probe.options import Outputs, RunOptions, Target, confirm_target
from kiebitz.cli.probe.progress import ProgressView
from kiebitz.cli.probe.terminal_report import print_results
from kiebitz.cli.status import FAILED, INTERRUPTED, OK, VIOLATIONS
from kiebitz.cli.terminal.console import write_json
from kiebitz.cli.terminal.screen import Live
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.case import Case
from kiebitz.proxy.system.deferred_signals import signals_handled
from kiebitz.services.output_files import opened
from kiebitz.services.probing.connection_setup import ProbeSetup, targets
from kiebitz.services.probing.known_failures import KnownFailures
from kiebitz.services.probing.results import Result, counts_in_words, totals_of
from kiebitz.services.probing.route_selection import built_in_script
from kiebitz.services.probing.test_run import RunLimits, TestRun
from kiebitz.services.standard_streams import print_error_line, warn
from kiebitz.services.wording import counted


class _Finished(NamedTuple):
    """The results of a run in the order of its cases, and why cases were left out, if any were.

    `is_interrupted` is true after Ctrl-C, and `is_broken_off` if an error ended the run.
    """

    results: Sequence[Result]
    left: str | None
    is_interrupted: bool
    is_broken_off: bool


def run_cases(
    target: Target, run: RunOptions, cases: Sequence[Case], is_confirmed: bool, outputs: Outputs
) -> int:
    """Run the cases, write all outputs, and return the exit status.

    Raises click.UsageError, PeerError, ProgramError, RelayError and StorageError.
    """
    if target.role == "server":
        confirm_target(target.place, target.dissector, is_confirmed)
    # Fail before cases run.
    known = None if outputs.baseline is None else KnownFailures(outputs.baseline, outputs.update_baseline)
    finished = _finish(target, run, cases, known, renders=outputs.report is not None)
    _print(target, outputs, finished)
    _write_files(target, run.database, outputs, finished)
    print_error_line(counts_in_words(totals_of(finished.results).total))
    if finished.left is not None:
        warn(f"left out: {finished.left}")
    results = finished.results
    if known is not None and outputs.update_baseline:
        known.update(results)
        results = [known.mark(result) for result in results]
    elif known is not None and (fixed := known.fixed(results)):
        warn(f"fixed: {', '.join(fixed)}: --update-baseline removes them from {outputs.baseline}")
    return _status(results, finished)


def _finish(
    target: Target, run: RunOptions, cases: Sequence[Case], known: KnownFailures | None, renders: bool
) -> _Finished:
    """Run the cases, with a progress display."""
    script = target.script or built_in_script(target.dissector)
    if script is not None and target.role == "client":
        # The client under test plays the first of several players.
        script = script.only({script.roles[0].number})
    setup = ProbeSetup(
        target.dissector,
        target.role,
        target.place,
        script,
        target.script is not None,
        run.timeout_s,
        Baseline(target.dissector, OPPOSITE[INPUT_DIRECTION[target.role]]),
    )
    test_run = TestRun(
        [setup] if run.restart is None else targets(setup, run.restart, run.jobs),
        RunLimits(run.max_cases, run.rate, run.max_time_s),
        run.command(target),
        database=run.database,
        keep=run.keep,
        render=render_message if renders else lambda shown: "",
    )
    if target.role == "client" and run.restart is None:
        print_error_line(f"Connect the client to {target.address} repeatedly: each connection is one case.")
    results: list[Result] = []
    left: str | None = None
    is_interrupted = False
    watching = ProgressView(cases[: run.max_cases])
    try:
        # Stop the started program on SIGTERM, too.
        with signals_handled(signal.SIGTERM), Live(watching):
            for result in test_run.run(cases):
                marked = result if known is None else known.mark(result)
                results.append(marked)
                watching.add(marked)
        left = test_run.left_out
    except KeyboardInterrupt:
        is_interrupted = True
        left = f"{counted(len(cases) - len(results), 'case')}: interrupted"
    places = {case.name: number for number, case in enumerate(cases)}
    return _Finished(
        sorted(results, key=lambda result: places[result.case]),
        left,
        is_interrupted,
        test_run.error is not None,
    )


def _print(target: Target, outputs: Outputs, finished: _Finished) -> None:
    """Print the results on stdout."""
    with commands_off() if outputs.github else nullcontext():
        if outputs.as_json:
            write_json(
                {
                    "protocol": target.dissector.protocol,
                    "role": target.role,
                    "address": target.address,
                    "results": [result.as_json() for result in finished.results],
                    "left_out": finished.left,
                }
            )
        else:
            print_results(finished.results)
    if outputs.github:
        show_annotations(finished.results)


def _write_files(target: Target, database: str | None, outputs: Outputs, finished: _Finished) -> None:
    title = f"{target.dissector.grammar.title}: the {target.role} at {target.address}"
    for path, write in ((outputs.report, write_page), (outputs.junit, write_junit_results)):
        if path is not None:
            with opened(path, database or "") as file:
                write(title, finished.results, finished.left, file)
    if outputs.github:
        append_summary(title, finished.results)


def _status(results: Sequence[Result], finished: _Finished) -> int:
    if finished.is_interrupted:
        return INTERRUPTED
    if any(result.is_failed for result in results):
        return VIOLATIONS
    # Otherwise no setup succeeded: nothing is known about the target.
    is_complete = not finished.is_broken_off and any(result.reactions for result in results)
    return OK if is_complete else FAILED
