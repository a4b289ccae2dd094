"""A line of bash as it is typed so far: its words without their quotation marks, and how to go on in it.

Bash hands over a word's end only, from the last `:` or `=` on, and puts there what it is given as it stands.
So it is read again here where that end begins, and what goes there is quoted for that place.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BLANK = " \t\n"
_SPECIAL = re.compile(r"([^\w@%+=:,./-])")
_ESCAPED_IN_DOUBLE = '$`"\\\n'


class Typed(NamedTuple):
    """What is typed: whole `words`, and the one at the cursor, of which `kept` is what bash leaves as it is.

    `quote` is the quotation mark that is open where bash goes on, or nothing.
    """

    words: list[str]
    word: str
    kept: str
    quote: str

    def going_on(self, word: str) -> str | None:
        """What bash is to put there, so that the word at the cursor becomes this one; None if it cannot."""
        if not word.startswith(self.kept):
            return None
        rest = word[len(self.kept) :]
        if self.quote == "'":
            return rest.replace("'", r"'\''")
        if self.quote == '"':
            # Behind an exclamation mark bash looks for its history, in double quotation marks, too.
            return re.sub(r'([$`"\\])', r"\\\1", rest).replace("!", r'"\!"')
        return _SPECIAL.sub(r"\\\1", rest)


def typed(line: str, replaced: str) -> Typed:
    """Read a line up to the cursor; bash puts the completion in the place of its end, `replaced`."""
    words, word, _ = _read(line)
    _, kept, quote = _read(line.removesuffix(replaced))
    return Typed(words, word, kept, quote)


def _read(line: str) -> tuple[list[str], str, str]:
    """The whole words, the one that is begun at the end, and the quotation mark that is open there."""
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
