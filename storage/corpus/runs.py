"""The log of each `kiebitz corpus add`: the requested captures and their outcomes.

The logs show which captures are missing, and why. A log has one writer, which locks it. The system releases
the lock when the process ends, so the lock reliably shows whether a run is active.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import IO, Any, NamedTuple, Self

from kiebitz.proxy.system.safe_files import create_file, open_file, open_folder
from kiebitz.storage.corpus.layout import RUNS, STAGING, Corpus, CorpusError, as_corpus_error, sentence
from kiebitz.storage.database.path_checks import foreign_reason

_LOG_SUFFIX = ".jsonl"

_RUN_FOLDER = re.compile(r"(?P<run>[0-9]{8}T[0-9]{6}\.[0-9]{6}-[0-9a-f]{8})(\.[0-9a-f]{32}\.gone)?")
"""The name of a run's folder in `.staging`, also while it is being removed."""

_MAX_LINE_BYTES = 1 << 20
"""Maximum length of a log's line in bytes; the rest of a longer one is ignored."""

_MAX_LOG_BYTES = 1 << 30
"""Maximum length of a log in bytes; a million captures take about 300 MB."""


class RequestedCapture(NamedTuple):
    """A requested capture: its absolute path, and its path as given."""

    path: str
    source: str


class MissingCapture(NamedTuple):
    """A requested capture that is not in the corpus: its path as given, and the reason as a sentence."""

    source: str
    reason: str


class Run:
    """A context manager that writes the log of one run, and at the end removes its unfinished captures.

    Raises CorpusError.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.name = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{uuid.uuid4().hex[:8]}"
        self._corpus = corpus

    def __enter__(self) -> Self:
        folder = self._corpus.folder
        with as_corpus_error(self._corpus.path), folder(RUNS) as runs, folder(STAGING) as staging:
            self._file: IO[bytes] = open(create_file(self.name + _LOG_SUFFIX, runs, 0o644), "wb")
            fcntl.flock(self._file, fcntl.LOCK_EX)
            os.mkdir(self.name, 0o755, dir_fd=staging)
        return self

    def __exit__(self, *_: object) -> None:
        # Failures are left to the next run.
        with suppress(CorpusError, OSError), self._corpus.folder(STAGING) as staging:
            _remove_folder(staging, self.name, self.name)
        self._file.close()

    def asked(self, wanted: Sequence[RequestedCapture]) -> None:
        """Log the requested captures. Raises CorpusError."""
        self._write(b"".join(_line({"path": one.path, "source": one.source}) for one in wanted))

    def added(self, path: str, capture: str) -> None:
        """Log that a capture is in the corpus, and its id. Raises CorpusError."""
        self._write(_line({"path": path, "capture": capture}))

    def failed(self, path: str, reason: str) -> None:
        """Log why a capture could not be added. Raises CorpusError."""
        self._write(_line({"path": path, "failed": reason}))

    def _write(self, lines: bytes) -> None:
        with as_corpus_error(self._corpus.path):
            self._file.write(lines)
            self._file.flush()


def missing(corpus: Corpus) -> list[MissingCapture]:
    """Return the requested captures that are not in the corpus, by path. Raises CorpusError."""
    sources: dict[str, str] = {}
    came: dict[str, dict[str, Any]] = {}
    at_work: set[str] = set()
    at = os.path.join(corpus.path, RUNS)
    try:
        # The corpus may be another user's and read-only.
        runs = open_folder(at)
        try:
            for run in sorted(
                name.removesuffix(_LOG_SUFFIX) for name in os.listdir(runs) if name.endswith(_LOG_SUFFIX)
            ):
                at = os.path.join(corpus.path, RUNS, run + _LOG_SUFFIX)
                with _log(runs, run) as log:
                    is_on = _is_active(log)
                    for entry in _entries(log):
                        path = str(entry.get("path"))
                        if "source" in entry:
                            sources[path] = str(entry["source"])
                            (at_work.add if is_on else at_work.discard)(path)
                        else:
                            came[path] = entry
        finally:
            os.close(runs)
    except OSError as error:
        raise CorpusError(sentence(at, error)) from error
    whys = {
        path: _missing_reason(corpus, source, came.get(path), path in at_work)
        for path, source in sources.items()
    }
    return [MissingCapture(sources[path], why) for path, why in sorted(whys.items()) if why is not None]


def sweep_abandoned(corpus: Corpus) -> None:
    """Remove what killed runs left in `.staging`. Raises CorpusError.

    Only folders named after a run that has a log of this user are removed.
    """
    with as_corpus_error(corpus.path), corpus.folder(RUNS) as runs, corpus.folder(STAGING) as staging:
        for name in os.listdir(staging):
            match = _RUN_FOLDER.fullmatch(name)
            if match is not None and _is_abandoned(runs, match["run"]):
                _remove_folder(staging, name, match["run"])


def _remove_folder(staging: int, name: str, run: str) -> None:
    """Remove a folder that a run left behind. Raises OSError."""
    # A worker on another machine may still write into it. Renamed first, an incomplete capture cannot appear
    # in the corpus while the folder is being removed.
    gone = f"{run}.{uuid.uuid4().hex}.gone"
    try:
        os.rename(name, gone, src_dir_fd=staging, dst_dir_fd=staging)
    except FileNotFoundError:
        return
    shutil.rmtree(gone, ignore_errors=True, dir_fd=staging)


def _missing_reason(corpus: Corpus, source: str, came: dict[str, Any] | None, is_on: bool) -> str | None:
    """Return why a capture is not in the corpus; None if it is."""
    if came is None:
        why = "it is being added" if is_on else "the run ended before it was added: add it again"
        return f"{source}: {why}"
    if "capture" in came:
        return None if corpus.has(str(came["capture"])) else f"{source}: its folder was removed: add it again"
    return str(came.get("failed"))


def _entries(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the entries of a log. Raises OSError."""
    while line := file.readline(_MAX_LINE_BYTES):
        # The last line may be incomplete if its process was killed.
        with suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                yield entry


@contextmanager
def _log(runs: int, run: str) -> Iterator[IO[bytes]]:
    """Open the log of a run for reading. Raises OSError."""
    with open(open_file(run + _LOG_SUFFIX, runs), "rb") as file:
        if os.fstat(file.fileno()).st_size > _MAX_LOG_BYTES:
            raise OSError(errno.EFBIG, f"this log is longer than {_MAX_LOG_BYTES >> 30} GiB")
        yield file


def _is_active(log: IO[bytes]) -> bool:
    """Return True if a process is working on the run of a log. Raises OSError."""
    try:
        fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(log, fcntl.LOCK_UN)
    return False


def _is_abandoned(runs: int, run: str) -> bool:
    """Return True if a run has a log of this user, and no process is working on it."""
    try:
        with _log(runs, run) as log:
            return foreign_reason(os.fstat(log.fileno())) is None and not _is_active(log)
    except OSError:
        return False


def _line(value: dict[str, str]) -> bytes:
    # ASCII can represent any file name.
    return json.dumps(value).encode() + b"\n"
