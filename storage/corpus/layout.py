"""The folder of a corpus and its tables; the folder of each capture appears atomically.

The SHA-256 of a capture file's unpacked contents identifies the capture. Its folder is made elsewhere in the
corpus, then renamed into place. Only the rename is visible, so no lock is needed; of two processes that add
the same capture, the second finds it present.

The tables of a corpus: those of a session database, with values that a database computes on demand.

A table is many Parquet files, one for each capture and protocol. `capture` and `protocol` are columns that
the files do not contain: the names of their folders hold them, following Hive's partitioning.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.protocol_file import MAX_SIZE
from kiebitz.dissectors.registry import ProtocolFile
from kiebitz.proxy.system.safe_files import create_file, open_file, open_folder
from kiebitz.storage.database.path_checks import foreign_reason
from kiebitz.storage.database.protocol_files import MAX_FILES
from kiebitz.storage.database.schema import TABLES

CAPTURE, PROTOCOL = "capture", "protocol"

_ADDED_COLUMNS: dict[str, dict[str, type]] = {
    "sessions": {"packets": int, "bytes": int, "lacks": str},
    "streams": {"messages": int, "bytes": int},
    "tables": {},
    "games": {"named_result": str},
    "events": {},
    "messages": {"sent": bytes},
    "diagnostics": {"marked": bytes, "lines": str, "resumed_offset": int, "resumed_message": str},
}

COLUMNS: Mapping[str, Mapping[str, type]] = {
    table: {
        **{name: column.type for name, column in TABLES[table].items() if name != PROTOCOL},
        **more,
    }
    for table, more in _ADDED_COLUMNS.items()
}
"""Table -> column -> type of its values, as in the files. The first columns are the database's.

Only `sessions` is not partitioned by protocol, as a capture may have several. Left out are the bytes
themselves (`chunks`), which are in the capture, and `snapshots`, since each capture begins with an empty
state.
"""

BY_CAPTURE = "sessions"
"""The table that is partitioned by capture alone."""


def file_name(table: str) -> str:
    """Return the name of a table's files."""
    return f"{table}.parquet"


FORMAT = 1
"""The format number in the folder's `corpus.json`; a higher one was made by a newer Kiebitz."""

STAGING = ".staging"
"""The folder in which captures are prepared, with a subfolder for each run."""

RUNS = "runs"

_PROTOCOLS = "protocols"
"""The folder with the protocol files of the captures, each named after its protocol."""

_NOT_A_FILE = "this is a link, a pipe or a device, which does not belong in a corpus: remove it"
_NOT_A_FOLDER = (errno.ENOTDIR, errno.ELOOP)
_PRIVATE, _MODE = 0o700, 0o755
"""Permissions of the corpus' own folder, and of the folders in it."""

_MARK = "corpus.json"
_MAX_MARK_BYTES = 10_000
_CAPTURE = "capture="
_EXISTS = (errno.ENOTEMPTY, errno.EEXIST)
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class CorpusError(KiebitzError):
    """An unusable corpus; the message says which, why, and what to do."""


class _Mark(msgspec.Struct):
    """The contents of `corpus.json`."""

    format: int
    id: str


class Corpus:
    """An opened corpus: `path` is its folder, `id` identifies it."""

    def __init__(self, path: str, mark: _Mark) -> None:
        self.path = path
        self.id = mark.id

    def capture(self, digest: str) -> str:
        """Return the path of a capture's folder, which need not exist."""
        return os.path.join(self.path, _CAPTURE + digest)

    def has(self, digest: str) -> bool:
        """Return True if a capture is in the corpus."""
        return os.path.isdir(self.capture(digest))

    def folder(self, *names: str) -> AbstractContextManager[int]:
        """Open a folder of the corpus to change it, and yield its descriptor.

        Raises CorpusError if it, or a folder above it in the corpus, is a link or under the control of
        another user; OSError if it cannot be opened.
        """
        return _own_folder(self.path, *names)

    def check_to_add(self) -> None:
        """Raise CorpusError unless captures may be added to the corpus."""
        with as_corpus_error(self.path):
            for name in (STAGING, RUNS):
                with self.folder(name):
                    pass

    def check_files(self) -> None:
        """Raise CorpusError if anything in the corpus is neither a file nor a folder.

        DuckDB would wait for a pipe, and follow a link.
        """
        waiting = [self.path]
        with as_corpus_error(self.path):
            while waiting:
                # Folders come and go while captures are added.
                with suppress(FileNotFoundError, PermissionError), os.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        elif not entry.is_file(follow_symlinks=False):
                            raise CorpusError(f"{entry.path}: {_NOT_A_FILE}")

    def store_protocol_files(self, files: Iterable[ProtocolFile]) -> None:
        """Write protocol files; the latest text of a protocol replaces earlier ones. Raises CorpusError."""
        with as_corpus_error(self.path):
            for file in files:
                with suppress(FileExistsError), self.folder() as descriptor:
                    os.mkdir(_PROTOCOLS, _MODE, dir_fd=descriptor)
                name = f"{file.protocol}.toml"
                with (
                    self.folder(_PROTOCOLS) as descriptor,
                    _new_file(file.text.encode(), descriptor) as new,
                ):
                    os.rename(new, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)

    def protocol_files(self) -> list[ProtocolFile]:
        """Return the protocol files of the captures. Raises CorpusError."""
        folder = os.path.join(self.path, _PROTOCOLS)
        found = []
        with as_corpus_error(self.path):
            for name in sorted(os.listdir(folder))[:MAX_FILES] if os.path.isdir(folder) else ():
                protocol, suffix = os.path.splitext(name)
                if suffix == ".toml":
                    path = os.path.join(folder, name)
                    with open(open_file(path), "rb") as file:
                        text = file.read(MAX_SIZE).decode(errors="replace")
                    found.append(ProtocolFile(protocol, text, path, "copied"))
        return found

    def stage(self, run: str, digest: str) -> str:
        """Make a folder in which to prepare a capture, and return its path.

        Raises CorpusError, and OSError, also when the run is over.
        """
        name = f"{digest}-{uuid.uuid4().hex}"
        with self.folder(STAGING, run) as descriptor:
            os.mkdir(name, _MODE, dir_fd=descriptor)
        return os.path.join(self.path, STAGING, run, name)

    def put(self, staged: str, digest: str) -> bool:
        """Move a prepared capture into place; return False if it was there already. Raises OSError."""
        # Sync the files before the rename, so that a visible capture is complete even after a crash.
        for path, _, names in os.walk(staged):
            for name in (*names, ""):
                _fsync(os.path.join(path, name))
        try:
            os.rename(staged, self.capture(digest))
        except OSError as error:
            if error.errno not in _EXISTS:
                raise
            shutil.rmtree(staged)
            return False
        _fsync(self.path)
        return True


