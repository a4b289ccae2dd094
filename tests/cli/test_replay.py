"""`kiebitz replay`: its pace, its steps, and what it leaves of the terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress

import pytest
from command import ROOT
from strength import a_few

from kiebitz.cli.replay import playback
from kiebitz.cli.replay.playback import RecordedPace

TINY = str(ROOT / "captures" / "maexchen-head-tiny.pcap")
COMMAND = [sys.executable, "-m", "kiebitz", "replay", TINY]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_pace_does_not_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(playback, "time", clock)
    pace = RecordedPace(4.0)
    for number in range(1000):
        clock.now += 0.01 if number else 0.0
        assert pace.wait(number * 10**9, (number + 1) * 10**9)
    assert clock.now == pytest.approx(100.0 + 1000 / 4)


def test_pace_of_zero_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(playback, "time", clock)
    assert RecordedPace(0.0).wait(0, 10**18)
    assert clock.now == 100.0


@pytest.mark.full
def test_recorded_pace() -> None:
    started = time.monotonic()
    lines = subprocess.run(
        [*COMMAND, "--from", "#6", "--to", "#12"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    # From event 6 to event 12 it took 0.25 s.
    assert time.monotonic() - started > 0.25
    assert len(re.findall(r"^ +\d", lines.stdout, re.MULTILINE)) >= 7


@pytest.mark.full
@pytest.mark.parametrize(
    ("typed", "events"), a_few([("\n\n\n", 4), ("", 1), ("\nq\n\n", 2)], [("\nq\n\n", 2)])
)
def test_each_line_of_stdin_is_a_step(typed: str, events: int) -> None:
    result = subprocess.run(
        [*COMMAND, "--step"], cwd=ROOT, input=typed, check=True, capture_output=True, text=True
    )
    assert len(re.findall(r"^ +\d+\.\d{6}  ", result.stdout, re.MULTILINE)) == events
    assert "Mäxchen" in result.stdout


class Terminal:
    """A replay on a terminal of its own, 80 by 24."""

    def __init__(self, *arguments: str) -> None:
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            surroundings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
            os.execve(COMMAND[0], [*COMMAND, *arguments], surroundings)
        self._before = termios.tcgetattr(self._master)
        self.seen = ""

    def until(self, text: str) -> None:
        """Read until the text has come."""
        deadline = time.monotonic() + 10
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self._master], [], [], 0.1)[0]:
                self.seen += os.read(self._master, 65536).decode(errors="replace")

    def type(self, keys: str) -> None:
        self.seen = ""
        os.write(self._master, keys.encode())

    def ended(self) -> int:
        """Return the exit status; the terminal must be as it was."""
        # A terminal whose last program is gone gives an error where a file would end.
        with suppress(OSError):
            while data := os.read(self._master, 65536):
                self.seen += data.decode(errors="replace")
        assert "\x1b[?1049l" in self.seen
        assert self.seen.rindex("\x1b[?25h") > self.seen.find("\x1b[?25l")
        assert termios.tcgetattr(self._master) == self._before
        os.close(self._master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_steps_by_key_on_a_terminal() -> None:
    terminal = Terminal("--step", "--from", "#12")
    terminal.until("it is carl's turn")
    terminal.until("q quit")
    terminal.type(" ")
    terminal.until("carl rolls")
    terminal.type("\r")
    terminal.until("carl has rolled 3,3")
    terminal.type("xq")
    assert terminal.ended() == 0
    assert "under the cup" in terminal.seen.split("\x1b[?1049l")[1]


@pytest.mark.full
def test_ctrl_c_while_waiting_for_a_key() -> None:
    terminal = Terminal("--step")
    terminal.until("q quit")
    terminal.type("\x03")
    assert terminal.ended() == 130


@pytest.mark.full
def test_interrupt_while_playing() -> None:
    terminal = Terminal("--speed", "0.01")
    terminal.until("q quit")
    os.kill(terminal.pid, signal.SIGINT)
    assert terminal.ended() == 130
