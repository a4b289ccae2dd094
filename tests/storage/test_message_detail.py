from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspected_captures import CAPTURES
from session_factory import START_NS, Conversation, record
from strength import CAPTURES as CHOSEN
from strength import a_few, times

import kiebitz
from kiebitz.dissectors.game.state import apply
from kiebitz.dissectors.game.visible_state import visible_state
from kiebitz.dissectors.model import DIRECTIONS, Chunk, Direction, Item, Stream
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.database.schema import StorageError, create_tables
from kiebitz.storage.read.recorded_bytes import RecordedBytes, bytes_between
from kiebitz.storage.read.visibility import Visibility
from kiebitz.storage.session.message_detail import MAX_BYTES, MAX_COPIES, MessageDetail, MessageDetails

GAMES = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)
EVERY = 7


def looked_at(session: kiebitz.Session) -> list[kiebitz.Message]:
    malformed = {diagnostic.message for diagnostic in session.diagnostics()}
    every = EVERY if times(2) < 2 else 1
    return [said for said in session.messages() if said.id % every == 0 or said.id in malformed]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", a_few(GAMES, sorted(CHOSEN)[::2]))
def test_a_message_is_reported_as_the_listings_tell_it(name: str) -> None:
    with kiebitz.open(str(CAPTURES / name)) as session:
        timeline = session.timeline
        events = {event.id: event for event in session.events()}
        changes = {event.id: event.changes for event in timeline.events()}
        streams = {stream.id: stream for stream in session.streams()}
        diagnostics: dict[int, list[kiebitz.Diagnostic]] = {}
        for diagnostic in session.diagnostics():
            if diagnostic.message is not None:
                diagnostics.setdefault(diagnostic.message, []).append(diagnostic)
        copies: dict[tuple[int, str, Direction], list[kiebitz.Message]] = {}
        for said in session.messages():
            if said.event is not None:
                copies.setdefault((said.event, said.name, said.direction), []).append(said)
        full = MessageDetails(timeline)
        recorded = RecordedBytes(timeline.connection)
        for said in looked_at(session):
            told = full.message(said.id)
            assert told is not None
            assert told.message == said
            protocol = streams[said.stream].protocol
            assert told.protocol == protocol
            end = said.offset + min(said.length, MAX_BYTES)
            sent = recorded.between(said.stream, said.direction, said.offset, end)
            assert told.data == (sent[0].data if sent else b"")
            assert told.left_out == said.length - len(told.data)
            dissector = dissector_of(protocol or "")
            assert dissector is not None
            assert told.pieces == dissector.codec.anatomy(told.data, said.direction)
            row = dissector.codec.decode(told.data, said.direction).row
            if said.name == "unreadable":
                assert told.about is None
            elif row is not None and row.name == said.name:
                assert told.about is not None
                about = (told.about.notation, told.about.clause, told.about.deviation)
                assert about == (dissector.codec.notation(row), row.clause, row.deviation)
            else:
                assert told.left_out or said.fields == {}
            assert [
                (diagnostic.id, diagnostic.code, diagnostic.offset + said.offset, diagnostic.expected)
                for diagnostic in told.diagnostics
            ] == [
                (diagnostic.id, diagnostic.code, diagnostic.offset, diagnostic.expected)
                for diagnostic in diagnostics.get(said.id, [])
            ]
            if said.event is None:
                assert (told.event, told.changes, told.copies) == (None, (), ())
                continue
            assert told.event == events[said.event]
            assert [(list(change.path), change.value) for change in told.changes] == [
                (path, value) for path, value in changes[said.event]
            ]
            others = [copy for copy in copies[said.event, said.name, said.direction] if copy.id != said.id]
            assert told.copies_in_all == len(others)
            assert [(copy.id, copy.stream, copy.player) for copy in told.copies] == [
                (copy.id, copy.stream, copy.player) for copy in others[:MAX_COPIES]
            ]
            assert all(
                copy.seconds == pytest.approx(other.time - said.time, abs=1e-6)
                for copy, other in zip(told.copies, others, strict=False)
            )
            check_json(told)


def check_json(told: MessageDetail) -> None:
    """It turns to JSON as it is; what was not known before is left out there."""
    written = json.loads(msgspec.json.encode(told))
    assert written == json.loads(json.dumps(msgspec.to_builtins(told)))
    assert ["before" in change for change in written["changes"]] == [
        change.before is not msgspec.UNSET for change in told.changes
    ]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", a_few(GAMES, sorted(CHOSEN)[1::2]))
def test_a_player_sees_only_observable_events(name: str) -> None:
    dissector = dissector_of(name.partition("-")[0])
    with kiebitz.open(str(CAPTURES / name)) as session:
        timeline = session.timeline
        players = sorted({stream.player for stream in session.streams() if stream.player})[:4]
        seqs = {event.id: (event.table, event.seq) for event in session.events()}
        full, visibility = MessageDetails(timeline), Visibility(timeline)
        messages = looked_at(session)
        for player in players:
            known = {event.id: event for event in session.events(as_player=player)}
            streams = visibility.streams_of(player)
            for said in messages:
                told = full.message(said.id, player)
                if said.stream not in streams:
                    assert told is None
                    continue
                assert told is not None
                assert {copy.stream for copy in told.copies} <= streams
                assert {diagnostic.group for diagnostic in told.diagnostics} <= {"malformed", "network"}
                if said.event not in known:
                    assert (told.event, told.message.event, told.changes) == (None, None, ())
                    continue
                assert said.event is not None
                assert told.event == known[said.event]
                # With these changes, the state before is the state after, both as the player sees them.
                table, seq = seqs[said.event]
                before, after = (
                    visible_state(dissector, timeline.state_at(table, at), [player]) for at in (seq - 1, seq)
                )
                apply(before, [(list(change.path), change.value) for change in told.changes])
                # Catan tells others fewer points, as they do not see victory point cards.
                hidden = "points" if name.startswith("catan") else ""
                assert _seen(before, hidden) == _seen(after, hidden)


