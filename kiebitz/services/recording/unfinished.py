"""Unfinished recordings next to a database: journals whose relay and recorder were killed or interrupted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from kiebitz.services.supervision.journal_folder import all_folders, is_held, read_note
from kiebitz.storage.database.schema import MEMORY, StorageError

INSPECTION_S = 0.05
"""Longest time (seconds) for which a command that only inspects a folder holds it."""


def refuse_if_unfinished(database: str) -> None:
    """Raise StorageError if there is an unfinished recording into `database`.

    Only the last session of a database can be resumed, so no other one may begin before.
    """
    for folder in unfinished(database, INSPECTION_S):
        raise StorageError(
            f"{database}: a recording into it is unfinished; {recovery_command(folder)} recovers it; or "
            "name another database"
        )


def unfinished(database: str, patience_s: float) -> Iterator[str]:
    """Yield the folders of unfinished recordings into `database`, as paths like its own."""
    if database in (MEMORY, "-"):
        return
    path = Path(database)
    with closing(all_folders(path.absolute().parent)) as found:
        for folder, descriptor in found:
            # Imported late, as there is hardly ever one.
            from kiebitz.services.recording.note import decode_note

            try:
                text = read_note(descriptor)
                if text is None or path.name not in decode_note(text, folder).databases:
                    continue
            except (OSError, StorageError):
                # A tap's, another user's business, or damaged.
                continue
            if is_held(descriptor):
                time.sleep(patience_s)
                if not patience_s or is_held(descriptor):
                    continue
            yield str(path.parent / folder.name)


def recovery_command(folder: str) -> str:
    """Return the command that records what is left in a folder."""
    # There is hardly ever one.
    import shlex

    return f"kiebitz import {shlex.quote(folder)}"
