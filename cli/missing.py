"""Protocols of a session that are not installed: it was recorded with a plug-in that is gone."""

from __future__ import annotations

import click

from dissectors.registry import BY_PROTOCOL, not_installed
from storage.escaping import printable
from storage.timeline import Timeline


def tell_missing(timeline: Timeline) -> None:
    """Say on stderr of which protocols a session's events can only be shown as they are stored."""
    for protocol in sorted({table.protocol for table in timeline.tables()} - BY_PROTOCOL.keys()):
        sentence = printable(not_installed(protocol))
        click.echo(f"kiebitz: {sentence}; what happened is shown as it is stored", err=True)
