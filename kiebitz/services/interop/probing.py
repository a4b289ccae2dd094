"""The probe of each program of a plan, as a row and a column of the report."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.services.interop.plan import HOST, Plan, Program, limited_words
from kiebitz.services.interop.results import ProbeSummary
from kiebitz.services.probing.connection_setup import NEXT_PORT, PORT, ProbeSetup, targets
from kiebitz.services.probing.results import by_verdict
from kiebitz.services.probing.route_selection import built_in_script
from kiebitz.services.probing.test_run import RunLimits, TestRun
from kiebitz.services.recording.relay_process import free_port

_MAX_CASES = 2000
_RATE = 50.0
_JOBS = 2
_TIMEOUT_S = 1.0


def probe(plan: Plan, program: Program, folder: Path) -> ProbeSummary:
    """Probe a program for as long as the plan says; `folder` is its working folder."""
    folder.mkdir(parents=True, exist_ok=True)
    dissector = plan.dissector
    # There is no relay: the ports at which a client reaches a server are its own.
    next_port = {"port+1": NEXT_PORT, "relay+1": NEXT_PORT}
    values = {"host": HOST, "port": PORT, **next_port, "name": program.name, "seed": str(plan.seed)}
    try:
        script = built_in_script(dissector)
        if script is not None and program.role == "client":
            script = script.only({script.roles[0].number})
        setup = ProbeSetup(
            dissector,
            program.role,
            (HOST, free_port(dissector.transport)),
            script,
            False,
            _TIMEOUT_S,
            Baseline(dissector, OPPOSITE[INPUT_DIRECTION[program.role]]),
        )
        command = shlex.join(limited_words(plan, program, values))
        test_run = TestRun(
            targets(setup, command, _JOBS, str(folder)),
            RunLimits(_MAX_CASES, _RATE, plan.probe_s),
            "",
            database=None,
            keep=None,
            render=lambda shown: "",
        )
        results = [*test_run.run(generate_cases(dissector, program.role))]
    except KiebitzError as error:
        return ProbeSummary(program.name, program.role, {}, (), str(error))
    counts = Counter(result.verdict for result in results)
    failed = [result.case for result in results if result.is_failed]
    return ProbeSummary(program.name, program.role, dict(by_verdict(counts)), failed)
