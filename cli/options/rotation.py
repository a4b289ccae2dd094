"""`-b`: when a recording continues in a new database."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kiebitz.cli.options.conditions import Condition, ConditionType
from kiebitz.services.recording.rotation import Limits

_SMALLEST_KB = 1000
"""An empty database has 100."""


def _limits(context: click.Context, parameter: click.Parameter, given: Sequence[Condition]) -> Limits | None:
    numbers = dict(given)
    size = numbers.get("filesize")
    if size is not None and size < _SMALLEST_KB:
        raise click.BadParameter(f"filesize:{_SMALLEST_KB} is the least that makes sense", context, parameter)
    return Limits(numbers.get("duration"), None if size is None else round(size * 1000)) if given else None


rotation_option = click.option(
    "-b",
    "limits",
    multiple=True,
    type=ConditionType({"duration": "SECONDS", "filesize": "KB"}),
    callback=_limits,
    metavar="CONDITION",
    help="duration:SECONDS or filesize:KB (of 1,000 bytes): go on in a new database after that time, or at "
    "that size. They are named with a number and the time, as in game_00001_20261122074829.db. Both may be "
    "given.",
)
"""Gives the command `limits`: Limits, or None."""
