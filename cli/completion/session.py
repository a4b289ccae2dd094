"""Completion of session numbers, players, games, streams, moments and messages.

The session is the one on the command line. Nothing is written, and no large capture is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

import click

from kiebitz.cli.configuration.file import named
from kiebitz.cli.terminal.console import Candidate, candidates
from kiebitz.dissectors.model import PUBLIC
from kiebitz.services.sessions import ALL_SESSIONS, all_sessions, is_database, load, session_of, split_number
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.read.players import known_players, names_of_streams
from kiebitz.storage.read.timeline import Timeline, sessions

_LARGEST_CAPTURE = 500_000
"""Maximum size (bytes) of a capture to read during completion."""

_SESSIONS = 8
"""Maximum number of sessions to read."""

_MOST = 200
"""Maximum number of games or messages to offer."""


class SessionType(click.Path):
    """Type of a SESSION: a capture file, a database, or `DB:N`."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Candidate]:
        """Complete session numbers, or file names."""
        path, colon, _ = incomplete.rpartition(":")
        if not colon or os.path.exists(incomplete) or not (os.path.isfile(path) and is_database(path)):
            return [Candidate(incomplete, type="file")]
        with closing(open_existing(path)) as connection:
            found = [(f"{path}:{row.id}", row.name) for row in sessions(connection)]
        if param.nargs == -1:
            found.append((f"{path}{ALL_SESSIONS}", "all of them"))
        return candidates((word, note) for word, note in found if word.startswith(incomplete))


def complete_player(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete player names."""
    players = {name for timeline in completing_sessions(context) for name in known_players(timeline)}
    views = {PUBLIC: "what all may know", **dict.fromkeys(sorted(players - {PUBLIC}))}
    # A name that starts with - would be an option.
    return candidates(
        (name, about) for name, about in views.items() if name.startswith(text) and not name.startswith("-")
    )


def complete_game(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete game numbers."""
    found = (
        (str(timeline.numbers.number("games", game.id)), game.label)
        for timeline in completing_sessions(context)
        for game in timeline.games()[:_MOST]
    )
    return candidates((word, note) for word, note in found if word.startswith(text))


def complete_stream(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete stream numbers, with client and server as notes."""
    found = []
    for timeline in completing_sessions(context):
        names = names_of_streams(timeline)
        rows = timeline.connection.execute(
            "SELECT id, client, server FROM streams WHERE session_id = ? ORDER BY id", (timeline.session.id,)
        )
        for row_id, client, server in rows:
            number = timeline.numbers.number("streams", row_id)
            found.append((str(number), f"{names.get(row_id) or named(client)} to {named(server)}"))
    return candidates((word, note) for word, note in found if word.startswith(text))


def complete_moment(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete the first event of each game, and `end`."""
    found: list[tuple[str, str | None]] = []
    for timeline in completing_sessions(context):
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
    """Complete messages with warnings or errors."""
    found = {}
    for timeline in completing_sessions(context):
        rows = timeline.connection.execute(
            "SELECT d.message_id, d.severity, d.code FROM diagnostics d JOIN streams s ON s.id = d.stream_id"
            " WHERE s.session_id = ? AND d.severity != 'note' AND d.message_id IS NOT NULL"
            " ORDER BY d.message_id LIMIT ?",
            (timeline.session.id, _MOST),
        )
        for row_id, severity, code in rows:
            found[f"#{timeline.numbers.number('messages', row_id)}"] = f"{severity}[{code}]"
    return candidates((word, note) for word, note in found.items() if word.startswith(text))


def completing_sessions(context: click.Context) -> Iterator[Timeline]:
    """Yield the sessions of the command line, one open at a time. Raises StorageError and CaptureError."""
    for name in islice(all_sessions(_given(context)), _SESSIONS):
        path, number = split_number(name)
        # Do not read a pipe.
        if not os.path.isfile(path) or (not is_database(path) and os.path.getsize(path) > _LARGEST_CAPTURE):
            continue
        connection, _ = load(path)
        with closing(connection):
            yield session_of(connection, path, number)[0]


def _given(context: click.Context) -> list[str]:
    given: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if isinstance(parameter.type, SessionType) and isinstance(value, str | tuple):
            given += [value] if isinstance(value, str) else value
    # After an option without its value, click parses no arguments.
    return given or [word for word in context.args if not word.startswith("-")][:1]
