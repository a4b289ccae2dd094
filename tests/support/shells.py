"""Real shells that complete a line: bash and zsh on a pseudo-terminal, and fish."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import Self
from unittest.mock import patch

import pytest
from command import ROOT

from kiebitz.cli.main import run

PATIENCE_S = 30.0

_SETTINGS = r"""
PS1='ready> '; HISTFILE=
bind 'set show-all-if-ambiguous off'; bind 'set enable-bracketed-paste off'
bind -x '"\C-x\C-p": printf "\n[[%s]]\n" "$READLINE_LINE"'
eval "$(kiebitz completion bash)"
"""


_ZSH_SETTINGS = r"""
PROMPT='ready> '; RPROMPT=; unset HISTFILE; setopt no_beep no_prompt_sp no_prompt_cr
autoload -Uz compinit; compinit -u -D
_kiebitz_line() { print -r -- $'\n'"[[$BUFFER]]"; BUFFER= ; zle reset-prompt }
zle -N _kiebitz_line; bindkey '^X^P' _kiebitz_line
zle -C all-matches complete-word _generic; bindkey '^X*' all-matches
zstyle ':completion:all-matches:*' completer _all_matches _complete
zstyle ':completion:all-matches:*' old-matches only
eval "$(kiebitz completion zsh)"
"""


class Bash:
    """A bash with the completion loaded; `folder` is its current directory."""

    name = "bash"
    settings = _SETTINGS
    file = "settings"
    all_keys = "\x1b*"

    def command(self, settings: Path) -> list[str]:
        """Return the interactive shell, which reads its settings from a file."""
        return ["bash", "--noprofile", "--rcfile", str(settings), "-i"]

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
        settings = scripts / self.file
        settings.write_text(self.settings)
        self.environment = {
            **os.environ,
            "PATH": f"{scripts}:{os.environ['PATH']}",
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "INPUTRC": os.devnull,
            "ZDOTDIR": str(scripts),
        }
        self.process = subprocess.Popen(
            self.command(settings),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=folder,
            env=self.environment,
            start_new_session=True,
        )
        os.close(terminal)
        self.written = ""
        self._until(r"ready> (?:\x1b\[\?2004h)?$")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._controller)

    def completed(self, line: str, keys: str = "\t") -> str:
        """Return the line after a key: Tab, or the one that inserts all candidates."""
        self.written = ""
        os.write(self._controller, f"{line}{keys}\x18\x10".encode())
        found = self._until(r"\[\[(.*?)\]\]\r?\n")
        # A line with an open quotation mark cannot be left by the Enter key.
        os.write(self._controller, b"\x05\x15")
        return found

    def all_of(self, line: str) -> list[str]:
        """Return the words of the line when all that is offered is put in."""
        return self.words(self.completed(line, self.all_keys))

    def words(self, line: str) -> list[str]:
        """Return the words of a line as bash understands it, without the command."""
        program = f"kiebitz() {{ printf '%s\\0' \"$@\"; }}\n{line}"
        done = subprocess.run([self.name, "-c", program], capture_output=True, check=True)
        assert not done.stderr
        return done.stdout.decode().split("\0")[:-1]

    def _until(self, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.written, re.DOTALL)):
            assert time.monotonic() < deadline, self.written
            if select.select([self._controller], [], [], 0.05)[0]:
                self.written += os.read(self._controller, 65536).decode(errors="replace")
        return found[1] if found.groups() else ""


class Zsh(Bash):
    """A zsh that has loaded the completion."""

    name = "zsh"
    settings = _ZSH_SETTINGS
    file = ".zshrc"
    # The matches are listed first, and then all put in.
    all_keys = "\t\x18*"

    def command(self, settings: Path) -> list[str]:
        return ["zsh", "--no-globalrcs", "-i"]


def offered(line: str, shell: str = "bash", word: str = "") -> list[str]:
    """Return the lines written for a shell that completes a line, of which bash would replace `word`."""
    words = {"COMP_LINE": line, "COMP_WORD": word}
    if shell != "bash":
        words = {"COMP_WORDS": line, "COMP_CWORD": word if shell == "fish" else str(line.count(" "))}
    written, err = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(written, encoding="utf-8")
    words["_KIEBITZ_COMPLETE"] = f"{shell}_complete"
    with patch.dict(os.environ, words), redirect_stdout(out), redirect_stderr(err):
        with pytest.raises(SystemExit) as ended:
            run([])
        out.flush()
    assert (ended.value.code, err.getvalue()) == (0, "")
    return written.getvalue().decode().splitlines()


def complete_in_fish(line: str, folder: Path) -> list[str]:
    """Return fish's completions of a line's last word."""
    program = "kiebitz completion fish | source; complete --escape --do-complete $argv[1]"
    scripts = folder.with_name(f"{folder.name}-bin")
    done = subprocess.run(
        ["fish", "--no-config", "-c", program, line],
        capture_output=True,
        check=True,
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{scripts}:{os.environ['PATH']}",
            "HOME": str(scripts),
            "LC_ALL": "C.UTF-8",
        },
        timeout=PATIENCE_S,
    )
    return [line.partition("\t")[0] for line in done.stdout.decode().splitlines()]
