"""`kiebitz export`: a session as a file for other programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click

from cli.sessions import is_database, open_session, session_argument
from storage.export import BINARY, FORMATS
from storage.schema import StorageError, sentence


@click.command()
@session_argument
@click.option("-T", "form", type=click.Choice(list(FORMATS)), required=True, help="The format.")
@click.option(
    "-o", "output", type=click.Path(), metavar="FILE", help="Write to this file; else to standard output."
)
def export(session: str, form: str, output: str | None) -> None:
    """Write a session for other programs: Wireshark (pcapng), scripts (jsonl), tables (csv, parquet).

    pcapng has each datagram with comments that say what it means; jsonl has every record of the session in
    order of time; csv and parquet have a row for each message.

    \b
    Example:
      kiebitz export game.db -T pcapng -o game.pcapng
      kiebitz export game.db -T jsonl | jq 'select(.record == "event").sentence'
    """
    if output is None and form in BINARY and sys.stdout.isatty():
        raise click.UsageError(f"{form} is not for a terminal: name a file with -o, or send it to a pipe")
    timeline = open_session(session)
    with _opened(output) as file:
        FORMATS[form](timeline, file)


@contextmanager
def _opened(path: str | None) -> Iterator[BinaryIO]:
    """A file that only its owner may read. It takes an older one's place once it is written to its end."""
    if path is None:
        yield sys.stdout.buffer
        return
    if os.path.isfile(path) and is_database(path):
        raise StorageError(
            f"{path} is a database and may hold recordings: name another file, or delete it first"
        )
    # A device or a pipe is written to as it is.
    in_place = os.path.exists(path) and not os.path.isfile(path)
    target = path if in_place else f"{path}.{os.getpid()}.part"
    try:
        file = os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT, 0o600), "wb")
    except OSError as error:
        raise StorageError(sentence(path, error)) from error
    try:
        with file:
            yield file
        if not in_place:
            os.replace(target, path)
    except BaseException:
        if not in_place:
            os.unlink(target)
        raise
