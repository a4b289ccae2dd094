"""The specification's misprints, which peers have copied; they are repaired without changing any offset."""

from __future__ import annotations

import re
from typing import NamedTuple

from kiebitz.dissectors.grammar.grammar import Violation
from kiebitz.dissectors.grammar.xml.markup import tags
from kiebitz.dissectors.protocols.cgml.locations import note_at

MISPRINT = "misprint-"
"""Prefix of the codes of their notes."""


class Misprint(NamedTuple):
    """A misprint of the specification: its pattern in a tag, and a replacement of the same length."""

    code: str
    pattern: re.Pattern[bytes]
    repaired: bytes
    where: str


_MISPRINTS = (
    Misprint(
        f"{MISPRINT}quote",
        re.compile(rb'(?<==)"(\w+) "(?=\w+=")'),
        rb'"\1" ',
        "Licitace -- informace",
    ),
    Misprint(
        f"{MISPRINT}equals",
        re.compile(rb'(?<=\s)(\w+) ("\w*")(?=[\s/>])'),
        rb"\1=\2",
        "Talon -- převzetí",
    ),
    Misprint(
        f"{MISPRINT}dots",
        re.compile(rb'(?<==)("\w*")\.\.\.(?=>)'),
        rb"\1   ",
        "Talon -- informace",
    ),
)


def repaired(frame: bytes) -> tuple[bytes, list[Violation]]:
    """Return the frame without the specification's misprints, and a note on each kind of them."""
    notes: dict[str, Violation] = {}
    whole = bytearray(frame)
    for tag in tags(frame):
        for misprint in _MISPRINTS if tag.kind in ("start", "empty") else ():
            text = bytes(whole[tag.start : tag.end])
            found = misprint.pattern.search(text)
            if found is None:
                continue
            whole[tag.start : tag.end] = misprint.pattern.sub(misprint.repaired, text)
            place = tag.start + found.start(), len(found[0])
            meant = found.expand(misprint.repaired).decode("latin-1")
            said = f"this is a misprint of the specification ({misprint.where})"
            notes.setdefault(misprint.code, note_at(misprint.code, said, place, meant))
    return bytes(whole), list(notes.values())
