from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from descendants import children
from strength import a_few

TESTS = Path(__file__).parent

BEGINNING = """
import ctypes, signal, subprocess, sys, threading, time
import conftest, pytest
conftest.GRACE_S, conftest.FAREWELL_S = 2, 0.2
# No signal wakes who waits for it twice.
mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
"""
SLEEPER = "[sys.executable, '-c', 'import time; time.sleep(300)']"
GRANDCHILD = f"""
import subprocess, sys
subprocess.Popen({SLEEPER}, start_new_session=True)
"""
LEFT = "it left processes behind"

MISBEHAVING = {
    "a child is left": (
        f"def test_it(): left.append(subprocess.Popen({SLEEPER}))",
        LEFT,
    ),
    "a grandchild is left": (f"def test_it(): subprocess.run([sys.executable, '-c', {GRANDCHILD!r}])", LEFT),
    "it sleeps": ("@pytest.mark.timeout(1)\ndef test_it(): time.sleep(300)", "time.sleep(300)"),
    "a child hangs": (
        f"@pytest.mark.timeout(1)\ndef test_it(): left.append(subprocess.Popen({SLEEPER})); left[0].wait()",
        LEFT,
    ),
    "a thread hangs": (
        "def hang(): time.sleep(300)\n"
        "@pytest.mark.timeout(1)\n"
        "def test_it(): thread = threading.Thread(target=hang); thread.start(); thread.join()",
        "in hang",
    ),
    "no Python is run": (
        "@pytest.mark.timeout(1)\n"
        f"def test_it(): left.append(subprocess.Popen({SLEEPER})); lock(mutex); lock(mutex)",
        "in test_it",
    ),
}


def run(folder: Path, program: str, *options: str, **more: object) -> tuple[int, str]:
    (folder / "test_made.py").write_text(f"{BEGINNING}left = []\n{program}\n")
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), "-c", os.devnull, str(folder)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS / "support"), str(TESTS.parent))),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        **more,  # type: ignore[call-overload]  # as they are given
    )
    return done.returncode, done.stdout


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux alone")
@pytest.mark.parametrize("kind", a_few(MISBEHAVING, ["a grandchild is left"]))
def test_misbehaving_tests_fail_and_are_ended(kind: str, tmp_path: Path) -> None:
    program, says = MISBEHAVING[kind]
    before = children()
    # In a worker, as all are; a thread that hangs keeps that from ending.
    status, said = run(tmp_path, program, "-n", "1")
    assert status == 1, said
    assert says in said
    assert children() <= before


@pytest.mark.full
def test_a_signal_that_is_ignored_here_is_not_by_what_a_test_starts(tmp_path: Path) -> None:
    program = (
        "def test_it():\n"
        f"    process = subprocess.Popen({SLEEPER}, stderr=subprocess.DEVNULL)\n"
        "    process.send_signal(signal.SIGINT)\n"
        "    assert process.wait(60) != 0"
    )
    status, said = run(tmp_path, program, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert status == 0, said
