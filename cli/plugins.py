"""Warnings about plug-ins and protocol files that cannot be used, and about missing ones."""

from __future__ import annotations

import click

from kiebitz.dissectors.registry import dissector_of, file_of, known_problems, not_installed, plugins
from kiebitz.services.standard_streams import warn
from kiebitz.storage.read.timeline import Timeline

_WARNED = f"{__name__}.warned"


def load_plugins() -> None:
    """Load the plug-ins and warn about those that cannot be used."""
    plugins()
    warn_about_failed()


def warn_about_failed() -> None:
    """Warn about plug-ins and protocol files that could not be used, once per command."""
    warned: set[str] = click.get_current_context().meta.setdefault(_WARNED, set())
    for problem in known_problems():
        if problem not in warned:
            warned.add(problem)
            warn(problem)


def warn_about_missing(timeline: Timeline) -> None:
    """Warn about protocols of a session whose plug-in is not installed."""
    for protocol in sorted({table.protocol for table in timeline.tables()}):
        if dissector_of(protocol) is None and file_of(protocol) is None:
            warn(f"{not_installed(protocol)}; events are shown as stored")
