"""Export of the page as one HTML file with its script and all data, for use without a server or network.

Its content security policy allows only the included script and style, by their digests.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import islice
from typing import Any, BinaryIO, TypeVar

import msgspec

from kiebitz.cli.render.svg import draw_made, drawing_key
from kiebitz.cli.render.svg.svg_canvas import SHAPES, Drawing, Shape
from kiebitz.cli.render.svg.theme import page_style
from kiebitz.cli.render.views import view_of
from kiebitz.cli.spectator.view import RECENT
from kiebitz.cli.web import records
from kiebitz.cli.web.lists import (
    diagnostic_record,
    message_records,
    stream_list,
)
from kiebitz.cli.web.page import altered_page, joined_script, page_files
from kiebitz.cli.web.reader import Reader, render_table
from kiebitz.cli.web.routes import session_info, table_infos
from kiebitz.cli.web.sequence import dropped_messages
from kiebitz.cli.web.timeline_overview import FollowedScores, timeline_overview
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import PUBLIC, Event, TableInfo
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.storage.read.alterations import AlteredMessages
from kiebitz.storage.read.seek import SeenTable
from kiebitz.storage.session.marks import Mark, marks
from kiebitz.storage.session.message_detail import (
    BroadcastCopy,
    ChangeDetail,
    DiagnosticDetail,
    GrammarDescription,
    MessageDetail,
)
from kiebitz.storage.session.session import Event as EventRecord
from kiebitz.storage.session.session import Stream, event_record, project

MAX_EVENTS = 20_000
"""Maximum number of events in a file; of longer sessions it has the first ones."""

MAX_DETAILED_MESSAGES = 5_000
"""Maximum number of messages with their bytes."""

MAX_MESSAGES = 50_000
"""Maximum number of messages, and of diagnostics."""

MAX_PLAYERS = 8
"""Maximum number of players whose views are included; with more, only the full view is."""

_BATCH = 1000

_REPORTED_STEPS = 200
"""Number of steps between two reports of progress."""

_EVENT_STEPS = 10
"""Time to list and draw an event in a view, relative to that to list a message."""

_DETAIL_STEPS = 40
"""Time to write a message in full, relative to that to list it."""

_PACKING_PART = 16
"""Time to make a page, relative to that to pack it."""

_SCRIPT = '<script type="module" src="app.js"></script>'


class _Drawing(msgspec.Struct):
    """A drawn table: for each piece of a drawing the index of its fragment and the position."""

    words: tuple[str, ...]
    wide: list[float]
    tall: list[float]


class _Picture(msgspec.Struct):
    """The picture before the first event; `drawing` is an index."""

    seq: int
    title: str
    latest: str
    drawing: int
    closing: str | None


class _Event(EventRecord, frozen=True):
    """An event with the title of the picture after it."""

    title: str


class _Full(msgspec.Struct, rename={"diagnostics": "flaws"}):
    """A message in detail, packed: shared values are indices into lists.

    `text` has one character per byte. A piece is offset, length, depth, kind, production, path and, if there
    is one, its value.
    """

    protocol: str | None
    about: int | None
    text: str
    left_out: int
    pieces: list[tuple[Any, ...]]
    diagnostics: tuple[DiagnosticDetail, ...]
    changes: tuple[ChangeDetail, ...]
    copies: tuple[BroadcastCopy, ...]
    copies_in_all: int


_Step = tuple[int, int, str | None, dict[str, str]]


class _Table(msgspec.Struct):
    """A table in one view.

    A step is a visible event: its index, that of the drawing after it, the `closing` of a picture, and the
    labels of several games at once by number.
    """

    timeline: records.TimelineOverview
    opening: _Picture
    steps: list[_Step]


class _View(msgspec.Struct):
    """The tables as one player or everyone sees them, and the visible streams (None: all).

    `messages` are the numbers of those in the public view; None in others.
    """

    tables: dict[str, _Table]
    streams: list[int] | None
    messages: list[int] | None = None


class _Page(msgspec.Struct):
    """The data of the page."""

    version: str
    written: str
    player: str | None
    session: records.SessionInfo
    tables: list[records.TableInfo]
    players: list[str]
    events: list[_Event]
    drawings: list[_Drawing]
    fragments: list[str]
    sizes: dict[str, tuple[int, int]]
    views: dict[str, _View]
    messages: list[records.Message]
    full: dict[str, _Full]
    abouts: list[GrammarDescription]
    words: list[str]
    diagnostics: list[records.Diagnostic]
    dropped: list[records.DroppedMessage]
    streams: list[Stream]
    marks: list[Mark]
    left_out: str | None


def write_html(
    reader: Reader, player: str | None, file: BinaryIO, on_progress: Callable[[int, int], None]
) -> None:
    """Write a session as a page, in full or as one player's view.

    `on_progress` receives the number of steps done, and their total. Raises StorageError, sqlite3.Error.
    """
    builder = _PageBuilder(reader, player, on_progress)
    page = builder.page()
    data = base64.b64encode(gzip.compress(msgspec.json.encode(page), 9, mtime=0)).decode()
    file.write(_document(page.session.name, data).encode())
    builder.finish()


class _PageBuilder:
    """Builder of the data; what views, pictures and messages share is stored once."""

    def __init__(self, reader: Reader, player: str | None, on_progress: Callable[[int, int], None]) -> None:
        self.reader = reader
        self._player = player
        self._on_progress = on_progress
        self._fragments: dict[str, int] = {}
        self._abouts: dict[GrammarDescription, int] = {}
        self._words: dict[str, int] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        self.events: list[_Event] = []
        self._drawings: list[_Drawing] = []
        self._drawn: dict[bytes, int] = {}
        """Indices of drawings by their keys: different players, and different rounds, often see the same."""
        self._altered = AlteredMessages(reader.timeline)
        self._done = 0
        self._left_out: list[str] = []
        self._tables = reader.tables(player)
        self._last = {table.id: self._last_of(table) for table in self._tables}

    def page(self) -> _Page:
        """Return the data."""
        reader, player = self.reader, self._player
        views = self._players()
        streams = stream_list(reader, player).streams
        known = streams if player != PUBLIC else stream_list(reader, None).streams
        listed = min(sum(stream.messages for stream in known), MAX_MESSAGES)
        events = sum(self._last[table.id] - reader.timeline.first_seq(table.id) for table in self._tables)
        in_full = min(listed, MAX_DETAILED_MESSAGES)
        steps = 2 * listed + _EVENT_STEPS * len(views) * events + _DETAIL_STEPS * in_full
        self._in_all = steps + steps // _PACKING_PART + 1
        messages = list(self._messages())
        self._count(listed - self._done)
        shown = {name or "": self._view(name, messages) for name in views}
        self._count(2 * listed - self._done)
        for table in self._tables:
            for name, followed in zip(views, self._followed(table, views), strict=True):
                shown[name or ""].tables[str(table.id)] = followed.table()
        return _Page(
            kiebitz_version(),
            datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            player,
            session_info(reader, False, player),
            [
                msgspec.structs.replace(info, last=self._last[info.table])
                for info in table_infos(reader, player)
            ],
            [name for name in views if name is not None],
            self.events,
            self._drawings,
            list(self._fragments),
            self._sizes,
            shown,
            messages,
            dict(self._in_full(messages)),
            list(self._abouts),
            list(self._words),
            list(self._diagnostics()),
            list(dropped_messages(reader, None, reader.rows(player))),
            streams,
            marks(reader.timeline) if player is None else [],
            "; ".join(self._left_out) or None,
        )

    def _players(self) -> list[str | None]:
        """Return the views that are included; None is the full view."""
        if self._player is not None:
            return [self._player]
        named = self.reader.players()
        if len(named) > MAX_PLAYERS:
            self._left_out.append(f"the views of {len(named)} players are not in this file")
            return [None, PUBLIC]
        return [None, PUBLIC, *named]

    def _last_of(self, table: TableInfo) -> int:
        timeline = self.reader.timeline
        first, last = timeline.first_seq(table.id), timeline.last_seq(table.id)
        most = first + MAX_EVENTS // len(self._tables)
        if last > most:
            self._left_out.append(
                f"only the first {most - first} of {last - first} events at {table.server} are included"
            )
        return min(last, most)

    def _view(self, player: str | None, listed: Sequence[records.Message]) -> _View:
        """Return a view without its tables."""
        if player is None:
            return _View({}, None)
        numbers = self.reader.timeline.numbers
        own = sorted(self.reader.visibility.streams_of(player))
        shown = None
        if player == PUBLIC:
            last = listed[-1].id if listed else 0
            shown = []
            for row in self.reader.rows(player).messages(None, 0, None):
                if row.id > last:
                    break
                shown.append(numbers.number("messages", row.id))
        return _View({}, [numbers.number("streams", stream) for stream in own], shown)

    def _followed(self, table: TableInfo, views: Sequence[str | None]) -> list[_FollowedTable]:
        """Return a table in each view; each event is read once, and added to all views before the next."""
        timeline, last = self.reader.timeline, self._last[table.id]
        first = timeline.first_seq(table.id)
        recent = deque(timeline.recent(table.id, first, RECENT), RECENT)
        followed = [_FollowedTable(self, table, player, recent, last) for player in views]
        for event in timeline.events_between(table.id, first, last):
            recent.append(event)
            events = [*recent]
            known: list[tuple[Event, int]] = []
            for view in followed:
                view.add(events, known)
                self._count(_EVENT_STEPS)
        return followed

    def drawing(self, table: TableInfo, scene: Scene) -> int:
        """Return the index of the drawing of a scene."""
        view = view_of(table.protocol, scene)
        key = drawing_key(view)
        found = self._drawn.get(key) if key is not None else None
        if found is None:
            found = self.add_drawing(draw_made(table.protocol, scene, view, SHAPES))
            if key is not None:
                self._drawn[key] = found
        return found

    def add_drawing(self, drawings: Mapping[Shape, Drawing]) -> int:
        """Add a drawing, and return its index."""
        places: list[list[float]] = []
        for shape in SHAPES:
            drawing = drawings[shape]
            self._sizes[shape] = (drawing.width, drawing.height)
            flat: list[float] = []
            for piece in drawing.pieces:
                flat += (_index_of(drawing.fragments[piece.name], self._fragments), piece.x, piece.y)
            places.append(flat)
        self._drawings.append(_Drawing(drawings["wide"].words, *places))
        return len(self._drawings) - 1

    def event(self, seen: Event, player: str | None, title: str) -> int:
        """Add an event as a player sees it, and return its index."""
        altered = None if player is not None else self._altered
        record = event_record(self.reader.visibility, seen, altered)
        self.events.append(project(_Event, record, title=title))
        return len(self.events) - 1

    def _count(self, steps: int) -> None:
        before, self._done = self._done, self._done + steps
        if before // _REPORTED_STEPS < self._done // _REPORTED_STEPS:
            self._on_progress(self._done, self._in_all)

    def finish(self) -> None:
        """Report that all steps are done."""
        self._on_progress(self._in_all, self._in_all)

    def _messages(self) -> Iterator[records.Message]:
        found = islice(self.reader.rows(self._player).messages(None, 0, None), MAX_MESSAGES)
        while some := list(islice(found, _BATCH)):
            yield from message_records(self.reader, self._player, some)
            self._count(len(some))

    def _in_full(self, messages: list[records.Message]) -> Iterator[tuple[str, _Full]]:
        if len(messages) > MAX_DETAILED_MESSAGES:
            self._left_out.append(
                f"only the first {MAX_DETAILED_MESSAGES} of {len(messages)} messages include their bytes"
            )
        for message in messages[:MAX_DETAILED_MESSAGES]:
            self._count(_DETAIL_STEPS)
            found = self.reader.in_full.message(message.id, self._player)
            if found is not None:
                yield str(message.number), self._packed(found)

    def _packed(self, found: MessageDetail) -> _Full:
        pieces: list[tuple[Any, ...]] = []
        for piece in found.pieces:
            words = (_index_of(piece.kind, self._words), _index_of(piece.production, self._words))
            value = () if piece.value is msgspec.UNSET else (piece.value,)
            pieces.append((piece.offset, piece.length, piece.depth, *words, piece.path, *value))
        return project(
            _Full,
            found,
            about=_index_of(found.about, self._abouts) if found.about is not None else None,
            text=found.data.decode("latin-1"),
            pieces=pieces,
        )

    def _diagnostics(self) -> Iterator[records.Diagnostic]:
        found = self.reader.rows(self._player).diagnostics(None, 0, None)
        by_place = {(table.server, table.protocol): table for table in self._tables}
        for row in islice(found, MAX_MESSAGES):
            table = by_place.get((row.stream.server, row.stream.protocol or ""))
            yield diagnostic_record(self.reader, table, row)


class _FollowedTable:
    """A table in one view, followed from event to event up to number `last`.

    `recent` are the latest events before the first one.
    """

    def __init__(
        self, page: _PageBuilder, table: TableInfo, player: str | None, recent: Iterable[Event], last: int
    ) -> None:
        reader = page.reader
        first = reader.timeline.first_seq(table.id)
        self._page, self._table, self._player = page, table, player
        self._spectator_view = reader.spectator_view(player)
        self._seen_table = SeenTable(reader.visibility, player, table.id, first)
        self._recent = deque(map(self._spectator_view.seen, recent), RECENT)
        self._scores = FollowedScores(table.protocol, last)
        rendered = render_table(reader, table, first, player)
        drawing = page.add_drawing(rendered.drawings)
        self._opening = project(_Picture, rendered.picture, drawing=drawing)
        self._steps: list[_Step] = []

    def add(self, events: Sequence[Event], known: list[tuple[Event, int]]) -> None:
        """Add the last of the latest events; `known` are those that other views have of it, with indices."""
        event = events[-1]
        seen = self._seen_table.step(event)
        self._recent.append(seen)
        if seen is None:
            return
        view, page, table = self._spectator_view, self._page, self._table
        index = next((index for one, index in known if one is seen or one == seen), None)
        if index is None:
            index = page.event(seen, self._player, view.title(table.id, events))
            if page.events[index].altered is None:
                known.append((seen, index))
        self._scores.add(event.seq, self._seen_table.state)
        shown = [one for one in self._recent if one is not None]
        scene = view.scene_of(table.id, self._seen_table.state_with_last_game(), shown)
        games = view.games_in(self._seen_table.state)
        self._steps.append((index, page.drawing(table, scene), view.closing(events), games))

    def table(self) -> _Table:
        """Return the table in this view."""
        timeline = timeline_overview(self._page.reader, self._table, self._player, self._scores)
        return _Table(timeline, self._opening, self._steps)


_Item = TypeVar("_Item")


def _index_of(one: _Item, known: dict[_Item, int]) -> int:
    """Return the index of an item, added if it is new."""
    return known.setdefault(one, len(known))


def _document(name: str, data: str) -> str:
    """Return the page with its style, script and data inline."""
    styles = page_files()["style.css"].decode() + page_style()
    script = joined_script()
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(styles)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    changes = (
        ("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'),
        ('<link rel="stylesheet" href="style.css">', f"<style>{styles}</style>"),
        ('<link rel="stylesheet" href="theme.css">', ""),
        # Only `</script>` could end an inline script; our modules do not contain it.
        (_SCRIPT, f'<script type="application/octet-stream" id="kiebitz-data">{data}</script>'),
        ("</body>", f'<script type="module">{script}</script></body>'),
        ("<title>Kiebitz</title>", f"<title>{escape(name)} · Kiebitz</title>"),
    )
    return altered_page(changes)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
