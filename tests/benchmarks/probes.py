"""Benchmark of `kiebitz probe` and `kiebitz interop` with the model programs of the tests.

All cases of Mäxchen are tried, and the first hundred of the others, with eight servers side by side. The
peer only starts the same server once for each case that was tried, eight at a time, and ends it when it
listens: no test on fresh servers is quicker. `interop` plays all cells of the guide's plan.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import Report, new_table
from running import KIEBITZ, run

_ROOT = Path(__file__).parents[2]
_PEERS = _ROOT / "tests" / "support" / "peers"
_PLAN = _ROOT / "docs" / "examples" / "interop" / "plan.toml"
_OPTIONS = {
    "maexchen": "--players 2 --window 0.3",
    "schafkopf": "--players 4",
    "catan": "--players 4 --points 5",
    "okey": "--players 4",
    "cgml": "--players 4",
}
"""Options of each protocol's server."""

JOBS = 8
ALL_CASES = 204
"""The number of Mäxchen's cases."""

FIRST_CASES = 100
"""Maximum number of cases of each other protocol."""

MOST_SECONDS = 60
_FIRST_PORT = 21_000


def measured(report: Report, rounds: int) -> None:
    """Measure the probe of each protocol's server, and a run of interop."""
    table = new_table("Probe", "cases|of which tried|s|CPU s|s of starts|ratio", "server")
    for protocol in _OPTIONS:
        results = [_probed(protocol) for _ in range(rounds)]
        cases, tried, seconds, cpu = min(results, key=lambda result: result[2])
        starts = min(_started(protocol, tried) for _ in range(rounds))
        ratio = f"{seconds / starts:.2f}"
        rounded = (f"{figure:.0f}" for figure in (cases, tried, seconds, cpu, starts))
        table.add_row(protocol, *rounded, ratio)
        if protocol == "maexchen":
            subject, aim = f"Probe of all {cases} cases of Mäxchen: s", f"≤ {MOST_SECONDS}"
            report.promise(subject, f"{seconds:.0f}", aim, seconds <= MOST_SECONDS, f"{starts:.0f}", ratio)
    report.show(table)
    cells, seconds = min(_played() for _ in range(rounds))
    report.promise(f"Interop, {cells} cells of two games: s", f"{seconds:.0f}", "–", None)


def _server(protocol: str) -> str:
    return f"{sys.executable} {_PEERS} {protocol}-server --port {{port}} {_OPTIONS[protocol]}"


def _probed(protocol: str) -> tuple[int, int, float, float]:
    """Probe a server; return the numbers of all and of tried cases, the seconds, and the CPU seconds."""
    with tempfile.NamedTemporaryFile() as file:
        command = [*KIEBITZ, "probe", "server", str(_FIRST_PORT), "-d", protocol, "--json"]
        command += ["--restart", _server(protocol), "--jobs", str(JOBS), "--rate", "1000"]
        most = ALL_CASES if protocol == "maexchen" else FIRST_CASES
        cost = run([*command, "--max-cases", str(most)], written=file.name)
        verdicts = [result["verdict"] for result in json.load(file)["results"]]
    assert "FAILED" not in verdicts, f"the model server of {protocol} fails"
    return len(verdicts), len(verdicts) - verdicts.count("NOT TRIED"), cost.wall, cost.cpu


def _started(protocol: str, number: int) -> float:
    """Start a server so many times and return the seconds that it took."""
    # At port 0 each takes a free one.
    words = _server(protocol).replace("{port}", "0").split()

    def start(_number: int) -> None:
        with subprocess.Popen(words, stderr=subprocess.PIPE) as server:
            assert server.stderr is not None
            server.stderr.readline()
            server.terminate()

    begin = time.perf_counter()
    with ThreadPoolExecutor(JOBS) as side_by_side:
        list(side_by_side.map(start, range(number)))
    return time.perf_counter() - begin


def _played() -> tuple[int, float]:
    """Run the guide's plan; return the number of cells and the seconds."""
    # The plan's command is `python`.
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        # The planted faults are found, which is status 3.
        cost = run([*KIEBITZ, "interop", str(_PLAN), "-o", f"{folder}/report", "--jobs", "2"], well=(3,))
        cells = len(json.loads(Path(f"{folder}/report/results.json").read_text())["cells"])
    return cells, cost.wall
