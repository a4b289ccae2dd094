"""A run of `kiebitz probe`: the test run with its progress display, and its outputs."""

from __future__ import annotations

import shlex
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
from kiebitz.cli.probe.html_report import write_page
from kiebitz.cli.probe.message_html import render_message
from kiebitz.cli.probe.preflight import confirm_target
from kiebitz.cli.probe.progress import ProgressView
from kiebitz.cli.probe.terminal_report import print_results
from kiebitz.cli.status import FAILED, INTERRUPTED, OK, VIOLATIONS
from kiebitz.cli.terminal.console import write_json
from kiebitz.cli.terminal.screen import Live
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.case import Case
from kiebitz.dissectors.replay.script import Script
from kiebitz.proxy.relay.modes import endpoint
from kiebitz.services.output_files import opened
from kiebitz.services.probing.connection_setup import ProbeSetup
from kiebitz.services.probing.known_failures import KnownFailures
from kiebitz.services.probing.recorded_samples import built_in_script
from kiebitz.services.probing.results import Result, counts_in_words
from kiebitz.services.probing.targets import targets
from kiebitz.services.probing.test_run import RunLimits, TestRun
from kiebitz.services.probing.totals import totals_of
from kiebitz.services.server_addresses import Address
from kiebitz.services.standard_streams import print_error_line, warn
from kiebitz.services.wording import counted

DEFAULT_TIMEOUT_S = 1.0


class ProbeOptions(NamedTuple):
    """Target and options of a probe."""

    role: TargetRole
    place: Address
    dissector: Dissector
    script: Script | None
    via_session: str | None
    restart: str | None
    protocol_files: Sequence[str]
    jobs: int
    database: str | None
    keep: str | None
    timeout_s: float
    rate: float
    max_cases: int
    max_time_s: float

    @property
    def address(self) -> str:
        """Address as text."""
        return endpoint(*self.place)

    @property
    def command(self) -> str:
        """Shell command that repeats a case, without `--only`."""
        words = ["kiebitz", "probe", self.role, self.address, "-d", self.dissector.protocol]
        for path in self.protocol_files:
            words += ["-P", path]
        for option, value in (("--via-session", self.via_session), ("--restart", self.restart)):
            words += [option, value] if value is not None else []
        if self.timeout_s != DEFAULT_TIMEOUT_S:
            words += ["--timeout", f"{self.timeout_s:g}"]
        return shlex.join(words)


class Outputs(NamedTuple):
    """The requested outputs: files, formats, and the baseline file."""

    as_json: bool
    junit: str | None
    github: bool
    baseline: str | None
    update_baseline: bool
    report: str | None


class _Finished(NamedTuple):
    """The results of a run in the order of its cases, and why cases were left out, if any were.

    `is_interrupted` is true after Ctrl-C, and `is_broken_off` if an error ended the run.
    """

    results: Sequence[Result]
    left: str | None
    is_interrupted: bool
    is_broken_off: bool


def run_cases(options: ProbeOptions, cases: Sequence[Case], is_confirmed: bool, outputs: Outputs) -> int:
    """Run the cases, write all outputs, and return the exit status.

    Raises click.UsageError, PeerError, ProgramError, RelayError and StorageError.
    """
    if options.role == "server":
        confirm_target(options.place, options.dissector, is_confirmed)
    # Fail before cases run.
    known = None if outputs.baseline is None else KnownFailures(outputs.baseline, outputs.update_baseline)
    finished = _finish(options, cases, known, renders=outputs.report is not None)
    _print(options, outputs, finished)
    _write_files(options, outputs, finished)
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
    options: ProbeOptions, cases: Sequence[Case], known: KnownFailures | None, renders: bool
) -> _Finished:
    """Run the cases, with a progress display."""
    script = options.script or built_in_script(options.dissector)
    if script is not None and options.role == "client":
        # The client under test plays the first of several players.
        script = script.only({script.roles[0].number})
    setup = ProbeSetup(
        options.dissector,
        options.role,
        options.place,
        script,
        options.script is not None,
        options.timeout_s,
        Baseline(options.dissector, OPPOSITE[INPUT_DIRECTION[options.role]]),
    )
    test_run = TestRun(
        [setup] if options.restart is None else targets(setup, options.restart, options.jobs),
        RunLimits(options.max_cases, options.rate, options.max_time_s),
        options.command,
        database=options.database,
        keep=options.keep,
        render=render_message if renders else lambda shown: "",
    )
    if options.role == "client" and options.restart is None:
        print_error_line(f"Connect the client to {options.address} repeatedly: each connection is one case.")
    results: list[Result] = []
    left: str | None = None
    is_interrupted = False
    # Stop the started program on SIGTERM, too.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        watching = ProgressView(cases[: options.max_cases])
        with Live(watching):
            for result in test_run.run(cases):
                marked = result if known is None else known.mark(result)
                results.append(marked)
                watching.add(marked)
        left = test_run.left_out
    except KeyboardInterrupt:
        is_interrupted = True
        left = f"{counted(len(cases) - len(results), 'case')}: interrupted"
    finally:
        signal.signal(signal.SIGTERM, before)
    places = {case.name: number for number, case in enumerate(cases)}
    return _Finished(
        sorted(results, key=lambda result: places[result.case]),
        left,
        is_interrupted,
        test_run.error is not None,
    )


def _print(options: ProbeOptions, outputs: Outputs, finished: _Finished) -> None:
    """Print the results on stdout."""
    with commands_off() if outputs.github else nullcontext():
        if outputs.as_json:
            write_json(
                {
                    "protocol": options.dissector.protocol,
                    "role": options.role,
                    "address": options.address,
                    "results": [result.as_json() for result in finished.results],
                    "left_out": finished.left,
                }
            )
        else:
            print_results(finished.results)
    if outputs.github:
        show_annotations(finished.results)


def _write_files(options: ProbeOptions, outputs: Outputs, finished: _Finished) -> None:
    title = f"{options.dissector.grammar.title}: the {options.role} at {options.address}"
    for path, write in ((outputs.report, write_page), (outputs.junit, write_junit_results)):
        if path is not None:
            with opened(path, options.database or "") as file:
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
