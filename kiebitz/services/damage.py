"""A database that holds what Kiebitz never writes: looked for once a command has failed over it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress

from kiebitz.services.sessions import EVERY, is_database, split_number
from kiebitz.storage.database.integrity import find_damage
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import TABLES
from kiebitz.storage.derived.verification import find_unfounded_row

_REMEDY = "kiebitz redissect makes all but the bytes anew"


def damaged_database(arguments: Sequence[str]) -> str | None:
    """A sentence about the first damaged database among a failed command's arguments; None if none is."""
    for argument in arguments:
        # Over a damaged database this may fail in any way, too; the failure that led here is then told.
        with suppress(Exception):
            path, _ = split_number(argument.removesuffix(EVERY))
            if is_database(path):
                with closing(open_existing(path)) as connection:
                    found = find_damage(connection, TABLES) or find_unfounded_row(connection)
                if found is not None:
                    return f"{path}: this database is damaged: {found}; {_REMEDY}"
    return None
