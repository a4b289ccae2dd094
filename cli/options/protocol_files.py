"""The option -P: protocol files, with those of the configuration file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from kiebitz.cli.configuration.file import configuration
from kiebitz.cli.terminal.console import Candidate
from kiebitz.dissectors.errors import KiebitzError

_NAMES = f"{__name__}.names"
"""Key of the paths given with -P in the context's metadata."""


def _complete(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    return [Candidate(text, type="file")]


def _register(context: click.Context, parameter: click.Parameter, paths: tuple[str, ...]) -> None:
    """Register the protocol files until the command ends. Raises KiebitzError."""
    try:
        configured = configuration().protocols
        if not paths and not configured:
            return
        # Reading protocol files takes longer to load than most commands take.
        from kiebitz.dissectors.registry import remove_files
        from kiebitz.services.protocol_files import add_protocol_files

        for names in (add_protocol_files(paths), add_protocol_files(configured, "configured")):
            # A completion is made after the context's end.
            if not context.resilient_parsing:
                context.call_on_close(partial(remove_files, names))
        context.meta[_NAMES] = paths
    except KiebitzError:
        # A completion offers what it can.
        if not context.resilient_parsing:
            raise


def given_protocol_files() -> tuple[str, ...]:
    """Return the paths given with -P."""
    files: tuple[str, ...] = click.get_current_context().meta.get(_NAMES, ())
    return files


def files_to_reload(reloads: bool, sessions: Sequence[str]) -> tuple[str, ...]:
    """Return the paths given with -P if --reload is given, else none. Raises UsageError."""
    if not reloads:
        return ()
    files = given_protocol_files()
    if not files:
        raise click.UsageError("--reload requires a protocol file: give it with -P")
    if "-" in sessions:
        raise click.UsageError("--reload reads the session again, and standard input cannot be: name a file")
    return files


protocol_option = click.option(
    "-P",
    "--protocol",
    "protocol_files",
    multiple=True,
    type=click.Path(),
    callback=_register,
    shell_complete=_complete,
    expose_value=False,
    # Filters, ports and sessions use the protocols.
    is_eager=True,
    metavar="FILE",
    help="Add the protocol that this file describes.",
)
"""Registers protocol files for the command; passes nothing to it."""

reload_option = click.option(
    "--reload",
    "reloads",
    is_flag=True,
    help="Dissect the session again whenever a file given with -P is saved.",
)
"""For `watch` and `serve`."""
