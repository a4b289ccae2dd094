"""Discovery of the sessions in watched folders of databases."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.registry import using_copies
from kiebitz.services.sessions import is_database
from kiebitz.services.standard_streams import warn
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.read.timeline import sessions

SUFFIX = ".db"
"""Ending of the names of databases in a folder; other files are ignored."""

MAX_SESSIONS = 200
"""Maximum number of sessions served at once if folders are watched."""

Place = tuple[str, int]
"""Path of a database, and the id of a session in it."""


class SessionFolders:
    """The databases in some folders; `look` returns new sessions.

    A database that cannot be read is reported once.

    Args:
        paths: The folders. Their subfolders are not searched.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self._known: set[Place] = set()
        self._states: dict[str, object] = {}
        self._reported: set[str] = set()

    def look(self, served: Collection[Place] = ()) -> list[Place]:
        """Return the sessions that are new since the last call and not served, by name and number."""
        self._known.update(served)
        found = [place for path in self.paths for place in self._of_folder(path)]
        room = MAX_SESSIONS - len(self._known)
        if len(found) > room:
            self._report(
                "too many",
                f"{len(found)} further sessions: only {MAX_SESSIONS} are served; serve fewer folders",
            )
            found = found[: max(room, 0)]
        self._known.update(found)
        return found

    def _of_folder(self, folder: str) -> list[Place]:
        try:
            with os.scandir(folder) as entries:
                paths = sorted(entry.path for entry in entries if entry.name.endswith(SUFFIX))
        except OSError as error:
            self._report(
                folder, f"{folder}: {error.strerror}; its sessions are served as far as they were found"
            )
            return []
        return [place for path in paths for place in self._of_database(path) if place not in self._known]

    def _of_database(self, path: str) -> list[Place]:
        try:
            state = _state(path)
            if state == self._states.get(path) or not is_database(path):
                return []
            with using_copies({}), closing(open_existing(path)) as connection:
                found = [(path, row.id) for row in sessions(connection)]
        except (OSError, sqlite3.Error, KiebitzError) as error:
            self._report(path, f"{path} is not served: {str(error).removeprefix(f'{path}: ')}")
            return []
        self._states[path] = state
        return found

    def _report(self, subject: str, sentence: str) -> None:
        if subject not in self._reported:
            self._reported.add(subject)
            warn(sentence)


def _state(path: str) -> object:
    """Return what changes whenever a database is written to. Raises OSError."""
    found = []
    for name in (path, f"{path}-wal"):
        if name == path or os.path.exists(name):
            stat = os.stat(name)
            found.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return found
