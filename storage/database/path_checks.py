"""Checks of a database's path, and of the files next to it that SQLite would open.

SQLite trusts what it finds: it rolls back a journal next to a database, and deletes the file that this
journal names; it waits forever for a pipe, and follows links. The folder may come from someone else, or be
writable by everyone.
"""

from __future__ import annotations

import os
import shlex
import stat
import struct
from collections.abc import Iterator

from kiebitz.proxy.system.safe_files import create_file, open_file
from kiebitz.proxy.system.sudo import give_to_invoking_user, is_own_user
from kiebitz.storage.database.schema import StorageError

_ADVICE = "move it away, or use a database in a folder of your own"

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""The start of each header of a rollback journal, and the end of a super-journal's name; SQLite's file
format, 3.
"""

_JOURNAL_SIZES = struct.Struct(">8x8xIII")
"""In a journal's header: pages of the database before the transaction, sector size and page size in bytes."""

_SUPER_JOURNAL_NAME = struct.Struct(">I4x8s")
"""The end of a journal that names a super-journal: length of the name, and the magic bytes."""

_MAX_NAME_BYTES = 4096
"""Maximum bytes of a super-journal's name that are shown."""

_MAX_PAGE_BYTES = 1 << 16
"""Maximum size of a page in bytes: the page with SQLite's locks is in no journal."""


def foreign_reason(found: os.stat_result) -> str | None:
    """Return a clause with the reason why other users control a file or folder; None if they do not."""
    if not _is_own(found):
        return "this belongs to another user"
    if found.st_mode & _OTHERS_MAY_WRITE:
        return "other users may write to it: remove that right with chmod go-w"
    return None


def check_to_read(path: str) -> None:
    """Raise StorageError unless a database may be opened read-only here; OSError if there is none.

    A connection with `mode=ro` rolls nothing back, and deletes nothing: see `rollback_error`.
    """
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise StorageError(f"{path}: this is a folder, a pipe or a device, not a database")
    for companion, companion_found in _companion_files(path):
        if not stat.S_ISREG(companion_found.st_mode):
            raise StorageError(f"{companion}: this is not a file, and SQLite would use it: remove it")
        if companion.endswith("-journal") and companion_found.st_uid != found.st_uid:
            # SQLite run by root gives it to the owner of the database, even to read that.
            raise StorageError(
                f"{companion}: SQLite would use this, and it does not belong to the database's owner: "
                f"{_ADVICE}"
            )


def check_to_write(path: str) -> bool:
    """Return True if there is a database to open for writing, False if one is to be made.

    Raises StorageError if writing would follow a dangling link, change a file that other users own or may
    write to, or make SQLite use a file that is not ours. Raises OSError.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            raise StorageError(
                f"{path}: this is a link to {os.readlink(path)}, which does not exist: remove the link, or "
                "name another file"
            ) from None
        _check_companions(path, 0)
        return False
    if not stat.S_ISREG(found.st_mode):
        raise StorageError(f"{path}: this is a folder, a pipe or a device: name a file")
    if os.path.islink(path) and not _is_own(os.lstat(path)):
        raise StorageError(f"{path}: this is another user's link: name another file")
    if not _is_own(found):
        raise StorageError(f"{path}: this file belongs to another user: name another one")
    if found.st_mode & _OTHERS_MAY_WRITE:
        raise StorageError(
            f"{path}: other users may write to it: remove that right with chmod go-w, or name another file"
        )
    # SQLite follows a link to the database, and has its own files next to the target.
    _check_companions(path, found.st_size)
    return True


def make(path: str) -> None:
    """Create an empty file that only its owner may read and write. Raises OSError, also if it exists."""
    try:
        descriptor = create_file(path)
    except FileNotFoundError as error:
        # It is to be created, so not the file is missing.
        raise FileNotFoundError(error.errno, "there is no such folder", path) from error
    try:
        give_to_invoking_user(descriptor)
    finally:
        os.close(descriptor)


def has_wal(path: str) -> bool:
    """Return True if part of a database is in its write-ahead log."""
    try:
        return os.stat(f"{os.path.realpath(path)}-wal").st_size > 0
    except FileNotFoundError:
        return False


def rollback_error(path: str) -> StorageError:
    """Return the error for a database that was opened for reading and has a journal to roll back."""
    journal = f"{os.path.realpath(path)}-journal"
    reason = f"{path}: a program was killed while it wrote to this database"
    command = f"kiebitz redissect {shlex.quote(path)}"
    try:
        database = os.stat(path)
        if not _is_own(database):
            return StorageError(
                f"{reason}, which must be undone first: its owner does so with {command}; or copy the "
                "database and its journal into a folder of your own, and do so there"
            )
        strange = _companion_defect(journal, os.lstat(journal), database.st_size)
    except OSError as error:
        return StorageError(f"{reason}, and its journal cannot be read: {journal}: {error.strerror}")
    if strange is not None:
        return StorageError(f"{journal}: {strange}")
    return StorageError(f"{reason}, which must be undone first by {command}, or another command that writes")


def _check_companions(path: str, size: int) -> None:
    """Raise StorageError unless SQLite may use all files next to a database of `size` bytes; OSError."""
    for companion, found in _companion_files(path):
        strange = _companion_defect(companion, found, size)
        if strange is not None:
            raise StorageError(f"{companion}: {strange}")


def _companion_files(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield SQLite's own files for a database, without following links."""
    for suffix in ("-wal", "-shm", "-journal"):
        companion = f"{os.path.realpath(path)}{suffix}"
        try:
            yield companion, os.lstat(companion)
        except FileNotFoundError:
            continue


