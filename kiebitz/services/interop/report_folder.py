"""The folder of a report: its paths come from the names in the plan, and nothing is written through a link.

The programs of a run have the rights of the user, so they may have put links or pipes in place of its files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from kiebitz.services.interop.results import Attempt
from kiebitz.services.output_files import opened
from kiebitz.services.sessions import session_of
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.session.session import Session


def stem_of(server: str, title: str, number: int) -> str:
    """Return the name of the files of a cell's run, without their extension."""
    return f"{server}--{title}" + (f"--{number}" if number > 1 else "")


def with_paths(attempt: Attempt, stem: str) -> Attempt:
    """Return a run with the paths of its recording and its page, relative to the report."""
    return msgspec.structs.replace(attempt, database=f"cells/{stem}.db", page=f"cells/{stem}.html")


def own_folder(report: Path, name: str) -> Path:
    """Return a folder of the report, made anew in place of a link or a file. Raises StorageError."""
    path = report / name
    try:
        if not _is(path, stat.S_ISDIR):
            path.unlink(missing_ok=True)
            path.mkdir()
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    return path


def _is(path: Path, is_kind: Callable[[int], bool]) -> bool:
    """Return True if a path itself, not what it links to, is of a kind."""
    try:
        return is_kind(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


@contextmanager
def new_file(report: str, path: str) -> Iterator[BinaryIO]:
    """Open a file of the report, which replaces an older one or a link. Raises StorageError."""
    within = Path(report)
    for part in Path(path).parts[:-1]:
        within = own_folder(within, part)
    target = within / Path(path).name
    try:
        if not _is(target, stat.S_ISREG):
            target.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{target}: {error.strerror}") from error
    with opened(str(target), "") as file:
        yield file


def open_recording(path: str) -> Session:
    """Open the session of a cell's recording, which a program under test may have replaced.

    Raises StorageError, also for a link, a pipe or another database.
    """
    _check_recording(path)
    connection = open_existing(path)
    try:
        timeline, _ = session_of(connection, path, None)
    except BaseException:
        connection.close()
        raise
    return Session(timeline, path)


def _check_recording(path: str) -> None:
    """Raise StorageError unless a recording is a regular file."""
    try:
        is_regular = stat.S_ISREG(os.lstat(path).st_mode)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    if not is_regular:
        raise StorageError(f"{path}: this is no longer the recording, but a link, a pipe or a folder")
