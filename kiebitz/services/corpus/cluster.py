"""Workers that add captures to a corpus: processes of this machine, or those of a Dask scheduler.

Dask distributes the tasks, and repeats those of workers that died. Problems with Dask are reported here as
sentences.

Addition of captures to a corpus: searches for them, distributes the tasks and reports their outcomes.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.registry import protocol_files
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.proxy.journal.follower import safe_path, start_resource_tracker
from kiebitz.proxy.relay.modes import is_this_machine, parse_endpoint
from kiebitz.proxy.system.deferred_signals import deferred_signals, signals_handled
from kiebitz.services.corpus.capture_task import Outcome, Task, add
from kiebitz.services.progress import counting
from kiebitz.services.standard_streams import print_error_line, warn
from kiebitz.services.wording import counted
from kiebitz.storage.corpus.layout import Corpus, CorpusError, make
from kiebitz.storage.corpus.runs import RequestedCapture, Run, sweep_abandoned

if TYPE_CHECKING:
    from distributed import Client, Future


_AHEAD = 8
"""Number of tasks submitted per worker at once, which bounds the tasks in memory."""

_CHECK_INTERVAL_S = 1.0
"""Interval of checks that there are workers."""

_TIMEOUT_S = 10.0
"""Timeout for a scheduler; one without workers for as long is reported."""

_MAX_DEATHS = 3
"""Maximum number of workers that may die of one task."""

_SETTINGS = {
    "distributed.scheduler.allowed-failures": _MAX_DEATHS,
    "distributed.comm.timeouts.connect": f"{_TIMEOUT_S}s",
    # Its web pages are not needed, and any user of this machine could open them.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # `Workers` reports what matters of its log.
    "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical",
}

_LOGGING = {"logging": dict.fromkeys(("distributed", "distributed.client", "bokeh", "tornado"), "critical")}


_CONFIG = "files in ~/.config/dask, or variables DASK_..."


class SchedulerError(KiebitzError):
    """An address that is not a scheduler's, or must not be used."""

    is_usage = True


class ClusterError(KiebitzError):
    """Missing or lost workers; the text says why, and what to do."""


def check_scheduler(address: str, is_insecure: bool) -> None:
    """Raise SchedulerError unless an address is that of a scheduler, protected or on this machine.

    Dask workers execute what a scheduler sends, and a scheduler accepts tasks from anyone.
    """
    match = re.fullmatch(r"(?P<scheme>tcp|tls|wss?)://(?P<endpoint>[^/]+:[0-9]+)", address)
    if match is None:
        raise SchedulerError(f"{address} is not a scheduler's address: write it as in tls://HOST:8786")
    try:
        host, _ = parse_endpoint(match["endpoint"])
    except ValueError as error:
        raise SchedulerError(f"{address}: {error}") from error
    if match["scheme"] in ("tcp", "ws") and not is_insecure and not is_this_machine(host or ""):
        raise SchedulerError(
            f"{address} is another machine, and the connection would not be protected: write tls:// and name "
            "its certificates in Dask's configuration, or give --insecure if you trust the whole network"
        )


class Workers:
    """The workers that run the tasks."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._seen_s = time.monotonic()
        self._is_told = False

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Run tasks and yield their outcomes in any order. Raises ClusterError if the scheduler is lost."""
        waiting = iter(tasks)
        at_work: dict[Future[Outcome], Task] = {}
        done: SimpleQueue[Future[Outcome]] = SimpleQueue()

        def hand_out(count: int) -> None:
            for task in islice(waiting, count):
                future = self._client.submit(add, task, pure=False)
                at_work[future] = task
                future.add_done_callback(done.put)

        hand_out(_AHEAD * max(self._present(), 1))
        while at_work:
            try:
                future = done.get(timeout=_CHECK_INTERVAL_S)
            except Empty:
                self._look()
                continue
            task = at_work.pop(future)
            outcome = self._outcome(future, task)
            future.release()
            hand_out(1)
            yield task, outcome

    def _outcome(self, future: Future[Outcome], task: Task) -> Outcome:
        """Return a task's outcome, also if its worker failed. Raises ClusterError."""
        from distributed import KilledWorker

        if future.status == "finished":
            return future.result()
        if future.status != "error":
            raise self._gone()
        error = future.exception()
        if isinstance(error, KilledWorker):
            why = f"workers died of it {_MAX_DEATHS + 1} times: has each enough memory?"
            return Outcome(failed=f"{task.source}: {why}")
        return Outcome(stops=f"a worker of {self._name} cannot run Kiebitz: install it there ({error})")

    def _present(self) -> int:
        info: dict[str, Any] = self._client.scheduler_info(n_workers=-1)
        return len(info["workers"])

    def _look(self) -> None:
        """Report once that there are no workers. Raises ClusterError."""
        if self._client.status != "running":
            raise self._gone()
        now = time.monotonic()
        if self._present():
            self._seen_s, self._is_told = now, False
        elif now - self._seen_s > _TIMEOUT_S and not self._is_told:
            self._is_told = True
            warn(f"{self._name} has no workers: start some with dask worker; captures added so far are kept")

    def _gone(self) -> ClusterError:
        return ClusterError(f"{self._name} is lost: add again to continue; captures added so far are kept")


