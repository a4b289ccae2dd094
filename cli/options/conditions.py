"""Options of the form KIND:NUMBER, in tshark's notation, as in duration:60."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import click

from kiebitz.cli.param_type import ParamType


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
