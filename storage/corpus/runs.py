"""What was asked of a corpus, and what came of it: the log of each `kiebitz corpus add`.

From these it is known which captures are missing, and why. A log has one writer, which holds a lock on it.
The system ends that with the process, so it tells for certain who is still at work.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

from kiebitz.storage.corpus.layout import RUNS, STAGING, Corpus, CorpusError, sentence, sweep

_ENDING = ".jsonl"


class Wanted(NamedTuple):
    """A capture to be added: its absolute path, and as it was given."""

    path: str
    source: str


class Missing(NamedTuple):
    """A capture that was to be added and is not in the corpus, as it was given; `reason` is a sentence."""

    source: str
    reason: str


class Run:
    """The log of one run, as a context; at the end what it has left unfinished is removed.

    Raises CorpusError.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.name = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{uuid.uuid4().hex[:8]}"
        self._corpus = corpus

    def __enter__(self) -> Self:
        try:
            self._file: IO[bytes] = open(_log(self._corpus, self.name), "xb")
            fcntl.flock(self._file, fcntl.LOCK_EX)
            os.mkdir(os.path.join(self._corpus.path, STAGING, self.name))
        except OSError as error:
            raise CorpusError(sentence(self._corpus.path, error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sweep(self._corpus, self.name)
        self._file.close()

    def asked(self, wanted: Sequence[Wanted]) -> None:
        """Note what is to be added. Raises CorpusError."""
        self._write(b"".join(_line({"path": one.path, "source": one.source}) for one in wanted))

    def added(self, path: str, capture: str) -> None:
        """Note that a capture is in the corpus, as which. Raises CorpusError."""
        self._write(_line({"path": path, "capture": capture}))

    def failed(self, path: str, reason: str) -> None:
        """Note why a capture could not be added. Raises CorpusError."""
        self._write(_line({"path": path, "failed": reason}))

    def _write(self, lines: bytes) -> None:
        try:
            self._file.write(lines)
            self._file.flush()
        except OSError as error:
            raise CorpusError(sentence(self._corpus.path, error)) from error


def missing(corpus: Corpus) -> list[Missing]:
    """What was to be added and is not there, by path. Raises CorpusError."""
    sources: dict[str, str] = {}
    came: dict[str, dict[str, Any]] = {}
    at_work: set[str] = set()
    for run in _runs(corpus):
        is_on = _is_on(corpus, run)
        for entry in _entries(corpus, run):
            path = str(entry.get("path"))
            if "source" in entry:
                sources[path] = str(entry["source"])
                (at_work.add if is_on else at_work.discard)(path)
            else:
                came[path] = entry
    whys = {path: _why(corpus, source, came.get(path), path in at_work) for path, source in sources.items()}
    return [Missing(sources[path], why) for path, why in sorted(whys.items()) if why is not None]


def sweep_abandoned(corpus: Corpus) -> None:
    """Remove what runs have left whose process was killed. Raises CorpusError."""
    try:
        for run in os.listdir(os.path.join(corpus.path, STAGING)):
            if not _is_on(corpus, run):
                sweep(corpus, run)
    except OSError as error:
        raise CorpusError(sentence(corpus.path, error)) from error


def _why(corpus: Corpus, source: str, came: dict[str, Any] | None, is_on: bool) -> str | None:
    """Why a capture is not there; None if it is."""
    if came is None:
        why = "it is being added" if is_on else "adding was ended before its turn came: add it again"
        return f"{source}: {why}"
    if "capture" in came:
        return None if corpus.has(str(came["capture"])) else f"{source}: its folder was removed: add it again"
    return str(came.get("failed"))


def _log(corpus: Corpus, run: str) -> str:
    return os.path.join(corpus.path, RUNS, run + _ENDING)


def _runs(corpus: Corpus) -> list[str]:
    """All runs, oldest first."""
    try:
        names = os.listdir(os.path.join(corpus.path, RUNS))
    except OSError as error:
        raise CorpusError(sentence(corpus.path, error)) from error
    return sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))


def _entries(corpus: Corpus, run: str) -> Iterator[dict[str, Any]]:
    try:
        with open(_log(corpus, run), "rb") as file:
            for line in file:
                # Where its process was killed, the last line may be cut.
                with suppress(ValueError, RecursionError):
                    entry = json.loads(line)
                    if isinstance(entry, dict):
                        yield entry
    except OSError as error:
        raise CorpusError(sentence(corpus.path, error)) from error


def _is_on(corpus: Corpus, run: str) -> bool:
    """Whether somebody is at work on a run."""
    try:
        with open(_log(corpus, run), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _line(value: dict[str, str]) -> bytes:
    # In ASCII any name of a file can be written.
    return json.dumps(value).encode() + b"\n"
