"""What the three commands that record have in common: where to, and what was recorded in the end."""

from __future__ import annotations

import click

from cli.sessions import DEFAULT_DB
from storage.recorder import Recorder

database_option = click.option(
    "-w", "database", default=DEFAULT_DB, show_default=True, metavar="DB", help="Record into this database."
)


def summary(recorder: Recorder) -> str:
    """How much of what a session holds, and the name it has as a SESSION."""
    counts = ", ".join(
        f"{recorder.counts[kind]} {kind}" for kind in ("streams", "messages", "games", "diagnostics")
    )
    return f"{counts} -> {recorder.path}:{recorder.session_id}"
