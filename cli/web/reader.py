"""A served session as one thread reads it: a connection of its own, and what it has learnt of the players.

SQLite's connections belong to a thread each. So who answers questions in several threads has a `Reader` in
each of them; where a recording is carried on in another database, all of them follow.
"""

from __future__ import annotations

import sqlite3
import time
from collections import OrderedDict
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape
from kiebitz.cli.spectator.view import Onlooker
from kiebitz.cli.web import records
from kiebitz.cli.web.access import Reach
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.game.identities import Claim
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import TableInfo
from kiebitz.services.damage import damaged_database
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.players import StreamNames, check_player
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.read.visibility import Visibility
from kiebitz.storage.session.message_detail import MessageDetails

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_MOST_ONLOOKERS = 50
"""So many players' views are kept at once."""

UNREADABLE = "this session cannot be read now"
"""What a player's link says of a failure that would name files of the server's machine."""

_LEARN_EVERY_S = 0.5
"""So old may be what is known of who sits at which connection."""


class NotThereError(KiebitzError):
    """What was asked for is not there; its sentence says what."""


class Served(msgspec.Struct):
    """A session that is served: where it is now, what it is called, and what is missing at its end.

    `damage` is a sentence once its database was found to be damaged.
    """

    number: int
    path: str
    session_id: int
    name: str
    lacks: str | None = None
    damage: str | None = None


def judged(served: Served, error: Exception) -> Exception:
    """Return the error, or a StorageError that names the damage. It may read all of the database."""
    if served.damage is None:
        served.damage = damaged_database([f"{served.path}:{served.session_id}"])
    return error if served.damage is None else StorageError(served.damage)


class Drawn(msgspec.Struct, frozen=True):
    """A picture and its fragments."""

    picture: records.Picture
    drawings: dict[Shape, Drawing]

    @property
    def names(self) -> set[str]:
        """The names of all its fragments."""
        return {name for drawing in self.drawings.values() for name in drawing.fragments}

    def fragments(self, wanted: Collection[str] | None = None) -> dict[str, str]:
        """Those of its fragments that are wanted, or all."""
        known = {name: part for drawing in self.drawings.values() for name, part in drawing.fragments.items()}
        return known if wanted is None else {name: known[name] for name in wanted if name in known}


class View(msgspec.Struct, frozen=True):
    """Over whose shoulder one looks, None for everybody's, and what one wants to see."""

    player: str | None = None
    wanted: Filter | None = None
    game: int | None = None


