"""`kiebitz games`: the games of a session and how they ended."""

from __future__ import annotations

from collections.abc import Iterator

import click

from kiebitz.cli.listings.games import COLUMNS, game_row
from kiebitz.cli.multi_session import list_sessions, these
from kiebitz.cli.options.session import sessions_argument
from kiebitz.cli.terminal.output import Form, output_options
from kiebitz.cli.terminal.table import (
    Row,
)
from kiebitz.storage.session.session import Session


@click.command()
@sessions_argument
@output_options
def games(sessions: tuple[str, ...], form: Form | None) -> None:
    """List the games of sessions, when each began and ended, and how.

    Times are seconds since the session began.

    \b
    Example:
      kiebitz games game.db
      kiebitz games 'game.db:*' other.pcap
    """
    list_sessions(sessions, COLUMNS, _rows, form, f"there are no games in {these(sessions)}")


def _rows(session: Session) -> Iterator[Row]:
    return map(game_row, session.games())
