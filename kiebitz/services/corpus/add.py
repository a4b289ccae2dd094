"""Adds captures to a corpus: hands out the tasks, and tells what came of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kiebitz.dissectors.version import kiebitz_version
from kiebitz.services.corpus.capture_search import captures
from kiebitz.services.corpus.capture_task import Outcome, Task
from kiebitz.services.corpus.cluster import workers
from kiebitz.services.progress import counting
from kiebitz.services.standard_streams import tell, warn
from kiebitz.services.wording import counted
from kiebitz.storage.corpus.layout import Corpus, CorpusError, make
from kiebitz.storage.corpus.runs import RequestedCapture, Run, sweep_abandoned


def add_captures(folder: str, given: Sequence[str], scheduler: str | None) -> bool:
    """Add captures to a corpus, which is made if there is none; False if one could not be added.

    Raises CorpusError and ClusterError where none can be; what is in by then stays.
    """
    wanted = captures(given)
    if not wanted:
        raise CorpusError(f"{', '.join(given)}: there is no capture in it: they end in .pcap or .pcapng")
    corpus = make(folder)
    sweep_abandoned(corpus)
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
            tell(f"{folder}: {_in_words(came)}")
    return not came["failed"]


def _tasks(corpus: Corpus, run: Run, wanted: Iterable[RequestedCapture]) -> Iterator[Task]:
    folder, here = os.path.abspath(corpus.path), kiebitz_version()
    return (Task(one.path, one.source, folder, corpus.id, run.name, here) for one in wanted)


def _note(run: Run, task: Task, outcome: Outcome, came: Counter[str]) -> None:
    """Keep what came of a task, and say what went wrong. Raises CorpusError if none can be added."""
    if outcome.stops is not None:
        raise CorpusError(outcome.stops)
    if outcome.capture is None:
        reason = str(outcome.failed)
        if outcome.is_absent and os.path.exists(task.path):
            reason = f"{task.source}: a worker does not see this file: put it on a disk that all see"
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
    there = f", {came['there']:,} were there" if came["there"] else ""
    failed = f", {came['failed']:,} could not be added" if came["failed"] else ""
    return added + there + failed
