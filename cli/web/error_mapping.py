"""What a failure over a served session means: its database is damaged, or the fault is ours."""

from __future__ import annotations

from kiebitz.cli.web.reader import Served
from kiebitz.services.damage import damaged_database
from kiebitz.storage.database.schema import StorageError

UNREADABLE = "this session cannot be read now"
"""What a player's link says of a failure that would name files of the server's machine."""


def judged(served: Served, error: Exception) -> Exception:
    """The error itself, or a StorageError that says what is damaged. It may read all of the database."""
    if served.damage is None:
        served.damage = damaged_database([f"{served.path}:{served.session_id}"])
    return error if served.damage is None else StorageError(served.damage)
