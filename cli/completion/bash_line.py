"""Parser of an incomplete bash command line, and quoting of completions for it.

Bash passes only the end of the current word, after the last `:` or `=`, and replaces it verbatim. So the line
is parsed again here, and the completion is quoted for its position.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BLANK = " \t\n"
_SPECIAL = re.compile(r"([^\w@%+=:,./-])")
_ESCAPED_IN_DOUBLE = '$`"\\\n'


class Typed(NamedTuple):
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


def parse_line(line: str, replaced: str) -> Typed:
    """Parse a line up to the cursor; bash replaces its end, `replaced`, by the completion."""
    words, word, _ = _read(line)
    _, kept, quote = _read(line.removesuffix(replaced))
    return Typed(words, word, kept, quote)


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
