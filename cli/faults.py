"""A fault of Kiebitz itself, as a sentence: what went wrong, and where in the program."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import wraps
from typing import ParamSpec

from kiebitz.cli.terminal.console import accept_any_letter, warn

P = ParamSpec("P")

_REMEDY = "kiebitz redissect makes all but the bytes anew"


def fault(error: Exception) -> str:
    """The sentence about an error that nothing has foreseen."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(os.path.dirname(place.filename))}/{os.path.basename(place.filename)}"
    return f"this is a fault of Kiebitz itself: {error!r} in {where}, line {place.lineno}"


def damaged_database(arguments: Sequence[str]) -> str | None:
    """A sentence about a database among a failed command's arguments that holds what Kiebitz never writes."""
    # Loaded only here: most commands do not fail.
    from kiebitz.cli.sessions import is_database, split_number
    from kiebitz.storage.opening import open_existing
    from kiebitz.storage.rereading import unfounded
    from kiebitz.storage.schema import TABLES
    from kiebitz.storage.soundness import damage

    for argument in arguments:
        # Over a damaged database this may fail in any way, too; the failure that led here is then told.
        with suppress(Exception):
            path, _ = split_number(argument)
            if is_database(path):
                with closing(open_existing(path)) as connection:
                    found = damage(connection, TABLES) or unfounded(connection)
                if found is not None:
                    return f"{path}: this database is damaged: {found}; {_REMEDY}"
    return None


def telling_faults(target: Callable[P, None]) -> Callable[P, None]:
    """What a process of ours runs: an error ends it with a sentence on stderr, and status 1."""

    @wraps(target)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        accept_any_letter()
        try:
            target(*args, **kwargs)
        except Exception as error:
            warn(fault(error))
            sys.exit(1)

    return run
