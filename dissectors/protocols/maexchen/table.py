"""The Mäxchen table: from messages to rounds, rolls, announcements, losses and points.

A game is a round. All registered clients receive the same broadcasts in separate datagrams; the broadcast log
makes one event of the copies. The content of missing messages is inferred where possible, and no violations
are reported for incomplete context.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from kiebitz.dissectors.game.broadcast_dedup import REORDERED_NS, broadcast_key
from kiebitz.dissectors.game.connections import Connections
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction, Findings, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.protocols.maexchen.answers import Answers
from kiebitz.dissectors.protocols.maexchen.context import MaexchenContext
from kiebitz.dissectors.protocols.maexchen.questions import ClientConnection, QuestionKind
from kiebitz.dissectors.protocols.maexchen.registration import Registration
from kiebitz.dissectors.protocols.maexchen.round_state import Round, missing_evidence, objection
from kiebitz.dissectors.protocols.maexchen.turns import Turns

_REGISTRATIONS = frozenset({"REGISTER", "REGISTER_SPECTATOR"})
_TO_UNREGISTERED = frozenset({"REGISTERED", "REJECTED", "ECHOING"})
"""Messages to clients that may be unregistered."""

_SILENCE_NS = 1_000_000_000
"""Silence after which a server was down: one with clients sends within a quarter of this time."""

_LATE_REASONS: dict[str, QuestionKind] = {"DID_NOT_TAKE_TURN": "turn", "DID_NOT_ANNOUNCE": "announce"}


class MaexchenTable(GameTable):
    """One Mäxchen server: its players, its consecutive rounds, and the points."""

    context: MaexchenContext

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        context = MaexchenContext(info, ids, findings)
        super().__init__(context)
        context.connections = Connections(self._new_connection)
        self._port_was_closed = False
        """True if the server's port was closed, and the server has sent nothing since."""
        self._spoke_ns = 0
        """Time of the server's latest message to a registered client."""
        self._registered_ns = self._scored_ns = -REORDERED_NS
        self._answers = Answers(context)
        self._registration = Registration(context)
        self._turns = turns = Turns(context, self._registration, self._answers)
        self._handlers: dict[str, Callable[[Message, ClientConnection], None]] = {
            "ROUND STARTING": self._round_starting,
            "JOIN": self._join,
            "ROUND STARTED": self._round_started,
            "ROUND CANCELED": self._round_canceled,
            "YOUR TURN": turns.your_turn,
            "ROLL": turns.takes_turn,
            "SEE": turns.takes_turn,
            "PLAYER ROLLS": turns.player_rolls,
            "ROLLED": turns.rolled,
            "ANNOUNCE": turns.announces,
            "ANNOUNCED": turns.announced,
            "PLAYER WANTS TO SEE": turns.player_wants_to_see,
            "ACTUAL DICE": turns.actual_dice,
            "PLAYER LOST": self._player_lost,
            "SCORE": self._score,
            "REGISTERED": self._registered,
            "UNREGISTERED": self._unregistered,
            "REJECTED": self._registration.rejected,
        }

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        connection = self.context.connections.of(message.stream)
        if message.direction == "s2c":
            if row.deviation is not None:
                self.context.note_dialect(message, row)
            if row.name not in _TO_UNREGISTERED:
                self._spoken_to(connection, message.ts_ns)
            elif row.name == "REJECTED" and not connection.addressed:
                self._answers.addressed(connection)
        elif valid and row.name not in _REGISTRATIONS:
            self.context.note_dialect(message, row)
        if row.name in _REGISTRATIONS:
            # Real servers accept a name that is not UTF-8.
            if len(message.fields) == len(row.fields):
                connection.registering.append((message, row))
            else:
                connection.nameless = True
        elif valid and (handler := self._handlers.get(row.name)) is not None:
            key = broadcast_key(message.name, message.fields_json)
            if not (row.broadcast and self.context.log.is_copy(message, key)):
                handler(message, connection)
        if self._answers.unsure:
            self._answers.judge_unsure(message.ts_ns)

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        connection = self.context.connections.of(stream)
        if direction == "c2s" or is_gap:
            connection.doubt_answers()
        if direction == "s2c" or is_gap:
            connection.doubt_questions(ts_ns)

    def unreachable(self, stream: Stream) -> None:
        self._port_was_closed = True

    def closed(self, stream: Stream, ts_ns: int) -> None:
        self.context.log.forget(stream.id)
        self.context.points.newcomers.discard(stream.id)
        connection = self.context.connections.pop(stream.id, None)
        if connection is not None:
            self._registration.disconnect(connection)
            # The tokens are kept longer, and the connection with them.
            connection.questions.clear()
            connection.open.clear()

    def finish(self, ts_ns: int) -> None:
        self._answers.judge_unsure(None)

    def _new_connection(self, stream: Stream) -> ClientConnection:
        """Return a new connection; a client that was idle may be known already."""
        connection = ClientConnection(stream)
        for name in self._registration.names_at(stream.client):
            self._registration.assign(connection, name)
        return connection

    # Who is there.

    def _spoken_to(self, connection: ClientConnection, ts_ns: int, newly: bool = False) -> None:
        """Note a message from the server to a registered client, or to one `newly` registered."""
        if not connection.addressed:
            self._answers.addressed(connection)
        connection.gone = False
        if newly:
            self.context.points.registered(connection.stream.id)
        else:
            self.context.points.spoken_to(connection.stream.id)
        self._port_was_closed = False
        self._spoke_ns = ts_ns

    def _registered(self, message: Message, connection: ClientConnection) -> None:
        if self._was_down(message.ts_ns):
            self.context.forget(self._spoke_ns)
            self._restart(message, ())
        self._spoken_to(connection, message.ts_ns, newly=True)
        self.context.log.begin(connection.stream.id, message.ts_ns)
        self._registered_ns = message.ts_ns
        self._registration.registered(message, connection)

    def _was_down(self, ts_ns: int) -> bool:
        """Return True if the server was down right before: one with clients is never silent for long."""
        if self._port_was_closed:
            return True
        silent = ts_ns - self._spoke_ns >= _SILENCE_NS
        return silent and any(
            connection.addressed and not connection.gone for connection in self.context.connections.values()
        )

    def _restart(self, message: Message, newcomers: Collection[int] | None) -> None:
        """Reset the table after a restart of the server; it knows the streams `newcomers` (None: unknown)."""
        self.context.report_violation(message, "restarted")
        if newcomers is not None:
            self._registration.restart(newcomers)
            for number, connection in self.context.connections.items():
                connection.gone = number not in newcomers
        if "scores" in self.context.state:
            self.context.set_state(None, "scores")
        self.context.points.restart()
        self.context.last_number = None

    def _unregistered(self, message: Message, connection: ClientConnection) -> None:
        name = self._registration.unregistered(message, connection)
        played = self.context.current
        if name is not None and played is not None and name in played.state.get("private", {}):
            played.set_state(None, "private", name)
        self.context.emit_of(message, "unregistered", name, {"name": name}, None)

    # Rounds begin and end.

    def _round_starting(self, message: Message, connection: ClientConnection) -> None:
        number = message.fields.get("round")
        # Each copy has another token.
        key = ("starting", number)
        if not self.context.log.is_copy(message, key):
            played = self.context.begin(message, number)
            self.context.emit_broadcast(message, "round_starting", None, {"round": number}, played, key)
        assert message.game_id is not None
        self._answers.asked(connection, "join", message, message.game_id)

    def _join(self, message: Message, connection: ClientConnection) -> None:
        question = self._answers.answered(connection, "join", message)
        played = self.context.current
        if question is None or played is None or played.game.id != question.game_id:
            return
        if connection.name is not None:
            played.set_state(True, "private", connection.name, "joined")
        self.context.emit_of(message, "joined", connection.name, {"name": connection.name}, played.game)

    def _round_started(self, message: Message, connection: ClientConnection) -> None:
        number: int | None = message.fields.get("round")
        players = self._registration.split(message.fields["players"])
        played = self.context.current
        if self.context.number_decreased(number, message.ts_ns):
            self._restart(message, self.context.points.possible_newcomers)
        if played is None or not (
            played.phase == "starting" or self.context.overtaken(played, message.ts_ns)
        ):
            played = self.context.begin(message, number)
        elif number is not None and number != played.number:
            played.game.label = f"round {number}"
            self.context.changed_game(played.game)
        if number is not None:
            played.number = number
            played.set_known("round", number)
        self._answers.close("join", played)
        if played.phase == "starting":
            played.phase = "started"
            played.certain = True
        played.players = players
        played.started_ns = message.ts_ns
        played.set_state("started", "phase")
        played.set_known("players", players)
        played.set_state(None, "private")
        for name in players:
            self._registration.seen(name)
        self.context.count_start(played)
        data = {"round": played.number, "players": players}
        self.context.emit_broadcast(message, "round_started", None, data, played)

    def _round_canceled(self, message: Message, connection: ClientConnection) -> None:
        reason: str = message.fields["reason"]
        played = self.context.current
        # Only a round that has started with one player can still be called off.
        if played is None or not (
            played.phase == "starting" or (played.phase == "started" and len(played.players or ()) < 2)
        ):
            played = self.context.begin(message, None)
        if played.phase == "starting" and "player" in reason and not reason.lower().startswith("no"):
            # The round had started with one player, who got a point; that was not seen.
            self.context.points.forget()
        self._answers.close("join", played)
        played.phase = "canceled"
        played.over_ns = message.ts_ns
        played.end(message.ts_ns, {"canceled": reason})
        played.set_state("canceled", "phase")
        self.context.emit_broadcast(message, "round_canceled", None, {"reason": reason}, played)

    # The end of a round.

    def _player_lost(self, message: Message, connection: ClientConnection) -> None:
        names = self._registration.split(message.fields["names"])
        reason: str = message.fields["reason"]
        against = self._second_loss(message)
        played = self.context.playing(message)
        self._turns.infer_see(message, played)
        if played.certain and against is None:
            against = objection(names, reason, played)
        kind = _LATE_REASONS.get(reason)
        loser = self._registration.connection_of(names[0]) if len(names) == 1 else None
        if loser is not None and kind is not None:
            self._answers.missed(loser, kind, message)
        self._answers.close("turn", played)
        self._answers.close("announce", played)
        if played.game.result is None:
            played.game.result = {"losers": names, "reason": reason}
            self.context.changed_game(played.game)
            if played is self.context.current:
                self.context.points.lost(names)
        if played.phase == "started":
            played.phase = "lost"
            played.over_ns = message.ts_ns
            played.set_state("lost", "phase")
            played.set_state(None, "turn")
            played.set_state({"names": names, "reason": reason}, "lost")
        self.context.emit_broadcast(message, "lost", None, {"names": names, "reason": reason}, played)
        losers, missing = ", ".join(names), missing_evidence(reason, played)
        if against is not None:
            self.context.report_server_violation(
                message, "wrong-verdict", losers=losers, reason=reason, objection=against
            )
        elif missing is not None:
            self.context.report_violation(
                message, "loss-unexplained", losers=losers, reason=reason, missing=missing
            )

    def _second_loss(self, message: Message) -> str | None:
        """Return the objection to another loss right after that of the same round, if it is one."""
        played = self.context.current
        if played is None or played.phase != "lost" or not played.certain or played.over_ns is None:
            return None
        losers = (played.game.result or {}).get("losers")
        if message.ts_ns - played.over_ns >= REORDERED_NS or losers is None:
            return None
        return f"{', '.join(losers)} had lost this round already"

    def _score(self, message: Message, connection: ClientConnection) -> None:
        scores: dict[str, int] = message.fields["scores"]
        played = self.context.current
        if self.context.unscored is not None and (played is None or played.phase == "starting"):
            played = self.context.unscored
        elif self._is_extra(message, scores):
            return
        elif played is not None and played.phase == "starting":
            played = None
        self.context.unscored = None
        if self.context.points.shows_restart(scores):
            self._restart(message, self.context.points.possible_newcomers)
        for name, points in scores.items():
            self._registration.seen(name)
            self.context.set_state(points, "scores", name)
        wrong = self.context.points.wrong(scores)
        if wrong and self._is_due(message, played):
            self.context.report_server_violation(message, "wrong-score", problem="; ".join(wrong))
        self._scored_ns = message.ts_ns
        if played is not None:
            played.scored = True
            self.context.leave(played, message.ts_ns)
        self.context.points.announce(scores)
        self.context.emit_broadcast(message, "score", None, {"scores": scores}, played)

    def _is_due(self, message: Message, played: Round | None) -> bool:
        """Return True if the points must follow from the rounds: no part of a round can be missing."""
        if played is not None:
            return played.certain and played.game.result is not None
        # The second announcement after a round.
        since_ns = message.ts_ns - REORDERED_NS
        return self._scored_ns > since_ns and self._registered_ns <= since_ns

    def _is_extra(self, message: Message, scores: dict[str, int]) -> bool:
        """Return True for points sent to a spectator during a round, as a fork's server does."""
        played = self.context.current
        if played is not None and (played.phase not in ("starting", "started") or played.game.result):
            return False
        just_registered = message.ts_ns - self._registered_ns < REORDERED_NS
        return self.context.points.is_repeat(scores) or (
            just_registered and played is not None and played.phase == "started"
        )
