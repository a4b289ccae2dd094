"""The folder of a corpus, in which each capture has a folder of its own that appears as a whole, or not.

A capture is called by the SHA-256 of what is in its file, unpacked. Its folder is made beside the others and
then renamed: that is the only step that anybody sees, so no lock is needed, and the second of two who add the
same capture finds it there.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from contextlib import suppress

import msgspec

from kiebitz.dissectors.errors import KiebitzError

FORMAT = 1
"""Kept in the folder's `corpus.json`; one with a higher number was made by a newer Kiebitz."""

STAGING = ".staging"
"""The folder in which captures are made, those of each run in a folder of its own."""

RUNS = "runs"

_MARK = "corpus.json"
_MOST = 10_000
_CAPTURE = "capture="
_THERE = (errno.ENOTEMPTY, errno.EEXIST)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class CorpusError(KiebitzError):
    """A corpus cannot be used; the message says which, why, and what to do."""


class _Mark(msgspec.Struct):
    """What `corpus.json` says."""

    format: int
    id: str


class Corpus:
    """An opened corpus: `path` is its folder, `id` tells it from all others."""

    def __init__(self, path: str, mark: _Mark) -> None:
        self.path = path
        self.id = mark.id

    def capture(self, digest: str) -> str:
        """The folder of a capture, there or not."""
        return os.path.join(self.path, _CAPTURE + digest)

    def has(self, digest: str) -> bool:
        """Whether a capture is in it."""
        return os.path.isdir(self.capture(digest))

    def stage(self, run: str, digest: str) -> str:
        """Make a folder to make a capture in. Raises OSError, also when the run is over."""
        made = os.path.join(self.path, STAGING, run, f"{digest}-{uuid.uuid4().hex}")
        os.mkdir(made)
        return made

    def put(self, staged: str, digest: str) -> bool:
        """Let a capture that was made appear; False if it was there already. Raises OSError."""
        # Its files are on the disk before its name: so a capture that is seen is whole, even after a crash.
        for path, _, names in os.walk(staged):
            for name in (*names, ""):
                _settle(os.path.join(path, name))
        try:
            os.rename(staged, self.capture(digest))
        except OSError as error:
            if error.errno not in _THERE:
                raise
            shutil.rmtree(staged)
            return False
        _settle(self.path)
        return True


def _settle(path: str) -> None:
    """Have a file, or a folder's names, written to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make(path: str) -> Corpus:
    """Make a corpus of an empty folder, or of one that is not there yet; or open it.

    Raises CorpusError.
    """
    _check_name(path)
    mark = os.path.join(path, _MARK)
    try:
        os.makedirs(path, exist_ok=True)
        held = [name for name in os.listdir(path) if not name.startswith(".")]
        if not os.path.exists(mark):
            # Looked for later than the rest, of which nobody makes anything before it.
            if held:
                raise CorpusError(f"{path}: this folder holds other files: name a new one, or an empty one")
            _put_mark(path, mark)
        for folder in (STAGING, RUNS):
            os.makedirs(os.path.join(path, folder), exist_ok=True)
    except OSError as error:
        raise CorpusError(sentence(path, error)) from error
    return opened(path)


def _check_name(path: str) -> None:
    """Raise CorpusError if Arrow and DuckDB could not open what is in this folder."""
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError:
        raise CorpusError(f"{path}: this folder's path is not UTF-8: name another one") from None


def _put_mark(path: str, mark: str) -> None:
    """Write what the folder is, unless somebody else has just done so. Raises OSError."""
    written = os.path.join(path, f".{uuid.uuid4().hex}")
    try:
        with open(written, "xb") as file:
            file.write(msgspec.json.encode(_Mark(FORMAT, uuid.uuid4().hex)))
        with suppress(FileExistsError):
            os.link(written, mark)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(written)


def opened(path: str) -> Corpus:
    """A corpus that is there. Raises CorpusError."""
    _check_name(path)
    try:
        # It may be somebody else's: no pipe is waited for, and no more is read than there can be.
        descriptor = os.open(os.path.join(path, _MARK), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            mark = msgspec.json.decode(file.read(_MOST), type=_Mark)
    except FileNotFoundError:
        what = "this is no corpus" if os.path.exists(path) else "there is no such folder"
        raise CorpusError(f"{path}: {what}; kiebitz corpus add makes one") from None
    except OSError as error:
        raise CorpusError(sentence(path, error)) from error
    except msgspec.DecodeError:
        raise CorpusError(f"{path}: its {_MARK} is none of Kiebitz's") from None
    if mark.format > FORMAT:
        raise CorpusError(f"{path}: a newer Kiebitz has made this corpus: update Kiebitz")
    return Corpus(path, mark)


def sentence(path: str, error: OSError) -> str:
    """What an error of the system means for a corpus."""
    if is_full(error):
        return f"{path}: the disk is full: make room, then add again; what is in stays"
    return f"{path}: {error.strerror or error}"


def is_full(error: OSError) -> bool:
    """Whether an error says that a disk has no room."""
    return error.errno in _NO_ROOM


def sweep(corpus: Corpus, run: str) -> None:
    """Remove what a run has left that nobody goes on with. Raises OSError."""
    staged = os.path.join(corpus.path, STAGING, run)
    # Somebody may be at work in it on another machine. From a folder of another name no capture appears; from
    # one that is being removed it could, by halves.
    gone = f"{staged}.{uuid.uuid4().hex}.gone"
    with suppress(FileNotFoundError):
        os.rename(staged, gone)
        staged = gone
    shutil.rmtree(staged, ignore_errors=True)
