"""The verdicts of earlier test runs, from the sessions of a database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing

from kiebitz.dissectors.conformance.expectations import TargetRole
from kiebitz.services.probing.results import WORDS
from kiebitz.services.sessions import load
from kiebitz.storage.database.opening import recover
from kiebitz.storage.read.timeline import sessions

_NAME = re.compile(rf"probe (server|client) (\S+): ({'|'.join(map(re.escape, WORDS))})")


def cases_with_verdict(database: str, role: TargetRole, verdict: str) -> Sequence[str]:
    """Return the cases whose latest verdict was this one. Raises StorageError."""
    if not recover(database):
        return ()
    latest: dict[str, str] = {}
    connection, _ = load(database)
    # Before anything is recorded there: while a connection is open, none may be closed.
    with closing(connection):
        for session in sessions(connection):
            form = _NAME.fullmatch(session.name)
            if form is not None and form[1] == role:
                latest[form[2]] = form[3]
    return [case for case, word in latest.items() if word == verdict]
