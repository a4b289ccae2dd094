"""The page as one file: its modules joined, and all that it would ask a server for.

It is opened from a disk, without a network. Its policy lets only the script and the style run that are in it,
by their digests.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from html import escape
from itertools import islice
from typing import Any, BinaryIO, TypeVar

import msgspec

from kiebitz.cli.render.svg.theme import page_style
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
from kiebitz.cli.web.picture_cache import draw
from kiebitz.cli.web.reader import Drawn, Reader, View
from kiebitz.cli.web.routes import session_info, table_infos
from kiebitz.cli.web.timeline_overview import course
from kiebitz.dissectors.game.state import apply
from kiebitz.dissectors.model import TableInfo
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.storage.session.message_detail import (
    BroadcastCopy,
    ChangeDetail,
    DiagnosticDetail,
    GrammarDescription,
    MessageDetail,
)
from kiebitz.storage.session.session import Stream, project

MOST_EVENTS = 20_000
"""Of a longer session only the first events are in a file, and what was said until then."""

MOST_IN_FULL = 5_000
"""Of so many messages their bytes are in the file."""

MOST_MESSAGES = 50_000
"""So many messages, and diagnostics, are listed."""

MOST_PLAYERS = 8
"""Where more play, the file shows everybody's view alone."""

_AT_ONCE = 1000

_STYLES = '<link rel="stylesheet" href="style.css">', '<link rel="stylesheet" href="theme.css">'
_SCRIPT = '<script type="module" src="app.js"></script>'
_HEAD = "<head>"


class _Picture(msgspec.Struct):
    """A picture of the file: each piece is a fragment's place in the list of all, and where it stands."""

    seq: int
    title: str
    latest: str
    words: tuple[str, ...]
    wide: list[float]
    tall: list[float]


class _Full(msgspec.Struct):
    """A message in full, packed: what many have in common is named by its place in a list.

    `text` has a character for each byte. A piece is offset, length, depth, kind, production, path, and the
    value if there is one.
    """

    protocol: str | None
    about: int | None
    text: str
    left_out: int
    pieces: list[tuple[Any, ...]]
    flaws: tuple[DiagnosticDetail, ...]
    changes: tuple[ChangeDetail, ...]
    copies: tuple[BroadcastCopy, ...]
    copies_in_all: int


class _Table(msgspec.Struct):
    """A table as one player, or everybody, may see it."""

    timeline: records.Course
    events: list[records.Event]
    pictures: list[_Picture]


class _View(msgspec.Struct):
    """All tables as one player, or everybody, may see them, and on which streams, None for all."""

    tables: dict[str, _Table]
    streams: list[int] | None


class _Page(msgspec.Struct):
    """What the page asks for."""

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
    streams: list[Stream]
    left_out: str | None


def write_html(
    reader: Reader, player: str | None, file: BinaryIO, on_progress: Callable[[int, int], None]
) -> None:
    """Write a session as a page: all that may be seen, or only what a player could know.

    `on_progress` is told how many pictures are drawn, and of how many. Raises StorageError, sqlite3.Error.
    """
    page = _Gathering(reader, player, on_progress).page()
    data = base64.b64encode(gzip.compress(msgspec.json.encode(page), 9, mtime=0)).decode()
    file.write(_document(page.session.name, data).encode())


