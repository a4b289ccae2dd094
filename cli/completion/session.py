"""What a shell completes from a session: its number, players, games, streams, moments and messages.

The session is the one that stands before the cursor. Nothing is written, and no large capture is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

import click

from kiebitz.cli.configuration.naming import named
from kiebitz.cli.terminal.console import Candidate, candidates
from kiebitz.services.sessions import ALL_SESSIONS, all_sessions, is_database, load, session_of, split_number
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.read.players import known_players, names_of_streams
from kiebitz.storage.read.timeline import Timeline, sessions

_LARGEST_CAPTURE = 500_000
"""Bytes of a capture that is read while somebody waits for a key."""

_SESSIONS = 8
"""So many of several sessions are looked into."""

_MOST = 200
"""So many games or messages are offered."""


class SessionType(click.Path):
    """A SESSION as `open_session` takes it: a capture file, a database, or `DB:N`."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Candidate]:
        """The numbers of the sessions, or what the shell knows of files."""
        path, colon, _ = incomplete.rpartition(":")
        if not colon or os.path.exists(incomplete) or not (os.path.isfile(path) and is_database(path)):
            return [Candidate(incomplete, type="file")]
        with closing(open_existing(path)) as connection:
            found = [(f"{path}:{row.id}", row.name) for row in sessions(connection)]
        if param.nargs == -1:
            found.append((f"{path}{ALL_SESSIONS}", "all of them"))
        return candidates((word, note) for word, note in found if word.startswith(incomplete))


def complete_player(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Who is known in the session."""
    players = {name for timeline in _timelines(context) for name in known_players(timeline)}
    # A word that begins so would be taken for an option.
    return candidates(
        (name, None) for name in sorted(players) if name.startswith(text) and not name.startswith("-")
    )


def complete_game(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """The games, by their numbers."""
    found = (
        (str(timeline.numbers.number("games", game.id)), game.label)
        for timeline in _timelines(context)
        for game in timeline.games()[:_MOST]
    )
    return candidates((word, note) for word, note in found if word.startswith(text))


def complete_stream(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """The streams, by their numbers: who talks there to which server."""
    found = []
    for timeline in _timelines(context):
        names = names_of_streams(timeline)
        rows = timeline.connection.execute(
            "SELECT id, client, server FROM streams WHERE session_id = ? ORDER BY id", (timeline.session.id,)
        )
        for row_id, client, server in rows:
            number = timeline.numbers.number("streams", row_id)
            found.append((str(number), f"{names.get(row_id) or named(client)} to {named(server)}"))
    return candidates((word, note) for word, note in found if word.startswith(text))


def complete_moment(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """The event with which each game begins, and the end."""
    found: list[tuple[str, str | None]] = []
    for timeline in _timelines(context):
        games = {game.id: game.label for game in timeline.games()[:_MOST]}
        for game, label in games.items():
            (event,) = timeline.connection.execute(
                "SELECT min(id) FROM events WHERE game_id = ?", (game,)
            ).fetchone()
            if event is not None:
                found.append((f"#{timeline.numbers.number('events', event)}", f"{label} begins"))
    found.append(("end", None))
    return candidates((word, note) for word, note in found if word.startswith(text))


def complete_message(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """The messages in which something is wrong."""
    found = {}
    for timeline in _timelines(context):
        rows = timeline.connection.execute(
            "SELECT d.message_id, d.severity, d.code FROM diagnostics d JOIN streams s ON s.id = d.stream_id"
            " WHERE s.session_id = ? AND d.severity != 'note' AND d.message_id IS NOT NULL"
            " ORDER BY d.message_id LIMIT ?",
            (timeline.session.id, _MOST),
        )
        for row_id, severity, code in rows:
            found[f"#{timeline.numbers.number('messages', row_id)}"] = f"{severity}[{code}]"
    return candidates((word, note) for word, note in found.items() if word.startswith(text))


def _timelines(context: click.Context) -> Iterator[Timeline]:
    """The sessions that stand before the cursor, one open at a time. Raises StorageError and CaptureError."""
    for name in islice(all_sessions(_given(context)), _SESSIONS):
        path, number = split_number(name)
        # A pipe is not to be read here.
        if not os.path.isfile(path) or (not is_database(path) and os.path.getsize(path) > _LARGEST_CAPTURE):
            continue
        connection, _ = load(path)
        with closing(connection):
            yield session_of(connection, path, number)[0]


def _given(context: click.Context) -> list[str]:
    """The sessions that are named in the line."""
    given: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if isinstance(parameter.type, SessionType) and isinstance(value, str | tuple):
            given += [value] if isinstance(value, str) else value
    # Behind an option that lacks its value click takes nothing for an argument.
    return given or [word for word in context.args if not word.startswith("-")][:1]
