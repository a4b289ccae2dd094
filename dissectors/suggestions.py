"""What was probably meant in place of what was sent: said at the end of a sentence, and read from it again.

A flaw goes through the database as its text, whose columns are a contract: programs read them, and an older
database has no more of them. So the suggestion is part of the text, and this module alone knows in what form.
"""

from __future__ import annotations

import re

_SAID = re.compile(r': did you mean (?:"([^"?]+)"|([^"?]+))\?$')
"""It has neither quotation nor question marks: a text that was sent is quoted, and cannot pass for one."""


def did_you_mean(*words: str) -> str:
    """The question whether one of these was meant."""
    return f"did you mean {' or '.join(words)}?"


def suggesting(problem: str, meant: str | None) -> str:
    """What is wrong, with what was probably meant, as it is to be written; the same if that is None."""
    return problem if meant is None else f"{problem}: {did_you_mean(meant)}"


def suggested(group: str, text: str) -> str | None:
    """What a flaw of this group and text says was meant, without quotation marks; None if it says nothing."""
    found = _SAID.search(text) if group == "malformed" else None
    return (found[1] or found[2]) if found is not None else None
