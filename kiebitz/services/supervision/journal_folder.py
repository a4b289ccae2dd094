"""The folder next to a database that contains a journal and its note, locked by the processes that use it.

The note describes the recording, so that another process can finish it if all of its own were killed. A
folder is only removed when its journal is recorded or empty. The database may be in a shared folder such as
/tmp: entries of other users are neither followed, waited for nor removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

from kiebitz.proxy.system.safe_files import open_file, open_folder, replace_file

_INFIX = "-spool-"
"""Part of a folder's name after that of its database."""

_JOURNAL = "journal"
"""Name of the subfolder with the journal."""

_NOTE = "note.json"
"""The note next to the journal: `kiebitz.services.recording.note`, or that of a tap."""

_NEW_NOTE = "note.new"
"""Name of the next note while it is written."""

CONTROL_SOCKET = "hands"
"""Name of a relay's control socket (`kiebitz.services.alteration.control_server`)."""

_MAX_NOTE_BYTES = 16 << 20

_ATTEMPTS = 10
"""Maximum number of attempts, as another program may remove a folder before it is locked."""

_TIDY_TIMEOUT_S = 1.0
"""Longest time (seconds) for a starting relay to remove others' leftovers; the next one continues."""


class JournalFolder:
    """A new `folder` next to `database`, locked until `discard`; `journal` is the path for a journal in it.

    Raises OSError.
    """

    _is_kept = False

    def __init__(self, database: Path) -> None:
        # Commands that only look for folders do without it.
        import tempfile

        for _ in range(_ATTEMPTS):
            self.folder = Path(tempfile.mkdtemp(prefix=_prefix(database), dir=database.parent))
            try:
                self._held = hold(self.folder)
                break
            except FileNotFoundError:
                # Another relay has removed it before it was locked.
                continue
            except BaseException:
                self.folder.rmdir()
                raise
        else:
            raise FileExistsError(errno.EEXIST, "another program removes what is made there")
        self.journal = self.folder / _JOURNAL

    @classmethod
    def left(cls, path: Path) -> tuple[JournalFolder, bytes | None]:
        """Lock a folder whose processes have ended; return it with its note, None if it only has a journal.

        Raises OSError: PermissionError if the folder is not private to this user, BlockingIOError if a
        process holds it, FileNotFoundError if it contains neither a note nor a record.
        """
        descriptor = open_folder(path)
        try:
            if not _is_ours_alone(os.fstat(descriptor)):
                raise PermissionError(errno.EPERM, "it is not yours alone")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            note = read_note(descriptor)
            if note is None and not _has_records(descriptor):
                raise FileNotFoundError(errno.ENOENT, "there is no journal in it")
            # A shared lock, as its recorder takes one too.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        spool = cls.__new__(cls)
        spool.folder, spool._held, spool.journal = path, descriptor, path / _JOURNAL
        return spool, note

    def keep(self) -> Path:
        """Keep the folder on `discard`; return its path."""
        self._is_kept = True
        return self.folder

    def note(self, note: bytes) -> None:
        """Replace the note. Raises OSError."""
        write_note(self._held, note)

    def discard_journal(self) -> None:
        """Remove the journal, which has neither reader nor writer any more."""
        remove_recorded(self._held, None)

    def read_note(self) -> bytes | None:
        """Return the note, None if there is none. Raises OSError."""
        return read_note(self._held)

    def discard_recorded(self) -> None:
        """Remove the folder and its completely recorded journal."""
        remove_recorded(self._held, self.folder)

    def discard(self) -> None:
        """Remove the folder and its journal unless it is kept, and unlock it."""
        if not self._is_kept:
            with suppress(OSError):
                _remove(self.folder, self._held)
        os.close(self._held)


def hold(folder: Path) -> int:
    """Lock a folder as in use until the descriptor is closed or the process ends.

    Raises OSError; FileNotFoundError also if another program is about to remove it.
    """
    descriptor = open_folder(folder)
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


def write_note(folder: int, note: bytes) -> None:
    """Replace the note in an open folder atomically. Raises OSError."""
    replace_file(_NOTE, note, folder, _NEW_NOTE)


