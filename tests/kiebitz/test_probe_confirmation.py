"""How `kiebitz probe` confirms failures, tests several targets side by side, and measures time."""

from __future__ import annotations

import json
import os
import shlex
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest
from command import kiebitz
from probe_command import Probed, probe, results
from strength import a_few

from kiebitz.services.probing.program import FairClock

SUPPORT = Path(__file__).parents[1] / "support"
SERVER = SUPPORT / "planned_server.py"
DIES = "dies-on-an-unknown-word"


def probed(folder: Path, faults: list[str], *options: str) -> Probed:
    """Probe a server with a fault for each start."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"count": 0, "faults": faults}))
    restart = shlex.join([sys.executable, str(SERVER), str(plan)]) + " {port}"
    return probe("maexchen-server", "unknown-message", *options, restart=restart, timeout_s=0.7)


FAULTS_OF_STARTS = [
    ([DIES], "FAILED", "it has ended: exit status 1"),
    # The first run was hasty, or its target was in a state that others had left.
    ([DIES, ""], "INFORMATIONAL", "it "),
    (
        [DIES, DIES, ""],
        "UNSTABLE",
        "in one run it was FAILED: it has ended: exit status 1; in another it was INFORMATIONAL: it ",
    ),
    # The same game fails without the case.
    ([DIES, DIES, DIES, "dies-at-a-join"], "NOT TRIED", "the same without anything unusual is "),
    ([DIES, DIES, "", "dies-at-a-join"], "NOT TRIED", "the same without anything unusual is "),
    ([DIES, DIES, DIES, "dies-at-a-join", ""], "UNSTABLE", "it has ended: exit status 1; at times the same "),
]


@pytest.mark.parametrize(("faults", "verdict", "why"), a_few(FAULTS_OF_STARTS, FAULTS_OF_STARTS[:1]))
def test_a_failure_counts_only_if_it_repeats(
    faults: list[str], verdict: str, why: str, tmp_path: Path
) -> None:
    done = probed(tmp_path, faults, "--json", "-w", str(tmp_path / "probe.db"))
    result = done.results["unknown-message"]
    assert result["verdict"] == verdict, result["why"]
    assert result["why"].startswith(why)
    names = [each["name"] for each in kiebitz("sessions", str(tmp_path / "probe.db"), "--json").json]
    assert names[-1] == f"probe server maexchen/unknown-message: {verdict}"
    assert (result["other"] is not None) == (verdict == "UNSTABLE")
    if result["other"] is not None:
        other = " (control): FAILED" if "at times" in why else ": INFORMATIONAL"
        assert result["other"]["verdict"] == other.rpartition(" ")[2]
        assert result["messages"] or result["sent"]
        assert result["other"]["sent"]
        assert names[-2] == f"probe server maexchen/unknown-message{other}"


@pytest.mark.full
def test_an_unstable_case_is_reported_with_both_runs(tmp_path: Path) -> None:
    report = tmp_path / "probe.html"
    done = probed(tmp_path, [DIES, DIES, ""], "--report", str(report))
    assert done.out.count("  sent ") >= 2
    assert "in the other run, which was INFORMATIONAL:" in done.out
    assert "<h3>The other run: INFORMATIONAL</h3>" in report.read_text()


# The moment of the others' next messages.


def test_a_server_has_time_to_notice_that_a_client_has_left() -> None:
    restart = shlex.join([sys.executable, str(SUPPORT / "late_okey_server.py")]) + " {port}"
    cases = "+CATS/cut/reset +CATS/cut/close PUTT/cut/reset"
    done = probe("okey-server", cases, "--json", "--rate", "1000", restart=restart, timeout_s=0.7)
    assert len(done.verdicts) == 3
    assert {*done.verdicts.values()} <= {"OK", "INFORMATIONAL"}, done.json


# Several targets.


VERDICTS = {
    "game": "OK",
    "unknown-message": "FAILED",
    "empty": "FAILED",
    "JOIN/whole": "OK",
    "ROLL/cut": "OK",
}


@pytest.mark.full
@pytest.mark.parametrize("jobs", ["1", "4"])
def test_several_targets_are_tested_side_by_side(jobs: str) -> None:
    done = probe("maexchen-server", " ".join(VERDICTS), "--json", "--jobs", jobs, fault=DIES, timeout_s=0.7)
    assert done.verdicts == VERDICTS
    listed = kiebitz("probe", "server", "-d", "maexchen", "--list", "--json").json
    order = [each["case"].partition("/")[2] for each in listed]
    assert [*done.results] == sorted(VERDICTS, key=order.index)


# Heartbeats.


class _Impatient(socketserver.StreamRequestHandler):
    """Logs clients in, and sends heartbeats all the time."""

    lines: ClassVar[list[bytes]] = []

    def handle(self) -> None:
        is_over = threading.Event()

        def ping() -> None:
            while not is_over.wait(0.05):
                try:
                    self.wfile.write(b"PING\r\n")
                except OSError:
                    return

        threading.Thread(target=ping, daemon=True).start()
        for line in self.rfile:
            self.lines.append(line.rstrip())
            if line.startswith(b"LOGI "):
                self.wfile.write(b"+" + line)
        is_over.set()


@pytest.mark.full
def test_no_heartbeat_is_sent_within_a_message() -> None:
    _Impatient.lines.clear()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Impatient) as impatient:
        impatient.daemon_threads = True
        threading.Thread(target=impatient.serve_forever, daemon=True).start()
        port = impatient.server_address[1]
        (result,) = results("okey-server", "LOGI/in-two", port=port, timeout_s=0.3).values()
        impatient.shutdown()
    assert result["verdict"] == "OK", result["why"]
    assert b"+PING" in _Impatient.lines
    assert [line for line in _Impatient.lines if b"PING" in line and line not in (b"+PING", b"PING")] == []


# The clock.


def _busy(cpu: int) -> subprocess.Popen[bytes]:
    code = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    return subprocess.Popen([sys.executable, "-c", code], start_new_session=True)


@pytest.mark.full
@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="this system does not tell waiting times"
)
def test_time_without_a_processor_does_not_count() -> None:
    cpu = min(os.sched_getaffinity(0))
    # They share one processor, so that each waits for two thirds of the time.
    busy = [_busy(cpu) for _ in range(3)]
    try:
        time.sleep(0.3)
        clock = FairClock(lambda: busy[0].pid)
        begun, fair = time.monotonic(), [clock.time()]
        while time.monotonic() < begun + 1.5:
            fair.append(clock.time())
            time.sleep(0.01)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert fair == sorted(fair)
    passed = time.monotonic() - begun
    assert 0.05 * passed < fair[-1] - fair[0] < 0.75 * passed


def test_the_clock_of_an_unknown_program_is_a_monotonic_one() -> None:
    clock = FairClock(lambda: None)
    times: list[Any] = [clock.time() for _ in range(100)]
    assert times == sorted(times)
    assert times[-1] <= time.monotonic()
