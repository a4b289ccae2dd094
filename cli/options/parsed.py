"""Option types: the base class of all, and a type whose values are parsed by a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kiebitz.dissectors.errors import KiebitzError

T = TypeVar("T")

if TYPE_CHECKING:
    from click import ParamType as ParamType
else:

    class ParamType(click.ParamType):
        """click's type, generic at run time too: click's own is so only since 8.4."""

        def __class_getitem__(cls, _item: Any) -> type:
            return cls


class Parsed(ParamType[T]):
    """Reads a value with `parse`, whose ValueError or KiebitzError says in a sentence what is wrong."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: str | T, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """The value; one that was read already stays as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except (ValueError, KiebitzError) as error:
            self.fail(str(error), param, ctx)
