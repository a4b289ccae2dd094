"""Recorded captures as databases, each imported once in a process: for tests that show something else."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

from cleanup import call_at_end
from command import CAPTURES

from kiebitz.services.importing.packets import import_capture


@cache
def database_of(capture: str) -> str:
    """Return a database with this capture alone, to be read only; who writes takes a `copy`."""
    path = _folder() / f"{capture}.db"
    import_capture(str(CAPTURES / capture), str(path), {}, lambda _done, _all: None)
    return str(path)


def copy_of_database(capture: str, path: Path) -> str:
    """Return a new database with this capture, at an unused path."""
    return str(shutil.copyfile(database_of(capture), path))


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="kiebitz-stored-")
    call_at_end(lambda: shutil.rmtree(folder))
    return Path(folder)
