"""The program under test as started by Kiebitz, and a clock for its deadlines.

The clock excludes the time that the program waited for a processor. On a busy machine a program answers late
without being at fault. Linux reports for each thread how long it was ready to run and did not; elsewhere this
is an ordinary monotonic clock.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import signal
import subprocess
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from threading import get_native_id
from typing import IO

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Transport
from kiebitz.dissectors.probing.verdict import EXIT_STATUS
from kiebitz.proxy.system.descendants import MARK, Descendants, Process, process_table, subreaper
from kiebitz.proxy.system.ports_in_use import is_in_use
from kiebitz.services.standard_streams import warn

_UPDATE_INTERVAL_S = 0.1

_SEARCH_INTERVAL_S = 1.0
"""Seconds between two searches for new processes of the programs."""

_MIN_RATE = 0.1
"""Lowest rate of the clock, so that every deadline passes: threads of one program may wait side by side."""


class FairClock:
    """A clock in seconds that slows down while this thread, or a process of `group()`, waits for a processor.

    `group` returns the number of the program's process group, None if Kiebitz has not started the program.
    """

    is_patient = False
    """If true, it also slows down while other threads of this process wait.

    On an overloaded machine a thread of these may hold the interpreter all that time.
    """

    def __init__(self, group: Callable[[], int | None] = lambda: None) -> None:
        self._group = group
        self._now = self._latest = self._updated = time.monotonic()
        self._waited = self._waits()

    def time(self) -> float:
        """Return the current time, which never decreases and never runs ahead of the monotonic clock."""
        now = time.monotonic()
        passed_s = now - self._updated
        if passed_s < _UPDATE_INTERVAL_S:
            self._latest = max(self._latest, self._now + passed_s)
            return self._latest
        waited = self._waits()
        # Threads that have begun since may have waited before.
        waited_s = sum(waited[file] - before for file, before in self._waited.items() if file in waited)
        self._now += max(passed_s - waited_s, passed_s * _MIN_RATE)
        self._updated, self._waited = now, waited
        self._latest = max(self._latest, self._now)
        return self._latest

    def _waits(self) -> dict[str, float]:
        """Return the number of seconds that each thread has waited for a processor so far."""
        found = {}
        for file in (*self._own_threads(), *self._program_threads()):
            # A thread may end at any time, and other systems have no such files.
            with suppress(OSError, ValueError, IndexError), open(file, "rb", buffering=0) as waits:
                found[file] = int(waits.read(4096).split()[1]) / 1e9
        return found

    def _own_threads(self) -> Iterator[str]:
        if self.is_patient:
            return _threads_of(os.getpid())
        # By its number: in another thread, the waits of this one are none.
        return iter((f"/proc/{os.getpid()}/task/{get_native_id()}/schedstat",))

    def _program_threads(self) -> Iterator[str]:
        group = self._group()
        if group is None:
            return
        # All processes of a program that has just been started are its first one.
        for process in _recent_groups(int(time.monotonic() / _SEARCH_INTERVAL_S)).get(group, (group,)):
            yield from _threads_of(process)


def _threads_of(process: int) -> Iterator[str]:
    """Yield the files with the waiting times of a process's threads; none if it has ended."""
    folder = f"/proc/{process}/task"
    with suppress(OSError):
        yield from (f"{folder}/{thread}/schedstat" for thread in os.listdir(folder))


