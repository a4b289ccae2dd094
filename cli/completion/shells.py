"""The shells' side of completion: click's for zsh and fish, and for bash a script and a reader of our own.

Whatever goes wrong, nothing is offered and nothing is said: somebody is in the middle of a line.
"""

from __future__ import annotations

import io
import os
import signal
from contextlib import redirect_stderr

import click
from click.shell_completion import (
    BashComplete,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from kiebitz.cli.completion import VARIABLE
from kiebitz.cli.completion.bash_line import Typed, typed
from kiebitz.cli.terminal.console import Candidate

_PATIENCE_S = 2.0
"""So much computing time a completion may take; then nothing is offered."""

_BASH = r"""%(complete_func)s() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            plain,*) COMPREPLY+=("${line#plain,}") ;;
            dir,*) compopt -o dirnames ;;
            file,*) compopt -o default ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORD=$2 \
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
    # More is to be written behind these.
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:/@=,] ]]; then compopt -o nospace; fi
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Quiet(ShellComplete):
    """Offers nothing where something goes wrong or takes long."""

    def complete(self) -> str:
        """What the shell reads: a candidate on each line."""
        signal.signal(signal.SIGPROF, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_PROF, _PATIENCE_S)
        try:
            with redirect_stderr(io.StringIO()):
                return super().complete()
        except Exception:
            return ""
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


@add_completion_class
class _Bash(_Quiet, BashComplete):
    """Bash, which breaks words at `:` and `=`."""

    source_template = _BASH
    _typed: Typed

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the one at it."""
        self._typed = typed(os.environ["COMP_LINE"], os.environ["COMP_WORD"])
        return self._typed.words[1:], self._typed.word

    def get_completions(self, args: list[str], incomplete: str) -> list[Candidate]:
        """The ends of words with which bash may go on."""
        # As in --as=alice: click completes what is behind the sign.
        option, equals, _ = incomplete.partition("=") if incomplete.startswith("--") else ("", "", "")
        found = []
        for item in super().get_completions(args, incomplete):
            rest = self._typed.going_on(f"{option}{equals}{item.value}") if item.type == "plain" else ""
            if rest is not None:
                found.append(Candidate(rest, type=item.type))
        return found


@add_completion_class
class _Zsh(_Quiet, ZshComplete):
    """Zsh, which quotes what it puts in."""


@add_completion_class
class _Fish(_Quiet, FishComplete):
    """Fish, in whose script click takes a comma in a candidate for its end."""

    source_template = FishComplete.source_template.replace('split ","', 'split --max 1 ","')


def script(shell: str, command: click.Command) -> str:
    """The script by which a shell asks this command, which is called kiebitz."""
    classes = {made.name: made for made in (_Bash, _Zsh, _Fish)}
    return classes[shell](command, {}, "kiebitz", VARIABLE).source()
