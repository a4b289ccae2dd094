"""Checks of files and folders before they are opened: of a database, and of what SQLite would open beside it.

SQLite follows what it finds: a journal beside a database makes it write into that, and delete whatever file
the journal names; a pipe makes it wait for ever; a link leads it elsewhere. The folder may be a stranger's,
or one in which everybody may put things.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator

from kiebitz.storage.schema import StorageError

_JOURNAL_PATIENCE_S = 1.0
"""A recorder has a journal for some milliseconds when it begins and when it ends; nobody else of ours has."""

_LOOK_EVERY_S = 0.02

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

_AT_ONCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags with which a link is not followed, and a pipe not waited for."""


def open_folder(path: str, within: int | None = None) -> int:
    """Open a folder that is no link, below the folder `within` if given. Raises OSError."""
    return os.open(path, _AT_ONCE | os.O_DIRECTORY, dir_fd=within)


def open_file(path: str, within: int | None = None) -> int:
    """Open a regular file for reading that is no link, below the folder `within` if given.

    Raises OSError.
    """
    descriptor = os.open(path, _AT_ONCE, dir_fd=within)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "this is no regular file")
    return descriptor


def why_not_ours(found: os.stat_result) -> str | None:
    """Return a clause with the reason why other users control a file or folder; None if they do not."""
    if not _is_ours(found):
        return "this belongs to another user"
    if found.st_mode & _OTHERS_MAY_WRITE:
        return "other users may write into it: chmod go-w takes that right away"
    return None


def check_to_read(path: str) -> None:
    """Raise StorageError unless a database may be opened read-only here; OSError if there is none."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise StorageError(f"{path}: this is a folder, a pipe or a device, and no database")
    for beside, beside_found in _beside(path):
        if not stat.S_ISREG(beside_found.st_mode):
            raise StorageError(f"{beside}: this is no file, and SQLite would use it: remove it")
    _check_journal(path)


def check_to_write(path: str) -> bool:
    """Whether there is a database to open for writing; False if one is to be made.

    Raises StorageError where that would write through a link to nowhere, into a file of another user or one
    into which others may write, or where SQLite would use a file that is not ours. Raises OSError.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            raise StorageError(
                f"{path}: this is a link to {os.readlink(path)}, which is not there: remove the link, or "
                "name another file"
            ) from None
        _check_beside(path)
        return False
    if not stat.S_ISREG(found.st_mode):
        raise StorageError(f"{path}: this is a folder, a pipe or a device: name a file")
    if os.path.islink(path) and not _is_ours(os.lstat(path)):
        raise StorageError(f"{path}: this is another user's link: name another file")
    if not _is_ours(found):
        raise StorageError(f"{path}: this file belongs to another user: name another one")
    if found.st_mode & _OTHERS_MAY_WRITE:
        raise StorageError(
            f"{path}: other users may write into it: chmod go-w takes that right away, or name another file"
        )
    # SQLite follows a link to the database, and has its own files beside that.
    _check_beside(os.path.realpath(path))
    return True


def make(path: str) -> None:
    """Make an empty file that is nobody else's business. Raises OSError, also if something is there."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))


def has_wal(path: str) -> bool:
    """Whether some of a database is beside it, in its write-ahead log."""
    try:
        return os.stat(f"{os.path.realpath(path)}-wal").st_size > 0
    except FileNotFoundError:
        return False


def _check_beside(path: str) -> None:
    for beside, found in _beside(path):
        if not stat.S_ISREG(found.st_mode) or not _is_ours(found):
            raise StorageError(
                f"{beside}: SQLite would use this, and it is no file of yours: remove it, or name another "
                "database"
            )
    _check_journal(path)


def _check_journal(path: str) -> None:
    journal = f"{os.path.realpath(path)}-journal"
    end = time.monotonic() + _JOURNAL_PATIENCE_S
    while os.path.lexists(journal):
        if time.monotonic() > end:
            raise StorageError(
                f"{journal}: with this beside it SQLite would change the database, and might delete other "
                "files. If another program is writing to it, wait for its end; if that was killed, and the "
                "file is your own, let sqlite3 open it once; else remove the journal"
            )
        time.sleep(_LOOK_EVERY_S)


def _beside(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """SQLite's own files for a database, as they are, links not followed."""
    for suffix in ("-wal", "-shm"):
        beside = f"{os.path.realpath(path)}{suffix}"
        try:
            yield beside, os.lstat(beside)
        except FileNotFoundError:
            continue


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid()
