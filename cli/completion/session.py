"""Completion of session numbers, players, games, streams, moments and messages.

The session is the one on the command line. Nothing is written, and no large capture is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice

import click

from kiebitz.cli.configuration.file import named
from kiebitz.cli.terminal.console import Candidate, with_prefix
from kiebitz.dissectors.model import PUBLIC
from kiebitz.services.sessions import ALL_SESSIONS, all_sessions, is_database, load, session_of, split_number
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.read.players import known_players
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
        return with_prefix(incomplete, found)


def complete_player(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete player names."""
    players = {name for timeline in completing_sessions(context) for name in known_players(timeline)}
    views = {PUBLIC: "what all may know", **dict.fromkeys(sorted(players - {PUBLIC}))}
    # A name that starts with - would be an option.
    return with_prefix(text, ((name, about) for name, about in views.items() if not name.startswith("-")))


_Words = Iterable[tuple[str, str | None]]
_Completion = Callable[[click.Context, click.Parameter, str], list[Candidate]]


def _of_sessions(words: Callable[[Timeline], _Words], *more: tuple[str, str | None]) -> _Completion:
    """Return a completion with the words of each session, and more, with their notes."""

    def complete(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
        return with_prefix(text, (*chain.from_iterable(map(words, completing_sessions(context))), *more))

    return complete


def _games(timeline: Timeline) -> _Words:
    for game in timeline.games()[:_MOST]:
        yield str(timeline.numbers.number("games", game.id)), game.label


def _streams(timeline: Timeline) -> _Words:
    rows = timeline.connection.execute(
        "SELECT id, client, server, player FROM streams WHERE session_id = ? ORDER BY id",
        (timeline.session.id,),
    )
    for row_id, client, server, player in rows:
        number = timeline.numbers.number("streams", row_id)
        yield str(number), f"{player or named(client)} to {named(server)}"


def _first_events(timeline: Timeline) -> _Words:
    for game in timeline.games()[:_MOST]:
        span = timeline.span(game.id)
        if span is not None:
            yield f"#{timeline.numbers.number('events', span[0].id)}", f"{game.label} begins"


def _problems(timeline: Timeline) -> _Words:
    rows = timeline.connection.execute(
        "SELECT d.message_id, d.severity, d.code FROM diagnostics d JOIN streams s ON s.id = d.stream_id"
        " WHERE s.session_id = ? AND d.severity != 'note' AND d.message_id IS NOT NULL"
        " ORDER BY d.message_id LIMIT ?",
        (timeline.session.id, _MOST),
    )
    words = {row_id: f"{severity}[{code}]" for row_id, severity, code in rows}
    return ((f"#{timeline.numbers.number('messages', row_id)}", note) for row_id, note in words.items())


complete_game = _of_sessions(_games)
complete_stream = _of_sessions(_streams)
complete_moment = _of_sessions(_first_events, ("end", None))
complete_message = _of_sessions(_problems)
"""Completions of numbers: of games, streams, first events of games, and messages with warnings or errors."""


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