def read_note(folder: int) -> bytes | None:
    """Return the note in an open folder, None if there is none. Raises OSError."""
    try:
        descriptor = open_file(_NOTE, folder)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        return file.read(_MAX_NOTE_BYTES)


def is_held(folder: int) -> bool:
    """Return True if a process uses an open folder; otherwise this descriptor locks it until closed."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def remove_recorded(spool: int, folder: Path | None) -> None:
    """Remove a recorded journal and its note from an open folder, ignoring errors.

    The folder itself is removed only if its path is given; then no other process may use it.
    """
    with suppress(OSError):
        if folder is not None:
            _remove(folder, spool)
        else:
            _remove_journal(spool, None)
            _remove_notes(spool)


def private_folders(database: Path) -> Generator[tuple[Path, int], None, None]:
    """Yield the private folders for `database`, each open as a descriptor until the next."""
    yield from _folders(database.parent, re.escape(_prefix(database)))


def all_folders(parent: Path) -> Generator[tuple[Path, int], None, None]:
    """Yield the private folders for any database in `parent`, each open as a descriptor until the next."""
    yield from _folders(parent, rf"\..*{_INFIX}")


def _folders(parent: Path, pattern: str) -> Generator[tuple[Path, int], None, None]:
    end = time.monotonic() + _TIDY_TIMEOUT_S
    begins_well = re.compile(pattern, re.S).match
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if time.monotonic() >= end:
                return
            if not begins_well(entry.name):
                continue
            try:
                descriptor = open_folder(entry.path)
            except OSError:
                continue
            try:
                if _is_ours_alone(os.fstat(descriptor)):
                    yield Path(entry.path), descriptor
            finally:
                os.close(descriptor)


def remove_leftovers(database: Path) -> None:
    """Remove the folders next to `database` that killed processes have left without any record."""
    end = time.monotonic() + _TIDY_TIMEOUT_S
    for folder, descriptor in private_folders(database):
        # Another relay may remove it too; a folder in use is locked.
        with suppress(OSError):
            if not is_held(descriptor) and read_note(descriptor) is None and not _has_records(descriptor):
                _remove(folder, descriptor, end)


def _prefix(database: Path) -> str:
    return f".{database.name}{_INFIX}"


def _is_ours_alone(folder: os.stat_result) -> bool:
    return folder.st_uid == os.geteuid() and folder.st_mode & 0o777 == stat.S_IRWXU


def _has_records(spool: int) -> bool:
    """Return True if the journal in an open folder has any record. Raises OSError."""
    # Most commands find no folder.
    from kiebitz.proxy.journal.writer import HEAD, is_segment

    try:
        journal = open_folder(_JOURNAL, spool)
    except FileNotFoundError:
        return False
    try:
        with os.scandir(journal) as entries:
            return any(
                is_segment(entry.name) and entry.stat(follow_symlinks=False).st_size >= HEAD.size
                for entry in entries
            )
    finally:
        os.close(journal)


def _remove(folder: Path, descriptor: int, end: float | None = None) -> None:
    """Remove an open folder with its journal, until the time `end`.

    Only a journal's files and empty folders are removed, so that replacing the folder by another one gains an
    attacker nothing. Raises OSError if something is left.
    """
    _remove_journal(descriptor, end)
    _remove_notes(descriptor)
    with suppress(FileNotFoundError):
        os.unlink(CONTROL_SOCKET, dir_fd=descriptor)
    os.rmdir(folder)


def _remove_notes(spool: int) -> None:
    """Remove the note; only after the journal, which cannot be recorded without it."""
    for name in (_NEW_NOTE, _NOTE):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=spool)


def _remove_journal(spool: int, end: float | None) -> None:
    try:
        journal = open_folder(_JOURNAL, spool)
    except FileNotFoundError:
        return
    try:
        # Most commands find no folder.
        from kiebitz.proxy.journal.writer import is_journal_file

        with os.scandir(journal) as entries:
            for entry in entries:
                if end is not None and time.monotonic() >= end:
                    break
                if is_journal_file(entry.name):
                    os.unlink(entry.name, dir_fd=journal)
    finally:
        os.close(journal)
    os.rmdir(_JOURNAL, dir_fd=spool)
