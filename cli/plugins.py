"""Warnings about plug-ins that cannot be used, and about missing ones."""

from __future__ import annotations

import click

from kiebitz.dissectors.registry import dissector_of, installed, not_installed
from kiebitz.services.standard_streams import warn
from kiebitz.storage.read.timeline import Timeline

_WARNED = f"{__name__}.warned"


def warn_about_failed() -> None:
    """Load the plug-ins and warn about those that cannot be used, once per command."""
    meta = click.get_current_context().meta
    if _WARNED not in meta:
        meta[_WARNED] = True
        for problem in installed().problems:
            warn(problem)


def warn_about_missing(timeline: Timeline) -> None:
    """Warn about protocols of a session whose plug-in is not installed."""
    for protocol in sorted({table.protocol for table in timeline.tables()}):
        if dissector_of(protocol) is None:
            warn(f"{not_installed(protocol)}; events are shown as stored")
