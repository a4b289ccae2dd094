"""A stored session derived again in memory, with messages taken out, changed or put in."""

from __future__ import annotations

from collections.abc import Callable, Collection

from dissectors.inspector import DecodeAs
from dissectors.records import Chunk, port_of
from dissectors.registry import dissector_of, not_installed
from storage.items import RecordedItems, items_from_the_beginning
from storage.recorder import Recorder
from storage.schema import MEMORY, StorageError
from storage.splicing import Splice, spliced
from storage.timeline import Timeline, sessions


def derived(
    timeline: Timeline, splices: Collection[Splice], on_progress: Callable[[int, int], None]
) -> Timeline:
    """What comes of a session's bytes with these splices.

    Each server speaks the protocol that it was recorded to speak. `on_progress` is told how many chunks of
    how many are done. Raises StorageError.
    """
    recorded = items_from_the_beginning(timeline)
    session = timeline.session
    recorder = Recorder(
        MEMORY,
        "import",
        session.source,
        name=session.name,
        started_ns=session.started_ns,
        decode_as=_as_recorded(recorded),
    )
    done = 0
    for item in spliced(recorded.items(), splices):
        recorder.record((item,))
        done += isinstance(item, Chunk)
        if recorder.full:
            recorder.commit()
            on_progress(done, recorded.chunks)
    recorder.close()
    return Timeline(recorder.connection, sessions(recorder.connection)[0])


def _as_recorded(recorded: RecordedItems) -> DecodeAs:
    """The servers' protocols. What is taken out may be what they were recognised by."""
    forced = {}
    for transport, server, protocol in recorded.spoken:
        dissector = dissector_of(protocol)
        if dissector is None:
            raise StorageError(f"this session cannot be derived again: {not_installed(protocol)}")
        forced[transport, port_of(server)] = dissector
    return forced
