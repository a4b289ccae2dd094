"""Visibility: which events a player could observe on its own connections, and the state they add up to.

A player sees an event if a message on one of its own connections reports it, if it is the actor, or if it
follows from a reported one. Its state consists of the changes of these events alone. With a protocol file,
events and changes are those that follow from its own messages: see `OwnDissection`. For a player without a
known connection, such as a server's own player, or anyone in a capture that begins in the middle, only events
that are secret by their kind are hidden.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Set
from itertools import islice, takewhile

import msgspec

from kiebitz.dissectors.dissector import Dissector, address_of
from kiebitz.dissectors.game.identities import Claim, Identities, Player
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.game.visible_state import (
    broadcasts_only,
    initial_view,
    revealed_changes,
    visible_changes,
    visible_state,
)
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import PUBLIC, Change, Event, Game
from kiebitz.dissectors.presentation import as_seen_by
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.event_text import describe
from kiebitz.storage.read.own_dissection import OwnDissection
from kiebitz.storage.read.player_state import EventReports, PlayerState, RecordedIdentities
from kiebitz.storage.read.timeline import Timeline

_MAX_SEARCHED = 64
"""Maximum number of events to search for the one that an event follows from."""

_MAX_COPY_DELAY_NS = 3_000_000_000
"""Age (ns) beyond which no further message is expected to report an event to a player."""


_MAX_KEPT = 20_000
"""Maximum number of events as seen that are kept."""


class Inheritance(msgspec.Struct, frozen=True):
    """Knowledge of the players at the end of a database that another one continues.

    Attributes:
        claims: The assignments of names to connections.
        dissections: Those of players' own connections, by player and table.
        states: The last states in these.
    """

    claims: list[Claim]
    dissections: dict[tuple[str, int], OwnDissection]
    states: dict[tuple[str, int], State]


class Visibility:
    """The players of a session, and the events that each of them could observe.

    `before` is that of the database that this one continues.
    """

    def __init__(self, timeline: Timeline, before: Inheritance | None = None) -> None:
        self.timeline = timeline
        self._before = before or Inheritance([], {}, {})
        self._identities = RecordedIdentities(timeline, self._before.claims)
        self._upto = self._version = -1
        """Id of the last event, and the version of the timeline, when the players were last read."""
        self._views: dict[tuple[str, int], PlayerState] = {}
        self._reports = EventReports(timeline)
        self._seen: dict[tuple[str, int], Event | None] = {}
        """Events as players see them, of a session that has ended: before, further copies may arrive."""
        self._own = self._before.dissections
        self._current: set[tuple[str, int]] = set()
        """Keys of the dissections in `_own` that include everything recorded up to the event `_upto`."""

    def inheritance(self) -> Inheritance:
        """Return what the database that continues this one does not have."""
        self._upto = -1
        known = self._known()
        states = {
            (player, table_id): self.state(player, table_id, self.timeline.last_seq(table_id))
            for player, table_id in [*self._own]
            if player == PUBLIC or player in known.players()
        }
        return Inheritance(known.claims, self._own, states)

    @property
    def version(self) -> int:
        """A number that grows whenever connections or names of players changed."""
        return self._known().version

    def players(self) -> list[Player]:
        """Return the players with a connection, in the order in which they were first named."""
        return [*self._known().players().values()]

    def labels(self) -> list[str]:
        """Return the players' labels, sorted."""
        return sorted(self._known().players())

    def label_on(self, stream: int, label: str) -> str | None:
        """Return the present label of the player on a stream that has or had this one."""
        player = self._known().on_stream(stream, label)
        return player.label if player is not None else None

    def player(self, label: str) -> Player | None:
        """Return the player of this label, or the last one of this name; None without a known connection."""
        return self._known().find(label) if label != PUBLIC else None

    def streams_of(self, player: str) -> frozenset[int]:
        """Return the streams of a player; none without a known connection."""
        found = self.player(player)
        return found.streams if found is not None else frozenset()

    def tables_of(self, player: str | None) -> set[int]:
        """Return the tables with a connection of the player; all without a known connection."""
        streams = self.streams_of(player) if player is not None else ()
        servers = set(
            self.timeline.connection.execute(
                f"SELECT server, protocol FROM streams WHERE id IN ({', '.join('?' * len(streams))})",
                [*streams],
            )
        )
        return {
            table.id
            for table in self.timeline.tables()
            if not streams or (table.server, table.protocol) in servers
        }

    def games_of(self, player: str) -> set[int]:
        """Return the games with a message on a connection of the player."""
        streams = self.streams_of(player)
        rows = self.timeline.connection.execute(
            "SELECT DISTINCT game_id FROM messages"
            f" WHERE +stream_id IN ({', '.join('?' * len(streams))}) AND game_id IS NOT NULL",
            [*streams],
        )
        return {game for (game,) in rows}

    def _known(self) -> Identities:
        if self._upto < 0 or self._version != self.timeline.version:
            self._upto, self._version = self.timeline.last_event(), self.timeline.version
            self._current.clear()
            self._identities.refresh()
        return self._identities

    def seen(self, event: Event, player: str | None) -> Event | None:
        """Return an event as a player could observe it, None if it could not.

        Raises StorageError if its protocol is not installed.
        """
        if player is None:
            return event
        key = player, event.id
        if key in self._seen:
            return self._seen[key]
        seen = self._seen_now(event, player)
        if self.timeline.session.ended_ns is not None:
            if len(self._seen) >= _MAX_KEPT:
                self._seen.clear()
            self._seen[key] = seen
        return seen

    def _seen_now(self, event: Event, player: str) -> Event | None:
        dissector = self._dissector(event, player)
        if event.id > self._upto:
            self._upto = -1
        identities = self._known()
        if player == PUBLIC:
            return self._public(dissector, event)
        found = identities.find(player)
        if found is None:
            return dissector.identity.seen_by(event, player)
        names = identities.names_at(found, event.table_id, event.id)
        if dissector.identity.sees_own_dissection:
            own = self._own_dissection(dissector, found, event.table_id).event(event)
            return None if own is None else dissector.identity.seen_by(own, *names)
        streams = found.streams

        def knows(near: Event, told: Set[int]) -> bool:
            return not told.isdisjoint(streams) if told else near.actor in names

        seen = dissector.identity.seen_by(event, *names)
        if seen is None or not self._knows(dissector, event, knows):
            return None
        return self._as_copied(dissector, seen, streams)

    def _public(self, dissector: Dissector, event: Event) -> Event | None:
        """Return an event as all players may know it, None if some may not."""
        if dissector.identity.sees_own_dissection:
            own = self._public_dissection(dissector, event.table_id).event(event)
            return None if own is None else dissector.identity.seen_by(own)

        def knows(near: Event, told: Set[int]) -> bool:
            return self._is_told_to_all(dissector, near)

        seen = dissector.identity.seen_by(event)
        if seen is None or not self._knows(dissector, event, knows):
            return None
        return dissector.identity.as_public(seen, self._reports.of_server(event.id))

    def _is_told_to_all(self, dissector: Dissector, event: Event) -> bool:
        """Return True if the server tells all players of an event who are in its game."""
        kind = dissector.grammar.events[event.kind]
        if kind.secret or (kind.directed and event.data.get("to") is not None):
            return False
        reports = self._reports.of_server(event.id)
        receivers = {stream for _, stream, _ in reports}
        if kind.directed or kind.ending is not None:
            is_public = len(receivers) > 1
        else:
            rows = (dissector.grammar.row_of(name, "s2c", fields) for name, _, fields in reports)
            is_public = any(kind.public or (row is not None and row.broadcast) for row in rows)
        return is_public and self.others_present(event) <= receivers

    def others_present(self, event: Event) -> set[int]:
        """Return the streams, other than the actor's, that the server served in a game before and after."""
        streams = self._reports.served.streams_around(event)
        if streams and event.actor is not None:
            for player in self._known().players().values():
                if any(event.actor == name for claim in player.claims for _, name in claim.names):
                    streams -= player.streams
        return streams

    def _as_copied(self, dissector: Dissector, event: Event, streams: Set[int]) -> Event:
        """Return an event with values from a player's own copies, if copies differ."""
        differing = dissector.identity.differing_copies
        if not differing:
            return event
        copies = [
            fields
            for name, stream, fields in self._reports.of_server(event.id)
            if name in differing and stream in streams
        ]
        return dissector.identity.as_copied(event, copies)

    def _public_dissection(self, dissector: Dissector, table_id: int) -> OwnDissection:
        """Return the dissection of the broadcasts at a table."""
        key = PUBLIC, table_id
        if key not in self._current:
            timeline = self.timeline
            address = address_of(dissector.transport, timeline.table(table_id).server, [dissector])
            rows = timeline.connection.execute(
                "SELECT id FROM streams WHERE session_id = ? AND server IN (SELECT value FROM json_each(?))",
                (timeline.session.id, to_json(address.endpoints)),
            )
            streams = {stream for (stream,) in rows}
            own = self._own.get(key) or OwnDissection(broadcasts_only(dissector), streams)
            self._own[key] = own
            # Those that are new have new bytes only.
            own.streams = streams
            own.refresh(timeline)
            self._current.add(key)
        return self._own[key]

    def _own_dissection(self, dissector: Dissector, player: Player, table_id: int) -> OwnDissection:
        """Return the dissection of a player's connections at a table."""
        key = player.label, table_id
        streams = {claim.stream for claim in player.claims if claim.table == table_id}
        own = self._own.get(key)
        if own is None or own.streams != streams:
            own = self._own[key] = OwnDissection(dissector, streams)
            self._current.discard(key)
        if key not in self._current:
            own.refresh(self.timeline)
            self._current.add(key)
        return own

    def label(self, game: Game, player: str | None) -> str:
        """Return the label of a game as a player knows it."""
        dissector = dissector_of(game.protocol)
        if player is None or dissector is None or not dissector.identity.sees_own_dissection:
            return game.label
        found = self.player(player)
        if player == PUBLIC:
            own = self._public_dissection(dissector, game.table_id)
        elif found is not None:
            own = self._own_dissection(dissector, found, game.table_id)
        else:
            return game.label
        return own.labels.get(game.id, dissector.grammar.title)

    def changes(self, event: Event, player: str | None) -> list[Change]:
        """Return the changes of an event that the player sees, without those private to others."""
        if player is None:
            return event.changes
        names, found = self._names(event, player), self.player(player)
        dissector = dissector_of(self.timeline.table(event.table_id).protocol)
        if player == PUBLIC and dissector is not None:
            public = self.seen(event, PUBLIC)
            return [] if public is None else visible_changes(dissector, public.changes, ())
        if found is not None and dissector is not None:
            if dissector.identity.sees_own_dissection:
                own = self._own_dissection(dissector, found, event.table_id).event(event)
                if own is None:
                    return []
                event = own
            else:
                event = self._as_copied(dissector, event, found.streams)
        return visible_changes(dissector, event.changes, names)

    def revealed(self, event: Event, player: str | None) -> list[Change]:
        """Return the parts of the state that an event reports as a whole, without those private to others."""
        dissector = dissector_of(self.timeline.table(event.table_id).protocol)
        kind = dissector.grammar.events.get(event.kind) if dissector is not None else None
        # Compute the whole state only if needed.
        if player is None or dissector is None or kind is None or not kind.reveals:
            return []
        whole = self.timeline.passing_state(event.table_id, event.seq)
        return revealed_changes(dissector, event, whole, self._names(event, player))

    def _names(self, event: Event, player: str) -> Collection[str]:
        found = self.player(player)
        if player == PUBLIC:
            return ()
        return [player] if found is None else self._identities.names_at(found, event.table_id, event.id)

    def sentence(self, event: Event) -> str:
        """Describe an event, with its receiver if only one of several clients was informed."""
        protocol = self.timeline.table(event.table_id).protocol
        sentence = describe(protocol, event)
        receiver = self._only_receiver(protocol, event)
        return sentence if receiver is None else as_seen_by(receiver, sentence)

    def state(self, player: str | None, table_id: int, seq: int) -> State:
        """Return a table's state after its event `seq` as the player sees it."""
        if player is None:
            return self.timeline.state_at(table_id, seq)
        state: State = msgspec.json.decode(msgspec.json.encode(self.shared_state(player, table_id, seq)))
        return state

    def shared_state(self, player: str | None, table_id: int, seq: int) -> State:
        """Return such a state without a copy, valid until the next call: for going through a table."""
        if player is None:
            return self.timeline.passing_state(table_id, seq)
        found = self.player(player)
        if found is None and player != PUBLIC:
            dissector = dissector_of(self.timeline.table(table_id).protocol)
            return visible_state(dissector, self.timeline.state_at(table_id, seq), [player])
        key = player, table_id
        shape = [(claim.stream, tuple(claim.names)) for claim in found.claims] if found is not None else []
        view = self._views.get(key)
        if view is None or view.shape != shape:
            start, first = self._initial_state(found, table_id)
            view = self._views[key] = PlayerState(shape, first, start)
        whole = self.timeline.session.ended_ns is not None
        final_ns = None if whole else time.time_ns() - _MAX_COPY_DELAY_NS
        return view.at(self, player, table_id, seq, final_ns)

    def _initial_state(self, player: Player | None, table_id: int) -> tuple[State, int]:
        """Return the state before this database, if the player was present then, and its event's number.

        Without a player, it is the public state.
        """
        first = self.timeline.first_seq(table_id)
        claims = [claim for claim in player.claims if claim.table == table_id] if player is not None else []
        if not first or (player is not None and all(claim.names[0][0] for claim in claims)):
            return {}, first
        names = {claim.names[0][1] for claim in claims}
        dissector = dissector_of(self.timeline.table(table_id).protocol)
        if dissector is not None and dissector.identity.sees_own_dissection:
            # Others' values may be in the stored state.
            label = PUBLIC if player is None else player.label
            known = self._before.states.get((label, table_id), {})
            return msgspec.json.decode(msgspec.json.encode(known)), first
        return initial_view(dissector, self.timeline.state_at(table_id, first), names), first

    def _dissector(self, event: Event, player: str) -> Dissector:
        protocol = self.timeline.table(event.table_id).protocol
        dissector = dissector_of(protocol)
        if dissector is None:
            raise StorageError(f"the view of {player} cannot be determined: {not_installed(protocol)}")
        return dissector

    def _knows(self, dissector: Dissector, event: Event, knows: Callable[[Event, Set[int]], bool]) -> bool:
        """Return True if a viewer received an event, or one it follows from.

        `knows` returns whether the viewer received an event that these streams report.
        """
        told = self._reports.streams(event.id)
        if knows(event, told):
            return True
        follows = dissector.identity.implied_by(event)
        if told and follows is None:
            return False
        if follows is None:
            return self._accompanies_reported(dissector, event, knows)
        for near in islice(self.timeline.near(event, follows), _MAX_SEARCHED):
            if near.game_id != event.game_id:
                continue
            told = self._reports.streams(near.id)
            if knows(near, told):
                return True
            if told and dissector.identity.implied_by(near) != follows:
                return False
        return False

    def _accompanies_reported(
        self, dissector: Dissector, event: Event, knows: Callable[[Event, Set[int]], bool]
    ) -> bool:
        """Return True if an unreported event came from a message that a viewer received.

        Several messages may have the same time. The events of each follow one another, so the nearest
        reported one is of the same message.
        """
        side = dissector.identity.accompanies(event)
        near_events = self.timeline.near(event, side) if side is not None else iter(())
        for near in takewhile(lambda near: near.ts_ns == event.ts_ns, near_events):
            told = self._reports.streams(near.id)
            if told:
                return knows(near, told)
        return False

    def _only_receiver(self, protocol: str, event: Event) -> str | None:
        """Return the only receiver of a server's message if there were several clients, else None."""
        dissector = dissector_of(protocol)
        if dissector is None or event.actor is not None or not dissector.grammar.events[event.kind].directed:
            return None
        told = self._reports.streams(event.id)
        if len(told) != 1:
            return None
        (stream,) = told
        several = self.timeline.connection.execute(
            "SELECT 1 FROM streams AS one JOIN streams AS other"
            " ON other.session_id = one.session_id AND other.server = one.server AND other.id != one.id"
            " WHERE one.id = ? AND other.opened_ns <= ? AND coalesce(other.closed_ns, ?) >= ? LIMIT 1",
            (stream, event.ts_ns, event.ts_ns, event.ts_ns),
        ).fetchone()
        if several is None:
            return None
        return self._known().name_of(stream) or f"stream {stream}"
