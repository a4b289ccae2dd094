"""The arguments SESSION and SESSION...."""

from __future__ import annotations

import sqlite3

import click

from kiebitz.cli.completion.session import SessionType
from kiebitz.cli.plugins import warn_about_missing
from kiebitz.services.sessions import apply_protocol_files, load, session_of, split_number
from kiebitz.services.standard_streams import warn
from kiebitz.storage.read.players import check_player
from kiebitz.storage.read.timeline import Timeline

session_argument = click.argument("session", metavar="SESSION", type=SessionType(), is_eager=True)
"""A SESSION for `open_session`; eager, so that options can read the session."""

sessions_argument = click.argument(
    "sessions", metavar="SESSION...", type=SessionType(), nargs=-1, required=True, is_eager=True
)
"""Several sessions; `DB:*` is all sessions of a database."""

SESSION_ARGUMENTS = ("session", "a", "b")
"""Names of the arguments that take one session each."""


def open_session(given: str, warns: bool = True) -> Timeline:
    """Open a session as the protocol files given dissect it; see `open_stored_session`.

    Raises StorageError and CaptureError.
    """
    timeline = open_stored_session(given, warns)
    applied = apply_protocol_files(timeline)
    if applied is not timeline:
        _close_at_end(applied.connection)
        if warns:
            warn(f"{given} is dissected again with the protocol files given; kiebitz redissect stores that")
    return applied


def open_session_as(given: str, player: str | None = None) -> Timeline:
    """Open a session to show it, as a player sees it; see `open_session`.

    Raises StorageError, also for an unknown player, and CaptureError.
    """
    timeline = open_session(given)
    warn_about_missing(timeline)
    if player is not None:
        check_player(timeline, player)
    return timeline


def open_stored_session(given: str, warns: bool = True) -> Timeline:
    """Open a session; without a number the latest of a database, with a warning if there are several.

    Raises StorageError and CaptureError.
    """
    path, number = split_number(given)
    timeline, count = session_of(open_database(path), path, number)
    if number is None and count > 1 and warns:
        warn(f"{path} has {count} sessions; using the latest, {path}:{timeline.session.id}")
    return timeline


def open_database(path: str) -> sqlite3.Connection:
    """Open a database, or load a capture file into one in memory; it is closed when the command ends.

    Raises StorageError and CaptureError.
    """
    # An unfinished recording may be why the database cannot be opened.
    warn_if_unfinished(path)
    connection, truncated = load(path)
    if truncated is not None:
        warn(f"{path}: {truncated}")
    _close_at_end(connection)
    return connection


def _close_at_end(connection: sqlite3.Connection) -> None:
    context = click.get_current_context(silent=True)
    if context is not None:
        context.call_on_close(connection.close)


_REPORTED = f"{__name__}.reported"
"""Key of the reported folders in the context's metadata."""


def warn_if_unfinished(database: str) -> None:
    """Warn once about each unfinished recording into `database`, with the command to recover it."""
    # Slow to import.
    from kiebitz.services.recording.note import recovery_command, unfinished

    context = click.get_current_context(silent=True)
    reported: set[str] = set() if context is None else context.meta.setdefault(_REPORTED, set())
    for folder in unfinished(database, 0.0):
        if folder in reported:
            continue
        reported.add(folder)
        warn(f"{database}: a recording into it is unfinished; {recovery_command(folder)} recovers it")
