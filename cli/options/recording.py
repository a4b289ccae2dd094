"""Options of the recording commands: the database, its maximum size and rotation, the session's name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from kiebitz.cli.configuration.file import configuration
from kiebitz.cli.options.records import DATABASE
from kiebitz.cli.param_type import Parsed
from kiebitz.cli.plugins import load_plugins
from kiebitz.cli.status import FAILED
from kiebitz.services.recording.rotation import Limits
from kiebitz.services.sessions import default_name
from kiebitz.services.standard_streams import warn
from kiebitz.storage.recording.disk_space import SpaceLimit, check_reserve

# Not every command with these options records.
if TYPE_CHECKING:
    from kiebitz.storage.recording.recorder import Recorder

_SMALLEST_KB = 1000
"""An empty database has 100 KB."""


class Condition(NamedTuple):
    """A limit: its kind and value."""

    kind: str
    number: float


def condition_type(units: Mapping[str, str]) -> Parsed[Condition]:
    """Return a parser of KIND:NUMBER; `units` maps each kind to its unit, in capitals."""

    def parse(value: str) -> Condition:
        kind, colon, text = value.partition(":")
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if kind not in units or not colon or not (math.isfinite(number) and number > 0):
            forms = " or ".join(f"{known}:{unit}" for known, unit in units.items())
            raise ValueError(f"'{value}' is not of the form {forms}, as in duration:60")
        return Condition(kind, number)

    return Parsed("condition", parse)


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
    type=condition_type({"duration": "SECONDS", "filesize": "KB"}),
    callback=_limits,
    metavar="CONDITION",
    help="Start a new database after duration:SECONDS or at filesize:KB (of 1,000 bytes). The "
    "files are named with a number and the time, as in game_00001_20261122074829.db. Both "
    "conditions may be given.",
)
"""Passes `limits` to the command: Limits, or None."""


database_option = click.option(
    "-w",
    "database",
    type=DATABASE,
    default=lambda: configuration().database,
    metavar="DB",
    help="Record into this database. Default: kiebitz.db, or the one in the configuration file.",
)


_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([kmgt]b)", re.I | re.A)
_LEAST = 10 * 10**6


def _parse_size(value: str) -> int:
    """Return the bytes of a size in decimal units, as in 500MB or 2GB. Raises ValueError."""
    match = _SIZE.fullmatch(value)
    if match is None:
        raise ValueError(f"'{value}' is not a size, as in 500MB or 2GB")
    size = round(float(match[1]) * _UNITS[match[2].lower()])
    if size < _LEAST:
        raise ValueError("the minimum is 10MB")
    return size


def _parse_text(value: str) -> str:
    """Return a text in UTF-8, the only text that a database can store. Raises ValueError."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("not UTF-8") from None
    return value


def _parse_name(value: str) -> str:
    if not value.strip():
        raise ValueError("the name is empty")
    return _parse_text(value)


UTF8 = Parsed("text", _parse_text)
SESSION_NAME = Parsed("text", _parse_name)

name_option = click.option(
    "--name",
    "name",
    type=SESSION_NAME,
    metavar="NAME",
    help="Name of the session, as in 'Gruppe 1': the page shows it. Default: the command and the time.",
)

max_size_option = click.option(
    "--max-size",
    type=Parsed("size", _parse_size),
    metavar="SIZE",
    help="Stop recording at this size of all files together, as in 500MB or 2GB (1,000 MB). In "
    "any case 5 % of the disk, or 1 GB if that is less, stay free.",
)
"""Passes `max_size` to the command: bytes, or None."""


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a recording; a command has some of them."""

    database: str
    name: str | None = None
    limits: Limits | None = None
    max_size: int | None = None
    decode_as: tuple[str, ...] = ()
    is_anonymized: bool = False

    def __post_init__(self) -> None:
        if self.name is not None and self.is_anonymized:
            raise click.UsageError("--name excludes --anonymize: a name may tell who plays")

    def prepare(self) -> RecordingRoom:
        """Make ready to record in this process, and return the limit. Raises StorageError."""
        load_plugins()
        check_reserve(self.database)
        # Slow to import; --help does without.
        from kiebitz.services.recording.resume import recover

        recover(self.database)
        return RecordingRoom(self.max_size)

    def session_name(self, command: str) -> str:
        """Return the given name, or the default one of a command."""
        return self.name or default_name(command)


class RecordingRoom:
    """The disk limit of a recording: `max_size` bytes, or a disk that is nearly full."""

    def __init__(self, max_size: int | None) -> None:
        self._room = SpaceLimit(max_size)
        self._reason: str | None = None

    def is_full(self, recorder: Recorder) -> bool:
        """Return True if the limit is reached."""
        self._reason = self._room.stop_reason(recorder)
        return self._reason is not None

    def exit_if_full(self) -> None:
        """Report that the limit was reached, if it was, and exit with status 1."""
        if self._reason is not None:
            warn(f"{self._reason}; the recording has ended, and everything read so far is kept")
            raise click.exceptions.Exit(FAILED)
