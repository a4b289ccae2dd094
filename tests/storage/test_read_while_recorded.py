"""A session is read while it is recorded: between any two statements of SQL another table may begin."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from session_factory import START_NS, Conversation
from strength import every

from kiebitz.cli.options.session import open_session
from kiebitz.cli.spectator.view import SpectatorView
from kiebitz.cli.web import lists
from kiebitz.cli.web.reader import Reader, ServedSession
from kiebitz.dissectors.filters import compile_filter
from kiebitz.dissectors.model import Item
from kiebitz.storage.derived.derived_session import derive_session
from kiebitz.storage.diff.compare import compare
from kiebitz.storage.export.export import FORMATS
from kiebitz.storage.read.conditions import field_catalog
from kiebitz.storage.read.message_queries import diagnostics
from kiebitz.storage.recording.recorder import Recorder
from kiebitz.storage.session.listing_records import summarize_diagnostics
from kiebitz.storage.session.message_detail import MessageDetails
from kiebitz.storage.session.session import Session

ALICE, BOB = "127.0.0.1:40001", "127.0.0.1:40002"


def played(number: int, client: str, server: str, name: str) -> Sequence[Item]:
    said = Conversation(client, server, number, START_NS + number)
    said.says(f"REGISTER;{name}".encode()).hears(b"REGISTERED;0").says(b"ROLL;no token").says(b"SEE;")
    return [*said.items]


def _in_full(session: Session) -> list[Any]:
    told = MessageDetails(session.timeline)
    return [told.message(message.id) for message in session.messages()]


def _pictures(session: Session) -> list[Any]:
    timeline = session.timeline
    spectator_view = SpectatorView(timeline, None)
    lines = [spectator_view.line(event) for event in timeline.events()]
    return lines + [spectator_view.picture(table.id, {}, []) for table in timeline.tables()]


def _culprits(session: Session) -> list[Any]:
    return [*summarize_diagnostics(session.timeline, diagnostics(session.timeline))]


def _exported(form: str) -> Callable[[Session], list[Any]]:
    def exported(session: Session) -> list[Any]:
        file = io.BytesIO()
        with session.timeline.as_of_now():
            FORMATS[form](session.timeline, file, None)
        return [file.getvalue()]

    return exported


def _differences(session: Session) -> list[Any]:
    found = compare(session.timeline, session.timeline)
    assert found.equal
    return found.tables


def _page(session: Session) -> list[Any]:
    assert session.path is not None
    reader = Reader(ServedSession(1, session.path, session.timeline.session.id, "game"), session.timeline)
    wanted = compile_filter("maexchen", field_catalog())
    of_alice = reader.rows("alice", wanted)
    messages = [*of_alice.messages(None, 0, None)]
    (first, *_) = reader.tables()
    events = [*of_alice.events(first.id, 0, None)]
    diagnostics = [*reader.rows(None).diagnostics(None, 0, None)]
    return [
        *lists.message_records(reader, None, messages),
        *lists.event_records(reader, events, None),
        *((diagnostic.id, diagnostic.stream.client) for diagnostic in diagnostics),
    ]


def _what_if(session: Session) -> list[Any]:
    with session.timeline.as_of_now():
        other = derive_session(session.timeline, (), lambda done, of: None)
        with closing(other.connection):
            found = compare(session.timeline, other)
    # The made-up rows lack the diagnostics that their bytes have.
    assert msgspec.structs.replace(found, diagnostics=[]).equal
    return found.tables


READINGS: dict[str, Callable[[Session], Sequence[Any]]] = {
    "events": lambda session: list(session.events()),
    "events of a player": lambda session: list(session.events(as_player="alice")),
    "messages": lambda session: list(session.messages()),
    "in full": _in_full,
    "streams": Session.streams,
    "games": lambda session: [session.games()],
    "state": Session.state,
    "diagnostics": lambda session: list(session.diagnostics()),
    "culprits": _culprits,
    "statistics": Session.statistics,
    "pictures": _pictures,
    "difference": _differences,
    "what if": _what_if,
    "page": _page,
    **{form: _exported(form) for form in FORMATS},
}


class Meanwhile:
    """A session of one table, which is read; at its reader's statement number `at` another table begins."""

    def __init__(self, path: Path, at: int) -> None:
        self.asked = 0
        self._at = at
        self._recorder = Recorder(str(path), "relay", "made up", started_ns=START_NS)
        self._record(played(1, ALICE, "127.0.0.1:9000", "alice"))
        self.session = Session(open_session(str(path)), str(path))
        self.session.timeline.connection.set_trace_callback(self._asks)

    def close(self) -> None:
        self.session.close()
        self._recorder.close()

    def _asks(self, statement: str) -> None:
        if self.asked == self._at:
            self._record(played(2, BOB, "127.0.0.1:9001", "bob"))
        self.asked += 1

    def _record(self, items: Sequence[Item]) -> None:
        self._recorder.record(items)
        self._recorder.commit()


@pytest.mark.parametrize("reading", every(8, READINGS))
def test_a_table_begins_between_any_two_statements(reading: str, tmp_path: Path) -> None:
    found: list[int] = []
    for at in count():
        with closing(Meanwhile(tmp_path / f"{at}.db", at)) as meanwhile:
            found.append(len(READINGS[reading](meanwhile.session)))
            if meanwhile.asked <= at:
                break
    # The last time nothing came meanwhile.
    assert len(found) > 1
    assert min(found) == found[-1] > 0
