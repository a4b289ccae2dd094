"""`kiebitz games`: list games and their results."""

from __future__ import annotations

import click

from kiebitz.cli.listings import GAMES
from kiebitz.cli.multi_session import list_sessions, these
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.session import sessions_argument
from kiebitz.cli.terminal.table import Form, output_options
from kiebitz.storage.session.session import Session


@click.command()
@sessions_argument
@protocol_option
@output_options
def games(sessions: tuple[str, ...], form: Form | None) -> None:
    """List the games of sessions with start, end and result.

    Times are seconds since the start of the session.

    \b
    Example:
      kiebitz games game.db
      kiebitz games 'game.db:*' other.pcap
    """
    list_sessions(sessions, GAMES, Session.games, form, f"no games in {these(sessions)}")