@contextmanager
def _own_folder(path: str, *names: str) -> Iterator[int]:
    """Open a folder and folders below it in turn, and yield the descriptor of the last.

    Raises CorpusError if one is a link or under the control of another user; OSError.
    """
    # The user's own link may name a corpus; folders within it may be another user's.
    at = os.path.abspath(path)
    if os.path.islink(at) and os.lstat(at).st_uid in (os.geteuid(), 0):
        at = os.path.realpath(at)
    with ExitStack() as stack:
        shown, descriptor = path, _open_own_folder(at, None, path)
        stack.callback(os.close, descriptor)
        for name in names:
            shown = os.path.join(shown, name)
            descriptor = _open_own_folder(name, descriptor, shown)
            stack.callback(os.close, descriptor)
        yield descriptor


def _open_own_folder(name: str, within: int | None, shown: str) -> int:
    try:
        descriptor = open_folder(name, within)
    except OSError as error:
        if error.errno in _NOT_A_FOLDER:
            raise CorpusError(f"{shown}: {_NOT_A_FILE}") from error
        raise
    why = foreign_reason(os.fstat(descriptor))
    if why is not None:
        os.close(descriptor)
        raise CorpusError(f"{shown}: {why}; or add to another corpus")
    return descriptor


def _fsync(path: str) -> None:
    """Sync a file, or the names in a folder, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make(path: str) -> Corpus:
    """Create a corpus in a new or empty folder, or open an existing one to add to it.

    Raises CorpusError.
    """
    _check_name(path)
    with as_corpus_error(path):
        os.makedirs(path, _PRIVATE, exist_ok=True)
        with _own_folder(path) as descriptor:
            held = [name for name in os.listdir(descriptor) if not name.startswith(".")]
            if _MARK not in os.listdir(descriptor):
                # This is listed after the other names, which are only made once the mark is there.
                if held:
                    raise CorpusError(f"{path}: this folder contains other files: use a new or empty one")
                mark = msgspec.json.encode(_Mark(FORMAT, uuid.uuid4().hex))
                # Another process may have just done so.
                with _new_file(mark, descriptor) as name, suppress(FileExistsError):
                    os.link(name, _MARK, src_dir_fd=descriptor, dst_dir_fd=descriptor)
            for folder in (STAGING, RUNS):
                with suppress(FileExistsError):
                    os.mkdir(folder, _MODE, dir_fd=descriptor)
    corpus = open_corpus(path)
    corpus.check_to_add()
    return corpus


def _check_name(path: str) -> None:
    """Raise CorpusError if Arrow and DuckDB could not open what is in this folder."""
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError:
        raise CorpusError(f"{path}: this folder's path is not UTF-8: use another one") from None


@contextmanager
def _new_file(data: bytes, folder: int) -> Iterator[str]:
    """Write a file in a folder, and yield its name; if it still has that name afterwards, it is removed.

    Raises OSError.
    """
    name = f".{uuid.uuid4().hex}"
    try:
        with open(create_file(name, folder, 0o644), "wb") as file:
            file.write(data)
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def open_corpus(path: str) -> Corpus:
    """Return the existing corpus at `path`. Raises CorpusError."""
    _check_name(path)
    try:
        # The file may be another user's: read no more than a mark can have.
        with open(open_file(os.path.join(path, _MARK)), "rb") as file:
            mark = msgspec.json.decode(file.read(_MAX_MARK_BYTES), type=_Mark)
    except FileNotFoundError:
        what = "this is not a corpus" if os.path.exists(path) else "there is no such folder"
        raise CorpusError(f"{path}: {what}; create one with kiebitz corpus add") from None
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ELOOP, errno.ENXIO):
            raise CorpusError(sentence(path, error)) from error
        raise CorpusError(f"{path}: its {_MARK} was not written by Kiebitz") from None
    except msgspec.DecodeError:
        raise CorpusError(f"{path}: its {_MARK} was not written by Kiebitz") from None
    if mark.format > FORMAT:
        raise CorpusError(f"{path}: made by a newer Kiebitz: update Kiebitz")
    return Corpus(path, mark)


@contextmanager
def as_corpus_error(path: str) -> Iterator[None]:
    """Raise an OSError of the block as a CorpusError about a path."""
    try:
        yield
    except OSError as error:
        raise CorpusError(sentence(path, error)) from error


def sentence(path: str, error: OSError) -> str:
    """Return a message about a system error in a corpus."""
    if error.errno in _DISK_FULL:
        return f"{path}: the disk is full: free some space, then add again; what was added is kept"
    return f"{path}: {error.strerror or error}"