@contextmanager
def workers(scheduler: str | None) -> Iterator[Workers]:
    """Connect to the workers of a scheduler, or start some on this machine if none is given.

    Raises ClusterError.
    """
    with ExitStack() as held:
        if scheduler is None:
            held.enter_context(_without_variables())
        try:
            client = _client(scheduler, held)
        except ClusterError:
            raise
        except Exception as error:
            # Dask raises arbitrary errors for unexpected configuration values.
            why = " ".join(str(error).split())
            raise ClusterError(f"Dask does not start; check its configuration ({_CONFIG}): {why}") from error
        yield Workers(client, scheduler or "Dask")


def _client(scheduler: str | None, held: ExitStack) -> Client:
    """Connect to a scheduler, or start one on this machine. Raises ClusterError, and whatever Dask raises."""
    import dask

    held.enter_context(dask.config.set(_LOGGING))
    # The import reads this, and adds the defaults, which would be removed with settings made before.
    from distributed import Client

    held.enter_context(dask.config.set(_SETTINGS))
    # They concern differing versions; the tasks check those that matter.
    held.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    if scheduler is None:
        return _start_local(held)
    _check_reachable(scheduler)
    client = Client(scheduler, timeout=_TIMEOUT_S, set_as_default=False)
    held.callback(client.close, timeout=_CHECK_INTERVAL_S)
    return client


def _check_reachable(scheduler: str) -> None:
    """Raise ClusterError unless a scheduler answers.

    Dask's client waits forever for a peer that accepts connections and stays silent.
    """
    from distributed import Security
    from distributed.core import rpc

    arguments = Security().get_connection_args("client")
    if scheduler.startswith(("tls:", "wss:")) and arguments.get("ssl_context") is None:
        raise ClusterError(f"{scheduler}: name the certificates for it in Dask's configuration ({_CONFIG})")

    async def identify() -> None:
        async with (
            asyncio.timeout(_TIMEOUT_S + _CHECK_INTERVAL_S),
            rpc(scheduler, timeout=_TIMEOUT_S, connection_args=arguments) as remote,
        ):
            await remote.identity(n_workers=0)

    host, port = parse_endpoint(scheduler.partition("://")[2])
    try:
        socket.getaddrinfo(host, port)
        asyncio.run(identify())
    except TimeoutError as error:
        raise ClusterError(f"{scheduler}: no scheduler answers there within {_TIMEOUT_S:.0f} s") from error
    except OSError as error:
        raise ClusterError(f"{scheduler}: no scheduler answers there: {error.strerror or error}") from error
    except Exception as error:
        # Dask does not validate an answer before using it.
        raise ClusterError(f"{scheduler}: this is not a Dask scheduler: {error}") from error


@contextmanager
def _without_variables() -> Iterator[None]:
    """Hide Dask's environment variables from it and its processes, which need none on this machine."""
    hidden = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith("DASK_")}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _start_local(held: ExitStack) -> Client:
    from distributed import Client, LocalCluster, Security

    # A scheduler runs anything for anyone who can connect, and this machine may have other users.
    security = Security.temporary()
    folder = held.enter_context(tempfile.TemporaryDirectory(prefix="kiebitz-"))
    held.enter_context(safe_path())
    start_resource_tracker()
    with _late_interrupts():
        cluster = LocalCluster(
            n_workers=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            threads_per_worker=1,
            protocol="tls",
            security=security,
            dashboard_address="127.0.0.1:0",
            local_directory=folder,
        )
        held.callback(cluster.close, timeout=_TIMEOUT_S)
        client = Client(cluster, security=security, set_as_default=False)
        held.callback(client.close, timeout=_CHECK_INTERVAL_S)
        return client


