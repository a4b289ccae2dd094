"""Access to a served session from one thread, and the pictures of its tables, with caches of both.

SQLite connections belong to a thread, so each thread has its own `Reader`. If a recording continues in
another database, all of them switch to it.

Pictures of a table for the page, and a cache of the latest ones.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Collection

import msgspec

from kiebitz.cli.render.svg.svg_canvas import SHAPES, Drawing, Shape
from kiebitz.cli.spectator.view import SpectatorView
from kiebitz.cli.web import records
from kiebitz.cli.web.grants import Grant
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import PUBLIC, TableInfo
from kiebitz.dissectors.registry import Copies, using_copies
from kiebitz.services.damage import damaged_database
from kiebitz.services.sessions import session_at
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.players import check_player
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Inheritance
from kiebitz.storage.session.follower import SessionReader
from kiebitz.storage.session.message_detail import MessageDetails

_SORTED_CHARS = 100
"""Maximum number of characters of a text by which a list is sorted."""

_NUMBER = re.compile(r'[:\[," ]-?[0-9]+(?!\w)')
"""A number in JSON or a text, with the character before it. The digits of an identifier are none."""

_DIGITS = 20
"""Number of digits to which numbers are filled for sorting."""

_MAX_VIEWS = 50
"""Maximum number of players' views kept."""

UNREADABLE = "this session cannot be read now"
"""Error message for players: the original would contain paths of the server."""

_LEARN_EVERY_S = 0.5
"""Maximum age in seconds of what is known about the players of connections."""


class NotThereError(KiebitzError):
    """The requested item does not exist."""


class ServedSession(msgspec.Struct):
    """A served session: its current database, its name, and losses of its capture.

    `damage` is a sentence once the database was found damaged. `dissection` counts how often the session was
    dissected again; None if it never is. `copies` are the protocol files in its database, which are its own
    (`using_copies`). `is_found` is True for a session found in a watched folder: it may be a stranger's;
    `is_opened` for that of a file opened on the page, which only the full link shows.
    """

    number: int
    path: str
    session_id: int
    name: str
    lacks: str | None = None
    damage: str | None = None
    dissection: int | None = None
    copies: Copies = msgspec.field(default_factory=dict)
    is_found: bool = False
    is_opened: bool = False

    def replace(self, database: str, session_id: int, lacks: str | None) -> None:
        """Continue with the session dissected again."""
        self.lacks, self.damage = lacks, None
        self.session_id = session_id
        self.dissection = (self.dissection or 0) + 1
        self.path = database


def explain_error(served: ServedSession, error: Exception) -> Exception:
    """Return the error, or a StorageError that names the database's damage. May read the whole database."""
    if served.damage is None:
        with using_copies(served.copies):
            served.damage = damaged_database([f"{served.path}:{served.session_id}"])
    return error if served.damage is None else StorageError(served.damage)


class RenderedTable(msgspec.Struct, frozen=True):
    """A picture and its fragments."""

    picture: records.Picture
    drawings: dict[Shape, Drawing]

    @property
    def names(self) -> set[str]:
        """The names of all fragments."""
        return {name for drawing in self.drawings.values() for name in drawing.fragments}

    def fragments(self, wanted: Collection[str] | None = None) -> dict[str, str]:
        """Return the requested fragments, or all."""
        known = {name: part for drawing in self.drawings.values() for name, part in drawing.fragments.items()}
        return known if wanted is None else {name: known[name] for name in wanted if name in known}


