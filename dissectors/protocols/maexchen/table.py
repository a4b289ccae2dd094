"""The Mäxchen table: from messages to rounds, rolls, announcements, losses and points.

A game is a round. All registered clients receive the same broadcasts in separate datagrams; the broadcast log
makes one event of the copies. The content of missing messages is inferred where possible, and no violations
are reported for incomplete rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from kiebitz.dissectors.game.broadcast_dedup import REORDERED_NS, text_key
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction, Findings, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.protocols.maexchen.answers import Answers
from kiebitz.dissectors.protocols.maexchen.context import Rounds
from kiebitz.dissectors.protocols.maexchen.questions import QuestionKind, Seat
from kiebitz.dissectors.protocols.maexchen.registration import Registration
from kiebitz.dissectors.protocols.maexchen.round_state import Round
from kiebitz.dissectors.protocols.maexchen.turns import Turns
from kiebitz.dissectors.protocols.maexchen.verdict import missing_evidence, objection

_REGISTRATIONS = frozenset({"REGISTER", "REGISTER_SPECTATOR"})
_TO_UNREGISTERED = frozenset({"REGISTERED", "REJECTED", "ECHOING"})
"""Messages to clients that may be unregistered."""

_SILENCE_NS = 1_000_000_000
"""Silence after which a server was down: one with clients sends within a quarter of this time."""

_LATE_REASONS: dict[str, QuestionKind] = {"DID_NOT_TAKE_TURN": "turn", "DID_NOT_ANNOUNCE": "announce"}


class MaexchenTable(GameTable):
    """One Mäxchen server: its players, its consecutive rounds, and the points."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        self._rounds = rounds = Rounds(info, ids, findings)
        super().__init__(rounds)
        self._port_was_closed = False
        """True if the server's port was closed, and the server has sent nothing since."""
        self._spoke_ns = 0
        """Time of the server's latest message to a registered client."""
        self._registered_ns = self._scored_ns = -REORDERED_NS
        self._answers = Answers(rounds)
        self._registration = Registration(rounds)
        self._turns = turns = Turns(rounds, self._registration, self._answers)
        self._handlers: dict[str, Callable[[Message, Seat], None]] = {
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
        seat = self._rounds.seats.get(message.stream.id) or self._new_seat(message.stream)
        if message.direction == "s2c":
            if row.deviation is not None:
                self._rounds.note_dialect(message, row)
            if row.name not in _TO_UNREGISTERED:
                self._spoken_to(seat, message.ts_ns)
            elif row.name == "REJECTED" and not seat.addressed:
                self._answers.addressed(seat)
        elif valid and row.name not in _REGISTRATIONS:
            self._rounds.note_dialect(message, row)
        if row.name in _REGISTRATIONS:
            # Real servers accept a name that is not UTF-8.
            if len(message.fields) == len(row.fields):
                seat.registering.append((message, row))
            else:
                seat.nameless = True
        elif valid and (handler := self._handlers.get(row.name)) is not None:
            handler(message, seat)
        if self._answers.unsure:
            self._answers.judge_unsure(message.ts_ns)

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        seat = self._rounds.seats.get(stream.id) or self._new_seat(stream)
        if direction == "c2s" or is_gap:
            seat.doubt_answers()
        if direction == "s2c" or is_gap:
            seat.doubt_questions(ts_ns)

    def unreachable(self, stream: Stream) -> None:
        self._port_was_closed = True

    def closed(self, stream: Stream, ts_ns: int) -> None:
        self._rounds.log.forget(stream.id)
        self._rounds.points.newcomers.discard(stream.id)
        seat = self._rounds.seats.pop(stream.id, None)
        if seat is not None:
            self._registration.disconnect(seat)
            # The tokens are kept longer, and the seat with them.
            seat.questions.clear()
            seat.open.clear()

    def finish(self, ts_ns: int) -> None:
        self._answers.judge_unsure(None)

    def _new_seat(self, stream: Stream) -> Seat:
        """Return the seat of a new conversation; a client that was idle may be known already."""
        seat = self._rounds.seats[stream.id] = Seat(stream)
        for name in self._registration.names_at(stream.client):
            self._registration.assign(seat, name)
        return seat

    # Who is there.

    def _spoken_to(self, seat: Seat, ts_ns: int, newly: bool = False) -> None:
        """Note a message from the server to a registered client, or to one `newly` registered."""
        if not seat.addressed:
            self._answers.addressed(seat)
        seat.gone = False
        if newly:
            self._rounds.points.registered(seat.stream.id)
        else:
            self._rounds.points.spoken_to(seat.stream.id)
        self._port_was_closed = False
        self._spoke_ns = ts_ns

    def _registered(self, message: Message, seat: Seat) -> None:
        if self._was_down(message.ts_ns):
            self._rounds.forget(self._spoke_ns)
            self._restart(message, ())
        self._spoken_to(seat, message.ts_ns, newly=True)
        self._rounds.log.begin(seat.stream.id, message.ts_ns)
        self._registered_ns = message.ts_ns
        self._registration.registered(message, seat)

    def _was_down(self, ts_ns: int) -> bool:
        """Return True if the server was down right before: one with clients is never silent for long."""
        if self._port_was_closed:
            return True
        silent = ts_ns - self._spoke_ns >= _SILENCE_NS
        return silent and any(seat.addressed and not seat.gone for seat in self._rounds.seats.values())

    def _restart(self, message: Message, newcomers: Collection[int] | None) -> None:
        """Reset the table after a restart of the server; it knows the streams `newcomers` (None: unknown)."""
        self._rounds.report_violation(message, "restarted")
        if newcomers is not None:
            self._registration.restart(newcomers)
            for number, seat in self._rounds.seats.items():
                seat.gone = number not in newcomers
        if "scores" in self._rounds.state:
            self._rounds.set_state(None, "scores")
        self._rounds.points.restart()
        self._rounds.last_number = None

    def _unregistered(self, message: Message, seat: Seat) -> None:
        name = self._registration.unregistered(message, seat)
        played = self._rounds.current
        if name is not None and played is not None and name in played.state.get("private", {}):
            self._rounds.set_in_round(played, None, "private", name)
        self._rounds.emit_of(message, "unregistered", name, {"name": name}, None)

    # Rounds begin and end.

    def _round_starting(self, message: Message, seat: Seat) -> None:
        number = message.fields.get("round")
        key = ("starting", number)
        if not self._rounds.log.is_copy(message, key):
            played = self._rounds.begin(message, number)
            self._rounds.emit_broadcast(message, key, "round_starting", None, {"round": number}, played)
        assert message.game_id is not None
        self._answers.asked(seat, "join", message, message.game_id)

    def _join(self, message: Message, seat: Seat) -> None:
        question = self._answers.answered(seat, "join", message)
        played = self._rounds.current
        if question is None or played is None or played.game.id != question.game_id:
            return
        if seat.name is not None:
            self._rounds.set_in_round(played, True, "private", seat.name, "joined")
        self._rounds.emit_of(message, "joined", seat.name, {"name": seat.name}, played.game)

    def _round_started(self, message: Message, seat: Seat) -> None:
        number: int | None = message.fields.get("round")
        players = self._registration.split(message.fields["players"])
        key = ("started", text_key(message.fields_json))
        if self._rounds.log.is_copy(message, key):
            return
        played = self._rounds.current
        if self._rounds.number_decreased(number, message.ts_ns):
            self._restart(message, self._rounds.points.possible_newcomers)
        if played is None or not (
            played.phase == "starting" or self._rounds.overtaken(played, message.ts_ns)
        ):
            played = self._rounds.begin(message, number)
        elif number is not None and number != played.number:
            played.game.label = f"round {number}"
            self._rounds.changed_game(played.game)
        if number is not None:
            played.number = number
            self._rounds.set_known(played, "round", number)
        self._answers.close("join", played)
        if played.phase == "starting":
            played.phase = "started"
            played.certain = True
        played.players = players
        played.started_ns = message.ts_ns
        self._rounds.set_in_round(played, "started", "phase")
        self._rounds.set_known(played, "players", players)
        self._rounds.set_in_round(played, None, "private")
        for name in players:
            self._registration.seen(name)
        self._rounds.count_start(played)
        data = {"round": played.number, "players": players}
        self._rounds.emit_broadcast(message, key, "round_started", None, data, played)

    def _round_canceled(self, message: Message, seat: Seat) -> None:
        reason: str = message.fields["reason"]
        key = ("canceled", reason)
        if self._rounds.log.is_copy(message, key):
            return
        played = self._rounds.current
        # Only a round that has started with one player can still be called off.
        if played is None or not (
            played.phase == "starting" or (played.phase == "started" and len(played.players or ()) < 2)
        ):
            played = self._rounds.begin(message, None)
        if played.phase == "starting" and "player" in reason and not reason.lower().startswith("no"):
            # The round had started with one player, who got a point; that was not seen.
            self._rounds.points.forget()
        self._answers.close("join", played)
        played.phase = "canceled"
        played.over_ns = message.ts_ns
        played.game.result = {"canceled": reason}
        played.game.ended_ns = message.ts_ns
        self._rounds.changed_game(played.game)
        self._rounds.set_in_round(played, "canceled", "phase")
        self._rounds.emit_broadcast(message, key, "round_canceled", None, {"reason": reason}, played)

    # The end of a round.

    def _player_lost(self, message: Message, seat: Seat) -> None:
        names = self._registration.split(message.fields["names"])
        reason: str = message.fields["reason"]
        key = ("lost", text_key(message.fields_json))
        if self._rounds.log.is_copy(message, key):
            return
        against = self._second_loss(message)
        played = self._rounds.playing(message)
        self._turns.infer_see(message, played)
        if played.certain and against is None:
            against = objection(names, reason, played.evidence())
        kind = _LATE_REASONS.get(reason)
        loser = self._registration.seat_of(names[0]) if len(names) == 1 else None
        if loser is not None and kind is not None:
            self._answers.missed(loser, kind, message)
        self._answers.close("turn", played)
        self._answers.close("announce", played)
        if played.game.result is None:
            played.game.result = {"losers": names, "reason": reason}
            self._rounds.changed_game(played.game)
            if played is self._rounds.current:
                self._rounds.points.lost(names)
        if played.phase == "started":
            played.phase = "lost"
            played.over_ns = message.ts_ns
            self._rounds.set_in_round(played, "lost", "phase")
            self._rounds.set_in_round(played, None, "turn")
            self._rounds.set_in_round(played, {"names": names, "reason": reason}, "lost")
        self._rounds.emit_broadcast(message, key, "lost", None, {"names": names, "reason": reason}, played)
        losers, missing = ", ".join(names), missing_evidence(reason, played.evidence())
        if against is not None:
            self._rounds.report_server_violation(
                message, "wrong-verdict", losers=losers, reason=reason, objection=against
            )
        elif missing is not None:
            self._rounds.report_violation(
                message, "loss-unexplained", losers=losers, reason=reason, missing=missing
            )

    def _second_loss(self, message: Message) -> str | None:
        """Return the objection to another loss right after that of the same round, if it is one."""
        played = self._rounds.current
        if played is None or played.phase != "lost" or not played.certain or played.over_ns is None:
            return None
        losers = (played.game.result or {}).get("losers")
        if message.ts_ns - played.over_ns >= REORDERED_NS or losers is None:
            return None
        return f"{', '.join(losers)} had lost this round already"

    def _score(self, message: Message, seat: Seat) -> None:
        scores: dict[str, int] = message.fields["scores"]
        key = ("score", text_key(message.fields_json))
        if self._rounds.log.is_copy(message, key):
            return
        played = self._rounds.current
        if self._rounds.unscored is not None and (played is None or played.phase == "starting"):
            played = self._rounds.unscored
        elif self._is_extra(message, scores):
            return
        elif played is not None and played.phase == "starting":
            played = None
        self._rounds.unscored = None
        if self._rounds.points.shows_restart(scores):
            self._restart(message, self._rounds.points.possible_newcomers)
        for name, points in scores.items():
            self._registration.seen(name)
            self._rounds.set_state(points, "scores", name)
        wrong = self._rounds.points.wrong(scores)
        if wrong and self._is_due(message, played):
            self._rounds.report_server_violation(message, "wrong-score", problem="; ".join(wrong))
        self._scored_ns = message.ts_ns
        if played is not None:
            played.scored = True
            self._rounds.leave(played, message.ts_ns)
        self._rounds.points.announce(scores)
        self._rounds.emit_broadcast(message, key, "score", None, {"scores": scores}, played)

    def _is_due(self, message: Message, played: Round | None) -> bool:
        """Return True if the points must follow from the rounds: no part of a round can be missing."""
        if played is not None:
            return played.certain and played.game.result is not None
        # The second announcement after a round.
        since_ns = message.ts_ns - REORDERED_NS
        return self._scored_ns > since_ns and self._registered_ns <= since_ns

    def _is_extra(self, message: Message, scores: dict[str, int]) -> bool:
        """Return True for points sent to a spectator during a round, as a fork's server does."""
        played = self._rounds.current
        if played is not None and (played.phase not in ("starting", "started") or played.game.result):
            return False
        just_registered = message.ts_ns - self._registered_ns < REORDERED_NS
        return self._rounds.points.is_repeat(scores) or (
            just_registered and played is not None and played.phase == "started"
        )
