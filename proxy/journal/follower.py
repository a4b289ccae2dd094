"""Processes of ours: how one is started, and how a recorder follows its parent's journal to its end.

The forwarder is the recorder's parent. When it is gone, however it went, the recorder reads what is left and
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
from kiebitz.proxy.system.cpu_affinity import Aside
from kiebitz.proxy.system.deferred_signals import ENDING, held_signals

_POLL_SECONDS = 0.02

_NICENESS = 10
"""The recorder's. Measured on two busy cores: the relay passes on a third more, and half as late at p99."""

_SAFE_PATH = "PYTHONSAFEPATH"

P = ParamSpec("P")


def start_child(target: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> SpawnProcess:
    """Run `target` in a fresh process; it and its arguments must be picklable.

    Its clock is this process's. The process's `sentinel` is readable when it has died, its `exitcode` says
    how. Keep the object as long as this process runs: a recorder takes its loss for the forwarder's death.
    Raises OSError.
    """
    process = multiprocessing.get_context("spawn").Process(
        target=_run, args=(clock.origin_ns(), target, args, kwargs)
    )
    with held_signals(), safe_path():
        # Its own start, which is part of the first process.start(), unblocks the signals.
        resource_tracker.ensure_running()
        # The child inherits the blocked signals: they must not reach it while it is still importing.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        process.start()
    return process


def start_copy(target: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> BaseProcess:
    """Run `target` in a copy of this process, in which all is loaded already, or else as `start_child` does.

    A lock that another thread holds would stay held in a copy, so a process with threads is not copied; nor
    is one on macOS, whose own libraries do not stand it. A copy takes 0.02 s CPU, a fresh process 0.2 s.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return start_child(target, *args, **kwargs)
    arguments = (clock.origin_ns(), target, args, kwargs)
    process = multiprocessing.get_context("fork").Process(target=_run, args=arguments)
    with held_signals():
        process.start()
    return process


def get_ready() -> None:
    """Start what the first child needs beside it, whose start unblocks signals: before any is held.

    Raises OSError.
    """
    with safe_path():
        resource_tracker.ensure_running()


@contextmanager
def safe_path() -> Iterator[None]:
    """Let the interpreters that are started meanwhile look for no module in the current folder.

    multiprocessing starts them with -c, for which that folder comes first: whoever has planted a
    `multiprocessing.py` there would have it run. Raises OSError where the environment cannot say so.
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
    # Its times are compared with its parent's.
    clock.adopt(origin_ns)
    # Ctrl-C and a service manager signal all processes. The parent then says what is to be done: a recorder,
    # say, must live on until it has read the journal's end.
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    target(*args, **kwargs)


def give_way() -> None:
    """Let others go first where cores are short: clients, while what is behind waits in the journal."""
    os.nice(_NICENESS)


def follow(reader: JournalReader) -> Iterator[list[Item]]:
    """Yield what the journal holds, batch by batch, until it was ended or its writer's process is gone.

    Only inside a process of `start_child`. A batch is empty when nothing came for 20 ms, so that the
    caller can commit. Afterwards `reader.stopped` tells a clean end from a killed forwarder.
    Raises JournalError as `JournalReader.read` does.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError("a journal is followed in a child of the process that writes it")
    aside = Aside(parent.pid)
    gone = False
    while True:
        items = reader.read()
        aside.look(items[-1].ts_ns if items else None)
        if items:
            yield items
        elif reader.stopped or gone:
            return
        else:
            yield items
            # Asked before the next read: what was written before the parent's death is then read, too.
            gone = bool(wait([parent.sentinel], _POLL_SECONDS))


def read_rest(reader: JournalReader) -> Iterator[list[Item]]:
    """Yield the items of a journal that nobody writes any more. Raises JournalError."""
    while items := reader.read():
        yield items
