"""`kiebitz streams`: who talked to which server in a session."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kiebitz.cli.listings import STREAMS
from kiebitz.cli.multi_session import list_sessions, these
from kiebitz.cli.options.session import sessions_argument
from kiebitz.cli.terminal.output import Form, output_options
from kiebitz.storage.session.session import Session


@click.command()
@sessions_argument
@output_options
def streams(sessions: tuple[str, ...], form: Form | None) -> None:
    """List the streams of sessions: TCP connections, and pairs of addresses that talk over UDP.

    Times are seconds since the session began. What is missing are bytes that could not be recorded, or that a
    capture lacks; kiebitz check says where.

    \b
    Example:
      kiebitz streams game.db
    """
    nothing = f"there are no streams in {these(sessions)}"
    list_sessions(sessions, STREAMS, Session.streams, form, nothing, _hidden)


def _hidden(session: Session) -> Sequence[str]:
    """Return the columns that people need not see: hardly ever anything is missing."""
    missing = [stream.missing_c2s + stream.missing_s2c for stream in session.streams()]
    return () if any(missing) else ("missing_c2s", "missing_s2c")
