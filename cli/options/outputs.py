"""Options for output files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kiebitz.services.output_files import STANDARD_OUTPUT


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


def svg_option(help_text: str, kind: click.Path | None = None) -> Callable[[Any], Any]:
    """Return an option for the SVG file to write; None if it is not given."""
    return click.option("--svg", "svg", type=kind or click.Path(), metavar="FILE", help=help_text)
