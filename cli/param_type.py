"""The type of options whose values are parsed by a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kiebitz.dissectors.errors import KiebitzError

if TYPE_CHECKING:
    from click import ParamType as ParamType
else:

    class ParamType(click.ParamType):
        """click's type, generic at run time, as click's own is since 8.4."""

        def __class_getitem__(cls, _item: Any) -> type:
            return cls


_T = TypeVar("_T")


class Parsed(ParamType[_T]):
    """Parser of values with `parse`, which raises ValueError or KiebitzError."""

    def __init__(self, name: str, parse: Callable[[str], _T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: str | _T, param: click.Parameter | None, ctx: click.Context | None) -> _T:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except (ValueError, KiebitzError) as error:
            self.fail(str(error), param, ctx)
