"""Options of the form KIND:NUMBER, as in tshark's duration:60; among them `-b`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from kiebitz.cli.param_type import ParamType
from kiebitz.services.recording.rotation import Limits

_SMALLEST_KB = 1000
"""An empty database has 100 KB."""


class Condition(NamedTuple):
    """A limit: its kind and value."""

    kind: str
    number: float


class ConditionType(ParamType[Condition]):
    """Parser of KIND:NUMBER; `units` maps each kind to its unit, in capitals."""

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
        raise click.BadParameter(f"the minimum is filesize:{_SMALLEST_KB}", context, parameter)
    return Limits(numbers.get("duration"), None if size is None else round(size * 1000)) if given else None


rotation_option = click.option(
    "-b",
    "limits",
    multiple=True,
    type=ConditionType({"duration": "SECONDS", "filesize": "KB"}),
    callback=_limits,
    metavar="CONDITION",
    help="Start a new database after duration:SECONDS or at filesize:KB (of 1,000 bytes). The "
    "files are named with a number and the time, as in game_00001_20261122074829.db. Both "
    "conditions may be given.",
)
"""Passes `limits` to the command: Limits, or None."""
