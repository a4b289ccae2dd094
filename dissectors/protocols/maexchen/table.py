"""The Mäxchen table: from messages to rounds, rolls, announcements, losses and points.

A game is a round. All registered clients receive the same broadcasts in separate datagrams; the broadcast log
makes one event of the copies. The content of missing messages is inferred where possible, and no violations
are reported for incomplete context.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from kiebitz.dissectors.game.broadcast_dedup import REORDERED_NS, broadcast_key
from kiebitz.dissectors.game.connections import Connections
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction, Findings, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.protocols.maexchen import registration, turns
from kiebitz.dissectors.protocols.maexchen.context import MaexchenContext
from kiebitz.dissectors.protocols.maexchen.round_state import (
    ANSWER_WINDOW_NS,
    ClientConnection,
    QuestionKind,
    Round,
    missing_evidence,
    objection,
)

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
        super().__init__(MaexchenContext(info, ids, findings))
        self.context.connections = Connections(partial(_new_connection, self.context))

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        context, stream = self.context, message.stream
        connection = context.connections.get(stream.id)
        if connection is None:
            connection = context.connections.of(stream)
            if row.name not in _REGISTRATIONS | _TO_UNREGISTERED:
                connection.middle_ns = message.ts_ns
        if message.direction == "s2c":
            context.note_dialect(message, row)
            if row.name not in _TO_UNREGISTERED:
                _spoken_to(context, connection, message.ts_ns)
            elif row.name == "REJECTED" and not connection.addressed:
                turns.addressed(context, connection)
        elif valid and row.name not in _REGISTRATIONS:
            context.note_dialect(message, row)
        if row.name in _REGISTRATIONS:
            # Real servers accept a name that is not UTF-8.
            if len(message.fields) == len(row.fields):
                connection.registering.append((message, row))
            else:
                connection.nameless = True
        elif (
            valid
            and (handler := _HANDLERS.get(row.name)) is not None
            and not (
                row.broadcast and context.log.is_copy(message, broadcast_key(row.name, message.fields_json))
            )
        ):
            handler(context, message, connection)
        if context.unsure:
            turns.judge_unsure(context, message.ts_ns)

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        connection = self.context.connections.of(stream)
        if direction == "c2s" or is_gap:
            connection.doubt_answers()
        if direction == "s2c" or is_gap:
            connection.doubt_questions(ts_ns)

    def unreachable(self, stream: Stream) -> None:
        self.context.port_was_closed = True

    def closed(self, stream: Stream, ts_ns: int) -> None:
        self.context.log.forget(stream.id)
        self.context.points.newcomers.discard(stream.id)
        connection = self.context.connections.pop(stream.id, None)
        if connection is not None:
            registration.disconnect(self.context, connection)
            # The tokens are kept longer, and the connection with them.
            connection.questions.clear()
            connection.open.clear()

    def finish(self, ts_ns: int) -> None:
        turns.judge_unsure(self.context, ts_ns, ANSWER_WINDOW_NS)


def _new_connection(context: MaexchenContext, stream: Stream) -> ClientConnection:
    """Return a new connection; a client that was idle may be known already."""
    connection = ClientConnection(stream)
    for name in registration.names_at(context, stream.client):
        registration.assign(context, connection, name)
    return connection


# Who is there.


def _spoken_to(
    context: MaexchenContext, connection: ClientConnection, ts_ns: int, newly: bool = False
) -> None:
    """Note a message from the server to a registered client, or to one `newly` registered."""
    if not connection.addressed:
        turns.addressed(context, connection)
    connection.gone = False
    if newly:
        context.points.registered(connection.stream.id)
    else:
        context.points.spoken_to(connection.stream.id)
    context.port_was_closed = False
    context.spoke_ns = ts_ns


def _registered(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    if _was_down(context, message.ts_ns):
        context.forget(context.spoke_ns)
        _restart(context, message, ())
    _spoken_to(context, connection, message.ts_ns, newly=True)
    context.log.begin(connection.stream.id, message.ts_ns)
    context.registered_ns = message.ts_ns
    registration.registered(context, message, connection)


def _was_down(context: MaexchenContext, ts_ns: int) -> bool:
    """Return True if the server was down right before: one with clients is never silent for long."""
    if context.port_was_closed:
        return True
    silent = ts_ns - context.spoke_ns >= _SILENCE_NS
    return silent and any(
        connection.addressed and not connection.gone for connection in context.connections.values()
    )


def _restart(context: MaexchenContext, message: Message, newcomers: Collection[int] | None) -> None:
    """Reset the table after a restart of the server; it knows the streams `newcomers` (None: unknown)."""
    context.report_violation(message, "restarted")
    if newcomers is not None:
        registration.restart(context, newcomers)
        for number, connection in context.connections.items():
            connection.gone = number not in newcomers
    if "scores" in context.state:
        context.set_state(None, "scores")
    context.points.restart()
    context.last_number = None


def _unregistered(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    name = registration.unregistered(context, message, connection)
    played = context.current
    if name is not None and played is not None and name in played.state.get("private", {}):
        played.set_state(None, "private", name)
    context.emit_of(message, "unregistered", name, {"name": name}, None)


# Rounds begin and end.


def _round_starting(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    number = message.fields.get("round")
    # Each copy has another token.
    key = ("starting", number)
    if not context.log.is_copy(message, key):
        played = context.begin(message, number)
        context.emit_broadcast(message, "round_starting", None, {"round": number}, played, key)
    assert message.game_id is not None
    turns.asked(context, connection, "join", message, message.game_id)


def _join(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    question = turns.answered(context, connection, "join", message)
    played = context.current
    if question is None or played is None or played.game.id != question.game_id:
        return
    if connection.name is not None:
        played.set_state(True, "private", connection.name, "joined")
    context.emit_of(message, "joined", connection.name, {"name": connection.name}, played.game)


def _round_started(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    number: int | None = message.fields.get("round")
    players = registration.split(context, message.fields["players"])
    played = context.current
    if context.number_decreased(number, message.ts_ns):
        _restart(context, message, context.points.possible_newcomers)
    if played is None or not (played.phase == "starting" or context.overtaken(played, message.ts_ns)):
        played = context.begin(message, number)
    elif number is not None and number != played.number:
        played.game.label = f"round {number}"
        context.changed_game(played.game)
    if number is not None:
        played.number = number
        played.set_known("round", number)
    turns.close(context, "join", played)
    if played.phase == "starting":
        played.phase = "started"
        played.certain = True
    played.players = players
    played.started_ns = message.ts_ns
    played.set_state("started", "phase")
    played.set_known("players", players)
    played.set_state(None, "private")
    for name in players:
        registration.seen(context, name)
    context.count_start(played)
    data = {"round": played.number, "players": players}
    context.emit_broadcast(message, "round_started", None, data, played)


def _round_canceled(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    reason: str = message.fields["reason"]
    played = context.current
    # Only a round that has started with one player can still be called off.
    if played is None or not (
        played.phase == "starting" or (played.phase == "started" and len(played.players or ()) < 2)
    ):
        played = context.begin(message, None)
    if played.phase == "starting" and "player" in reason and not reason.lower().startswith("no"):
        # The round had started with one player, who got a point; that was not seen.
        context.points.forget()
    turns.close(context, "join", played)
    played.phase = "canceled"
    played.over_ns = message.ts_ns
    played.end(message.ts_ns, {"canceled": reason})
    played.set_state("canceled", "phase")
    context.emit_broadcast(message, "round_canceled", None, {"reason": reason}, played)


# The end of a round.


def _player_lost(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    names = registration.split(context, message.fields["names"])
    reason: str = message.fields["reason"]
    against = _second_loss(context, message)
    played = context.playing(message)
    turns.infer_see(context, message, played)
    if played.certain and against is None:
        against = objection(names, reason, played)
    kind = _LATE_REASONS.get(reason)
    loser = registration.connection_of(context, names[0]) if len(names) == 1 else None
    if loser is not None and kind is not None:
        turns.missed(context, loser, kind, message)
    turns.close(context, "turn", played)
    turns.close(context, "announce", played)
    if played.game.result is None:
        played.game.result = {"losers": names, "reason": reason}
        context.changed_game(played.game)
        if played is context.current:
            context.points.lost(names)
    if played.phase == "started":
        played.phase = "lost"
        played.over_ns = message.ts_ns
        played.set_state("lost", "phase")
        played.set_state(None, "turn")
        played.set_state({"names": names, "reason": reason}, "lost")
    context.emit_broadcast(message, "lost", None, {"names": names, "reason": reason}, played)
    losers, missing = ", ".join(names), missing_evidence(reason, played)
    if against is not None:
        context.report_server_violation(
            message, "wrong-verdict", losers=losers, reason=reason, objection=against
        )
    elif missing is not None:
        context.report_violation(message, "loss-unexplained", losers=losers, reason=reason, missing=missing)


def _second_loss(context: MaexchenContext, message: Message) -> str | None:
    """Return the objection to another loss right after that of the same round, if it is one."""
    played = context.current
    if played is None or played.phase != "lost" or not played.certain or played.over_ns is None:
        return None
    losers = (played.game.result or {}).get("losers")
    if message.ts_ns - played.over_ns >= REORDERED_NS or losers is None:
        return None
    return f"{', '.join(losers)} had lost this round already"


def _score(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    scores: dict[str, int] = message.fields["scores"]
    played = context.current
    if context.unscored is not None and (played is None or played.phase == "starting"):
        played = context.unscored
    elif _is_extra(context, message, scores):
        return
    elif played is not None and played.phase == "starting":
        played = None
    context.unscored = None
    if context.points.shows_restart(scores):
        _restart(context, message, context.points.possible_newcomers)
    for name, points in scores.items():
        registration.seen(context, name)
        context.set_state(points, "scores", name)
    wrong = context.points.wrong(scores)
    if wrong and _is_due(context, message, played):
        context.report_server_violation(message, "wrong-score", problem="; ".join(wrong))
    context.scored_ns = message.ts_ns
    if played is not None:
        played.scored = True
        context.leave(played, message.ts_ns)
    context.points.announce(scores)
    context.emit_broadcast(message, "score", None, {"scores": scores}, played)


def _is_due(context: MaexchenContext, message: Message, played: Round | None) -> bool:
    """Return True if the points must follow from the rounds: no part of a round can be missing."""
    if played is not None:
        return played.certain and played.game.result is not None
    # The second announcement after a round.
    since_ns = message.ts_ns - REORDERED_NS
    return context.scored_ns > since_ns and context.registered_ns <= since_ns


def _is_extra(context: MaexchenContext, message: Message, scores: dict[str, int]) -> bool:
    """Return True for points sent to a spectator during a round, as a fork's server does."""
    played = context.current
    if played is not None and (played.phase not in ("starting", "started") or played.game.result):
        return False
    just_registered = message.ts_ns - context.registered_ns < REORDERED_NS
    return context.points.is_repeat(scores) or (
        just_registered and played is not None and played.phase == "started"
    )


_HANDLERS: dict[str, Callable[[MaexchenContext, Message, ClientConnection], None]] = {
    "ROUND STARTING": _round_starting,
    "JOIN": _join,
    "ROUND STARTED": _round_started,
    "ROUND CANCELED": _round_canceled,
    "YOUR TURN": turns.your_turn,
    "ROLL": turns.takes_turn,
    "SEE": turns.takes_turn,
    "PLAYER ROLLS": turns.player_rolls,
    "ROLLED": turns.rolled,
    "ANNOUNCE": turns.announces,
    "ANNOUNCED": turns.announced,
    "PLAYER WANTS TO SEE": turns.player_wants_to_see,
    "ACTUAL DICE": turns.actual_dice,
    "PLAYER LOST": _player_lost,
    "SCORE": _score,
    "REGISTERED": _registered,
    "UNREGISTERED": _unregistered,
    "REJECTED": registration.rejected,
}
"""The handlers of messages by name."""
