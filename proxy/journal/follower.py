"""Child processes: their start, and how a recorder follows its parent's journal to the end.

The forwarder is the recorder's parent. When it ends, for any reason, the recorder reads the rest and
finishes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.process import BaseProcess
from typing import ParamSpec

from kiebitz.dissectors.model import Item
from kiebitz.proxy.journal.reader import JournalReader
from kiebitz.proxy.system import clock
from kiebitz.proxy.system.deferred_signals import TERMINATION_SIGNALS, deferred_signals

_POLL_SECONDS = 0.02

_NICENESS = 12
"""The recorder's niceness. On two busy cores round trips are as quick as through socat (docs/design/0054)."""

_SAFE_PATH = "PYTHONSAFEPATH"

P = ParamSpec("P")


def start_child(target: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> SpawnProcess:
    """Run `target` in a fresh process; it and its arguments must be picklable.

    The child uses this process's clock. Its `sentinel` becomes readable when it ends; `exitcode` has the
    reason. Keep the returned object while this process runs: losing it looks like the forwarder's death to a
    recorder.

    Raises:
        OSError: the process cannot be started.
    """
    process = multiprocessing.get_context("spawn").Process(
        target=_run, args=(clock.origin_ns(), target, args, kwargs)
    )
    with deferred_signals(), safe_path():
        # Started explicitly: process.start() would start it first, and its start unblocks the signals.
        resource_tracker.ensure_running()
        # The child inherits the blocked signals: they must not reach it while it is still importing.
        signal.pthread_sigmask(signal.SIG_BLOCK, TERMINATION_SIGNALS)
        process.start()
    return process


def start_fork(target: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> BaseProcess:
    """Run `target` in a fork of this process, with all modules loaded, or otherwise as `start_child` does.

    A process with threads is not forked, as a lock held by another thread would stay locked; nor is one on
    macOS, whose system libraries do not support it. A fork takes 0.02 s CPU, a fresh process 0.2 s.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return start_child(target, *args, **kwargs)
    arguments = (clock.origin_ns(), target, args, kwargs)
    process = multiprocessing.get_context("fork").Process(target=_run, args=arguments)
    with deferred_signals():
        process.start()
    return process


def start_resource_tracker() -> None:
    """Start multiprocessing's resource tracker, whose start unblocks signals, before signals are deferred.

    Raises OSError.
    """
    with safe_path():
        resource_tracker.ensure_running()


@contextmanager
def safe_path() -> Iterator[None]:
    """Keep interpreters that are started within the context from importing modules from the current folder.

    multiprocessing starts them with -c, for which that folder comes first: a planted `multiprocessing.py`
    there would be executed.

    Raises:
        OSError: the environment variable has no effect, as this interpreter ignores the environment.
    """
    if sys.flags.ignore_environment and not sys.flags.safe_path:
        raise OSError(
            "Python was started with -E, so a second process would run modules from the current folder: "
            "start it with -I, or without -E"
        )
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _run(
    origin_ns: int, target: Callable[..., None], args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    # The child's times are compared with its parent's.
    clock.adopt(origin_ns)
    # Ctrl-C and service managers signal all processes, but the parent decides what its children do: a
    # recorder must live until it has read the end of the journal.
    for number in TERMINATION_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINATION_SIGNALS)
    target(*args, **kwargs)


def lower_priority() -> None:
    """Lower this process's priority: clients go first, as the journal can buffer the backlog."""
    os.nice(_NICENESS)


def follow(reader: JournalReader) -> Iterator[list[Item]]:
    """Yield the journal's items in batches until it ends or its writer's process is gone.

    Only for child processes made by `start_child`. A batch is empty if nothing arrived for 20 ms, so that the
    caller can commit. Afterwards `reader.stopped` distinguishes a clean end from a killed forwarder. Raises
    JournalError as `JournalReader.read` does.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError("a journal is followed in a child of the process that writes it")
    gone = False
    while True:
        items = reader.read()
        if items:
            yield items
        elif reader.stopped or gone:
            return
        else:
            yield items
            # Checked before the next read, which then includes all that was written before the parent's
            # death.
            gone = bool(wait([parent.sentinel], _POLL_SECONDS))


def read_rest(reader: JournalReader) -> Iterator[list[Item]]:
    """Yield the items of a journal that has no writer any more. Raises JournalError."""
    while items := reader.read():
        yield items
