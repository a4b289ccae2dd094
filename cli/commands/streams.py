"""`kiebitz streams`: list TCP connections and UDP conversations."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kiebitz.cli.listings import STREAMS
from kiebitz.cli.multi_session import list_sessions, these
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.session import sessions_argument
from kiebitz.cli.terminal.table import Form, output_options
from kiebitz.storage.session.session import Session


@click.command()
@sessions_argument
@protocol_option
@output_options
def streams(sessions: tuple[str, ...], form: Form | None) -> None:
    """List the streams of sessions: TCP connections, and UDP conversations between two addresses.

    Times are seconds since the start of the session. Missing bytes could not be recorded, or are not in the
    capture; kiebitz check shows where.

    \b
    Example:
      kiebitz streams game.db
    """
    nothing = f"no streams in {these(sessions)}"
    list_sessions(sessions, STREAMS, Session.streams, form, nothing, _hidden)


def _hidden(session: Session) -> Sequence[str]:
    """Return the columns to omit if no bytes are missing."""
    missing = [stream.missing_c2s + stream.missing_s2c for stream in session.streams()]
    return () if any(missing) else ("missing_c2s", "missing_s2c")
