"""Files that commands write, whole or not at all, and the option that names a picture's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import click

from cli.console import output
from cli.sessions import is_database
from storage.schema import StorageError, sentence


def svg_option(help_text: str) -> Callable[[Any], Any]:
    """An option that names the file for a picture, None if it is not given."""
    return click.option("--svg", "svg", type=click.Path(), metavar="FILE", help=help_text)


@contextmanager
def opened(path: str | None) -> Iterator[BinaryIO]:
    """A file that only its owner may read. It takes an older one's place once it is written to its end."""
    if path is None:
        yield output()
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
