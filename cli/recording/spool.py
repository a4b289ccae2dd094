"""The folder beside a database in which a journal is: in use as long as one of its processes holds it.

A process that was killed holds it no more, and the next relay may remove what it left. The database may lie
in a folder for all, such as /tmp: what others have put there is neither followed, waited for nor removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

from kiebitz.proxy.journal import is_journal_file
from kiebitz.storage.schema import StorageError

_JOURNAL = "journal"
"""The one folder in it."""

_KEPT = "kept.json"
"""Beside it, once the journal is to outlive its processes: how to go on with it."""

HANDS = "hands"
"""The socket through which one acts on what a relay holds, if it does; see `cli.altering.hands`."""

_MOST_BYTES = 1 << 20

_ATTEMPTS = 10
"""So many folders are made, should others take them for abandoned before they are held."""

_TIDY_S = 1.0
"""So long a relay that starts looks for what others have left; the next one goes on."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags with which nothing else than a folder is opened, at once."""


class Spool:
    """A new `folder` beside `database`, held until `discard`; `journal` is the place for one in it.

    Raises OSError if there can be none.
    """

    _is_kept = False

    def __init__(self, database: Path) -> None:
        for _ in range(_ATTEMPTS):
            self.folder = Path(tempfile.mkdtemp(prefix=_prefix(database), dir=database.parent))
            try:
                self._held = hold(self.folder)
                break
            except FileNotFoundError:
                # Another relay has tidied up in that very moment.
                continue
            except BaseException:
                self.folder.rmdir()
                raise
        else:
            raise FileExistsError(errno.EEXIST, "another program removes what is made there")
        self.journal = self.folder / _JOURNAL

    @classmethod
    def kept(cls, path: Path) -> tuple[Spool, bytes]:
        """A folder that was kept, held anew, and what was noted with it.

        Raises OSError; PermissionError if it is not ours alone, BlockingIOError if a process holds it.
        """
        descriptor = os.open(path, _FOLDER)
        try:
            if not _is_ours_alone(os.fstat(descriptor)):
                raise PermissionError(errno.EPERM, "it is not yours alone")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            note = os.open(
                _KEPT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor
            )
            with open(note, "rb") as file:
                noted = file.read(_MOST_BYTES)
            # As its recorder will hold it, too.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        spool = cls.__new__(cls)
        spool.folder, spool._held, spool.journal = path, descriptor, path / _JOURNAL
        return spool, noted

    def keep(self, note: bytes) -> Path:
        """Let go of the folder without removing it; gives where it is. Raises OSError."""
        self.note(note)
        self._is_kept = True
        return self.folder

    def note(self, note: bytes) -> None:
        """From here on, the folder outlives processes that are killed. Raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(_KEPT, flags, 0o600, dir_fd=self._held), "wb") as file:
            file.write(note)

    def discard_journal(self) -> None:
        """Remove the journal: its reader is gone, and so is its writer's file."""
        with suppress(OSError):
            _remove_journal(self._held, None)

    def discard(self) -> None:
        """Remove the folder with the journal, unless it is kept."""
        if not self._is_kept:
            with suppress(OSError):
                _remove(self.folder, self._held)
        os.close(self._held)


def hold(folder: Path) -> int:
    """Show others that a folder is in use, until the descriptor is closed or the process is over.

    Raises OSError; FileNotFoundError also if somebody is about to remove it.
    """
    descriptor = os.open(folder, _FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), os.lstat(folder)):
            raise FileNotFoundError(errno.ENOENT, "another folder is in its place")
    except BlockingIOError as error:
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "another program removes it") from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def refuse_if_kept(database: str) -> None:
    """Raise StorageError where what is left of a recording into `database` is kept beside it.

    It can only be carried on while its session is the last one.
    """
    for folder, descriptor in folders(Path(database).absolute()):
        if _is_kept(descriptor):
            raise StorageError(
                f"{database}: a recording into it was put off: kiebitz import {folder} carries it on first; "
                "or name another database"
            )


def _is_kept(descriptor: int) -> bool:
    with suppress(OSError):
        return _KEPT in os.listdir(descriptor)
    return False


def folders(database: Path) -> Generator[tuple[Path, int], None, None]:
    """The folders beside `database` that are ours alone, each open as a descriptor until the next."""
    prefix, end = _prefix(database), time.monotonic() + _TIDY_S
    with suppress(OSError), os.scandir(database.parent) as entries:
        for entry in entries:
            if time.monotonic() >= end:
                return
            if not entry.name.startswith(prefix):
                continue
            try:
                descriptor = os.open(entry.path, _FOLDER)
            except OSError:
                continue
            try:
                if _is_ours_alone(os.fstat(descriptor)):
                    yield Path(entry.path), descriptor
            finally:
                os.close(descriptor)


def tidy(database: Path) -> None:
    """Remove the folders of relays that were killed beside `database`, as far as they are our own."""
    end = time.monotonic() + _TIDY_S
    for folder, descriptor in folders(database):
        # Another relay may be removing it, too; one that is in use is held.
        with suppress(OSError):
            if _KEPT not in os.listdir(descriptor):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder, descriptor, end)


def _prefix(database: Path) -> str:
    return f".{database.name}-spool-"


def _is_ours_alone(folder: os.stat_result) -> bool:
    return folder.st_uid == os.geteuid() and folder.st_mode & 0o777 == stat.S_IRWXU


def _remove(folder: Path, descriptor: int, end: float | None = None) -> None:
    """Remove a folder that is open, with the journal in it, until `end` comes; whatever else is in it stays.

    Only files of a journal, and folders that are empty, are removed, so that there is nothing to gain by
    putting another folder in its place. Raises OSError if something of it is left.
    """
    _remove_journal(descriptor, end)
    for name in (_KEPT, HANDS):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=descriptor)
    os.rmdir(folder)


def _remove_journal(spool: int, end: float | None) -> None:
    try:
        journal = os.open(_JOURNAL, _FOLDER, dir_fd=spool)
    except FileNotFoundError:
        return
    try:
        with os.scandir(journal) as entries:
            for entry in entries:
                if end is not None and time.monotonic() >= end:
                    break
                if is_journal_file(entry.name):
                    os.unlink(entry.name, dir_fd=journal)
    finally:
        os.close(journal)
    os.rmdir(_JOURNAL, dir_fd=spool)
