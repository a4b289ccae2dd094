"""The task of a worker: adding one capture to a corpus.

A worker knows only its task and always returns an outcome: a failing capture does not affect others, and a
problem of all captures is marked as such.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.escaping import encodable, json_text
from kiebitz.dissectors.registry import ProtocolFile
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.services.evidence.evidence import Evidence
from kiebitz.services.protocol_files import add_received
from kiebitz.services.sessions import session_of
from kiebitz.storage.corpus.capture_writer import CaptureInfo, DiagnosticLocation, write_capture
from kiebitz.storage.corpus.layout import Corpus, CorpusError, open_corpus, sentence
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.recording.disk_space import DiskNearlyFullError, check_reserve
from kiebitz.storage.session.session import Session

if TYPE_CHECKING:
    from kiebitz.storage.read.message_queries import StoredDiagnostic
    from kiebitz.storage.recording.recorder import Recorder

MAX_CONTENT_BYTES = 4 << 30
"""Maximum size in bytes of an unpacked capture: a small compressed file may expand to any size."""

MAX_DATABASE_BYTES = 1 << 30
"""Maximum size in bytes of its database in memory."""


class Task(msgspec.Struct, frozen=True):
    """A capture to add: its absolute path, the path as given, and the corpus and run it belongs to."""

    path: str
    source: str
    folder: str
    corpus: str
    run: str
    version: str
    protocol_files: tuple[ProtocolFile, ...] = ()


class Outcome(msgspec.Struct, frozen=True):
    """The result of a task: the capture's name in the corpus and whether it is new, or the failure.

    `is_absent`: the worker does not see the file. `stops`: why no capture can be added.
    """

    capture: str | None = None
    is_new: bool = False
    messages: int = 0
    games: int = 0
    failed: str | None = None
    is_absent: bool = False
    stops: str | None = None


class _Failed(KiebitzError):
    """A capture that cannot be added."""


class _Stopped(KiebitzError):
    """A reason why no capture can be added."""


def add(task: Task) -> Outcome:
    """Add a capture completely or not at all."""
    try:
        add_received(task.protocol_files)
        return _add(_open_corpus(task), task)
    except (_Stopped, DiskNearlyFullError) as error:
        return Outcome(stops=str(error))
    except KiebitzError as error:
        told = str(error).replace(task.path, task.source)
        return Outcome(failed=told, is_absent=not os.path.exists(task.path))
    except Exception as error:
        return Outcome(failed=f"{task.source}: {fault(error)}")


def _open_corpus(task: Task) -> Corpus:
    """Return the corpus if this worker fits it and there is disk space. Raises _Stopped and DiskLow."""
    here = f"the worker on {socket.gethostname()}"
    if kiebitz_version() != task.version:
        raise _Stopped(f"{here} has Kiebitz {kiebitz_version()}, not {task.version}: install the same there")
    try:
        corpus = open_corpus(task.folder)
    except CorpusError as error:
        raise _Stopped(f"{here} cannot read the corpus; all workers need the same disk: {error}") from error
    try:
        corpus.check_to_add()
    except CorpusError as error:
        raise _Stopped(f"{here} cannot add to this corpus: {error}") from error
    if corpus.id != task.corpus:
        raise _Stopped(f"{task.folder} is another folder for {here}: put it on a disk that all see")
    check_reserve(os.path.join(corpus.path, task.run))
    return corpus


def _add(corpus: Corpus, task: Task) -> Outcome:
    # Slow to load, and not needed by the command itself.
    from kiebitz.proxy.capture.files import content_digest
    from kiebitz.services.importing.packets import import_capture

    before = _identity(task.path)
    digest = content_digest(task.path, MAX_CONTENT_BYTES)
    if corpus.has(digest):
        return Outcome(digest)
    recording, lacks = import_capture(task.path, MEMORY, {}, lambda done, of: None, _is_full, jobs=1)
    recorder = recording.recorder
    with closing(recorder.connection) as connection:
        if _is_full(recorder):
            raise _Failed(f"{task.path} is over {MAX_DATABASE_BYTES >> 30} GiB as a session: import it alone")
        with connection:
            connection.execute("UPDATE sessions SET source = ?", (encodable(task.source),))
        session = Session(session_of(connection, task.path, None)[0])
        source = CaptureInfo(recording.packets, before.size, lacks)
        try:
            is_new = _put(corpus, task, digest, before, session, source)
        except OSError as error:
            raise _Stopped(sentence(corpus.path, error)) from error
    return Outcome(digest, is_new, recorder.counts["messages"], recorder.counts["games"])


def _put(
    corpus: Corpus, task: Task, digest: str, before: _Identity, session: Session, source: CaptureInfo
) -> bool:
    """Write a capture's files and publish them at once; return False if it already exists.

    Raises OSError, _Failed.
    """
    staged = corpus.stage(task.run, digest)
    try:
        evidence = Evidence(session.timeline)
        write_capture(session, source, partial(_place, evidence), staged)
        # The capture is read twice, for its digest and its rows; both must see the same bytes.
        if _identity(task.path) != before:
            raise _Failed(f"{task.path} changed while it was read: add it again when it is complete")
        return corpus.put(staged, digest)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _place(evidence: Evidence, diagnostic: StoredDiagnostic) -> DiagnosticLocation:
    return DiagnosticLocation(
        evidence.marked(diagnostic), json_text(evidence.lines(diagnostic)), *evidence.resumption(diagnostic)
    )


def _is_full(recorder: Recorder) -> bool:
    return recorder.size > MAX_DATABASE_BYTES


class _Identity(NamedTuple):
    """Attributes that change if a file is replaced or written to."""

    device: int
    inode: int
    size: int
    changed_ns: int


def _identity(path: str) -> _Identity:
    try:
        status = os.stat(path)
    except OSError as error:
        raise _Failed(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise _Failed(f"{path} is not a regular file: write the capture to one")
    return _Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