class Reader:
    """Reads a served session in the thread in which it was made. Raises StorageError, sqlite3.Error."""

    _visibility: Visibility | None
    _in_full: MessageDetails | None

    def __init__(self, served: Served, timeline: Timeline | None = None) -> None:
        """A reader with a connection of its own, or with that of a timeline."""
        self.served = served
        self._inherited: list[Claim] = []
        self.drawn: OrderedDict[tuple[int, int, str | None], Drawn] = OrderedDict()
        """The pictures drawn last, by table, event and player; see `picture_cache.drawn_at`."""
        self._open(timeline)

    def _open(self, timeline: Timeline | None = None) -> None:
        place = self.served.path, self.served.session_id
        self._visibility = None
        self.timeline = timeline or self._read(open_existing(place[0]), place[1])
        # Only now: where it cannot be opened, that is tried again at the next look.
        self._place = place
        self._cursor = self.timeline.connection.cursor()
        self._version = -1
        self._learnt_s = 0.0
        self._known_tables: list[int] = []
        self._names = StreamNames()
        self._players_version = 0
        self._named: int | None = None
        """With which version of the database they were learnt."""
        self._forget()

    def close(self) -> None:
        """Close its connection."""
        self.timeline.connection.close()

    def look(self) -> bool:
        """See what is new; whether anything is."""
        if (self.served.path, self.served.session_id) != self._place:
            # The next database has the same streams, and not all the events that name their players.
            self._inherited = self.visibility.claims
            self.close()
            self._open()
        # A cursor of its own: what bounds the statements of others looks at the file each time.
        (version,) = self._cursor.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self.timeline = self._read(self.timeline.connection, self._place[1])
            self._version = version
            self._is_stale = True
            if self._visibility is not None:
                self._visibility.update_timeline(self.timeline)
                if any(player is not None for player in self._onlookers):
                    self._meet_anew()
        elif not self._is_stale:
            return False
        now = time.monotonic()
        tables = [row.id for row in self.timeline.tables()]
        if tables != self._known_tables or now - self._learnt_s >= _LEARN_EVERY_S:
            self._known_tables = tables
            self._learnt_s = now
            self._forget()
        return True

    # What is known of it.

    def onlooker(self, player: str | None) -> Onlooker:
        """Shows its tables over a player's shoulder."""
        onlooker = self._onlookers.get(player)
        if onlooker is None:
            onlooker = self._onlookers[player] = Onlooker(self.timeline, player, self.visibility)
            if len(self._onlookers) > _MOST_ONLOOKERS:
                self._onlookers.popitem(last=False)
        self._onlookers.move_to_end(player)
        return onlooker

    @property
    def visibility(self) -> Visibility:
        """Who was told what."""
        if self._visibility is None:
            self._visibility = Visibility(self.timeline, self._inherited)
        return self._visibility

    @property
    def in_full(self) -> MessageDetails:
        """Tells messages in full."""
        if self._in_full is None:
            self._in_full = MessageDetails(self.timeline, self.visibility)
        return self._in_full

    @property
    def names(self) -> dict[int, str]:
        """What the clients of streams call themselves, as far as they have said it."""
        if self._named != self._version:
            # Once for each look: lists ask for each of their rows.
            self._named = self._version
            self._names.learn(self.timeline)
        return self._names.names

    def state(self, table_id: int, seq: int, player: str | None) -> State:
        """A table's state after its event `seq`, as far as a player sees it."""
        if player is None:
            return self.timeline.state_at(table_id, seq)
        return self.visibility.state(player, table_id, seq)

    def table(self, number: int, player: str | None = None) -> TableInfo:
        """Return a table of the session that a player sees. Raises NotThereError."""
        for row in self.tables(player):
            if row.id == number:
                return row
        raise NotThereError(f"there is no table {number} in this session")

    def tables(self, player: str | None = None) -> list[TableInfo]:
        """The tables that a player sees, oldest first."""
        tables = self.timeline.tables()
        if player is None:
            return tables
        known = self.visibility.tables_of(player)
        return [table for table in tables if table.id in known]

    def meet(self, player: str) -> None:
        """Raise NotThereError for a player whom the session does not have: it is not known what they know."""
        if player in self._met:
            return
        try:
            check_player(self.timeline, player)
        except StorageError as error:
            raise NotThereError(str(error)) from error
        self._met.add(player)

    def players(self) -> list[str]:
        """The players with a connection; where none is known, all that act."""
        return self.visibility.labels() or sorted(self.timeline.actors())

    def label(self, reach: Reach) -> str | None:
        """The player that a key shows here, by the name of today. Raises NotThereError."""
        if reach.player is None:
            return None
        label = None
        if reach.session == self.served.number:
            stream = self.timeline.numbers.row_id("streams", reach.stream)
            label = self.visibility.label_on(stream, reach.player)
        if label is None:
            raise NotThereError(f"there is no player {reach.player} in this session")
        return label

    def seats(self) -> list[Reach]:
        """What the link of each player with a connection shows."""
        numbers = self.timeline.numbers
        return [
            Reach(player.label, self.served.number, numbers.number("streams", player.claims[0].stream))
            for player in self.visibility.players()
        ]

    def _meet_anew(self) -> None:
        """Forget what players saw once a label may be another player's."""
        version = self.visibility.version
        if version != self._players_version:
            self._players_version = version
            self._onlookers.clear()
            self.drawn.clear()

    def _forget(self) -> None:
        """What is known of the players must be learnt anew, as there may be more of them."""
        self._is_stale = False
        self._onlookers: OrderedDict[str | None, Onlooker] = OrderedDict()
        self._in_full = None
        self._met: set[str] = set()
        self.drawn.clear()

    def _read(self, connection: sqlite3.Connection, number: int) -> Timeline:
        row = next((row for row in sessions(connection) if row.id == number), None)
        if row is None:
            raise StorageError(f"{self.served.path}: there is no session {number} in it any more")
        return Timeline(connection, row)
