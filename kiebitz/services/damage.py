"""Detection of a damaged database, after a command has failed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress

from kiebitz.services.sessions import ALL_SESSIONS, is_database, split_number
from kiebitz.storage.database.integrity import find_damage
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import TABLES
from kiebitz.storage.derived.redissect import find_unfounded_row

_REMEDY = "kiebitz redissect rebuilds everything except the bytes"


def damaged_database(arguments: Sequence[str]) -> str | None:
    """Return a sentence about the first damaged database among a failed command's arguments, or None."""
    for argument in arguments:
        # This may fail in any way on a damaged database; the original failure is then reported.
        with suppress(Exception):
            path, _ = split_number(argument.removesuffix(ALL_SESSIONS))
            if is_database(path):
                with closing(open_existing(path)) as connection:
                    found = find_damage(connection, TABLES) or find_unfounded_row(connection)
                if found is not None:
                    return f"{path}: this database is damaged: {found}; {_REMEDY}"
    return None
