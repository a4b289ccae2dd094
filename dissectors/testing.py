"""Property checks for all protocols, for the tests of built-in ones and of plug-ins.

Each check generates traffic from example frames (valid and faulty ones) and random bytes, and raises
AssertionError if a property does not hold. They need hypothesis, which `kiebitz[test]` installs:

    @pytest.mark.parametrize("check", testing.CHECKS)
    def test_it_holds(check): check(KNOBELN, [b"HALLO alice", b"WURF alice 6", b"WURF alice sechs"])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Protocol

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.errors import INTERNAL_ERROR
from kiebitz.dissectors.extras import install_command
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.dissection_tree import MAX_PIECES, Piece
from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import Number, Text, Word
from kiebitz.dissectors.grammar.grammar import UNREADABLE, MessageType, to_json, value_at
from kiebitz.dissectors.inspection.inspector import CUT_OFF, Inspector
from kiebitz.dissectors.inspection.isolation import GAME_ENDED
from kiebitz.dissectors.model import (
    DIRECTIONS,
    Chunk,
    Diagnostic,
    Direction,
    End,
    Fault,
    Findings,
    Gap,
    Ids,
    Item,
    Message,
    Stream,
    TableInfo,
)
from kiebitz.dissectors.registry import BUILT_IN

try:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(f"kiebitz.dissectors.testing needs hypothesis: {install_command('test')}") from error

EXAMPLES = 200
"""Default number of examples per check."""

Place = tuple[int, Direction, int]
"""Stream, direction and offset."""

ValuesOf = Callable[[FieldType], st.SearchStrategy[Any] | None]
"""A function from a field type to a strategy for its values; None for types in
`dissectors.grammar.fields`.
"""


# Checks.


def every_byte_is_accounted_for(
    dissector: Dissector, frames: Sequence[bytes], examples: int = EXAMPLES
) -> None:
    """Check that each byte is in exactly one message, and that unreadable bytes have a diagnostic."""

    def check(data: st.DataObject) -> None:
        items = draw_traffic(data.draw, dissector, frames)
        check_accounted(items, inspect(items, dissector, forced=True))

    _run(check, examples)


def any_cut_gives_the_same(dissector: Dissector, frames: Sequence[bytes], examples: int = EXAMPLES) -> None:
    """Check that segmentation of a byte stream does not change its findings. Datagrams are not cut."""
    if dissector.transport == "udp" or dissector.framer("c2s").depends_on_segments:
        return

    def check(data: st.DataObject) -> None:
        items = draw_traffic(data.draw, dissector, frames)
        pieces = recut(items, data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=5)))
        whole, cut = (comparable(inspect(each, dissector, forced=True)) for each in (items, pieces))
        assert cut == whole, f"in pieces they mean {cut}, and at once {whole}"

    _run(check, examples)


def findings_are_consistent(dissector: Dissector, frames: Sequence[bytes], examples: int = EXAMPLES) -> None:
    """Check that findings refer to each other, that each event can be described, and that nothing raises."""

    def check(data: st.DataObject) -> None:
        forced = data.draw(st.booleans())
        check_consistent(dissector, inspect(draw_traffic(data.draw, dissector, frames), dissector, forced))

    _run(check, examples)


def every_violation_lies_inside(
    dissector: Dissector, frames: Sequence[bytes], examples: int = EXAMPLES
) -> None:
    """Check that decoding never fails, that valid frames have no errors, and the places of violations."""

    def check(data: st.DataObject) -> None:
        frame = data.draw(payloads(frames))
        direction = data.draw(st.sampled_from(DIRECTIONS))
        for decoded in (
            dissector.codec.decode(frame, direction),
            dissector.codec.truncated(frame, direction),
        ):
            assert decoded.fields_json == to_json(decoded.fields), f"{frame!r}: two texts of its fields"
            errors = [violation for violation in decoded.violations if violation.severity == "error"]
            assert not (decoded.valid and errors), f"{frame!r} is valid, and has {errors}"
            for violation in decoded.violations:
                offset, length = violation.place(frame)
                assert 0 <= offset <= offset + length <= len(frame), f"{frame!r}: {violation} is not in it"

    _run(check, examples)


def every_byte_has_its_piece(dissector: Dissector, frames: Sequence[bytes], examples: int = EXAMPLES) -> None:
    """Check that the annotated bytes cover each frame; see `check_anatomy`."""

    def check(data: st.DataObject) -> None:
        check_anatomy(dissector, data.draw(payloads(frames)), data.draw(st.sampled_from(DIRECTIONS)))

    _run(check, examples)


class Check(Protocol):
    """A check of a protocol with a number of generated examples."""

    def __call__(self, dissector: Dissector, frames: Sequence[bytes], examples: int = EXAMPLES) -> None: ...


CHECKS: tuple[Check, ...] = (
    every_byte_is_accounted_for,
    any_cut_gives_the_same,
    findings_are_consistent,
    every_violation_lies_inside,
    every_byte_has_its_piece,
)
"""The checks that need only example frames."""


def decode_after_encode_is_the_identity(
    dissector: Dissector, values_of: ValuesOf = lambda kind: None, examples: int = EXAMPLES
) -> None:
    """Check that an encoded message of any row with any values is decoded to the same."""

    def check(data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(dissector.grammar.rows))
        fields = data.draw(_fields(row, values_of))
        frame = dissector.codec.encode(row.name, row.direction, fields)
        decoded = dissector.codec.decode(frame, row.direction)
        assert decoded.valid, f"{frame!r}: {decoded.violations}"
        assert decoded.row is not None
        assert (decoded.row.name, decoded.fields) == (row.name, fields), f"{frame!r} says {decoded}"

    _run(check, examples)


# Traffic.


def payloads(frames: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return a strategy for frames, damaged frames, and random bytes."""
    sent = st.sampled_from(frames or [b""])
    return st.one_of(
        st.binary(max_size=60),
        sent,
        sent,
        st.builds(
            lambda data, at, junk: data[:at] + junk + data[at:],
            sent,
            st.integers(0, 80),
            st.binary(max_size=4),
        ),
        st.builds(lambda data, at: data[:at], sent, st.integers(0, 150)),
    )


