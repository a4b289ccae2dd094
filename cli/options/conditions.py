"""Options of the form KIND:NUMBER, in tshark's notation, as in duration:60; among them `-b`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from kiebitz.cli.param_type import ParamType
from kiebitz.services.recording.rotation import Limits

_SMALLEST_KB = 1000
"""An empty database has 100."""


class Condition(NamedTuple):
    """What is limited, and to how much of it."""

    kind: str
    number: float


class ConditionType(ParamType[Condition]):
    """Reads KIND:NUMBER; `units` has the unit of each kind, in capitals."""

    name = "condition"

    def __init__(self, units: Mapping[str, str]) -> None:
        self._units = units

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Condition:
        kind, colon, text = value.partition(":")
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if kind not in self._units or not colon or not (math.isfinite(number) and number > 0):
            forms = " or ".join(f"{known}:{unit}" for known, unit in self._units.items())
            self.fail(f"'{value}' is not of the form {forms}, as in duration:60", param, ctx)
        return Condition(kind, number)


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
