"""Export of the page as one HTML file with its script and all data, for use without a server or network.

Its content security policy allows only the included script and style, by their digests.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
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
    event_records,
    message_records,
    seen_diagnostics,
    seen_events,
    seen_messages,
    stream_list,
)
from kiebitz.cli.web.page import joined_script, page_files
from kiebitz.cli.web.reader import Reader, View, render_table
from kiebitz.cli.web.routes import session_info, table_infos
from kiebitz.cli.web.sequence import dropped_messages
from kiebitz.cli.web.timeline_overview import timeline_overview
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import PUBLIC, TableInfo
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.storage.read.seek import seen_steps
from kiebitz.storage.session.marks import Mark, marks
from kiebitz.storage.session.message_detail import (
    BroadcastCopy,
    ChangeDetail,
    DiagnosticDetail,
    GrammarDescription,
    MessageDetail,
)
from kiebitz.storage.session.session import Event, Stream, project

MAX_EVENTS = 20_000
"""Maximum number of events in a file; of longer sessions it has the first ones."""

MAX_DETAILED_MESSAGES = 5_000
"""Maximum number of messages with their bytes."""

MAX_MESSAGES = 50_000
"""Maximum number of messages, and of diagnostics."""

MAX_PLAYERS = 8
"""Maximum number of players whose views are included; with more, only the full view is."""

_BATCH = 1000

_REPORTED_STEPS = 50
"""Number of steps between two reports of progress."""

_STYLES = '<link rel="stylesheet" href="style.css">', '<link rel="stylesheet" href="theme.css">'
_SCRIPT = '<script type="module" src="app.js"></script>'
_HEAD = "<head>"


class _Picture(msgspec.Struct):
    """A picture in the file: for each piece, the index of its fragment and the position."""

    seq: int
    title: str
    latest: str
    words: tuple[str, ...]
    wide: list[float]
    tall: list[float]
    closing: str | None


_Places = tuple[list[float], list[float]]
"""`wide` and `tall` of a picture."""


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


class _Table(msgspec.Struct):
    """A table in one view."""

    timeline: records.TimelineOverview
    events: list[Event]
    pictures: list[_Picture]


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

    `on_progress` receives the number of steps done, and their total: each message is listed, some are written
    in full, and each event is listed and drawn in each view. Raises StorageError, sqlite3.Error.
    """
    page = _PageBuilder(reader, player, on_progress).page()
    data = base64.b64encode(gzip.compress(msgspec.json.encode(page), 9, mtime=0)).decode()
    file.write(_document(page.session.name, data).encode())