@contextmanager
def _late_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt for a SIGINT only at the end: Dask reports interrupted starts with tracebacks.

    The processes started in the context ignore Ctrl-C; `close` ends them.
    """
    came: list[int] = []
    # Threads of libraries do not block it, so that this process would not defer it.
    with (
        signals_handled(signal.SIGINT, handler=lambda number, _frame: came.append(number)),
        deferred_signals(),
    ):
        yield
    if came:
        raise KeyboardInterrupt


def add_captures(folder: str, given: Sequence[str], scheduler: str | None) -> bool:
    """Add captures to a corpus, created if it does not exist; return False if one could not be added.

    Raises CorpusError and ClusterError if none can be added; those added by then remain.
    """
    wanted = captures(given)
    if not wanted:
        raise CorpusError(f"{', '.join(given)}: no capture found: names must end in .pcap or .pcapng")
    corpus = make(folder)
    sweep_abandoned(corpus)
    corpus.store_protocol_files(file for file in protocol_files() if file.source != "copied")
    came: Counter[str] = Counter()
    with Run(corpus) as run:
        run.asked(wanted)
        try:
            with workers(scheduler) as staff, counting(folder, "captures") as on_progress:
                on_progress(0, len(wanted))
                for done, (task, outcome) in enumerate(staff.outcomes(_tasks(corpus, run, wanted)), 1):
                    _note(run, task, outcome, came)
                    on_progress(done, len(wanted))
        finally:
            print_error_line(f"{folder}: {_in_words(came)}")
    return not came["failed"]


def _tasks(corpus: Corpus, run: Run, wanted: Iterable[RequestedCapture]) -> Iterator[Task]:
    folder, here, files = os.path.abspath(corpus.path), kiebitz_version(), protocol_files()
    return (Task(one.path, one.source, folder, corpus.id, run.name, here, files) for one in wanted)


def _note(run: Run, task: Task, outcome: Outcome, came: Counter[str]) -> None:
    """Record a task's outcome and report a failure. Raises CorpusError if no capture can be added."""
    if outcome.stops is not None:
        raise CorpusError(outcome.stops)
    if outcome.capture is None:
        reason = str(outcome.failed)
        if outcome.is_absent and os.path.exists(task.path):
            reason = f"{task.source}: a worker cannot read this file: put it on a disk shared by all workers"
        run.failed(task.path, reason)
        warn(reason)
        came["failed"] += 1
        return
    run.added(task.path, outcome.capture)
    came["new" if outcome.is_new else "there"] += 1
    came["messages"] += outcome.messages
    came["games"] += outcome.games


def _in_words(came: Counter[str]) -> str:
    added = f"{counted(came['new'], 'capture')} added"
    if came["new"]:
        added += f" with {counted(came['games'], 'game')} and {counted(came['messages'], 'message')}"
    there = f", {came['there']:,} already present" if came["there"] else ""
    failed = f", {came['failed']:,} could not be added" if came["failed"] else ""
    return added + there + failed


_ENDINGS = ("pcap", "pcapng", "cap", "dmp")
_PACKED = ("", ".gz", ".zst")
_NAMES = tuple(f".{ending}{packed}" for ending in _ENDINGS for packed in _PACKED)
"""Name endings of captures in a folder; a file given by name may have any name."""


def captures(given: Iterable[str]) -> list[RequestedCapture]:
    """Return each capture once, in order; also a file that is not there, which fails when it is added."""
    found: dict[str, RequestedCapture] = {}
    for one in given:
        names = [one] if os.path.exists(one) else _matching(one) or [one]
        for name in names:
            for source in _in_folder(name) if os.path.isdir(name) else (name,):
                path = os.path.abspath(source)
                found.setdefault(path, RequestedCapture(path, source))
    return [*found.values()]


def _matching(pattern: str) -> list[str]:
    """Return the paths that match a pattern, without hidden ones; `**` does not follow links to folders."""
    path = Path(pattern)
    below = path.relative_to(path.anchor)
    try:
        found = [*Path(path.anchor).glob(str(below))]
    except (ValueError, IndexError, OSError):
        return []
    return sorted(str(one) for one in found if _is_hidden(one) <= _is_hidden(below))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") and part != ".." for part in path.parts)


def _in_folder(folder: str) -> Iterator[str]:
    """Yield the captures in and below a folder, without links that lead out of it."""
    inside = Path(os.path.realpath(folder))
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            source = os.path.join(path, name)
            if not name.lower().endswith(_NAMES):
                continue
            if os.path.islink(source) and inside not in Path(os.path.realpath(source)).parents:
                warn(f"{source}: this link leads out of {folder} and is left out: name it to add it")
                continue
            yield source
