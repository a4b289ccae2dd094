"""Keys that are typed while a replay fills the terminal, and how the terminal is given back."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest
from command import ROOT, TINY
from strength import a_few
from terminals import PATIENCE_S, OnTerminal

SLOW = ("replay", TINY, "--speed", "0.001")


def waiting(terminal: int) -> int:
    found = struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, bytes(4)))[0]
    assert isinstance(found, int)
    return found


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
            (("replay", TINY, "--speed", "1"), b"jjj\n kkkq", 0),
        ],
        lambda row: row[1] == b"xyz qabc",
    ),
)
def test_keys_do_not_land_on_the_prompt(arguments: tuple[str, ...], keys: bytes, status: int) -> None:
    with OnTerminal(*arguments) as replay:
        before = termios.tcgetattr(replay.terminal)
        # Ctrl-C reaches the group in the foreground, which a shell would make of it.
        replay.read_until(is_drawn)
        drawn = len(replay.written)
        if b"\x03" in keys:
            replay.type(keys.replace(b"\x03", b""))
            replay.signal(signal.SIGINT)
        else:
            replay.type(keys)
        assert replay.ended() == status
        assert waiting(replay.terminal) == 0
        assert termios.tcgetattr(replay.terminal) == before
        after = replay.written[drawn:]
        assert b"jjj" not in after
        assert b"xyz" not in after
        assert after.rindex(b"\x1b[?1049l") > after.rfind(b"\x1b[?1049h")


@pytest.mark.full
@pytest.mark.parametrize("number", a_few([signal.SIGTERM, signal.SIGHUP], [signal.SIGHUP]))
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(number: signal.Signals) -> None:
    with OnTerminal(*SLOW) as replay:
        before = termios.tcgetattr(replay.terminal)
        replay.read_until(is_drawn)
        assert termios.tcgetattr(replay.terminal) != before
        replay.signal(number)
        assert replay.ended() == 128 + number
        assert termios.tcgetattr(replay.terminal) == before
        assert replay.written.count(b"\x1b[?1049l") == 1
        assert replay.written.rindex(b"\x1b[?25h") > replay.written.rindex(b"\x1b[?25l")


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


@pytest.mark.full
def test_a_replay_into_a_pipe_leaves_the_keyboard_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kiebitz", "replay", TINY, "--speed", "0"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert re.search(r"^ +1\.384346  carl has rolled 3,3$", done.stdout, re.MULTILINE)