class _PageBuilder:
    """Builder of the data; what views, pictures and messages share is stored once."""

    def __init__(self, reader: Reader, player: str | None, on_progress: Callable[[int, int], None]) -> None:
        self._reader = reader
        self._player = player
        self._on_progress = on_progress
        self._fragments: dict[str, int] = {}
        self._abouts: dict[GrammarDescription, int] = {}
        self._words: dict[str, int] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        self._drawn: dict[bytes, tuple[_Places, tuple[str, ...]]] = {}
        """Drawings by what is drawn: different players, and different rounds, often see the same."""
        self._done = 0
        self._left_out: list[str] = []
        self._tables = reader.tables(player)
        self._last = {table.id: self._last_of(table) for table in self._tables}

    def page(self) -> _Page:
        """Return the data."""
        reader, player = self._reader, self._player
        views = self._players()
        streams = stream_list(reader, player).streams
        known = streams if player != PUBLIC else stream_list(reader, None).streams
        listed = min(sum(stream.messages for stream in known), MAX_MESSAGES)
        events = sum(self._last[table.id] - reader.timeline.first_seq(table.id) for table in self._tables)
        # Each event is listed and drawn.
        self._in_all = listed + min(listed, MAX_DETAILED_MESSAGES) + len(views) * 2 * events
        messages = list(self._messages())
        self._done = listed
        shown = {name or "": self._view(name) for name in views}
        return _Page(
            kiebitz_version(),
            datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            player,
            session_info(reader.served, reader, False, player),
            [
                msgspec.structs.replace(info, last=self._last[info.table])
                for info in table_infos(reader, player)
            ],
            [name for name in views if name is not None],
            list(self._fragments),
            self._sizes,
            shown,
            messages,
            dict(self._in_full(messages)),
            list(self._abouts),
            list(self._words),
            list(self._diagnostics()),
            list(dropped_messages(reader, None, View(player))),
            streams,
            marks(reader.timeline) if player is None else [],
            "; ".join(self._left_out) or None,
        )

    def _players(self) -> list[str | None]:
        """Return the views that are included; None is the full view."""
        if self._player is not None:
            return [self._player]
        named = self._reader.players()
        if len(named) > MAX_PLAYERS:
            self._leave_out(f"the views of {len(named)} players are not in this file")
            return [None, PUBLIC]
        return [None, PUBLIC, *named]

    def _leave_out(self, sentence: str) -> None:
        self._left_out.append(sentence)

    def _last_of(self, table: TableInfo) -> int:
        timeline = self._reader.timeline
        first, last = timeline.first_seq(table.id), timeline.last_seq(table.id)
        most = first + MAX_EVENTS // len(self._tables)
        if last > most:
            self._leave_out(
                f"only the first {most - first} of {last - first} events at {table.server} are included"
            )
        return min(last, most)

    def _view(self, player: str | None) -> _View:
        tables = {str(table.id): self._table(table, player) for table in self._tables}
        if player is None:
            return _View(tables, None)
        numbers = self._reader.timeline.numbers
        own = sorted(self._reader.visibility.streams_of(player))
        shown = None
        if player == PUBLIC:
            found = islice(seen_messages(self._reader, None, View(player), 0, None), MAX_MESSAGES)
            shown = [numbers.number("messages", row.id) for row in found]
        return _View(tables, [numbers.number("streams", stream) for stream in own], shown)

    def _table(self, table: TableInfo, player: str | None) -> _Table:
        reader, last = self._reader, self._last[table.id]
        first = reader.timeline.first_seq(table.id)
        seen = seen_events(reader, table, View(player), first, last + 1)
        events = event_records(reader, seen, player)
        whole = timeline_overview(reader, table, player)
        self._count(last - first)
        pictures = list(self._pictures(table, player, first, {event.seq: event.sentence for event in events}))
        return _Table(_cut_timeline(whole, last), events, pictures)

    def _pictures(
        self, table: TableInfo, player: str | None, first: int, sentences: Mapping[int, str]
    ) -> Iterator[_Picture]:
        """Yield the pictures after the events that a player sees, whose sentences are given by number."""
        reader = self._reader
        rendered = render_table(reader, table, first, player)
        wide, tall = self._places(rendered.drawings)
        yield project(_Picture, rendered.picture, wide=wide, tall=tall)
        spectator_view = reader.spectator_view(player)
        recent = deque(reader.timeline.recent(table.id, first, RECENT), RECENT)
        for event, seen, state in seen_steps(
            reader.visibility, player, table.id, first, self._last[table.id]
        ):
            recent.append(event)
            self._count()
            if seen is not None:
                events = [*recent]
                places, words = self._drawing(table, spectator_view.scene_of(table.id, state, events))
                title, closing = spectator_view.title(table.id, events), spectator_view.closing(events)
                yield _Picture(event.seq, title, sentences[event.seq], words, *places, closing)

    def _drawing(self, table: TableInfo, scene: Scene) -> tuple[_Places, tuple[str, ...]]:
        """Return the positions of a drawing's pieces in each shape, and its words."""
        view = view_of(table.protocol, scene)
        key = drawing_key(view)
        found = self._drawn.get(key) if key is not None else None
        if found is None:
            drawings = draw_made(table.protocol, scene, view, SHAPES)
            found = self._places(drawings), drawings["wide"].words
            if key is not None:
                self._drawn[key] = found
        return found

    def _count(self, steps: int = 1) -> None:
        self._done += steps
        if steps != 1 or not self._done % _REPORTED_STEPS:
            self._on_progress(self._done, self._in_all)

    def _places(self, drawings: Mapping[Shape, Drawing]) -> _Places:
        places: list[list[float]] = []
        for shape in SHAPES:
            drawing = drawings[shape]
            self._sizes[shape] = (drawing.width, drawing.height)
            flat: list[float] = []
            for piece in drawing.pieces:
                flat += (_index_of(drawing.fragments[piece.name], self._fragments), piece.x, piece.y)
            places.append(flat)
        wide, tall = places
        return wide, tall

    def _messages(self) -> Iterator[records.Message]:
        found = islice(seen_messages(self._reader, None, View(self._player), 0, None), MAX_MESSAGES)
        while some := list(islice(found, _BATCH)):
            yield from message_records(self._reader, self._player, some)
            self._count(len(some))

    def _in_full(self, messages: list[records.Message]) -> Iterator[tuple[str, _Full]]:
        if len(messages) > MAX_DETAILED_MESSAGES:
            self._leave_out(
                f"only the first {MAX_DETAILED_MESSAGES} of {len(messages)} messages include their bytes"
            )
        for message in messages[:MAX_DETAILED_MESSAGES]:
            self._count()
            found = self._reader.in_full.message(message.id, self._player)
            if found is not None:
                yield str(message.number), self._packed(found)
        self._count(self._in_all - self._done)

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
        found = seen_diagnostics(self._reader, None, View(self._player), "note", 0, None)
        by_place = {(table.server, table.protocol): table for table in self._tables}
        for row in islice(found, MAX_MESSAGES):
            table = by_place.get((row.stream.server, row.stream.protocol or ""))
            yield diagnostic_record(self._reader, table, row)


_Item = TypeVar("_Item")


def _index_of(one: _Item, known: dict[_Item, int]) -> int:
    """Return the index of an item, added if it is new."""
    return known.setdefault(one, len(known))


def _cut_timeline(whole: records.TimelineOverview, last: int) -> records.TimelineOverview:
    """Return a timeline up to an event."""
    scores = whole.scores
    return msgspec.structs.replace(
        whole,
        last=last,
        times=[time for time in whole.times if time[0] <= last],
        games=[game for game in whole.games if game.seq <= last],
        diagnostics=[diagnostic for diagnostic in whole.diagnostics if diagnostic.seq <= last],
        scores=scores
        and msgspec.structs.replace(scores, steps=[step for step in scores.steps if step[0] <= last]),
    )


def _document(name: str, data: str) -> str:
    """Return the page with its style, script and data inline."""
    styles = page_files()["style.css"].decode() + page_style()
    script = joined_script()
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(styles)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    page = page_files()["index.html"].decode()
    for found, instead in (
        (_HEAD, f'{_HEAD}<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'),
        (_STYLES[0], f"<style>{styles}</style>"),
        (_STYLES[1], ""),
        # Only `</script>` could end an inline script; our modules do not contain it.
        (_SCRIPT, f'<script type="application/octet-stream" id="kiebitz-data">{data}</script>'),
        ("</body>", f'<script type="module">{script}</script></body>'),
        ("<title>Kiebitz</title>", f"<title>{escape(name)} · Kiebitz</title>"),
    ):
        assert page.count(found) == 1, found
        page = page.replace(found, instead)
    return page


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
