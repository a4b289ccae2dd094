"""Addition of captures to a corpus: searches for them, distributes the tasks and reports their outcomes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kiebitz.dissectors.registry import protocol_files
from kiebitz.dissectors.version import kiebitz_version
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
