"""Sessions derived from recorded bytes: edited or in part, in memory or in another database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
from kiebitz.dissectors.editing.item_edits import Splice, apply_splices
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Chunk, Item, port_of
from kiebitz.dissectors.registry import dissector_of, installed, not_installed
from kiebitz.storage.database.schema import MEMORY, StorageError
from kiebitz.storage.derived.revert_alterations import revert_alterations
from kiebitz.storage.derived.selection import RowIds, Selection
from kiebitz.storage.derived.trimming import MessagePosition, Treatment, outline, trim_items
from kiebitz.storage.read.recorded_items import RecordedItems, complete_items
from kiebitz.storage.read.timeline import Timeline, check_ascending, sessions
from kiebitz.storage.recording.recorder import Recorder


def derive_session(
    timeline: Timeline, splices: Collection[Splice], on_progress: Callable[[int, int], None]
) -> Timeline:
    """Return the session that results from these splices of the recorded bytes, in memory.

    Each server speaks its recorded protocol. `on_progress` is called with the numbers of processed and of all
    chunks. Raises StorageError.
    """
    recorded = complete_items(timeline)
    return _in_memory(recorded, apply_splices(recorded.items(), splices), on_progress)


def revert_session(timeline: Timeline, on_progress: Callable[[int, int], None]) -> Timeline:
    """Return the session as it would be without Kiebitz's alterations and otherwise unchanged, in memory.

    `on_progress` as for `derive_session`. Raises StorageError.
    """
    recorded = complete_items(timeline)
    return _in_memory(recorded, revert_alterations(recorded.items()), on_progress)


def extract_part(timeline: Timeline, selection: Selection) -> Timeline:
    """Return the session that results from the bytes of a selection and its preamble alone, in memory.

    Times and stream numbers stay; games, messages and events are renumbered. Raises StorageError.
    """
    recorded = RecordedItems(timeline)
    kept = RowIds([*selection.preamble, *selection.messages])
    last: dict[int, int] = {}
    for message in _message_positions(timeline, selection.streams):
        if message.id in kept:
            last[message.stream_id] = message.id
    hole: Treatment = "gone" if selection.is_a_game else "missing"
    found = outline(_message_positions(timeline, selection.streams), kept, last, hole)
    if timeline.session.continues:
        # The first bytes of streams that a previous database began are missing here.
        found = msgspec.structs.replace(found, joined=selection.streams)
    items = trim_items(recorded.items(), found, selection.streams)
    return _in_memory(recorded, items, lambda done, of: None)


def _message_positions(timeline: Timeline, streams: Collection[int]) -> Iterator[MessagePosition]:
    rows = timeline.connection.execute(
        "SELECT id, stream_id, direction, ts_ns, offset, length FROM messages"
        " WHERE +stream_id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (to_json(sorted(streams)),),
    )
    return map(MessagePosition._make, check_ascending(rows))


def anonymize_session(
    timeline: Timeline, stand_ins: Pseudonyms, on_progress: Callable[[int, int], None]
) -> Timeline:
    """Return the session with personal values replaced by pseudonyms, in memory.

    `on_progress` as for `derive_session`. Raises StorageError.
    """
    recorded = complete_items(timeline)
    anonymizer = Anonymizer(installed().dissectors.values(), recorded_protocols(recorded), stand_ins)
    return _in_memory(recorded, recorded.items(), on_progress, anonymizer)


def _in_memory(
    recorded: RecordedItems,
    items: Iterable[Item],
    on_progress: Callable[[int, int], None],
    anonymizer: Anonymizer | None = None,
) -> Timeline:
    recorder = _recorder(recorded, MEMORY, {}, anonymizer)
    try:
        _record(recorder, items, recorded.chunks, on_progress)
    except BaseException:
        recorder.connection.close()
        raise
    (session,) = sessions(recorder.connection)
    # Streams keep their numbers.
    before = {**recorded.timeline.numbers.before, "games": 0, "messages": 0, "events": 0}
    return Timeline(recorder.connection, msgspec.structs.replace(session, before=before))


def copy_session(
    timeline: Timeline,
    database: str,
    decode_as: DecodeAs,
    on_progress: Callable[[int, int], None],
    is_full: Callable[[Recorder], bool],
    stand_ins: Pseudonyms | None = None,
) -> Recorder:
    """Record a session's bytes into another database as a new session, and return the closed recorder.

    Nothing else in the session's own database is trusted. Servers speak their recorded protocols unless
    `decode_as` overrides them. Once `is_full` returns True, the rest is left out. With `stand_ins` the new
    session is anonymized. Raises StorageError.
    """
    recorded = complete_items(timeline)
    anonymizer = None
    if stand_ins is not None:
        known = {**recorded_protocols(recorded), **decode_as}
        anonymizer = Anonymizer(installed().dissectors.values(), known, stand_ins)
    recorder = _recorder(recorded, database, decode_as, anonymizer)
    try:
        recorded.renumber(recorder.stream_ids)
        _record(recorder, recorded.items(), recorded.chunks, on_progress, is_full)
    except BaseException:
        recorder.release()
        raise
    return recorder


def _recorder(
    recorded: RecordedItems, database: str, decode_as: DecodeAs, anonymizer: Anonymizer | None = None
) -> Recorder:
    session = recorded.timeline.session
    return Recorder(
        database,
        "import",
        session.source,
        name=session.name,
        started_ns=session.started_ns,
        decode_as={**recorded_protocols(recorded), **decode_as},
        anonymizer=anonymizer,
    )


def _record(
    recorder: Recorder,
    items: Iterable[Item],
    chunks: int,
    on_progress: Callable[[int, int], None],
    is_full: Callable[[Recorder], bool] = lambda _: False,
) -> None:
    done = 0
    for item in items:
        recorder.record((item,))
        done += isinstance(item, Chunk)
        if recorder.full:
            recorder.commit()
            on_progress(done, chunks)
            if is_full(recorder):
                break
    recorder.close()


def recorded_protocols(recorded: RecordedItems) -> DecodeAs:
    """Return the recorded protocols of the servers, as edits may prevent recognition. Raises StorageError."""
    forced = {}
    for transport, server, protocol in recorded.server_protocols:
        dissector = dissector_of(protocol)
        if dissector is None:
            raise StorageError(f"this session cannot be derived again: {not_installed(protocol)}")
        forced[transport, port_of(server)] = dissector
    return forced