def draw_traffic(draw: Callable[[Any], Any], dissector: Dissector, frames: Sequence[bytes]) -> list[Item]:
    """Draw items of a few streams to one or two servers, in order."""
    transport = dissector.transport
    carried = dissector.encapsulation
    if carried is not None:
        frames = [*frames, *(carried.wrap(frame, way) for way in DIRECTIONS for frame in frames)]
    ports = [draw(st.sampled_from(_ports(dissector))) for _ in range(3)]
    streams = [
        Stream(number, transport, f"127.0.0.1:{number}", f"127.0.0.1:{port}", 0)
        for number, port in enumerate(ports, 1)
    ]
    offsets: dict[tuple[int, Direction], int] = {}
    items: list[Item] = []
    now = 0
    for _ in range(draw(st.integers(0, 40))):
        stream = draw(st.sampled_from(streams))
        direction = draw(st.sampled_from(DIRECTIONS))
        now += draw(st.sampled_from([0, 1_000, 1_000_000, 300_000_000, 3_000_000_000]))
        offset = offsets.get((stream.id, direction), 0)
        match draw(st.integers(0, 11)):
            case 0:
                length = draw(st.one_of(st.none(), st.integers(0, 100)))
                items.append(Gap(stream, direction, now, offset, length))
                offsets[stream.id, direction] = offset + (length or 0)
            case 1:
                items.append(Fault(stream, direction, now, offset, "port-unreachable", "nobody there"))
            case _:
                data = draw(payloads(frames))
                if carried is not None and offset == 0 and draw(st.integers(0, 7)):
                    data = carried.opening(direction)
                # A snap length truncates datagrams; in a byte stream it makes a gap.
                missing = draw(st.sampled_from([0, 0, 0, 0, 7])) if transport == "udp" else 0
                items.append(Chunk(stream, direction, now, offset, data, missing))
                offsets[stream.id, direction] = offset + len(data) + missing
    if draw(st.booleans()):
        reason = draw(st.sampled_from(["end", "closed", "reset", "idle"]))
        items.extend(End(stream, now, reason) for stream in streams)
    return items


def recut(items: Iterable[Item], sizes: Sequence[int]) -> list[Item]:
    """Cut the same bytes into pieces of these sizes."""
    pieces: list[Item] = []
    for item in items:
        if not isinstance(item, Chunk) or not item.data:
            pieces.append(item)
            continue
        at = 0
        while at < len(item.data):
            size = sizes[len(pieces) % len(sizes)]
            piece = item.data[at : at + size]
            pieces.append(Chunk(item.stream, item.direction, item.ts_ns, item.offset + at, piece))
            at += size
    return pieces


