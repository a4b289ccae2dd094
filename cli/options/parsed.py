"""An option type whose values are parsed by a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from kiebitz.cli.param_type import ParamType
from kiebitz.dissectors.errors import KiebitzError

T = TypeVar("T")


class Parsed(ParamType[T]):
    """Parser of values with `parse`, which raises ValueError or KiebitzError."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: str | T, param: click.Parameter | None, ctx: click.Context | None) -> T:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except (ValueError, KiebitzError) as error:
            self.fail(str(error), param, ctx)
