"""Okey's lines, written and cut: tokens with blanks between, quoted where they must be, and lists in them."""

from __future__ import annotations

from collections.abc import Iterable

PAD = " "
"""Precedes a closing quotation mark, as in the specification's own examples."""


def quoted(text: str) -> str:
    """Return a token as it is written."""
    if text and " " not in text and '"' not in text:
        return text
    escaped = text.replace('"', '\\"')
    return f'"{escaped}{PAD}"'


def listed(texts: Iterable[str | None]) -> str:
    """Return a list as one token; nothing is an empty token."""
    return " ".join(quoted(text or "") for text in texts)


def tokens(text: str) -> list[str]:
    """Return the tokens of a line, or of a list."""
    found: list[str] = []
    part = ""
    inside = was_quoted = False
    at = 0
    while at < len(text):
        letter = text[at]
        if inside and text.startswith('\\"', at):
            part += '"'
            at += 1
        elif letter == '"':
            inside, was_quoted = not inside, was_quoted or inside
        elif letter == " " and not inside:
            if part:
                found.append(_unpadded(part, was_quoted))
                part, was_quoted = "", False
        else:
            part += letter
        at += 1
    if part and not inside:
        found.append(_unpadded(part, was_quoted))
    return found


def _unpadded(part: str, was_quoted: bool) -> str:
    return part[:-1] if was_quoted and part.endswith(PAD) else part


def message(name: str, *arguments: str) -> str:
    """Return a line without its end."""
    return " ".join((name, *map(quoted, arguments)))
