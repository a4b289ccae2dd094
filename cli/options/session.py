"""The argument SESSION, and what arguments of its kind are called."""

from __future__ import annotations

import sqlite3

import click

from kiebitz.cli.completion.session import SessionType
from kiebitz.services.recording.unfinished import recovery_command
from kiebitz.services.sessions import load, session_of, split_number
from kiebitz.services.standard_streams import warn
from kiebitz.storage.read.timeline import Timeline

session_argument = click.argument("session", metavar="SESSION", type=SessionType(), is_eager=True)
"""A SESSION as `open_session` takes it; it is read before the options."""

sessions_argument = click.argument(
    "sessions", metavar="SESSION...", type=SessionType(), nargs=-1, required=True, is_eager=True
)
"""Several of them, in which `DB:*` is all of a database."""

SESSION_ARGUMENTS = ("session", "a", "b")
"""The names of arguments that each take one session."""


def open_session(given: str, is_told: bool = True) -> Timeline:
    """The session that is meant; the latest of a database with several, which is then told on stderr.

    Raises StorageError and CaptureError.
    """
    path, number = split_number(given)
    timeline, count = session_of(open_database(path), path, number)
    if number is None and count > 1 and is_told:
        warn(f"{path} holds {count} sessions; this is the latest, {path}:{timeline.session.id}")
    return timeline


def open_database(path: str) -> sqlite3.Connection:
    """A database, or a capture file read into one in memory; it is closed when the command is over.

    Raises StorageError and CaptureError.
    """
    # It may be why the database cannot be opened.
    warn_if_unfinished(path)
    connection, truncated = load(path)
    if truncated is not None:
        warn(f"{path}: {truncated}")
    context = click.get_current_context(silent=True)
    if context is not None:
        context.call_on_close(connection.close)
    return connection


_REPORTED = f"{__name__}.reported"
"""Key of the folders that a command has reported, in the metadata of its context."""


def warn_if_unfinished(database: str) -> None:
    """Print one sentence for each unfinished recording into `database`, with the command to recover it.

    A command that opens the database several times prints it once.
    """
    # Not for --help.
    from kiebitz.services.recording.unfinished import unfinished

    context = click.get_current_context(silent=True)
    reported: set[str] = set() if context is None else context.meta.setdefault(_REPORTED, set())
    for folder in unfinished(database, 0.0):
        if folder in reported:
            continue
        reported.add(folder)
        warn(f"{database}: a recording into it is unfinished; {recovery_command(folder)} recovers it")
