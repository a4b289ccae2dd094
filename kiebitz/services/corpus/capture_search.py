"""Finds the captures that are to be added: files, all those in a folder, and patterns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kiebitz.services.standard_streams import warn
from kiebitz.storage.corpus.runs import RequestedCapture

_ENDINGS = ("pcap", "pcapng", "cap", "dmp")
_PACKED = ("", ".gz", ".zst")
_NAMES = tuple(f".{ending}{packed}" for ending in _ENDINGS for packed in _PACKED)
"""The endings of captures in a folder; a file that is named itself may be called anything."""


def captures(given: Iterable[str]) -> list[RequestedCapture]:
    """Return each capture once, in order; also a file that is not there, which fails when it is added."""
    found: dict[str, RequestedCapture] = {}
    for one in given:
        names = [one] if os.path.exists(one) else _matching(one) or [one]
        for name in names:
            for source in _in_folder(name) if os.path.isdir(name) else (name,):
                path = os.path.abspath(source)
                found.setdefault(path, RequestedCapture(path, source))
    return [*found.values()]


def _matching(pattern: str) -> list[str]:
    """Return the paths that match a pattern, without hidden ones; `**` does not follow links to folders."""
    path = Path(pattern)
    below = path.relative_to(path.anchor)
    try:
        found = [*Path(path.anchor).glob(str(below))]
    except (ValueError, IndexError, OSError):
        return []
    return sorted(str(one) for one in found if _is_hidden(one) <= _is_hidden(below))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") and part != ".." for part in path.parts)


def _in_folder(folder: str) -> Iterator[str]:
    """Yield the captures in a folder and below it; a link that leads out of the folder is left out."""
    inside = Path(os.path.realpath(folder))
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            source = os.path.join(path, name)
            if not name.lower().endswith(_NAMES):
                continue
            if os.path.islink(source) and inside not in Path(os.path.realpath(source)).parents:
                warn(f"{source}: this link leads out of {folder} and is left out: name it to add it")
                continue
            yield source