def inspect(items: Iterable[Item], dissector: Dissector, forced: bool = False) -> Findings:
    """Return the findings of items; if `forced`, decode them as this protocol.

    Raises:
        AssertionError: A table's state is not the sum of its events' changes.
    """
    tables: list[GameTable] = []
    watched = copy(dissector)

    def table(info: TableInfo, ids: Ids, findings: Findings) -> GameTable:
        tables.append(dissector.table(info, ids, findings))
        return tables[-1]

    watched.table = table
    others = [other for other in BUILT_IN if other.protocol != dissector.protocol]
    ports = _ports(dissector) if forced else ()
    decode_as = {(str(dissector.transport), port): watched for port in ports}
    inspector = Inspector([*others, watched], Ids(), decode_as)
    for item in items:
        inspector.feed(item)
    inspector.finish()
    found = inspector.drain()
    check_no_faults(found)
    for each in (made.context for made in tables):
        state: State = {}
        for event in found.events:
            if event.table_id == each.info.id:
                apply(state, event.changes)
        apply(state, each.pending_changes)
        assert state == each.state, f"the changes lead to {state}, and the table has {each.state}"
    return found


# Assertions.


def comparable(found: Findings) -> list[Any]:
    """Return findings in comparable form."""
    return [
        [(m.stream.id, m.direction, m.ts_ns, m.name, m.fields, m.offset, m.length) for m in found.messages],
        [
            (d.stream.id, d.direction, d.severity, d.code, d.text, d.offset, d.length, d.message_id)
            for d in found.diagnostics
        ],
        [(event.kind, event.actor, event.data, event.changes) for event in found.events],
    ]


def check_no_faults(found: Findings) -> None:
    """Check that no dissector has raised an unforeseen exception, which the inspector reports."""
    for diagnostic in found.diagnostics:
        assert diagnostic.code != GAME_ENDED or INTERNAL_ERROR not in diagnostic.text, diagnostic.text


def check_accounted(items: Sequence[Item], found: Findings) -> None:
    """Check that each byte of a known protocol's server is in one message, or reported as cut off.

    Unreadable bytes have a diagnostic, or are next to a gap, which has one.
    """
    check_no_faults(found)
    come = [
        (item.stream.id, item.direction, item.offset, _size(item))
        for item in items
        if isinstance(item, Chunk)
    ]
    streams = {item.stream.id for item in items}
    pieces: list[Message | Diagnostic] = [*found.messages]
    pieces += [violation for violation in found.diagnostics if violation.code == CUT_OFF]
    comparable = [(p.stream.id, p.direction, p.offset, p.length) for p in pieces if p.stream.id in streams]
    if any(item.stream.transport == "udp" for item in items):
        # Each datagram separately, including empty ones.
        assert sorted(comparable) == sorted(come)
    else:
        assert _runs(comparable) == _runs(come)
    blamed = {d.message_id for d in found.diagnostics}
    edges = {*_edges(items)}
    for message in found.messages:
        if message.name == UNREADABLE and message.id not in blamed and message.stream.id in streams:
            begin: Place = (message.stream.id, message.direction, message.offset)
            end: Place = (message.stream.id, message.direction, message.offset + message.length)
            assert {begin, end} & edges


