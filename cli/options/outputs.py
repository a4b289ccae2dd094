"""Options that name files to write, and `-` for standard output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kiebitz.services.output_files import STANDARD_OUTPUT


class NamedFile(click.Path):
    """The path of a file to write that cannot be standard output: `-` is refused, for this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises BadParameter."""
        if value == STANDARD_OUTPUT:
            self.fail(f"{self._reason}: name a file", param, ctx)
        return super().convert(value, param, ctx)


BESIDE_OUTPUT = NamedFile("standard output has something else")
"""The type of an option for a file that is written in addition to what goes to standard output."""

DATABASE = NamedFile("a database cannot be written to standard output")


def svg_option(help_text: str, kind: click.Path | None = None) -> Callable[[Any], Any]:
    """Return an option that names the file for a picture, of this type; None if it is not given."""
    return click.option("--svg", "svg", type=kind or click.Path(), metavar="FILE", help=help_text)
