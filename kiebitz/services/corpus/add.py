"""Addition of captures to a corpus: distributes the tasks and reports their outcomes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kiebitz.dissectors.registry import protocol_files
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.services.corpus.capture_search import captures
from kiebitz.services.corpus.capture_task import Outcome, Task
from kiebitz.services.corpus.cluster import workers
from kiebitz.services.progress import counting
from kiebitz.services.standard_streams import print_error_line, warn
from kiebitz.services.wording import counted
from kiebitz.storage.corpus.layout import Corpus, CorpusError, make
from kiebitz.storage.corpus.runs import RequestedCapture, Run, sweep_abandoned


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