def _companion_defect(companion: str, found: os.stat_result, size: int) -> str | None:
    """Return why a file next to a database cannot be from a killed Kiebitz, with advice; else None.

    `size` is the database's, in bytes. Raises OSError.
    """
    if not stat.S_ISREG(found.st_mode):
        return f"this is not a file, and SQLite would use it: {_ADVICE}"
    if not _is_own(found):
        return f"SQLite would use this, and it does not belong to you: {_ADVICE}"
    if found.st_mode & _OTHERS_MAY_WRITE:
        return f"SQLite would use this, and other users may write to it: {_ADVICE}"
    if found.st_nlink > 1:
        return f"SQLite would use this, and it has another hard link: {_ADVICE}"
    if not companion.endswith("-journal"):
        return None
    try:
        named, is_journal = _read_journal(companion, size)
    except FileNotFoundError:
        # Its writer has just ended.
        return None
    if named is not None:
        return f"SQLite would delete the file that this names, {named}: {_ADVICE}"
    if not is_journal:
        return f"SQLite would delete this, and it is not a journal of this database: {_ADVICE}"
    return None


def _read_journal(path: str, size: int) -> tuple[str | None, bool]:
    """Return the super-journal that a journal names, and True if it is harmless or can be rolled back.

    SQLite ignores a journal that is empty or whose first byte is 0: such a transaction had not begun to
    change the database. A journal can restore only what is in it or in the database, which has `size` bytes.
    Raises OSError.
    """
    with open(open_file(path), "rb") as file:
        head = file.read(_JOURNAL_SIZES.size)
        journal_size = file.seek(0, os.SEEK_END)
        if journal_size >= _SUPER_JOURNAL_NAME.size:
            file.seek(-_SUPER_JOURNAL_NAME.size, os.SEEK_END)
            length, magic = _SUPER_JOURNAL_NAME.unpack(file.read(_SUPER_JOURNAL_NAME.size))
            if magic == _JOURNAL_MAGIC:
                shown = min(length, _MAX_NAME_BYTES, journal_size - _SUPER_JOURNAL_NAME.size)
                file.seek(-_SUPER_JOURNAL_NAME.size - shown, os.SEEK_END)
                return os.fsdecode(file.read(shown)), True
    if not head.startswith(_JOURNAL_MAGIC[: len(head)]):
        return None, head[:1] == b"\0"
    if len(head) < _JOURNAL_SIZES.size:
        # SQLite ignores a journal without a whole header.
        return None, True
    pages, _, page_bytes = _JOURNAL_SIZES.unpack(head)
    return None, pages * page_bytes <= size + journal_size + _MAX_PAGE_BYTES


def _is_own(found: os.stat_result) -> bool:
    return is_own_user(found.st_uid)
