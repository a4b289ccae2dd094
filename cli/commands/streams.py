"""`kiebitz streams`: who talked to which server in a session."""

from __future__ import annotations

import click

from kiebitz.cli.options.session import session_argument
from kiebitz.cli.sessions import open_session
from kiebitz.cli.terminal.output import Form, output_options, show
from kiebitz.cli.terminal.table import Column, address, batches, moment, number
from kiebitz.storage.session import Session

_COLUMNS = (
    number(),
    Column("protocol", "protocol"),
    Column("transport", "over"),
    address("client", "client"),
    address("server", "server"),
    moment("opened", "opened"),
    moment("closed", "closed"),
    Column("close_reason", "why"),
    Column("messages", "messages", right=True),
    Column("bytes", "bytes", right=True),
    Column("id"),
)


@click.command()
@session_argument
@output_options
def streams(session: str, form: Form | None) -> None:
    """List the streams of a session: TCP connections, and pairs of addresses that talk over UDP.

    Times are seconds since the session began.

    \b
    Example:
      kiebitz streams game.db
    """
    rows = (
        (
            stream.number,
            stream.protocol,
            stream.transport,
            stream.client,
            stream.server,
            stream.opened,
            stream.closed,
            stream.close_reason,
            stream.messages,
            stream.bytes,
            stream.id,
        )
        for stream in Session(open_session(session)).streams()
    )
    show(_COLUMNS, batches(rows), form, "there are no streams in this session")
