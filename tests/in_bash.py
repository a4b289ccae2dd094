"""A real bash on a pseudo-terminal, which is asked to complete a line."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from command import ROOT

PATIENCE_S = 30.0

_SETTINGS = r"""
PS1='ready> '; HISTFILE=
bind 'set show-all-if-ambiguous off'; bind 'set enable-bracketed-paste off'
bind -x '"\C-x\C-p": printf "\n[[%s]]\n" "$READLINE_LINE"'
eval "$(kiebitz completion bash)"
"""


class Bash:
    """A bash that has loaded the completion; `folder` is where it stands."""

    def __init__(self, folder: Path) -> None:
        self._controller, terminal = pty.openpty()
        # A long line is not to be drawn on several.
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 1000, 0, 0))
        scripts = folder.with_name(f"{folder.name}-bin")
        scripts.mkdir(exist_ok=True)
        (scripts / "kiebitz").write_text(
            f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m kiebitz "$@"\n'
        )
        (scripts / "kiebitz").chmod(0o755)
        (scripts / "settings").write_text(_SETTINGS)
        self.environment = {
            **os.environ,
            "PATH": f"{scripts}:{os.environ['PATH']}",
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "INPUTRC": os.devnull,
        }
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--rcfile", str(scripts / "settings"), "-i"],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=folder,
            env=self.environment,
            start_new_session=True,
        )
        os.close(terminal)
        self._written = ""
        self._until(r"ready> $")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._controller)

    def completed(self, line: str, keys: str = "\t") -> str:
        """What the line is after a key: Tab, or what inserts all that is offered."""
        self._written = ""
        os.write(self._controller, f"{line}{keys}\x18\x10".encode())
        found = self._until(r"\[\[(.*?)\]\]\r?\n")
        # A line with an open quotation mark cannot be left by the Enter key.
        os.write(self._controller, b"\x05\x15")
        return found

    def all_of(self, line: str) -> list[str]:
        """The words of the line when all that is offered is put in."""
        return self.words(self.completed(line, "\x1b*"))

    def words(self, line: str) -> list[str]:
        """The words of a line as bash understands it, without the command."""
        program = f"kiebitz() {{ printf '%s\\0' \"$@\"; }}\n{line}"
        done = subprocess.run(["bash", "-c", program], capture_output=True, check=True)
        assert not done.stderr
        return done.stdout.decode().split("\0")[:-1]

    def _until(self, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self._written, re.DOTALL)):
            assert time.monotonic() < deadline, self._written
            if select.select([self._controller], [], [], 0.05)[0]:
                self._written += os.read(self._controller, 65536).decode(errors="replace")
        return found[1] if found.groups() else ""
