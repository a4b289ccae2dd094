"""Completion scripts for bash, zsh and fish, and their protocol with Kiebitz.

On errors, nothing is offered or printed, as the user is in the middle of a line.
"""

from __future__ import annotations

import io
import os
import re
import signal
from contextlib import redirect_stderr
from typing import NamedTuple

import click
from click.shell_completion import (
    BashComplete,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from kiebitz.cli.completion import VARIABLE
from kiebitz.cli.terminal.console import Candidate

_PATIENCE_S = 2.0
"""Maximum CPU time (seconds) of a completion."""

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
    # These candidates are incomplete.
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:/@=,] ]]; then compopt -o nospace; fi
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Quiet(ShellComplete):
    """Completion that offers nothing on errors and timeouts."""

    def complete(self) -> str:
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
    """Completion for bash, which splits words at `:` and `=`."""

    source_template = _BASH
    _typed: _Typed

    def get_completion_args(self) -> tuple[list[str], str]:
        self._typed = parse_line(os.environ["COMP_LINE"], os.environ["COMP_WORD"])
        return self._typed.words[1:], self._typed.word

    def get_completions(self, args: list[str], incomplete: str) -> list[Candidate]:
        # In --as=alice, click completes the value.
        option, equals, _ = incomplete.partition("=") if incomplete.startswith("--") else ("", "", "")
        found = []
        for item in super().get_completions(args, incomplete):
            rest = self._typed.completion(f"{option}{equals}{item.value}") if item.type == "plain" else ""
            if rest is not None:
                found.append(Candidate(rest, type=item.type))
        return found


@add_completion_class
class _Zsh(_Quiet, ZshComplete):
    """Completion for zsh, which quotes candidates itself."""

    def format_completion(self, item: Candidate) -> str:
        # zsh splits a candidate from its help at the first colon without a backslash.
        value = item.value.replace(":", r"\:") if item.help else item.value
        return f"{item.type}\n{value}\n{item.help or '_'}"


@add_completion_class
class _Fish(_Quiet, FishComplete):
    """Completion for fish, with candidates that may contain commas, unlike in click's script."""

    source_template = FishComplete.source_template.replace('split ","', 'split --max 1 ","')


def script(shell: str, command: click.Command) -> str:
    """Return the completion script of a shell for the command `kiebitz`."""
    classes = {made.name: made for made in (_Bash, _Zsh, _Fish)}
    return classes[shell](command, {}, "kiebitz", VARIABLE).source()


_BLANK = " \t\n"
_SPECIAL = re.compile(r"([^\w@%+=:,./-])")
_ESCAPED_IN_DOUBLE = '$`"\\\n'


class _Typed(NamedTuple):
    """A parsed command line: complete `words` and the `word` at the cursor.

    Bash keeps the prefix `kept` of the word; `quote` is the quotation mark open behind it, or empty.
    """

    words: list[str]
    word: str
    kept: str
    quote: str

    def completion(self, word: str) -> str | None:
        """Return the quoted text that completes the current word to `word`; None if impossible."""
        if not word.startswith(self.kept):
            return None
        rest = word[len(self.kept) :]
        if self.quote == "'":
            return rest.replace("'", r"'\''")
        if self.quote == '"':
            # Bash expands history after an exclamation mark, even in double quotes.
            return re.sub(r'([$`"\\])', r"\\\1", rest).replace("!", r'"\!"')
        return _SPECIAL.sub(r"\\\1", rest)


def parse_line(line: str, replaced: str) -> _Typed:
    """Parse a line up to the cursor; bash replaces its end, `replaced`, by the completion.

    Bash passes only the end of the current word, after the last `:` or `=`, and replaces it verbatim. So the
    line is parsed again, and the completion is quoted for its position.
    """
    words, word, _ = _read(line)
    _, kept, quote = _read(line.removesuffix(replaced))
    return _Typed(words, word, kept, quote)


def _read(line: str) -> tuple[list[str], str, str]:
    """Return the complete words, the incomplete last word, and its open quotation mark."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    letters = iter(line)
    for letter in letters:
        if quote == "'":
            quote, added = ("", "") if letter == quote else (quote, letter)
        elif letter == "\\":
            added = next(letters, "")
            if quote and added not in _ESCAPED_IN_DOUBLE:
                added = letter + added
        elif letter in (quote or "'\""):
            quote, added = ("" if quote else letter), ""
        elif letter in _BLANK and not quote:
            if word is not None:
                words.append(word)
            word = None
            continue
        else:
            added = letter
        word = (word or "") + added
    return words, word or "", quote