class _Gathering:
    """Gathers what the file holds; what views, pictures and messages share is kept once."""

    def __init__(self, reader: Reader, player: str | None, on_progress: Callable[[int, int], None]) -> None:
        self._reader = reader
        self._player = player
        self._on_progress = on_progress
        self._fragments: dict[str, int] = {}
        self._abouts: dict[GrammarDescription, int] = {}
        self._words: dict[str, int] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        self._drawn = 0
        self._left_out: list[str] = []
        self._tables = reader.tables(player)
        self._last = {table.id: self._last_of(table) for table in self._tables}

    def page(self) -> _Page:
        """All of it."""
        reader, player = self._reader, self._player
        views = self._players()
        self._in_all = len(views) * sum(
            self._last[table.id] - reader.timeline.first_seq(table.id) + 1 for table in self._tables
        )
        shown = {name or "": self._view(name) for name in views}
        messages = list(self._messages())
        return _Page(
            kiebitz_version(),
            datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            player,
            session_info(reader.served, reader, False, player),
            [self._cut(info) for info in table_infos(reader, player)],
            [name for name in views if name is not None],
            list(self._fragments),
            self._sizes,
            shown,
            messages,
            dict(self._in_full(messages)),
            list(self._abouts),
            list(self._words),
            list(self._diagnostics()),
            stream_list(reader, player).streams,
            "; ".join(self._left_out) or None,
        )

    def _players(self) -> list[str | None]:
        """Whose views are in the file."""
        if self._player is not None:
            return [self._player]
        named = self._reader.players()
        if len(named) > MOST_PLAYERS:
            self._leave_out(f"the views of {len(named)} players are not in this file")
            return [None]
        return [None, *named]

    def _leave_out(self, sentence: str) -> None:
        self._left_out.append(sentence)

    def _last_of(self, table: TableInfo) -> int:
        timeline = self._reader.timeline
        first, last = timeline.first_seq(table.id), timeline.last_seq(table.id)
        most = first + MOST_EVENTS // len(self._tables)
        if last > most:
            self._leave_out(f"of {last - first} events at {table.server} the first {most - first} are here")
        return min(last, most)

    def _cut(self, info: records.TableInfo) -> records.TableInfo:
        return msgspec.structs.replace(info, last=self._last[info.table])

    def _view(self, player: str | None) -> _View:
        tables = {str(table.id): self._table(table, player) for table in self._tables}
        if player is None:
            return _View(tables, None)
        numbers = self._reader.timeline.numbers
        own = sorted(self._reader.visibility.streams_of(player))
        return _View(tables, [numbers.number("streams", stream) for stream in own])

    def _table(self, table: TableInfo, player: str | None) -> _Table:
        reader, last = self._reader, self._last[table.id]
        first = reader.timeline.first_seq(table.id)
        seen = seen_events(reader, table, View(player), first, last + 1)
        events = event_records(reader, seen, player)
        whole = course(reader, table, player)
        return _Table(_cut_course(whole, last), events, list(self._pictures(table, player, first, last)))

    def _pictures(self, table: TableInfo, player: str | None, first: int, last: int) -> Iterator[_Picture]:
        reader = self._reader
        state = reader.timeline.state_at(table.id, first)
        yield self._picture(draw(reader, table, first, player, state))
        onlooker = reader.onlooker(player)
        for event in reader.timeline.events_between(table.id, first, last):
            apply(state, event.changes)
            if onlooker.may_see(event):
                yield self._picture(draw(reader, table, event.seq, player, state))

    def _picture(self, drawn: Drawn) -> _Picture:
        self._drawn += 1
        self._on_progress(self._drawn, self._in_all)
        picture = drawn.picture
        pieces: dict[str, list[float]] = {}
        for shape, drawing in drawn.drawings.items():
            self._sizes[shape] = (drawing.width, drawing.height)
            flat: list[float] = []
            pieces[shape] = flat
            for name, x, y in map(msgspec.structs.astuple, drawing.pieces):
                flat += (_place(drawing.fragments[name], self._fragments), x, y)
        return project(_Picture, picture, **pieces)

    def _messages(self) -> Iterator[records.Message]:
        found = islice(seen_messages(self._reader, None, View(self._player), 0, None), MOST_MESSAGES)
        while some := list(islice(found, _AT_ONCE)):
            yield from message_records(self._reader, self._player, some)

    def _in_full(self, messages: list[records.Message]) -> Iterator[tuple[str, _Full]]:
        if len(messages) > MOST_IN_FULL:
            self._leave_out(f"of {len(messages)} messages the first {MOST_IN_FULL} have their bytes here")
        for message in messages[:MOST_IN_FULL]:
            found = self._reader.in_full.message(message.id, self._player)
            if found is not None:
                yield str(message.number), self._packed(found)

    def _packed(self, found: MessageDetail) -> _Full:
        pieces: list[tuple[Any, ...]] = []
        for piece in found.pieces:
            words = (_place(piece.kind, self._words), _place(piece.production, self._words))
            value = () if piece.value is msgspec.UNSET else (piece.value,)
            pieces.append((piece.offset, piece.length, piece.depth, *words, piece.path, *value))
        return project(
            _Full,
            found,
            about=_place(found.about, self._abouts) if found.about is not None else None,
            text=found.data.decode("latin-1"),
            pieces=pieces,
        )

    def _diagnostics(self) -> Iterator[records.Diagnostic]:
        found = seen_diagnostics(self._reader, None, View(self._player), "note", 0, None)
        by_place = {(table.server, table.protocol): table for table in self._tables}
        for row in islice(found, MOST_MESSAGES):
            table = by_place.get((row.stream.server, row.stream.protocol or ""))
            yield diagnostic_record(self._reader, table, row)


_Each = TypeVar("_Each")


def _place(one: _Each, known: dict[_Each, int]) -> int:
    """The place of something in the list of all that are known; it is known from here on."""
    return known.setdefault(one, len(known))


def _cut_course(whole: records.Course, last: int) -> records.Course:
    """What a course says up to an event."""
    scores = whole.scores
    return msgspec.structs.replace(
        whole,
        last=last,
        times=[time for time in whole.times if time[0] <= last],
        games=[game for game in whole.games if game.seq <= last],
        flaws=[flaw for flaw in whole.flaws if flaw.seq <= last],
        scores=scores
        and msgspec.structs.replace(scores, steps=[step for step in scores.steps if step[0] <= last]),
    )


def _document(name: str, data: str) -> str:
    """The page with its style, its script and its data in it."""
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
        # Inside a module nothing can end the script but this; the modules themselves are ours.
        (_SCRIPT, f'<script type="application/octet-stream" id="kiebitz-data">{data}</script>'),
        ("</body>", f'<script type="module">{script}</script></body>'),
        ("<title>Kiebitz</title>", f"<title>{escape(name)} · Kiebitz</title>"),
    ):
        assert page.count(found) == 1, found
        page = page.replace(found, instead)
    return page


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