@lru_cache(maxsize=1)
def _recent_groups(_interval: int) -> Mapping[int, Sequence[int]]:
    """Return the processes of each group at a moment of a search interval; all clocks share a search."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for number, process in process_table().items():
        groups[process.group].append(number)
    return groups


START_TIMEOUT_S = 10.0
"""Maximum number of seconds until it listens, without those in which it waited for a processor."""

_UNSEEN_START_S = 1.0
"""Seconds to wait for it if the system cannot list listening sockets."""

_STOP_TIMEOUT_S = 2.0
"""Seconds it may take to exit before it is killed."""

_LAST_OUTPUT_S = 0.3
"""Timeout in seconds for the last output of a program that has ended."""

_CHECK_INTERVAL_S = 0.02

_UNCAUGHT = re.compile(
    r"Traceback \(most recent call last\)|Exception in thread|panicked at|Segmentation fault|core dumped"
    r"|[Uu]nhandled|[Uu]ncaught"
)
"""Output of interpreters and runtimes about an error that ended a program."""

MAX_OUTPUT = 1 << 16
"""Number of bytes of its latest output to keep."""


class ProgramError(KiebitzError):
    """The program under test cannot be started; the text says what failed and what to do."""


class TargetProgram:
    """A command that can be started repeatedly; if a port is given, it must listen there on this machine.

    Args:
        command: The command, without a shell; or its words.
        transport: The transport of the port.
        port: The port.
        title: Name of the program in errors; by default the option and the command.
        folder: The working folder; None for this process's.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        transport: Transport,
        port: int | None = None,
        title: str | None = None,
        folder: str | None = None,
    ) -> None:
        self._command = command
        self._title = title or f"--restart {command}"
        self._folder = folder
        self._transport: Transport = transport
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._output: deque[bytes] = deque()
        self._kept = 0
        self._reader: threading.Thread | None = None
        self._descendants: Descendants | None = None

    def start(self) -> None:
        """Stop it if it runs, start it, and wait until it listens. Raises ProgramError."""
        self.stop()
        if self._port is not None and is_in_use(self._transport, self._port):
            # What answers there would be judged, and this one accused of ending.
            raise ProgramError(
                f"{self._title}: another program uses {self._transport} port {self._port}: end that one"
                " first, or name another port"
            )
        try:
            words = shlex.split(self._command) if isinstance(self._command, str) else [*self._command]
        except ValueError as error:
            raise ProgramError(f"{self._title}: {error}") from error
        self._output.clear()
        self._kept = 0
        mark = secrets.token_hex(16)
        subreaper.acquire()
        try:
            self._process = subprocess.Popen(
                words,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                # Its processes belong to its group, unless they become daemons.
                start_new_session=True,
                env={**os.environ, MARK: mark},
            )
        except (OSError, IndexError) as error:
            subreaper.release()
            reason = getattr(error, "strerror", None) or "the command is empty"
            raise ProgramError(f"{self._title}: {reason}") from error
        self._descendants = Descendants(self._process.pid, mark)
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._keep, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        self._wait()

    def _wait(self) -> None:
        if self._port is None:
            return
        clock = FairClock(lambda: self.number)
        end = clock.time() + START_TIMEOUT_S
        if is_in_use(self._transport, self._port) is None:
            time.sleep(_UNSEEN_START_S)
            return
        while not is_in_use(self._transport, self._port):
            died = self.died()
            if died is not None:
                raise ProgramError(
                    f"{self._title}: it has ended ({died}) and does not listen at"
                    f" {self._transport} port {self._port}{self.last_words()}"
                )
            if clock.time() > end:
                raise ProgramError(
                    f"{self._title}: after {START_TIMEOUT_S:g} s the program does not listen at"
                    f" {self._transport} port {self._port}: is that the right address?{self.last_words()}"
                )
            time.sleep(_CHECK_INTERVAL_S)

    def _keep(self, output: IO[bytes]) -> None:
        with output, suppress(OSError, ValueError):
            while data := output.read1(4096) if hasattr(output, "read1") else output.read(4096):
                self._output.append(data)
                self._kept += len(data)
                while self._kept > MAX_OUTPUT and len(self._output) > 1:
                    self._kept -= len(self._output.popleft())

    @property
    def output(self) -> str:
        """Its latest output since it was started."""
        if self._reader is not None and self._status is not None:
            # It may have ended a moment ago; a process that it left behind may hold the pipe.
            self._reader.join(_LAST_OUTPUT_S)
        return b"".join([*self._output])[-MAX_OUTPUT:].decode("utf-8", "replace")

    def last_words(self) -> str:
        """Return its last output as a clause, empty if there is none."""
        lines = self.output.strip().splitlines()
        return f"; its last output: {lines[-1][:200]}" if lines else ""

    def died(self) -> str | None:
        """Return how it ended; None while it runs."""
        status = self._status
        if status is None:
            return None
        if status >= 0:
            return f"{EXIT_STATUS}{status}"
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"

    @property
    def was_killed(self) -> bool:
        """True if a signal has ended it."""
        return self._status is not None and self._status < 0

    @property
    def has_crashed(self) -> bool:
        """True if it was ended by a signal, or by an uncaught error according to its output."""
        return self.was_killed or (bool(self._status) and _UNCAUGHT.search(self.output) is not None)

    @property
    def _status(self) -> int | None:
        return None if self._process is None else self._process.poll()

    @property
    def number(self) -> int | None:
        """The process number, also of its process group; None if it was not started."""
        return None if self._process is None else self._process.pid

    def processes(self, table: Mapping[int, Process] | None = None) -> set[int]:
        """Return the numbers of all its processes, also of daemons; `table` has all processes, if known."""
        return set() if self._descendants is None else self._descendants.find(table)

    @property
    def is_running(self) -> bool:
        """True if it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Stop it, with all processes that it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        # Those that leave the group when they are asked to end are known before.
        self.processes()
        self._signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_TIMEOUT_S)
        # This reaches its child processes and whatever ignores the first signal.
        self._signal(process, signal.SIGKILL)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            warn(f"{self._title} does not end; its process number is {process.pid}")
        left = self._descendants.kill(_STOP_TIMEOUT_S) if self._descendants is not None else ()
        if left:
            warn(f"{self._title} leaves processes behind: {', '.join(map(str, sorted(left)))}")
        self._descendants = None
        subreaper.release()
        if self._reader is not None:
            # A process that left the group may still hold the pipe.
            self._reader.join(_STOP_TIMEOUT_S)

    def _signal(self, process: subprocess.Popen[bytes], number: int) -> None:
        # The group may be gone with its first process.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
