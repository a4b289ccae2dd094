"""Who took part in the games of a cell: from the recording, for each client and for each game.

A game counts if all clients of the cell played it to its end. The protocol says which events end a game,
cancel it, or are losses for a missing answer (`EventKind`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import UNREADABLE, MessageType
from kiebitz.dissectors.model import Game
from kiebitz.dissectors.protocol_file.expressions import Scope, compile_expression
from kiebitz.services.interop.results import ClientRecord
from kiebitz.storage.read.message_queries import messages
from kiebitz.storage.session.session import Session, Stream

_ANSWER_NS = 10**9
"""Nanoseconds that a client may take to answer."""


class Client(msgspec.Struct, frozen=True):
    """A client of a cell: its label, the name of its program, and its observed ports on this machine."""

    label: str
    program: str
    ports: frozenset[int]


class Presence(msgspec.Struct):
    """The part of one client in the recording.

    Attributes:
        client: The client.
        streams: Its streams.
        joined: Ids of the games in which it took part.
        moves: Number of its messages in games, without joining and heartbeats.
        sent: Number of its messages.
        games: Number of games that were played to the end, in which it took part until then.
        ignored: Questions of the server that it has never answered, with their number.
    """

    client: Client
    streams: list[Stream]
    joined: set[int] = msgspec.field(default_factory=set)
    moves: int = 0
    sent: int = 0
    games: int = 0
    ignored: Mapping[str, int] = msgspec.field(default_factory=dict)

    def record(self) -> ClientRecord:
        """Return what the report shows."""
        return ClientRecord(self.client.label, self.client.program, bool(self.joined), self.moves, self.games)


class Participation:
    """The games and clients of a recording up to a time in nanoseconds since 1970.

    Attributes:
        played: Number of games that were played to the end with all clients.
        partly: Number of games that were played to the end without one of the clients.
        cancelled: Number of cancelled games.
        timed_out: Number of games that were lost for a missing answer.
        begun: Number of games that have begun.
        clients: The clients, in the order of their starts.
    """

    def __init__(
        self, session: Session, dissector: Dissector, clients: Sequence[Client], until_ns: int
    ) -> None:
        self._session = session
        self._dissector = dissector
        self._until_ns = until_ns
        self.clients = [Presence(client, []) for client in clients]
        self.played = self.partly = self.cancelled = self.timed_out = 0
        self._of_stream: dict[int, Presence] = {}
        self._assign_streams()
        games = [game for game in session.timeline.games() if game.started_ns <= until_ns]
        self.begun = len(games)
        self._read_messages(games)
        self._count(games)

    def has_completed(self, games: int) -> bool:
        """Return True if so many games were played to the end with all clients, each of which plays.

        A client that has lost other games, as it never answers a question, does not.
        """
        return self.played >= games and all(
            each.moves and not (self.timed_out and each.ignored) for each in self.clients
        )

    @property
    def not_counted(self) -> str:
        """The games that do not count, in words; empty if there are none."""
        words = [
            (self.cancelled, "cancelled"),
            (self.timed_out, "lost only for a missing answer"),
            (self.partly, "without all clients"),
        ]
        return ", ".join(f"{count:,} {text}" for count, text in words if count)

    def on_stream(self, number: int) -> Client | None:
        """Return the client of a stream by the stream's number; None if unknown."""
        found = self._of_stream.get(self._session.timeline.numbers.row_id("streams", number))
        return None if found is None else found.client

    def has_left(self, client: Presence) -> bool:
        """Return True if a client has closed all its connections, or the server has."""
        until = self._session.timeline.seconds(self._until_ns)
        return bool(client.streams) and all(
            stream.close_reason in ("closed", "reset") and stream.closed is not None and stream.closed < until
            for stream in client.streams
        )

    def with_name(self, player: str) -> Client | None:
        """Return the client whose player has logged in with a name; None if unknown."""
        streams = (stream for stream in self._session.streams() if stream.player == player)
        return next((client for stream in streams if (client := self.on_stream(stream.number))), None)

    def _assign_streams(self) -> None:
        """Find the client of each stream: by its port, its player's name, or as the only program left."""
        left = []
        for stream in self._session.streams():
            port = int(stream.client.rpartition(":")[2])
            by_port = [each for each in self.clients if port in each.client.ports]
            by_name = [each for each in self.clients if stream.player == each.client.label]
            found = next(iter(by_port or by_name), None)
            if found is None:
                left.append(stream)
            else:
                self._assign(stream, found)
        unseen = [each for each in self.clients if not each.streams]
        if len({each.client.program for each in unseen}) == 1:
            for stream, found in zip(left, unseen, strict=False):
                self._assign(stream, found)

    def _assign(self, stream: Stream, client: Presence) -> None:
        client.streams.append(stream)
        self._of_stream[stream.id] = client

    def _read_messages(self, games: Sequence[Game]) -> None:
        """Count moves, note who takes part, and which questions stay without an answer."""
        grammar = self._dissector.grammar
        rows = (*grammar.rows, *grammar.transport_rows)
        meaningless = {row.name for row in rows if row.heartbeat} | {UNREADABLE}
        logins = self._dissector.identity.login_messages
        joining = {name for kind in grammar.events.values() if kind.joins for name in kind.reported_by}
        answers = _answers(rows)
        over = {game.id for game in games if game.ended_ns is not None and game.ended_ns <= self._until_ns}
        asked: dict[str, Counter[str]] = {each.client.label: Counter() for each in self.clients}
        sent: dict[str, set[str]] = {each.client.label: set() for each in self.clients}
        for message in messages(self._session.timeline):
            client = self._of_stream.get(message.stream.id)
            if client is None or message.ts_ns > self._until_ns or message.name in meaningless:
                continue
            label = client.client.label
            if message.direction == "s2c":
                is_late = message.game_id in over or message.ts_ns < self._until_ns - _ANSWER_NS
                asked[label][message.name] += is_late
                continue
            client.sent += 1
            sent[label].add(message.name)
            if message.name in logins:
                continue
            is_joining = message.name in joining
            game = message.game_id
            if game is None and not is_joining:
                # A protocol file has events for some messages only.
                game = _game_at(message.ts_ns, games)
            if game is not None:
                client.joined.add(game)
                client.moves += not is_joining
        for each in self.clients:
            label = each.client.label
            each.ignored = {
                name: asked[label][name]
                for name in answers
                if asked[label][name] and not answers[name] & sent[label]
            }

    def _count(self, games: Sequence[Game]) -> None:
        """Count the games by their ends, and those in which all clients took part."""
        kinds = self._dissector.grammar.events
        must_join = any(kind.joins for kind in kinds.values())
        must_end = any(kind.ends for kind in kinds.values())
        ended: set[int] = set()
        cancelled: set[int] = set()
        timed_out: set[int] = set()
        for event in self._session.timeline.events():
            kind = kinds.get(event.kind)
            if kind is None or event.game_id is None:
                continue
            for condition, found in (
                (kind.ends, ended),
                (kind.cancels, cancelled),
                (kind.timeout, timed_out),
            ):
                if _holds(condition, event.data):
                    found.add(event.game_id)
        for game in games:
            if game.id in cancelled:
                self.cancelled += 1
            elif game.ended_ns is None or game.ended_ns > self._until_ns:
                continue
            elif game.id in timed_out:
                self.timed_out += 1
            elif game.id in ended or not must_end:
                there = [each for each in self.clients if self._takes_part(each, game, must_join)]
                for each in there:
                    each.joined.add(game.id)
                    each.games += 1
                if len(there) == len(self.clients):
                    self.played += 1
                else:
                    self.partly += 1

    def _takes_part(self, client: Presence, game: Game, must_join: bool) -> bool:
        """Return True if a client takes part in a finished game until its end."""
        assert game.ended_ns is not None
        timeline = self._session.timeline
        begun, ended = timeline.seconds(game.started_ns), timeline.seconds(game.ended_ns)
        stays = [stream for stream in client.streams if stream.closed is None or stream.closed >= ended]
        if game.id in client.joined:
            return bool(stays)
        # Without a message for that, whoever is there when a game begins plays in it.
        return not must_join and any(stream.player is not None and stream.opened <= begun for stream in stays)


def _answers(rows: Iterable[MessageType]) -> Mapping[str, set[str]]:
    """Return the answers that the specification demands of a client, by the server's message."""
    answers: dict[str, set[str]] = {}
    for row in rows:
        if row.direction == "c2s" and row.deviation is None:
            for question in row.answers:
                answers.setdefault(question, set()).add(row.name)
    return answers


def _game_at(ts_ns: int, games: Sequence[Game]) -> int | None:
    """Return the id of the latest game that runs at a time; None if there is none."""
    running = (
        game.id
        for game in reversed(games)
        if game.started_ns <= ts_ns and (game.ended_ns is None or ts_ns <= game.ended_ns)
    )
    return next(running, None)


def _holds(condition: bool | str, data: Mapping[str, object]) -> bool:
    if isinstance(condition, bool):
        return condition
    return compile_expression(condition).holds(Scope(data)) is True
