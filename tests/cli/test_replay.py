"""`kiebitz replay`: its pace, its steps by line and by key, and how the terminal is given back."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest
from command import ROOT, TINY
from screens import Filled
from strength import a_few
from terminals import PATIENCE_S

from kiebitz.cli.replay import playback
from kiebitz.cli.replay.playback import RecordedPace

COMMAND = [sys.executable, "-m", "kiebitz", "replay", TINY]
SLOW = ("replay", TINY, "--speed", "0.001")


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


# On a terminal.


def is_drawn(written: bytes) -> bool:
    return b"q quit" in written


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "keys", "status"),
    a_few(
        [
            (SLOW, b"q", 0),
            (SLOW, b"xyz qabc", 0),
            (SLOW, b"Q", 0),
            (SLOW, b"\x04", 0),
            (SLOW, b"jj\x03", 130),
            (("replay", TINY, "--step"), b"qqq jjj\r", 0),
            (("replay", TINY, "--step"), b"\x03", 130),
            (("replay", TINY, "--speed", "1"), b"jjj\n kkkq", 0),
        ],
        lambda row: row[1] == b"xyz qabc",
    ),
)
def test_keys_do_not_land_on_the_prompt(arguments: tuple[str, ...], keys: bytes, status: int) -> None:
    with Filled(*arguments) as replay:
        # Ctrl-C reaches the group in the foreground, which a shell would make of it.
        replay.read_until(is_drawn)
        drawn = len(replay.written)
        if b"\x03" in keys:
            replay.type(keys.replace(b"\x03", b""))
            replay.signal(signal.SIGINT)
        else:
            replay.type(keys)
        assert replay.ended() == status
        assert replay.typed() == 0
        assert replay.is_as_it_was()
        after = replay.written[drawn:]
        assert b"jjj" not in after
        assert b"xyz" not in after


def test_steps_by_key_on_a_terminal() -> None:
    with Filled("replay", TINY, "--step", "--from", "#12") as replay:
        replay.until("it is carl's turn")
        replay.until("q quit")
        for key, words in ((b" ", "carl rolls"), (b"\r", "carl has rolled 3,3")):
            replay.type(key)
            replay.until(words)
        replay.type(b"xq")
        assert replay.ended() == 0
        assert replay.is_as_it_was()
        assert "under the cup" in replay.screen


@pytest.mark.full
@pytest.mark.parametrize("number", a_few([signal.SIGTERM, signal.SIGHUP], [signal.SIGHUP]))
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(number: signal.Signals) -> None:
    with Filled(*SLOW) as replay:
        replay.read_until(is_drawn)
        assert termios.tcgetattr(replay.terminal) != replay.before
        replay.signal(number)
        assert replay.ended() == 128 + number
        assert replay.is_as_it_was()
        assert replay.written.count(b"\x1b[?1049l") == 1


class Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self) -> None:
        self._pid, self._controller = pty.fork()
        if self._pid == 0:
            os.chdir(ROOT)
            given = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "PS1": "ready> "}
            os.execve(shutil.which("bash") or "bash", ["bash", "--norc", "--noprofile", "-i"], given)
        self.seen = ""
        self.until("ready> ")

    def until(self, text: str) -> str:
        """Read until a text has come; gives what came with it."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self._controller], [], [], 0.1)[0]:
                self.seen += os.read(self._controller, 65536).decode(errors="replace")
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, keys: str) -> None:
        os.write(self._controller, keys.encode())

    def end(self) -> None:
        os.kill(self._pid, signal.SIGHUP)
        os.close(self._controller)
        os.waitpid(self._pid, 0)


@pytest.fixture
def shell() -> Iterator[Shell]:
    made = Shell()
    yield made
    made.end()


@pytest.mark.full
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_ctrl_z_gives_the_terminal_back_until_fg(shell: Shell) -> None:
    shell.type(f"PYTHONPATH={ROOT} {sys.executable} -m kiebitz {' '.join(SLOW)}\n")
    shell.until("q quit")
    shell.type("zz\x1a")
    assert "\x1b[?1049l" in shell.until("Stopped")
    shell.until("ready> ")
    shell.type("stty -a | tr ';' '\\n' | grep -ow -e '-*echo' -e '-*icanon'\n")
    modes = shell.until("ready> ").split()
    assert {"echo", "icanon"} <= {*modes[-3:]}
    shell.type("fg\n")
    assert "\x1b[?1049h" in shell.until("q quit")
    shell.type("yyq")
    shell.until("ready> ")
    shell.type("echo status-$?\n")
    shell.until("status-0")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_ctrl_c_in_a_shell_ends_it(shell: Shell) -> None:
    shell.type(f"PYTHONPATH={ROOT} {sys.executable} -m kiebitz {' '.join(SLOW)}\n")
    shell.until("q quit")
    shell.type("\x03")
    shell.until("ready> ")
    shell.type("echo status-$?\n")
    shell.until("status-130")
