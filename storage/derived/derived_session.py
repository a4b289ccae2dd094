"""Sessions derived from recorded bytes: edited or in part, in memory or in another database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer
from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
from kiebitz.dissectors.editing.item_edits import Splice, apply_splices
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Altered, Chunk, Direction, Fault, Gap, Item, port_of
from kiebitz.dissectors.registry import dissector_of, file_of, installed, not_installed, protocol_files
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.protocol_files import stored_files
from kiebitz.storage.database.schema import MEMORY, StorageError
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
    return _in_memory(recorded, _revert_alterations(recorded.items()), on_progress)


def derive_original(timeline: Timeline, on_progress: Callable[[int, int], None]) -> Timeline:
    """Return the session as this version of Kiebitz dissects it to the end: the stored one, or one in memory.

    It can be compared with a derived session. `on_progress` as for `derive_session`. Raises StorageError.
    """
    session = timeline.session
    if session.ended_ns is not None and session.kiebitz_version == kiebitz_version():
        return timeline
    return derive_session(timeline, (), on_progress)


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


def differs_from_files(timeline: Timeline) -> bool:
    """Return whether the protocol files that the user has named may change what is stored of a session.

    A session that is being recorded, or began in another database, stays as it is stored.
    """
    session = timeline.session
    named = [file for file in protocol_files() if file.source == "given"]
    if not named or session.ended_ns is None or session.continues:
        return False
    stored = {file.protocol: file.text for file in stored_files(timeline.connection, "")}
    transports = {
        file.protocol: dissector.transport
        for file in named
        if stored.get(file.protocol) != file.text and (dissector := dissector_of(file.protocol)) is not None
    }
    query = "SELECT DISTINCT protocol, transport FROM streams WHERE session_id = ?"
    return any(
        transport in transports.values()
        and (protocol is None or protocol in transports or protocol in stored)
        for protocol, transport in timeline.connection.execute(query, (session.id,))
    )


def dissect_again(
    timeline: Timeline, on_progress: Callable[[int, int], None], database: str = MEMORY
) -> Timeline:
    """Return the session dissected again by the current protocols, in memory or in a new database.

    Servers whose protocol is a file's are recognised again; others speak their recorded one. `on_progress` as
    for `derive_session`. Raises StorageError.
    """
    recorded = complete_items(timeline)
    forced = {
        (transport, port_of(server)): dissector
        for transport, server, protocol in recorded.server_protocols
        if file_of(protocol) is None and (dissector := dissector_of(protocol)) is not None
    }
    recorder = _record(recorded, recorded.items(), database, forced, on_progress)
    if database == MEMORY:
        return _timeline(recorder, recorded)
    return Timeline(connection := open_existing(database), sessions(connection)[-1])


def _in_memory(
    recorded: RecordedItems,
    items: Iterable[Item],
    on_progress: Callable[[int, int], None],
    anonymizer: Anonymizer | None = None,
) -> Timeline:
    forced = recorded_protocols(recorded)
    return _timeline(_record(recorded, items, MEMORY, forced, on_progress, anonymizer), recorded)


def _timeline(recorder: Recorder, recorded: RecordedItems) -> Timeline:
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
    forced = {**recorded_protocols(recorded), **decode_as}
    anonymizer = None
    if stand_ins is not None:
        anonymizer = Anonymizer(installed().dissectors.values(), forced, stand_ins)
    return _record(recorded, recorded.items(), database, forced, on_progress, anonymizer, is_full)


def _record(
    recorded: RecordedItems,
    items: Iterable[Item],
    database: str,
    forced: DecodeAs,
    on_progress: Callable[[int, int], None],
    anonymizer: Anonymizer | None = None,
    is_full: Callable[[Recorder], bool] = lambda _: False,
) -> Recorder:
    """Record items as a new session like the recorded one; return the closed recorder."""
    session = recorded.timeline.session
    recorder = Recorder(
        database,
        "import",
        session.source,
        name=session.name,
        started_ns=session.started_ns,
        decode_as=forced,
        anonymizer=anonymizer,
    )
    recorder.lacks = session.lacks
    try:
        if database != MEMORY:
            recorded.renumber(recorder.stream_ids)
        done = 0
        for item in items:
            recorder.record((item,))
            done += isinstance(item, Chunk)
            if recorder.full:
                recorder.commit()
                on_progress(done, recorded.chunks)
                if is_full(recorder):
                    break
        recorder.close()
    except BaseException:
        recorder.release()
        recorder.connection.close()
        raise
    return recorder


def recorded_protocols(recorded: RecordedItems) -> DecodeAs:
    """Return the recorded protocols of the servers, as edits may prevent recognition. Raises StorageError."""
    forced = {}
    for transport, server, protocol in recorded.server_protocols:
        dissector = dissector_of(protocol)
        if dissector is None:
            raise StorageError(f"this session cannot be derived again: {not_installed(protocol)}")
        forced[transport, port_of(server)] = dissector
    return forced


def _revert_alterations(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items as they would be had everything been forwarded unchanged.

    Inserted messages are removed, dropped or changed ones restored, each at the time when Kiebitz received
    it. The peers' messages stay the same, as their other reactions are unknown. All items are held in memory,
    as delayed ones move far ahead.
    """
    ways: dict[tuple[int, Direction], _DirectionState] = {}
    held: list[tuple[int, Item]] = []
    for item in items:
        if isinstance(item, Chunk | Gap | Fault | Altered):
            way = ways.setdefault((item.stream.id, item.direction), _DirectionState())
            held += way.revert(item)
        else:
            held.append((item.ts_ns, item))
    held.sort(key=lambda timed: timed[0])
    come: dict[tuple[int, Direction], int] = {}
    for ts_ns, item in held:
        if not isinstance(item, Chunk | Gap | Fault):
            yield item
            continue
        place = (item.stream.id, item.direction)
        offset = come.get(place, 0)
        yield msgspec.structs.replace(item, ts_ns=ts_ns, offset=offset)
        come[place] = offset + _size(item)


def _size(item: Chunk | Gap | Fault) -> int:
    if isinstance(item, Chunk):
        return len(item.data) + item.missing
    return (item.length or 0) if isinstance(item, Gap) else 0


class _DirectionState:
    """One direction of a stream, with the amount of upcoming data that was not sent."""

    def __init__(self) -> None:
        self._bytes_to_skip = 0
        """Bytes of a byte stream to leave out."""
        self._skip_next = False
        """True if the next datagram is to be left out."""

    def revert(self, item: Chunk | Gap | Fault | Altered) -> Iterator[tuple[int, Item]]:
        """Yield the sent items, each with its time."""
        if isinstance(item, Altered):
            self._bytes_to_skip, self._skip_next = item.length, item.length > 0
            if item.original is not None:
                sent_ns = item.ts_ns if item.sent_ns is None else item.sent_ns
                chunk = Chunk(item.stream, item.direction, sent_ns, item.offset, item.original)
                yield sent_ns, chunk
        elif not isinstance(item, Chunk):
            yield item.ts_ns, item
        elif item.stream.transport == "udp":
            if not self._skip_next:
                yield item.ts_ns, item
            self._skip_next = False
        else:
            data = item.data[self._bytes_to_skip :]
            self._bytes_to_skip -= len(item.data) - len(data)
            if data:
                yield item.ts_ns, msgspec.structs.replace(item, data=data)
