"""One capture into a corpus: what a worker does, in a process or on a machine of its own.

A worker knows nothing but its task. It gives an outcome, whatever happens: one capture stops nobody, and what
would stop all others, too, is told as such.
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

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.escaping import encodable, json_text
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.services.evidence.evidence import Evidence
from kiebitz.services.faults import fault
from kiebitz.services.sessions import session_of
from kiebitz.storage.corpus.capture_writer import CaptureInfo, DiagnosticLocation, write_capture
from kiebitz.storage.corpus.layout import Corpus, CorpusError, open_corpus, sentence
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.recording.disk_space import DiskNearlyFullError, check_reserve
from kiebitz.storage.session.session import Session

if TYPE_CHECKING:
    from kiebitz.storage.read.message_queries import StoredDiagnostic
    from kiebitz.storage.recording.recorder import Recorder

MOST_CONTENT = 4 << 30
"""Bytes of a capture, unpacked: a small file may stand for any number of them."""

MOST_ROWS = 1 << 30
"""Bytes of its database, which is in memory."""


class Task(msgspec.Struct, frozen=True):
    """A capture to be added: its path, absolute, and as it was given; the corpus and the run it is for."""

    path: str
    source: str
    folder: str
    corpus: str
    run: str
    version: str


class Outcome(msgspec.Struct, frozen=True):
    """What came of a task: the capture as it is called, and whether it is new; or why it is not there.

    `is_absent`: the worker does not see the file. `stops`: why none can be added.
    """

    capture: str | None = None
    is_new: bool = False
    messages: int = 0
    games: int = 0
    failed: str | None = None
    is_absent: bool = False
    stops: str | None = None


class _Failed(KiebitzError):
    """A capture cannot be added."""


class _Stopped(KiebitzError):
    """No capture can be added."""


def add(task: Task) -> Outcome:
    """Add a capture, whole or not at all."""
    try:
        return _added(_corpus(task), task)
    except (_Stopped, DiskNearlyFullError) as error:
        return Outcome(stops=str(error))
    except KiebitzError as error:
        told = str(error).replace(task.path, task.source)
        return Outcome(failed=told, is_absent=not os.path.exists(task.path))
    except Exception as error:
        return Outcome(failed=f"{task.source}: {fault(error)}")


def _corpus(task: Task) -> Corpus:
    """The corpus, if this is a worker for it, and there is room. Raises _Stopped and DiskLow."""
    here = f"the worker on {socket.gethostname()}"
    if kiebitz_version() != task.version:
        raise _Stopped(f"{here} has Kiebitz {kiebitz_version()}, not {task.version}: install the same there")
    try:
        corpus = open_corpus(task.folder)
    except CorpusError as error:
        raise _Stopped(f"{here} does not see the corpus; all need the same disk: {error}") from error
    try:
        corpus.check_to_add()
    except CorpusError as error:
        raise _Stopped(f"{here} does not add to this corpus: {error}") from error
    if corpus.id != task.corpus:
        raise _Stopped(f"{task.folder} is another folder for {here}: put it on a disk that all see")
    check_reserve(os.path.join(corpus.path, task.run))
    return corpus


def _added(corpus: Corpus, task: Task) -> Outcome:
    # They take their time to load, which the command itself does not need.
    from kiebitz.proxy.capture.digest import content_digest
    from kiebitz.services.importing.packets import import_capture

    before = _identity(task.path)
    digest = content_digest(task.path, MOST_CONTENT)
    if corpus.has(digest):
        return Outcome(digest)
    recording, lacks = import_capture(
        task.path, MEMORY, {}, lambda done, of: None, _is_full, takes_second_core=False
    )
    recorder = recording.recorder
    with closing(recorder.connection) as connection:
        if _is_full(recorder):
            raise _Failed(f"{task.path} makes a session of over {MOST_ROWS >> 30} GiB: import it by itself")
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
    """Write a capture's files and let them appear; False if others have done so. Raises OSError, _Failed."""
    staged = corpus.stage(task.run, digest)
    try:
        evidence = Evidence(session.timeline)
        write_capture(session, source, partial(_place, evidence), staged)
        # The capture was read twice, for its name and for its rows; both must be of the same bytes.
        if _identity(task.path) != before:
            raise _Failed(f"{task.path} was changed while it was read: add it again when it is complete")
        return corpus.put(staged, digest)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _place(evidence: Evidence, flaw: StoredDiagnostic) -> DiagnosticLocation:
    return DiagnosticLocation(
        evidence.marked(flaw), json_text(evidence.lines(flaw)), *evidence.resumption(flaw)
    )


def _is_full(recorder: Recorder) -> bool:
    return recorder.size > MOST_ROWS


class _Identity(NamedTuple):
    """By this one sees that a file was replaced or written to."""

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
        raise _Failed(f"{path} is no file of a fixed content: write the capture into one")
    return _Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
