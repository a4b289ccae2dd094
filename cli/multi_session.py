"""Listings of several sessions: the rows of each, one after the other, under one header."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec

from kiebitz.cli.options.session import open_session, warn_if_unfinished
from kiebitz.cli.terminal.table import Column, Form, address, batches, behind, hiding, of_several, show
from kiebitz.services.sessions import ALL_SESSIONS, all_sessions, is_several
from kiebitz.storage.session.session import Session

_WHICH = msgspec.structs.replace(address("session", "session"), of=str)
"""Column with the session of a row, shortened at the start, as the end of a path says most."""


def each_session(given: Sequence[str]) -> Iterator[tuple[str, Session]]:
    """Yield every session with its name as an argument; only one is open at a time.

    Raises StorageError and CaptureError.
    """
    for name in given:
        # An empty database raises before `open_session`, which also warns.
        if name.endswith(ALL_SESSIONS):
            warn_if_unfinished(name.removesuffix(ALL_SESSIONS))
    for name in all_sessions(given):
        with closing(Session(open_session(name))) as session:
            yield name, session


def list_sessions(
    given: Sequence[str],
    columns: Sequence[Column],
    records: Callable[[Session], Iterable[Any]],
    form: Form | None,
    nothing: str,
    hidden: Callable[[Session], Collection[str]] = lambda _: (),
) -> None:
    """Write the records of the given sessions, or the text `nothing` if there are none.

    For several sessions, the first column is the session. For a single one, tables omit the columns with
    the keys that `hidden` returns. Raises StorageError, CaptureError and what `records` raises.
    """
    if not is_several(given):
        session = Session(open_session(given[0]))
        has_tables = len(session.timeline.tables()) > 1
        keys = hidden(session)
        columns = hiding(columns, lambda column: column.key in keys)
        show(of_several(columns, has_tables), batches(records(session)), form, nothing)
        return
    named = (
        [(name, record) for record in batch]
        for name, one in each_session(given)
        for batch in batches(records(one))
    )
    show(behind([_WHICH], columns), named, form, nothing)


def these(given: Sequence[str]) -> str:
    """Return "this session" or "these sessions"."""
    return "these sessions" if is_several(given) else "this session"
