"""The Mäxchen table: from messages to rounds, rolls, announcements, losses and points.

A game is a round. All registered clients hear the same broadcasts, each in a datagram of his own: the
broadcast log makes one event of the copies. Where a message is missing, what it must have said is inferred
as far as the rest tells it, and a round with a hole in it accuses nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

from kiebitz.dissectors.broadcast import REORDERED_NS, EventLog, text_key
from kiebitz.dissectors.grammar import MessageType
from kiebitz.dissectors.maexchen.answers import Answers
from kiebitz.dissectors.maexchen.dice import MIA
from kiebitz.dissectors.maexchen.questions import Question, QuestionKind, Seat
from kiebitz.dissectors.maexchen.registration import Registration
from kiebitz.dissectors.maexchen.round import Round
from kiebitz.dissectors.maexchen.rounds import RoundTable
from kiebitz.dissectors.maexchen.verdict import Announcement, objection
from kiebitz.dissectors.records import Direction, Event, Findings, Ids, Message, Stream, TableInfo

_REGISTRATIONS = frozenset({"REGISTER", "REGISTER_SPECTATOR"})
_TO_STRANGERS = frozenset({"REGISTERED", "REJECTED", "ECHOING"})
"""What a server sends to clients that it did not know before."""

_SILENCE_NS = 1_000_000_000
"""A server that has clients asks them something, or calls a round off, within a quarter of this time."""

_LATE_REASONS: dict[str, QuestionKind] = {"DID_NOT_TAKE_TURN": "turn", "DID_NOT_ANNOUNCE": "announce"}


def _new_log() -> EventLog:
    return EventLog(doubled=True, overtaken_ns=REORDERED_NS)


class MaexchenTable(RoundTable):
    """One Mäxchen server: its players, its rounds, one after another, and the points."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings)
        self._log = _new_log()
        self._port_was_dead = False
        """Whether the server's port was closed and nothing has come from it since."""
        self._spoke_ns = 0
        """When the server last sent something to a client that it knows."""
        self._registered_ns = -REORDERED_NS
        self._answers = Answers(self)
        self._registration = Registration(self, self._seats)
        self._handlers: dict[str, Callable[[Message, Seat], None]] = {
            "ROUND STARTING": self._round_starting,
            "JOIN": self._join,
            "ROUND STARTED": self._round_started,
            "ROUND CANCELED": self._round_canceled,
            "YOUR TURN": self._your_turn,
            "ROLL": self._take_turn,
            "SEE": self._take_turn,
            "PLAYER ROLLS": self._player_rolls,
            "ROLLED": self._rolled,
            "ANNOUNCE": self._announce,
            "ANNOUNCED": self._announced,
            "PLAYER WANTS TO SEE": self._player_wants_to_see,
            "ACTUAL DICE": self._actual_dice,
            "PLAYER LOST": self._player_lost,
            "SCORE": self._score,
            "REGISTERED": self._registered,
            "UNREGISTERED": self._unregistered,
            "REJECTED": self._registration.rejected,
        }

    def message(self, message: Message, row: MessageType, sound: bool, frame: bytes) -> None:
        seat = self._seats.get(message.stream.id) or self._sit_down(message.stream)
        if message.direction == "s2c":
            if row.deviation is not None:
                self.remark_dialect(message, row)
            if row.name not in _TO_STRANGERS:
                self._spoken_to(seat, message.ts_ns)
            elif row.name == "REJECTED" and not seat.addressed:
                self._answers.addressed(seat)
        elif not sound:
            seat.fumbled()
        elif row.name not in _REGISTRATIONS:
            self.remark_dialect(message, row)
        if row.name in _REGISTRATIONS:
            # One with bytes that are not UTF-8 is flawed, but real servers take it.
            if len(message.fields) == len(row.fields):
                seat.registering.append((message, row))
            else:
                seat.nameless = True
        elif sound and (handler := self._handlers.get(row.name)) is not None:
            handler(message, seat)
        if self._answers.unsure:
            self._answers.look_back(message.ts_ns)

    def unreadable(self, stream: Stream, direction: Direction) -> None:
        if direction == "c2s":
            (self._seats.get(stream.id) or self._sit_down(stream)).fumbled()

    def missing(self, stream: Stream, direction: Direction) -> None:
        # A player's answer may be among it.
        self.unreadable(stream, direction)

    def unreachable(self, stream: Stream) -> None:
        self._port_was_dead = True

    def closed(self, stream: Stream, ts_ns: int) -> None:
        self._log.forget(stream.id)
        self._points.newcomers.discard(stream.id)
        seat = self._seats.pop(stream.id, None)
        if seat is not None:
            self._registration.leaves(seat)
            # His tokens are remembered longer, and with them the seat.
            seat.questions.clear()
            seat.open.clear()

    def finish(self, ts_ns: int) -> None:
        self._answers.look_back(None)

    def _sit_down(self, stream: Stream) -> Seat:
        """The seat of a new conversation; a client who was only silent for long is known from before."""
        seat = self._seats[stream.id] = Seat(stream)
        for name in self._registration.names_at(stream.client):
            self._registration.learn(seat, name)
        return seat

    # Who is there.

    def _spoken_to(self, seat: Seat, ts_ns: int, newly: bool = False) -> None:
        """The server sends to a client that it knows, or takes in `newly`."""
        if not seat.addressed:
            self._answers.addressed(seat)
        seat.gone = False
        if newly:
            self._points.registered(seat.stream.id)
        else:
            self._points.spoken_to(seat.stream.id)
        self._port_was_dead = False
        self._spoke_ns = ts_ns

    def _registered(self, message: Message, seat: Seat) -> None:
        if self._was_dead(message.ts_ns):
            if self._round is not None:
                self._leave(self._round, self._spoke_ns)
            self._unscored = self._previous = None
            self._log = _new_log()
            self._begin_anew(message, ())
        self._spoken_to(seat, message.ts_ns, newly=True)
        self._log.begin(seat.stream.id, message.ts_ns)
        self._registered_ns = message.ts_ns
        self._registration.registered(message, seat)

    def _was_dead(self, ts_ns: int) -> bool:
        """Whether the server was not there right before: who has clients never is silent for long."""
        if self._port_was_dead:
            return True
        silent = ts_ns - self._spoke_ns >= _SILENCE_NS
        return silent and any(seat.addressed and not seat.gone for seat in self._seats.values())

    def _begin_anew(self, message: Message, newcomers: Collection[int] | None) -> None:
        """The server was started anew. It knows only who sits on these streams; None if that is not known."""
        self.flaw(message, "restarted")
        if newcomers is not None:
            self._registration.begin_anew(newcomers)
            for number, seat in self._seats.items():
                seat.gone = number not in newcomers
        if "scores" in self.state:
            self.put(None, "scores")
        self._points.begin_anew()
        self._last_number = None

    def _unregistered(self, message: Message, seat: Seat) -> None:
        name = self._registration.unregistered(message, seat)
        played = self._round
        if name is not None and played is not None:
            part = self.state.get("games", {}).get(played.key, {})
            if name in part.get("private", {}):
                self._put(played, None, "private", name)
        self._tell(message, "unregistered", name, {"name": name}, None)

    # Copies of a broadcast: the first is news, the others are witnesses.

    def _tell(
        self,
        message: Message,
        kind: str,
        actor: str | None,
        data: dict[str, Any],
        played: Round | None,
        broadcast: tuple[Seat, Hashable] | None = None,
    ) -> Event:
        """Make the event that a message tells of, and log it if copies of the message are to come."""
        event = self.emit(kind, message.ts_ns, actor, data, played.game if played else None)
        message.event_id = event.id
        message.game_id = event.game_id
        if broadcast is not None:
            seat, key = broadcast
            self._log.add(seat.stream.id, key, event)
        return event

    # Rounds begin and end.

    def _round_starting(self, message: Message, seat: Seat) -> None:
        number = message.fields.get("round")
        key = ("starting", number)
        if not self._log.is_copy(message, key):
            played = self._begin(message, number)
            self._tell(message, "round_starting", None, {"round": number}, played, (seat, key))
        assert message.game_id is not None
        self._answers.asked(seat, "join", message, message.game_id)

    def _join(self, message: Message, seat: Seat) -> None:
        question = self._answer("join", message, seat)
        played = self._round
        if question is None or played is None or played.game.id != question.game_id:
            return
        if seat.name is not None:
            self._put(played, True, "private", seat.name, "joined")
        self._tell(message, "joined", seat.name, {"name": seat.name}, played)

    def _round_started(self, message: Message, seat: Seat) -> None:
        number: int | None = message.fields.get("round")
        players = self._registration.split(message.fields["players"])
        key = ("started", text_key(message.fields_json))
        if self._log.is_copy(message, key):
            return
        played = self._round
        if self._falls(number, message.ts_ns):
            self._begin_anew(message, self._points.possible_newcomers)
        if played is None or not (played.phase == "starting" or self._overtaken(played, message.ts_ns)):
            played = self._begin(message, number)
        elif number is not None and number != played.number:
            played.game.label = f"round {number}"
            self.changed_game(played.game)
        if number is not None:
            played.number = number
            self._now_known(played, "round", number)
        self._close_questions("join", played)
        if played.phase == "starting":
            played.phase = "started"
            played.whole = True
        played.players = players
        played.started_ns = message.ts_ns
        self._put(played, "started", "phase")
        self._now_known(played, "players", players)
        self._put(played, None, "private")
        for name in players:
            self._registration.seen(name)
        self._count_start(played)
        data = {"round": played.number, "players": players}
        self._tell(message, "round_started", None, data, played, (seat, key))

    def _round_canceled(self, message: Message, seat: Seat) -> None:
        reason: str = message.fields["reason"]
        key = ("canceled", reason)
        if self._log.is_copy(message, key):
            return
        played = self._round
        # Only a round that has started with one player can still be called off.
        if played is None or not (
            played.phase == "starting" or (played.phase == "started" and len(played.players or ()) < 2)
        ):
            played = self._begin(message, None)
        if played.phase == "starting" and "player" in reason and not reason.lower().startswith("no"):
            # It had started with one player, who has his point; that was not seen.
            self._points.forget()
        self._close_questions("join", played)
        played.phase = "canceled"
        played.over_ns = message.ts_ns
        played.game.result = {"canceled": reason}
        played.game.ended_ns = message.ts_ns
        self.changed_game(played.game)
        self._put(played, "canceled", "phase")
        self._tell(message, "round_canceled", None, {"reason": reason}, played, (seat, key))

    # Turns.

    def _your_turn(self, message: Message, seat: Seat) -> None:
        played = self._playing(message)
        name = seat.name
        inferred = name is None and not seat.names
        if inferred:
            name = played.due
            if name is not None:
                self._registration.learn(seat, name)
        self._set_turn(played, name, inferred)
        self._tell(message, "turn", name, {"name": name}, played)
        self._answers.asked(seat, "turn", message, played.game.id)

    def _answer(self, kind: QuestionKind, message: Message, seat: Seat) -> Question | None:
        """A client's answer: the question that it rightly answers, if it does."""
        question = self._answers.answered(seat, kind, message)
        if question is not None:
            message.game_id = question.game_id
        return question

    def _take_turn(self, message: Message, seat: Seat) -> None:
        self._answer("turn", message, seat)

    def _announce(self, message: Message, seat: Seat) -> None:
        self._answer("announce", message, seat)

    def _infer(self, message: Message, played: Round, kind: str, name: str, key: Hashable) -> None:
        """Make an event that no message has told of yet; copies of one that does will find it."""
        self._log.expect(key, self.emit(kind, message.ts_ns, name, {"name": name}, played.game))

    def _set_turn(self, played: Round, name: str | None, inferred: bool = False) -> None:
        if played.phase == "started":
            if played.due is not None and name is not None and name != played.due:
                self._missing(played, "announced")
            played.turn = name
            self._put(played, name, "turn")
            self._mark_inferred(played, "turn", inferred and name is not None)

    def _player_rolls(self, message: Message, seat: Seat) -> None:
        name: str = message.fields["name"]
        key = ("rolls", name)
        if self._log.is_copy(message, key):
            return
        played = self._playing(message)
        self._check_order(message, played, name)
        self._rolls(played, name)
        self._tell(message, "rolls", name, {"name": name}, played, (seat, key))
        self._registration.learn_from_turn(name)

    def _rolls(self, played: Round, name: str | None, inferred: bool = False) -> None:
        self._set_turn(played, name, inferred)
        played.rolling = name
        played.rolled.clear()
        self._put(played, None, "private")
        self._put(played, name, "rolling")
        self._mark_inferred(played, "rolling", inferred)

    def _infer_roll(self, message: Message, played: Round, name: str | None) -> None:
        """The oldest servers tell nobody who rolls; elsewhere the datagram may be lost."""
        if played.rolling != name and name is not None:
            self._rolls(played, name, inferred=True)
            self._infer(message, played, "rolls", name, ("rolls", name))

    def _rolled(self, message: Message, seat: Seat) -> None:
        played = self._playing(message)
        name = seat.name or played.rolling or played.turn
        dice: str = message.fields["dice"]
        self._infer_roll(message, played, name)
        if name is not None:
            if not seat.names:
                self._registration.learn(seat, name)
            played.rolled[name] = dice
            self._put(played, dice, "private", name, "dice")
        self._tell(message, "rolled", name, {"name": name, "dice": dice}, played)
        self._answers.asked(seat, "announce", message, played.game.id)

    def _announced(self, message: Message, seat: Seat) -> None:
        name: str = message.fields["name"]
        dice: str = message.fields["dice"]
        key = ("announced", name, dice)
        if self._log.is_copy(message, key):
            return
        played = self._playing(message)
        if played.rolling != name:
            self._check_order(message, played, name)
            self._infer_roll(message, played, name)
        played.before, played.last = played.last, Announcement(name, dice)
        played.rolling = None
        self._put(played, None, "rolling")
        self._mark_inferred(played, "rolling", False)
        # Mäxchen is uncovered at once; after any other announcement it is the next player's turn.
        self._set_turn(played, played.due if dice != MIA else None, inferred=True)
        self._now_known(played, "announced", {"name": name, "dice": dice})
        if name in played.rolled:
            self._put(played, played.rolled[name] != dice, "private", name, "bluff")
        self._tell(message, "announced", name, {"name": name, "dice": dice}, played, (seat, key))
        self._check_announcement(message, name, dice)

    def _player_wants_to_see(self, message: Message, seat: Seat) -> None:
        name: str = message.fields["name"]
        key = ("sees", name)
        if self._log.is_copy(message, key):
            return
        played = self._playing(message)
        self._check_order(message, played, name)
        self._sees(played, name)
        self._tell(message, "wants_to_see", name, {"name": name}, played, (seat, key))
        self._registration.learn_from_turn(name)

    def _sees(self, played: Round, name: str, inferred: bool = False) -> None:
        self._set_turn(played, name, inferred)
        played.seer = name
        self._put(played, name, "seer")
        self._mark_inferred(played, "seer", inferred)

    def _infer_see(self, message: Message, played: Round) -> None:
        """The oldest servers tell nobody who wants to see; elsewhere the datagram may be lost.

        A SEE that was rightly sent tells it. And unless Mäxchen is announced, dice are uncovered only for the
        player who is next.
        """
        if played.seer is not None or (played.last is not None and played.last.dice == MIA):
            return
        name = self._who_sees(played)
        if name is None and message.name == "ACTUAL DICE":
            name = played.due
        if name is not None:
            self._sees(played, name, inferred=True)
            self._infer(message, played, "wants_to_see", name, ("sees", name))

    def _who_sees(self, played: Round) -> str | None:
        """The player whose SEE the server has not yet answered."""
        for seat in self._seats.values():
            question = seat.open.get("turn")
            if (
                question is not None
                and question.game_id == played.game.id
                and not question.over
                and question.answer is not None
                and question.answer.name == "SEE"
            ):
                return seat.name
        return None

    def _actual_dice(self, message: Message, seat: Seat) -> None:
        dice: str = message.fields["dice"]
        key = ("actual", dice)
        if self._log.is_copy(message, key):
            return
        played = self._playing(message)
        self._infer_see(message, played)
        played.actual = dice
        self._put(played, dice, "actual")
        self._tell(message, "actual_dice", None, {"dice": dice}, played, (seat, key))
        name = played.last.name if played.last is not None else None
        if played.whole and name is not None and played.rolled.get(name, dice) != dice:
            rolled = played.rolled[name]
            self._accuse(message, "other-dice/shown", player=name, rolled=rolled, dice=dice)

    # The end of a round.

    def _player_lost(self, message: Message, seat: Seat) -> None:
        names = self._registration.split(message.fields["names"])
        reason: str = message.fields["reason"]
        key = ("lost", text_key(message.fields_json))
        if self._log.is_copy(message, key):
            return
        played = self._playing(message)
        self._infer_see(message, played)
        against = objection(names, reason, played.evidence()) if played.whole else None
        kind = _LATE_REASONS.get(reason)
        loser = self._registration.seat_of(names[0]) if len(names) == 1 else None
        if loser is not None and kind is not None:
            self._answers.missed(loser, kind, message)
        self._close_questions("turn", played)
        self._close_questions("announce", played)
        if played.game.result is None:
            played.game.result = {"losers": names, "reason": reason}
            self.changed_game(played.game)
            if played is self._round:
                self._points.lost(names)
        if played.phase == "started":
            played.phase = "lost"
            played.over_ns = message.ts_ns
            self._put(played, "lost", "phase")
            self._put(played, None, "turn")
            self._put(played, {"names": names, "reason": reason}, "lost")
        self._tell(message, "lost", None, {"names": names, "reason": reason}, played, (seat, key))
        if against is not None:
            losers = ", ".join(names)
            self._accuse(message, "wrong-verdict", losers=losers, reason=reason, objection=against)

    def _score(self, message: Message, seat: Seat) -> None:
        scores: dict[str, int] = message.fields["scores"]
        key = ("score", text_key(message.fields_json))
        if self._log.is_copy(message, key):
            return
        played = self._round
        if self._unscored is not None and (played is None or played.phase == "starting"):
            played = self._unscored
        elif self._is_extra(message, scores):
            return
        elif played is not None and played.phase == "starting":
            played = None
        self._unscored = None
        if self._points.show_new_start(scores):
            self._begin_anew(message, self._points.possible_newcomers)
        for name, points in scores.items():
            self._registration.seen(name)
            self.put(points, "scores", name)
        if played is not None:
            self._check_points(message, played, scores)
            played.scored = True
            self._leave(played, message.ts_ns)
        self._points.tell(scores)
        self._tell(message, "score", None, {"scores": scores}, played, (seat, key))

    def _is_extra(self, message: Message, scores: dict[str, int]) -> bool:
        """Whether a spectator is told the points although no round is over, as a fork's server does."""
        played = self._round
        if played is not None and (played.phase not in ("starting", "started") or played.game.result):
            return False
        just_registered = message.ts_ns - self._registered_ns < REORDERED_NS
        return self._points.repeat(scores) or (
            just_registered and played is not None and played.phase == "started"
        )

    # Checks.

    def _check_order(self, message: Message, played: Round, name: str) -> None:
        due = played.rolling if played.rolling is not None and played.whole else played.due
        if played.phase == "started" and due is not None and name != due:
            self.flaw(message, "out-of-turn", player=due)
            self._missing(played, "announced")

    def _check_announcement(self, message: Message, name: str, dice: str) -> None:
        """What the server tells everybody must be what the player announced."""
        seat = self._registration.seat_of(name)
        question = seat.open.get("announce") if seat is not None else None
        if question is None or question.over:
            return
        question.over = True
        # What is flawed to us may have been good enough for the server.
        if question.answer is not None and not question.tried and question.answer.fields["dice"] != dice:
            announced = question.answer.fields["dice"]
            self._accuse(message, "other-dice/announced", player=name, announced=announced, dice=dice)

    def _close_questions(self, kind: QuestionKind, played: Round) -> None:
        for seat in self._seats.values():
            question = seat.open.get(kind)
            if question is not None and question.game_id == played.game.id:
                question.over = True
