"""Expected texts in files, which KIEBITZ_SNAPSHOTS=write rewrites; and bytes as text."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"

_REPEATED = re.compile(r"(?P<unit>[^⟨⟩⟦⟧×]{1,40}?)(?P=unit){79,}")
_WRITTEN = re.compile(r"⟦(?:(?P<hex>[0-9a-f]+)|(?P<unit>[^⟦⟧]+)×(?P<count>\d+))⟧")
_SPECIAL = "⟨⟩⟦⟧×"


def check(path: Path, made: str) -> None:
    """Compare a text with the file's, and report the lines that differ; or write the file."""
    if os.environ.get("KIEBITZ_SNAPSHOTS") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made)
    compare(str(path.relative_to(DATA.parent)), path.read_text(), made)


def compare(name: str, expected: str, made: str) -> None:
    """Report the lines that differ."""
    if made != expected:
        lines = difflib.unified_diff(
            expected.splitlines(), made.splitlines(), f"{name}, expected", "got", n=2, lineterm=""
        )
        pytest.fail("\n".join(line[:400] for line in lines), pytrace=False)


def as_text(data: bytes) -> str:
    """Return bytes as a line of text.

    Control characters are pictures (␊), bytes that are no printable text ⟦ff⟧; what is repeated is ⟦x×99⟧.
    """
    shown = "".join(map(_shown, data.decode("utf-8", "surrogateescape")))
    shown = shown.replace("⟧⟦", "")
    return "".join(
        part if part[:1] == "⟦" else _REPEATED.sub(_count, part) for part in re.split("(⟦.*?⟧)", shown)
    )


def _count(found: re.Match[str]) -> str:
    return f"⟦{found['unit']}×{len(found[0]) // len(found['unit'])}⟧"


def _shown(letter: str) -> str:
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)
    if (letter.isprintable() or letter == " ") and letter not in _SPECIAL and not 0x2400 <= code <= 0x2421:
        return letter
    return f"⟦{letter.encode('utf-8', 'surrogateescape').hex()}⟧"


def as_bytes(text: str) -> bytes:
    """Return the bytes that `as_text` has written."""
    data = b""
    at = 0
    for found in _WRITTEN.finditer(text):
        data += _encoded(text[at : found.start()])
        data += bytes.fromhex(found["hex"]) if found["hex"] else _encoded(found["unit"]) * int(found["count"])
        at = found.end()
    return data + _encoded(text[at:])


def as_words(line: str) -> list[str]:
    """Return the words of a line, quoted as in a shell, in the notation of `as_text`."""
    return [as_bytes(word).decode("utf-8", "surrogateescape") for word in shlex.split(line)]


def _encoded(text: str) -> bytes:
    return re.sub("[␀-␟]", lambda found: chr(ord(found[0]) - 0x2400), text).encode()


def marked(data: bytes, places: Iterable[tuple[int, int]]) -> str:
    """Return bytes as text, with ⟨ and ⟩ around some places (offset and length)."""
    ends = sorted((offset, -length) for offset, length in places)
    signs = [(offset, 1, "⟨") for offset, length in ends if length]
    signs += [(offset - length, 0, "⟩") for offset, length in ends if length]
    signs += [(offset, 2, "⟨⟩") for offset, length in ends if not length]
    text = ""
    at = 0
    for offset, _, sign in sorted(signs):
        text += as_text(data[at:offset]) + sign
        at = offset
    text += as_text(data[at:])
    return f"{text[:-1]}⟦20⟧" if text.endswith(" ") else text


def unmarked(text: str) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the bytes of a text with marks, and the marked places, in the order in which they begin."""
    data = b""
    places: list[tuple[int, int]] = []
    opened: list[int] = []
    for part in re.split("([⟨⟩])", text):
        if part == "⟨":
            opened.append(len(places))
            places.append((len(data), 0))
        elif part == "⟩":
            number = opened.pop()
            places[number] = (places[number][0], len(data) - places[number][0])
        else:
            data += as_bytes(part)
    return data, places
