"""Parts that the options of several commands have: records of parameters, renamed options, output files."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

import click
import msgspec

from kiebitz.services.output_files import STANDARD_OUTPUT

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


class RenamedOption(click.Option):
    """An option that also accepts its `former` name."""

    def __init__(self, *args: Any, former: str, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self._former = former

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        shown, self.opts = self.opts, [*self.opts, self._former]
        super().add_to_parser(parser, ctx)
        self.opts = shown


class NamedFile(click.Path):
    """The path of an output file; `-` is rejected, with this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == STANDARD_OUTPUT:
            self.fail(f"{self._reason}: name a file", param, ctx)
        return super().convert(value, param, ctx)


BESIDE_OUTPUT = NamedFile("standard output is in use")
"""Type of an option for a file written in addition to standard output."""

DATABASE = NamedFile("a database cannot be written to standard output")


output_option = click.option(
    "-o",
    "output",
    type=click.Path(),
    metavar="FILE",
    help="Write to this file; - is standard output (the default).",
)


def json_option(help_text: str) -> Option:
    """Return an option for JSON instead of text, as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=help_text)


def svg_option(help_text: str, kind: click.Path | None = None) -> Option:
    """Return an option for the SVG file to write; None if it is not given."""
    return click.option("--svg", "svg", type=kind or click.Path(), metavar="FILE", help=help_text)
