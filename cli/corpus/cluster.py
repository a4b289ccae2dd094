"""Who does the work: a process for each core of this machine, or the workers of a Dask scheduler.

Dask hands out the tasks, and hands one out again whose worker has died. Here it is told in sentences what
goes wrong with it.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import dask

from kiebitz.cli.corpus.adding import Outcome, Task, add
from kiebitz.cli.terminal.console import warn
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.proxy.processes import safe_path

if TYPE_CHECKING:
    from distributed import Client, Future

_AHEAD = 8
"""Tasks for each worker that are handed out at once; so few are in memory, however many there are."""

_LOOK_S = 1.0
"""So often it is seen to that there are workers."""

_PATIENCE_S = 10.0
"""So long a scheduler is waited for. A scheduler without workers for so long is told of."""

_DEATHS = 3
"""So many workers may die of one task."""

_SETTINGS = {
    "distributed.scheduler.allowed-failures": _DEATHS,
    "distributed.comm.timeouts.connect": f"{_PATIENCE_S}s",
    # Nobody looks at its pages, which anybody on this machine could.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # All that matters of its log is told by `Workers`, in sentences.
    "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical",
    "logging": dict.fromkeys(("distributed", "distributed.client", "bokeh", "tornado"), "critical"),
}


class ClusterError(KiebitzError):
    """There are no workers, or no longer; the message says why, and what to do."""


class Workers:
    """Those who do the tasks."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._seen_s = time.monotonic()
        self._is_told = False

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Have tasks done, in no order. Raises ClusterError when the scheduler is gone."""
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
                future = done.get(timeout=_LOOK_S)
            except Empty:
                self._look()
                continue
            task = at_work.pop(future)
            outcome = self._outcome(future, task)
            future.release()
            hand_out(1)
            yield task, outcome

    def _outcome(self, future: Future[Outcome], task: Task) -> Outcome:
        """What came of a task, also where it did not come to its end. Raises ClusterError."""
        from distributed import KilledWorker

        if future.status == "finished":
            return future.result()
        if future.status != "error":
            raise self._gone()
        error = future.exception()
        if isinstance(error, KilledWorker):
            why = f"workers died of it {_DEATHS + 1} times: has each enough memory?"
            return Outcome(failed=f"{task.source}: {why}")
        return Outcome(stops=f"a worker of {self._name} cannot run Kiebitz: install it there ({error})")

    def _present(self) -> int:
        info: dict[str, Any] = self._client.scheduler_info(n_workers=-1)
        return len(info["workers"])

    def _look(self) -> None:
        """Say once that nobody is at work. Raises ClusterError."""
        if self._client.status != "running":
            raise self._gone()
        now = time.monotonic()
        if self._present():
            self._seen_s, self._is_told = now, False
        elif now - self._seen_s > _PATIENCE_S and not self._is_told:
            self._is_told = True
            warn(f"{self._name} has no workers: start some with dask worker; what is in stays")

    def _gone(self) -> ClusterError:
        return ClusterError(f"{self._name} is gone: add again to go on; what is in stays")


@contextmanager
def workers(scheduler: str | None) -> Iterator[Workers]:
    """The workers of a scheduler, as tcp://HOST:8786, or where none is given of this machine.

    Raises ClusterError.
    """
    with ExitStack() as held:
        held.enter_context(dask.config.set(_SETTINGS))
        # They are about other versions, of which the tasks see to what matters.
        held.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        from distributed import Client

        try:
            if scheduler is None:
                client, name = _local(held), "Dask"
            else:
                client, name = Client(scheduler, timeout=_PATIENCE_S, set_as_default=False), scheduler
        except (OSError, ValueError) as error:
            raise ClusterError(f"{scheduler or 'Dask'}: no scheduler answers there: {error}") from error
        held.callback(client.close, timeout=_LOOK_S)
        yield Workers(client, name)


def _local(held: ExitStack) -> Client:
    from distributed import Client, LocalCluster, Security

    # A scheduler runs anything for all who may speak to it, and this machine may have other users.
    security = Security.temporary()
    folder = held.enter_context(tempfile.TemporaryDirectory(prefix="kiebitz-"))
    held.enter_context(safe_path())
    cluster = LocalCluster(
        n_workers=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        threads_per_worker=1,
        protocol="tls",
        security=security,
        dashboard_address="127.0.0.1:0",
        local_directory=folder,
    )
    held.callback(cluster.close, timeout=_PATIENCE_S)
    return Client(cluster, security=security, set_as_default=False)
