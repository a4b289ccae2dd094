"""Options of the commands that record: the database and how much is recorded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from kiebitz.cli.configuration.file import configuration
from kiebitz.cli.options.outputs import DATABASE
from kiebitz.cli.param_type import ParamType
from kiebitz.cli.status import FAILED
from kiebitz.services.standard_streams import warn
from kiebitz.storage.recording.disk_space import SpaceLimit

# Not all who take these options record.
if TYPE_CHECKING:
    from kiebitz.storage.recording.recorder import Recorder

database_option = click.option(
    "-w",
    "database",
    type=DATABASE,
    default=lambda: configuration().database,
    metavar="DB",
    help="Record into this database. Without it, into kiebitz.db, or the one of the configuration file.",
)


_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([kmgt]b)", re.I | re.A)
_LEAST = 10 * 10**6


class SizeType(ParamType[int]):
    """Reads a size with its unit, of 1,000, as in 500MB or 2GB; gives bytes."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value)
        if match is None:
            self.fail(f"'{value}' is no size: write 500MB or 2GB", param, ctx)
        size = round(float(match[1]) * _UNITS[match[2].lower()])
        if size < _LEAST:
            self.fail("10MB is the least that makes sense", param, ctx)
        return size


max_size_option = click.option(
    "--max-size",
    type=SizeType(),
    metavar="SIZE",
    help="Record no more than this, as in 500MB or 2GB (of 1,000 MB), all files together. In any case 5 % of "
    "the disk, or 1 GB if that is less, stays free.",
)
"""Gives the command `max_size`: bytes, or None."""


class RecordingRoom:
    """The room of a recording that ends when there is no more: at `max_size` bytes, or when a disk is low."""

    def __init__(self, max_size: int | None) -> None:
        self._room = SpaceLimit(max_size)
        self._reason: str | None = None

    def is_full(self, recorder: Recorder) -> bool:
        """Whether to end."""
        self._reason = self._room.stop_reason(recorder)
        return self._reason is not None

    def tell_if_full(self) -> None:
        """If it has ended for that, say so, and end the command with status 1."""
        if self._reason is not None:
            warn(f"{self._reason}; the recording has ended, and what was read until then is kept")
            raise click.exceptions.Exit(FAILED)
