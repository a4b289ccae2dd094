"""The argument SESSION, and what arguments of its kind are called."""

from __future__ import annotations

import click

from kiebitz.cli.completion.session import SessionType

session_argument = click.argument("session", metavar="SESSION", type=SessionType(), is_eager=True)
"""A SESSION as `cli.sessions.open_session` takes it; it is read before the options."""

sessions_argument = click.argument(
    "sessions", metavar="SESSION...", type=SessionType(), nargs=-1, required=True, is_eager=True
)
"""Several of them, in which `DB:*` is all of a database."""

SESSION_ARGUMENTS = ("session", "a", "b")
"""The names of arguments that each take one session."""