def _seen(state: Any, hidden: str) -> Any:
    """Return a state without this key, and without objects of which the player has no part."""
    if not isinstance(state, dict):
        return state
    inner = {key: _seen(value, hidden) for key, value in state.items() if key != hidden}
    return {key: value for key, value in inner.items() if key not in ("private", "accounts") or value != {}}


def test_a_player_receives_no_secret_of_another() -> None:
    with kiebitz.open(str(CAPTURES / "maexchen-head-tiny.pcap")) as session:
        full = MessageDetails(session.timeline)
        (rolled,) = [said for said in session.messages('msg == "ROLLED"') if said.player == "carl"][:1]
        told = full.message(rolled.id, "carl")
        assert told is not None
        assert {change.path[-1] for change in told.changes} >= {"carl"} or "carl" in str(told.changes)
        assert full.message(rolled.id, "alice") is None
        for said in session.messages():
            of_alice = full.message(said.id, "alice")
            if of_alice is not None and said.time <= rolled.time + 0.001:
                assert "3,3" not in str(of_alice.changes)


# Bytes.


@given(data=st.data())
def test_the_bytes_of_a_place_are_those_that_a_stream_has_there(data: st.DataObject) -> None:
    """Bisection finds the same as a search of the whole stream."""
    ends: dict[Direction, int] = {"c2s": 0, "s2c": 0}
    with closing(sqlite3.connect(":memory:")) as connection:
        create_tables(connection)
        for number in range(1, data.draw(st.integers(1, 30))):
            direction: Direction = data.draw(st.sampled_from(("c2s", "s2c", "s2c")))
            length = data.draw(st.one_of(st.none(), st.integers(0, 9)))
            is_gap = length is None or data.draw(st.integers(0, 5)) == 0
            at = ends[direction]
            sent = None if is_gap else bytes(range(at % 200, at % 200 + (length or 0)))
            row = (number, data.draw(st.sampled_from((1, 1, 2))), direction, START_NS, at, length, sent)
            connection.execute("INSERT INTO chunks VALUES (?,?,?,?,?,?,?)", row)
            if row[1] == 1:
                ends[direction] += length or 0
        for direction in DIRECTIONS:
            for _ in range(8):
                start = data.draw(st.integers(0, ends[direction] + 2))
                end = start + data.draw(st.integers(0, 40))
                found = bytes_between(connection, 1, direction, start, end)
                assert found == RecordedBytes(connection).between(1, direction, start, end)


def test_a_message_that_is_too_long_is_read_to_64_kib(tmp_path: Path) -> None:
    text = '{"Chatnachricht senden":{"Nachricht":"' + "x" * 100_000 + '"}}\n'
    stream = Stream(1, "tcp", "127.0.0.1:40000", "127.0.0.1:8080", START_NS)
    items: list[Item] = [Chunk(stream, "c2s", START_NS, 0, b'{"Hallo":{"Version":"x"}}\n')]
    items += [
        Chunk(stream, "c2s", START_NS + at, 26 + at, text[at : at + 9_000].encode())
        for at in range(0, len(text), 9_000)
    ]
    with kiebitz.open(record(tmp_path / "long.db", items)) as session:
        told = MessageDetails(session.timeline).message(2)
        assert told is not None
        assert told.message.name == "Chatnachricht senden"
        assert told.data == text.encode()[:MAX_BYTES]
        assert told.left_out == len(text) - MAX_BYTES
        assert [piece.kind for piece in told.pieces] == ["markup", "name", "unread"]
        assert told.about is not None
        assert told.about.notation == '{"Chatnachricht senden":{"Nachricht":…}}'


# Empty results.


def test_no_such_message(tmp_path: Path) -> None:
    database = tmp_path / "two.db"
    for number in (1, 2):
        record(database, Conversation(number=number).says(b"REGISTER;alice").hears(b"REGISTERED;0").items)
    with kiebitz.open(f"{database}:1") as first, kiebitz.open(f"{database}:2") as second:
        ids = [[said.id for said in session.messages()] for session in (first, second)]
        assert MessageDetails(first.timeline).message(ids[0][0]) is not None
        # It is another session's.
        assert MessageDetails(first.timeline).message(ids[1][0]) is None
        assert MessageDetails(second.timeline).message(99) is None
        assert MessageDetails(second.timeline).message(-1) is None


def test_a_protocol_that_is_not_installed(tmp_path: Path) -> None:
    items = Conversation().says(b"REGISTER;alice").hears(b"REGISTERED;0").items
    database = record(tmp_path / "plugin.db", items)
    with closing(sqlite3.connect(database)) as connection, connection:
        for table in ("streams", "tables", "games"):
            connection.execute(f"UPDATE {table} SET protocol = 'skat'")
    with kiebitz.open(database) as session:
        told = MessageDetails(session.timeline).message(1)
        assert told is not None
        assert (told.protocol, told.about, told.data) == ("skat", None, b"REGISTER;alice")
        assert [(piece.kind, piece.length) for piece in told.pieces] == [("unread", 14)]
        assert told.event is None or told.event.sentence.startswith(told.event.kind)
        with pytest.raises(StorageError, match="the view of alice cannot be determined"):
            MessageDetails(session.timeline).message(1, "alice")
