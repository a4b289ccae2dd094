"""Files that commands write, completely or not at all."""

from __future__ import annotations

import errno
import os
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import BinaryIO

from kiebitz.proxy.system.deferred_signals import deferred_signals
from kiebitz.proxy.system.sudo import give_to_invoking_user, is_own_user
from kiebitz.services.sessions import is_database
from kiebitz.services.standard_streams import output
from kiebitz.storage.database.path_checks import foreign_reason
from kiebitz.storage.database.schema import StorageError, sentence

_TERMINATING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end the command at once, without running `finally` blocks as Ctrl-C does."""

READER_TIMEOUT_S = 5.0
"""Longest time to wait for a pipe's reader to open it."""

_SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")
"""Suffixes of SQLite's files next to a database; without them the latest records are lost."""

_FOLDER = "this is a folder: name a file in it"


@contextmanager
def opened(path: str | None, session: str) -> Iterator[BinaryIO]:
    """Open a file for output made from `session`; standard output if `path` is None or `-`.

    The file is private to its owner, and replaces an older one once it is complete. It also replaces a
    symbolic link of this user, but not the link's target. Only a device, a pipe, or an inherited file
    (/dev/stdout, /dev/fd/3) is written in place.

    Raises StorageError.
    """
    if path is None or path == STANDARD_OUTPUT:
        yield output()
        return
    try:
        descriptor = _in_place(path)
        if descriptor is None:
            _refuse_recordings(path, session)
            with _replacing(path) as file:
                yield file
        else:
            with os.fdopen(descriptor, "wb") as file:
                yield file
    except BrokenPipeError:
        # The reader has closed its end.
        raise
    except OSError as error:
        raise StorageError(_sentence(path, error)) from error


def make_folder(path: str) -> None:
    """Create a folder that only its owner may enter, unless there is one of this user.

    Raises StorageError if another user controls the folder, or the link to it.
    """
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
            give_to_invoking_user(path)
            return
        if not _is_trusted(os.lstat(path)):
            raise StorageError(f"{path}: this belongs to another user: name another folder")
        found = os.stat(path)
    except OSError as error:
        raise StorageError(_sentence(path, error)) from error
    why = foreign_reason(found) if stat.S_ISDIR(found.st_mode) else "this is not a folder"
    if why is not None:
        raise StorageError(f"{path}: {why}; or name another folder")


def _in_place(path: str) -> int | None:
    """Return a new descriptor of what is written in place; None for a regular or a new file.

    Raises OSError and StorageError.
    """
    inherited = _inherited(path)
    if inherited is not None:
        return os.dup(inherited)
    if not os.path.basename(path):
        raise StorageError(f"{path}: {_FOLDER}")
    try:
        there = meant = os.lstat(path)
        if stat.S_ISLNK(there.st_mode):
            # In a shared folder such as /tmp, any user may have created the link.
            if not _is_trusted(there):
                raise StorageError(f"{path}: this is another user's symbolic link: name another file")
            meant = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(meant.st_mode):
        return None
    if stat.S_ISDIR(meant.st_mode):
        raise StorageError(f"{path}: {_FOLDER}")
    descriptor = _open_in_place(path)
    opened_is = os.fstat(descriptor)
    if stat.S_ISREG(opened_is.st_mode) or (stat.S_ISFIFO(opened_is.st_mode) and not _is_trusted(opened_is)):
        os.close(descriptor)
        raise StorageError(f"{path}: this is another user's pipe: name another file")
    os.set_blocking(descriptor, True)
    return descriptor


def _inherited(path: str) -> int | None:
    """Return the inherited descriptor that a path such as /dev/stdout names, None for other paths.

    Opening such a path would write from the file's beginning; replacing it would only replace the link.
    """
    paths = [path]
    with suppress(OSError):
        paths.append(os.path.join(os.path.dirname(path), os.readlink(path)))
    for name in paths:
        folder, number = os.path.split(name)
        if number.isdecimal() and os.path.realpath(folder) == os.path.realpath("/dev/fd"):
            # Descriptors opened later, such as a database's, are not inheritable.
            with suppress(OSError, ValueError, OverflowError):
                if os.get_inheritable(int(number)):
                    return int(number)
            raise StorageError(f"{path}: this process was started without such a file")
    return None


def _is_trusted(file: os.stat_result) -> bool:
    return file.st_uid == 0 or is_own_user(file.st_uid)


def _open_in_place(path: str) -> int:
    """Open a device, or a pipe once it has a reader, with a timeout. Raises OSError, StorageError."""
    end = time.monotonic() + READER_TIMEOUT_S
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO or not stat.S_ISFIFO(os.stat(path).st_mode):
                raise
        if time.monotonic() >= end:
            raise StorageError(f"{path}: this pipe has no reader: start it first, or name a file")
        time.sleep(0.02)


def _refuse_recordings(path: str, session: str) -> None:
    """Raise StorageError if a recording would be overwritten: that of the session, or a database."""
    if not os.path.exists(path):
        return
    if is_database(path):
        raise StorageError(
            f"{path} is a database and may hold recordings: name another file, or delete it first"
        )
    for ending in _SQLITE_SUFFIXES:
        database = path.removesuffix(ending)
        if database != path and os.path.isfile(database) and is_database(database):
            raise StorageError(f"{path} belongs to the database {database}: name another file")
    source = 0 if session == "-" else session
    if os.path.exists(source) and os.path.samefile(path, source):
        raise StorageError(f"{path} is the session being read, and would be lost: name another file")


@contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """Yield a new file that replaces `path` if the block succeeds, and is removed otherwise.

    Raises OSError.
    """
    new: str | None = None
    handled: list[signal.Signals] = []
    try:
        with deferred_signals():
            descriptor, new = tempfile.mkstemp(".part", ".kiebitz-", os.path.dirname(path) or os.curdir)
            give_to_invoking_user(descriptor)
            for number in _TERMINATING:
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, partial(_end, new))
                    handled.append(number)
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.replace(new, path)
    except BaseException:
        if new is not None:
            # The folder may have been removed.
            with suppress(OSError):
                os.unlink(new)
        raise
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def _end(new: str, number: int, _frame: object) -> None:
    """Remove the unfinished file and end this process by the signal's default action."""
    with suppress(OSError):
        os.unlink(new)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _sentence(path: str, error: OSError) -> str:
    """Return a sentence about an error of an output file."""
    if isinstance(error, FileNotFoundError):
        return f"{path}: there is no such folder"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{path}: the disk is full: make room, or name a file on another disk"
    return sentence(path, error)


STANDARD_OUTPUT = "-"
