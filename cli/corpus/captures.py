"""Which captures somebody means: files, all those in a folder, and patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator

from kiebitz.storage.corpus.runs import Wanted

_ENDINGS = ("pcap", "pcapng", "cap", "dmp")
_PACKED = ("", ".gz", ".zst")
_NAMES = tuple(f".{ending}{packed}" for ending in _ENDINGS for packed in _PACKED)
"""The endings of captures in a folder; a file that is named itself may be called anything."""


def captures(given: Iterable[str]) -> list[Wanted]:
    """Each capture once, in order; also a file that is not there, as its turn will tell."""
    found: dict[str, Wanted] = {}
    for one in given:
        names = [one] if os.path.exists(one) else sorted(glob.glob(one, recursive=True)) or [one]
        for name in names:
            for source in _in_folder(name) if os.path.isdir(name) else (name,):
                path = os.path.abspath(source)
                found.setdefault(path, Wanted(path, source))
    return [*found.values()]


def _in_folder(folder: str) -> Iterator[str]:
    for path, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(path, name) for name in sorted(names) if name.lower().endswith(_NAMES))
