"""Records of a command's parameters, so that functions take one value for options that belong together."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

import msgspec

Command = Callable[..., Any]
Option = Callable[[Command], Command]


def add_options(command: Command, *options: Option) -> Command:
    """Add options to a command, in the order of its help."""
    return reduce(lambda made, option: option(made), reversed(options), command)


def as_records(**kinds: type[msgspec.Struct]) -> Option:
    """Return a decorator that passes a command one record of each kind, by these names.

    A record takes the parameters that are called like its fields, also an earlier record.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*arguments: Any, **given: Any) -> Any:
            for name, kind in kinds.items():
                values = {field: given.pop(field) for field in kind.__struct_fields__ if field in given}
                given[name] = kind(**values)
            return command(*arguments, **given)

        return run

    return decorate