def check_anatomy(dissector: Dissector, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
    """Check the annotated bytes of a frame, and return them.

    The pieces of depth 0 cover the frame, and those inside a piece cover that piece, in order; their number
    is limited. A value is that of the decoded frame, and each field of a valid message has bytes.
    """
    pieces = dissector.codec.anatomy(frame, direction)
    carriers = dissector.encapsulation is not None
    assert len(pieces) <= MAX_PIECES + 1 + carriers, f"{len(pieces)} pieces of {frame[:40]!r}"
    # The end of each open piece, outermost first, and the position at which its next child must begin.
    opened, at = [len(frame)], 0
    for number, piece in enumerate(pieces):
        while piece.depth < len(opened) - 1:
            assert at == opened.pop(), f"{frame!r}: what is inside a piece is not all of it before {piece}"
        assert piece.depth == len(opened) - 1, f"{frame!r}: {piece} is inside of nothing"
        assert piece.offset == at, f"{frame!r}: {piece} does not begin at {at}"
        assert piece.length >= 0, f"{frame!r}: {piece}"
        assert piece.end <= opened[-1], f"{frame!r}: {piece} is not inside"
        if number + 1 < len(pieces) and pieces[number + 1].depth > piece.depth:
            opened.append(piece.end)
        else:
            at = piece.end
    assert all(at == end for end in opened), f"{frame!r}: the pieces end at {at}"
    decoded = dissector.codec.decode(frame, direction)
    for piece in pieces:
        if piece.value is not msgspec.UNSET:
            assert piece.path, f"{frame!r}: {piece} has a value and is no field"
            assert to_json(piece.value) == to_json(value_at(decoded.fields, piece.path)), (
                f"{frame!r}: {piece}"
            )
    if decoded.valid and all(piece.kind != "rest" for piece in pieces):
        found = {piece.path[0] for piece in pieces if piece.path and piece.kind != "unread"}
        assert found >= {*decoded.fields}, f"{frame!r}: only {found} have bytes, not {[*decoded.fields]}"
    return pieces


def check_in_order(items: Iterable[Item]) -> None:
    """Check that each direction's bytes and gaps are contiguous, and that nothing follows a stream's end."""
    ends: dict[tuple[int, Direction], int] = {}
    ended: set[int] = set()
    for item in items:
        assert item.stream.id not in ended
        if isinstance(item, End):
            ended.add(item.stream.id)
        elif isinstance(item, Chunk | Gap):
            key = (item.stream.id, item.direction)
            assert item.offset == ends.get(key, 0)
            ends[key] = item.offset + _size(item)


def check_consistent(dissector: Dissector, found: Findings) -> None:
    """Check the references of findings, the descriptions of events, and the size of the resulting state."""
    events = {event.id for event in found.events}
    games = {game.id for game in found.games}
    assert [event.id for event in found.events] == sorted(events)
    for message in found.messages:
        assert message.event_id is None or message.event_id in events
        assert message.game_id is None or message.game_id in games
    protocols = {info.id: info.protocol for info in found.tables}
    states: dict[int, State] = {}
    for event in found.events:
        assert protocols[event.table_id] == dissector.protocol
        assert set(event.data) >= set(dissector.grammar.events[event.kind].fields)
        dissector.presentation.describe(event)
        apply(states.setdefault(event.table_id, {}), event.changes)
    for state in states.values():
        # Little may be left of finished games.
        assert len(state.get("games", {})) <= 4
    for diagnostic in found.diagnostics:
        assert diagnostic.offset >= 0
        assert diagnostic.length >= 0


def _runs(pieces: Iterable[tuple[int, Direction, int, int]]) -> dict[tuple[int, Direction], list[list[int]]]:
    """Return the extents of each direction's bytes as [begin, end], with adjacent ones joined.

    Overlapping ones are not joined, so that duplicates are detected. But one may lie within another one: what
    carries a message in fragments may send its own between them.
    """
    runs: dict[tuple[int, Direction], list[list[int]]] = {}
    around = (0, 0)
    for stream, direction, offset, length in sorted(piece for piece in pieces if piece[3]):
        known = runs.setdefault((stream, direction), [])
        if known and around[0] < offset and offset + length <= around[1]:
            continue
        around = offset, offset + length
        if known and known[-1][1] == offset:
            known[-1][1] += length
        else:
            known.append([offset, offset + length])
    return runs


def _edges(items: Iterable[Item]) -> Iterable[Place]:
    """Yield both ends of each gap, and the end of each direction."""
    ends: dict[tuple[int, Direction], int] = {}
    for item in items:
        if isinstance(item, Chunk | Gap):
            end = item.offset + _size(item)
            ends[item.stream.id, item.direction] = end
            if isinstance(item, Gap):
                yield item.stream.id, item.direction, item.offset
                yield item.stream.id, item.direction, end
    for (stream, direction), end in ends.items():
        yield stream, direction, end


def _size(item: Chunk | Gap) -> int:
    return len(item.data) + item.missing if isinstance(item, Chunk) else item.length or 0


def _ports(dissector: Dissector) -> tuple[int, int]:
    """Return the server ports of generated traffic."""
    return min(dissector.default_ports, default=4710), 4711


def _fields(row: MessageType, values_of: ValuesOf) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the fields of a message of a row."""
    values: dict[str, st.SearchStrategy[Any]] = {}
    for field in row.fields:
        chosen = values_of(field.type)
        values[field.name] = _values(field.type) if chosen is None else chosen
    optional = [field.name for field in row.fields if field.optional]
    # Optional fields are left out from the end.
    kept = st.integers(0, len(optional)).map(lambda count: {*optional[:count]})
    return st.builds(
        lambda fields, kept: {key: fields[key] for key in fields if key not in optional or key in kept},
        st.fixed_dictionaries(values),
        kept,
    )


def _values(kind: FieldType) -> st.SearchStrategy[Any]:
    if isinstance(kind, Word):
        return st.sampled_from(kind.words)
    if isinstance(kind, Number):
        return st.integers(0, 10**15 - 1)
    if type(kind) is Text:
        return st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=40)
    raise TypeError(f"say in values_of what the values of {type(kind).__name__} are")


def _run(check: Callable[[st.DataObject], None], examples: int) -> None:
    """Run a check with data drawn by hypothesis."""
    # No deadline, as the time depends on the machine. Only the first of several failures is reported.
    options = settings(
        max_examples=examples,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow],
    )
    options(given(data=st.data())(lambda data: check(data)))()
