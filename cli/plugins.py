"""What is told of plug-ins: which of them are left out, and which one a session lacks."""

from __future__ import annotations

import click

from kiebitz.dissectors.registry import dissector_of, installed, not_installed
from kiebitz.services.standard_streams import warn
from kiebitz.storage.read.timeline import Timeline

_TOLD = f"{__name__}.told"


def tell_left_out() -> None:
    """Look for plug-ins, and say on stderr which of them cannot be used; in each command only once."""
    told = click.get_current_context().meta
    if _TOLD not in told:
        told[_TOLD] = True
        for problem in installed().problems:
            warn(problem)


def tell_missing(timeline: Timeline) -> None:
    """Say on stderr of which protocols a session's events can only be shown as they are stored."""
    for protocol in sorted({table.protocol for table in timeline.tables()}):
        if dissector_of(protocol) is None:
            warn(f"{not_installed(protocol)}; what happened is shown as it is stored")