class Reader(SessionReader):
    """A reader of a served session, for the thread that made it. Raises StorageError, sqlite3.Error."""

    def __init__(self, served: ServedSession, timeline: Timeline | None = None) -> None:
        """Open a connection of its own, or use that of a timeline."""
        self.served = served
        self.drawn: OrderedDict[tuple[int, int, str | None, int | None, str | None], RenderedTable] = (
            OrderedDict()
        )
        """The latest pictures by table, event, player, game and seat; see `render_table`."""
        self._begin(timeline or session_at(served.path, served.session_id))

    def _begin(self, timeline: Timeline, before: Inheritance | None = None) -> None:
        self.open(timeline, before)
        # For lists in the order of a text.
        timeline.connection.create_function("kiebitz_natural", 1, _natural_key, deterministic=True)
        self._place = self.served.path, self.served.session_id
        self._learnt_s = 0.0
        self._known_tables: list[int] = []
        self._players_version = 0
        self.in_full = MessageDetails(timeline, self.visibility)
        """Reader of messages in detail."""
        self._forget()

    def look(self) -> bool:
        """Refresh the reader; return True if anything has changed."""
        if (self.served.path, self.served.session_id) != self._place:
            # A database that cannot be opened is tried again.
            timeline = session_at(self.served.path, self.served.session_id)
            # The next database has the same streams, but not all events that name their players.
            before = self.visibility.inheritance() if self.served.dissection is None else None
            self.close()
            self._begin(timeline, before)
        if self.reread():
            self._is_stale = True
            has_views = any(player is not None for player in self._spectator_views)
            if has_views and (version := self.visibility.version) != self._players_version:
                # A name may belong to another player now.
                self._players_version = version
                self._spectator_views.clear()
                self.drawn.clear()
        elif not self._is_stale:
            return False
        now = time.monotonic()
        tables = [row.id for row in self.timeline.tables()]
        if tables != self._known_tables or now - self._learnt_s >= _LEARN_EVERY_S:
            self._known_tables = tables
            self._learnt_s = now
            self._forget()
        return True

    # Cached knowledge.

    def spectator_view(self, player: str | None) -> SpectatorView:
        """Return the view of a player (None: the full view)."""
        spectator_view = self._spectator_views.get(player)
        if spectator_view is None:
            spectator_view = self._spectator_views[player] = SpectatorView(
                self.timeline, player, self.visibility
            )
            if len(self._spectator_views) > _MAX_VIEWS:
                self._spectator_views.popitem(last=False)
        self._spectator_views.move_to_end(player)
        return spectator_view

    def table(self, number: int, player: str | None = None) -> TableInfo:
        """Return a table visible to a player. Raises NotThereError."""
        for row in self.tables(player):
            if row.id == number:
                return row
        raise NotThereError(f"there is no table {number} in this session")

    def check_player_known(self, player: str) -> None:
        """Raise NotThereError if the session has no such player."""
        if player in self._met:
            return
        try:
            check_player(self.timeline, player)
        except StorageError as error:
            raise NotThereError(str(error)) from error
        self._met.add(player)

    def players(self) -> list[str]:
        """Return the players with a connection; if none is known, all who act."""
        return self.visibility.labels() or sorted(self.timeline.actors())

    def label(self, grant: Grant) -> str | None:
        """Return the current name of a permission's player. Raises NotThereError."""
        if grant.player in (None, PUBLIC):
            return grant.player
        assert grant.player is not None
        label = None
        stream = self.timeline.numbers.row_id("streams", grant.stream)
        if (grant.session, grant.opened_ns) == (self.served.number, self._opened_ns(stream)):
            label = self.visibility.label_on(stream, grant.player)
        if label is None:
            raise NotThereError(f"there is no player {grant.player} in this session")
        return label

    def player_grants(self) -> list[Grant]:
        """Return the permissions of the links of all players with a connection."""
        numbers = self.timeline.numbers
        return [
            Grant(
                player.label,
                self.served.number,
                numbers.number("streams", player.claims[0].stream),
                opened_ns=self._opened_ns(player.claims[0].stream),
            )
            for player in self.visibility.players()
        ]

    def _opened_ns(self, stream: int) -> int:
        """Return when a stream was opened; 0 for an unknown one."""
        query = "SELECT opened_ns FROM streams WHERE id = ? AND session_id = ?"
        row = self.timeline.connection.execute(query, (stream, self.timeline.session.id)).fetchone()
        return row[0] if row is not None else 0

    def _forget(self) -> None:
        """Discard what depends on the known players."""
        self._is_stale = False
        self._spectator_views: OrderedDict[str | None, SpectatorView] = OrderedDict()
        self._met: set[str] = set()
        self.drawn.clear()


_MAX_PICTURES = 64
"""Number of pictures kept: the fragments of a picture are requested soon after it."""


def render_table(
    reader: Reader,
    table: TableInfo,
    seq: int,
    player: str | None,
    game: int | None = None,
    seat: str | None = None,
) -> RenderedTable:
    """Draw a table, or its game of this number, after an event in a player's view; the latest ones are kept.

    With a `seat`, the player of this name has the first seat, in a view that is not a player's.
    """
    place = (table.id, seq, player, game, seat)
    if (drawn := reader.drawn.get(place)) is not None:
        return drawn
    timeline, spectator_view = reader.timeline, reader.spectator_view(player)
    row_id = timeline.numbers.row_id_if_any("games", game)
    # A player's view computes its own state.
    state = timeline.state_at(table.id, seq) if player is None else {}
    games = spectator_view.games(table.id, seq, state)
    state, events = spectator_view.moment(table.id, seq, state, row_id)
    drawings = spectator_view.drawings(table.id, state, events, SHAPES, row_id, seat)
    wide, tall = (
        records.Places(drawing.width, drawing.height, drawing.pieces) for drawing in drawings.values()
    )
    words = drawings["wide"].words
    picture = records.Picture(
        table.id,
        seq,
        spectator_view.title(table.id, events, row_id),
        spectator_view.latest(events),
        words,
        wide,
        tall,
        spectator_view.closing(events),
        games=games,
    )
    drawn = reader.drawn[place] = RenderedTable(picture, drawings)
    if len(reader.drawn) > _MAX_PICTURES:
        reader.drawn.popitem(last=False)
    return drawn


def _natural_key(text: str | None) -> str:
    """Return a key that sorts texts with their numbers as numbers."""
    return _NUMBER.sub(_padded, (text or "")[:_SORTED_CHARS])


def _padded(number: re.Match[str]) -> str:
    before, digits = number[0][0], number[0][1:]
    return f"{before}-{10**_DIGITS + int(digits)}" if digits[0] == "-" else before + digits.zfill(_DIGITS)
