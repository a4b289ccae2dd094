"""The table of a protocol file: events, rules, players and state, as the file describes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.game.broadcast_dedup import REORDERED_NS, BroadcastLog, text_key
from kiebitz.dissectors.game.context import GameContext, label
from kiebitz.dissectors.game.table import GameTable, LimitError
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import Grammar, MessageType
from kiebitz.dissectors.grammar.sentences import value_at
from kiebitz.dissectors.model import OPPOSITE, Direction, Event, Findings, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.protocol_file.expressions import WHO, Doubt, Question, Scope
from kiebitz.dissectors.protocol_file.game.plan import GAMES, ROOMS, EventPlan, Plan, RowPlan, RulePlan
from kiebitz.dissectors.protocol_file.game.players import Connection, Place, Players, Rooms
from kiebitz.dissectors.protocol_file.game.requests import Answer, Requests
from kiebitz.dissectors.protocol_file.game.roles import NULL_IDS
from kiebitz.dissectors.protocol_file.game.state import Budget, GameState, Opening, UnfinishedMessage
from kiebitz.dissectors.protocol_file.templates import value_words
from kiebitz.dissectors.protocol_file.values import step_text

MAX_EVENTS = 64
"""Maximum number of events of one message."""


class _Broadcast(msgspec.Struct, eq=False):
    """A message to all clients, with its event and its game."""

    ts_ns: int
    event_id: int | None
    game_id: int | None


class FileTable(GameTable):
    """The table of one server, with one game at a time, or one in each room."""

    def __init__(self, plan: Plan, grammar: Grammar, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(GameContext(info, ids, findings, grammar.rules))
        self._plan = plan
        self._players = Players(plan.waits, plan.has_names, plan.at_ports)
        shared = Budget() if plan.rooms is None else Budget((GAMES, ROOMS))
        self._state = self._table = GameState(self.context, shared)
        """The state of what the current message belongs to: the table, or a room."""
        self._rooms = Rooms(plan.rooms, self.context, self._table) if plan.rooms is not None else None
        self._gapped: set[int] = set()
        """The streams whose messages are not all in the capture: one of them may have named the player."""
        self._requests = Requests(plan.specification.transport == "udp")
        self._log: BroadcastLog[_Broadcast] | None = None
        self._events = 0
        """Number of events of the current message."""
        self._last: Event | None = None
        """The last reported event of the current message."""
        self._receiver: int | None = None
        """The stream of the current message if each client may receive one of its own."""

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        connections = self._players.connections
        stream_id = message.stream.id
        connection = connections.get(stream_id) or self._players.connection(message.stream)
        plan = self._plan.by_row.get(id(row))
        if plan is None or not valid:
            # Without a plan it is a message of what carries the protocol's own.
            return
        self.context.note_dialect(message, row)
        if plan.is_quiet and (plan.row.broadcast or not self._plan.ties_connections):
            return
        if not plan.row.broadcast:
            self._handle(message, plan, connection)
            return
        log = self._log
        if log is None:
            # A network may double and reorder datagrams.
            is_udp = message.stream.transport == "udp"
            log = self._log = BroadcastLog(doubled=is_udp, overtaken_ns=REORDERED_NS if is_udp else 0)
        place = None
        if self._rooms is not None:
            fields = self._fields(message, plan)
            place = self._place(message, fields, self._who(plan, connection, message.fields)[0], None)
        key = (row.name, text_key(message.fields_json), place.room if place is not None else None)
        known = log.match_copy(stream_id, key, message.ts_ns)
        if known is not None:
            message.event_id, message.game_id = known.event_id, known.game_id
            if plan.role.accepts:
                self._players.learn(plan.role, connection, self._fields(message, plan))
            if plan.asks:
                self._ask(message, plan, self._fields(message, plan), None)
            return
        self._handle(message, plan, connection, place)
        log.add(stream_id, key, _Broadcast(message.ts_ns, message.event_id, message.game_id))

    def share_rooms(self, whole: GameTable) -> bool:
        if self._rooms is None or not isinstance(whole, FileTable) or whole._rooms is None:
            return False
        self._rooms.share(whole._rooms)
        return True

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        # A stream that is new here only began before the capture: nothing that it brought is in the state.
        if not is_gap or stream.id in self._players.connections:
            for state in [self._table] if self._rooms is None else self._rooms.states():
                state.doubt.begin(self._plan.changed_by[direction])
        if is_gap:
            self._gapped.add(stream.id)
        if self._rooms is not None:
            self._rooms.doubt(stream.id)
        if self._plan.keeps_requests:
            self._requests.doubt(stream.id, direction)

    def closed(self, stream: Stream, ts_ns: int) -> None:
        if self._log is not None:
            self._log.forget(stream.id)
        self._gapped.discard(stream.id)
        self._requests.close(stream.id)
        who = self._players.close(stream.id)
        if self._rooms is not None:
            self._state = self._rooms.state(self._rooms.of_client(stream.id, who), ts_ns)
            self._rooms.close(stream.id)
        self._state.leave(self._players.connections)
        if who is not None:
            self._begin_message()
            scope = Scope({}, who, self._state.states, lenient=True)
            for event in self._plan.leaving:
                _let(event, scope)
                if event.when is None or event.when.holds(scope):
                    self._emit(event, scope, who, ts_ns)
            self._amend()

    def _fields(self, message: Message, plan: RowPlan) -> dict[str, Any]:
        """Return the fields with names in place of ids."""
        if not (plan.absent or plan.conversions or plan.keys):
            return message.fields
        fields = {**plan.absent, **message.fields}
        resolve = self._players.resolve
        for name, convert in plan.conversions:
            if name in fields:
                fields[name] = convert(fields[name], resolve)
        for name, key in plan.keys.items():
            if name in fields:
                fields[key] = fields[name]
        return fields

    def _place(self, message: Message, fields: Fields, who: str | None, asked: Question | None) -> Place:
        """Return the room of a message."""
        assert self._rooms is not None, "the file has several games at once"
        client = self._room_of(message.stream.id, who)
        return self._rooms.place(
            message.stream.id, message.direction, message.name, fields, who, asked, client
        )

    def _handle(
        self, message: Message, plan: RowPlan, connection: Connection, place: Place | None = None
    ) -> None:
        """Handle a message; the `place` of one to all is known."""
        self._begin_message()
        row = plan.row
        if row.direction == "s2c" and not (row.broadcast or row.answers):
            self._receiver = message.stream.id
        players = self._players
        if plan.role.refuses:
            who, is_claimed = self._who(plan, connection, message.fields)
        if not plan.role.is_silent:
            for id in players.learn(plan.role, connection, message.fields):
                self._state.rename(id, players.resolve(id))
        if plan.row.direction == "c2s" and not plan.role.logs_in:
            connection.is_accepted = True
        fields = self._fields(message, plan)
        if not plan.role.refuses:
            who, is_claimed = self._who(plan, connection, message.fields)
        # A player whom the server has not accepted acts under no name.
        actor = None if is_claimed and who != players.confirmed(connection) else who
        asked = self._answered(message, plan, who, place) if self._plan.keeps_requests else None
        if self._rooms is not None:
            place = place or self._place(message, fields, who, asked)
            self._state = self._rooms.state(place, message.ts_ns)
        has_certain_place = place is None or place.is_certain
        scope = Scope(fields, who, self._state.states)
        scope.asked = asked
        if plan.rules and has_certain_place:
            scope.doubt = self._doubt_of(message)
            for rule in plan.rules:
                self._check(rule, scope, message)
        scope.lenient = True
        scope.doubt = self._state.doubt if self._state.doubt else None
        for event in plan.events:
            scope.is_doubtful = False
            _let(event, scope)
            happens = event.when is None or event.when.holds(scope)
            # Whether it happens may depend on a player who is not known.
            is_unclear = happens is None and who is None and message.stream.id in self._gapped
            is_certain = has_certain_place and not scope.is_doubtful and not is_unclear
            if happens:
                self._emit(event, scope, actor, message.ts_ns, message)
                scope.states = self._state.states
            if not is_certain:
                self._state.doubt.begin(event.changes)
        self._amend()
        if plan.asks:
            self._ask(message, plan, fields, who)
        if plan.role.leaves:
            players.leave(who)
            if who is not None and not self._plan.has_events:
                self._state.set(None, ("players", who))
        self._tie(message, plan, connection)
        if self._rooms is not None:
            self._rooms.leave(message.stream.id, message.name, who)
        self._state.measure()

    def _ask(self, message: Message, plan: RowPlan, fields: Fields, who: str | None) -> None:
        """Keep a request for its answer."""
        references = [_values(message, each.of) for each in self._plan.specification.references]
        self._requests.ask(
            (message.stream.id, message.direction),
            message.name,
            who,
            {WHO: who, **fields},
            references,
            len(message.fields_json),
        )

    def _answered(self, message: Message, plan: RowPlan, who: str | None, place: Place | None) -> Question:
        """Return the request that a message answers."""
        if not plan.answers:
            return Question()
        answer = Answer(
            (message.stream.id, OPPOSITE[message.direction]),
            message.name,
            plan.answers,
            [_values(message, each.by) for each in self._plan.specification.references],
            who,
            self._is_near(message, place),
        )
        return self._requests.answered(answer, to_all=plan.row.broadcast)

    def _is_near(self, message: Message, place: Place | None) -> Callable[[int], bool]:
        """Return the function that is true of the streams in the room of a message; of all without one."""
        if self._rooms is None:
            return lambda stream_id: True
        room = (place or self._room_of(message.stream.id)).room
        return lambda stream_id: room is None or self._room_of(stream_id).room == room

    def _room_of(self, stream_id: int, who: str | None = None) -> Place:
        """Return the room of a connection, or else of a player, by default the connection's."""
        assert self._rooms is not None, "the file has several games at once"
        connection = self._players.connections.get(stream_id)
        if who is None and connection is not None:
            who = self._players.player_of(connection)
        return self._rooms.of_client(stream_id, who)

    def _doubt_of(self, message: Message) -> Doubt | None:
        """Return the doubt about the state when a message was sent; None if all is certain."""
        opposite = OPPOSITE[message.direction]
        if self.context.is_unfinished(message.stream, opposite):
            return UnfinishedMessage(self._state.doubt, self._plan.changed_by[opposite])
        return self._state.doubt or None

    def _who(self, plan: RowPlan, connection: Connection, fields: Fields) -> tuple[str | None, bool]:
        """Return the player of a message, and True if it is what the connection's client claims to be."""
        role = plan.role
        if role.is_own and (player := self._players.player_of(connection)) is not None:
            return player, True
        if role.who is not None:
            value = value_at(fields, role.who)
            if not isinstance(value, dict | list | bool) and value not in NULL_IDS:
                is_name = role.who == role.name and role.who != role.id
                return label(step_text(value)) if is_name else self._players.resolve(value), role.logs_in
        return (None, False) if plan.row.broadcast else (self._players.player_of(connection), True)

    def _tie(self, message: Message, plan: RowPlan, connection: Connection) -> None:
        """Report the player of a connection once it is known, if the file has no event for that."""
        if (
            connection.is_proven
            or plan.row.broadcast
            or plan.row.heartbeat
            or not self._plan.ties_connections
        ):
            return
        name = self._players.confirmed(connection)
        if name is None or message.event_id is not None:
            return
        connection.is_proven = True
        self.context.emit_of(message, self._plan.connected, name, {WHO: name}, self._state.game)

    def _begin_message(self) -> None:
        self._events = 0
        self._last = None
        self._receiver = None
        self._state.begin_message()

    # Events.

    def _emit(
        self, plan: EventPlan, scope: Scope, who: str | None, ts_ns: int, message: Message | None = None
    ) -> None:
        """Report an event of a player, with its changes of the state and of the game."""
        self._events += 1
        if self._events > MAX_EVENTS:
            raise LimitError(f"one message causes more than {MAX_EVENTS} events")
        if message is not None:
            self.context.decoded_bytes += len(message.fields_json)
        state = self._state
        actor = who if plan.actor is None else _name(plan.actor.evaluate(scope))
        data: dict[str, Any] = {**self._plan.fields[plan.kind]}
        hidden = self._plan.hidden
        if hidden:
            data.update((key, value) for key, value in scope.fields.items() if key not in hidden)
        else:
            data.update(scope.fields)
        if plan.spec.opens and not state.has_begun(plan.kind, self._receiver):
            if state.game is not None:
                state.close(dict.fromkeys(self._plan.result_keys), ts_ns)
            state.open(self._label(plan, scope), ts_ns)
            state.opening = None
            if self._receiver is not None and message is not None:
                state.opening = Opening(plan.kind, message.name, {self._receiver})
            scope.states = state.states
        elif state.opening is not None and message is not None and message.name != state.opening.message:
            state.opening.is_past = True
        state.put_all(plan.puts, scope)
        if not self._plan.has_events and actor is not None:
            # Messages alone tell at least who is there.
            state.add_player(actor)
        if plan.spec.turn:
            state.set(actor, ("turn",))
        if plan.spec.silent:
            return
        if plan.say is not None:
            self.context.decoded_bytes += plan.say.max_length
        for word, expression in plan.values.items():
            if data[word] is None:
                data[word] = _shortened(expression.evaluate(scope))
        game = state.game
        if plan.spec.closes:
            result = {
                key: value if expression is None else _shortened(expression(scope))
                for key, value, expression in plan.result
            }
            state.close({**dict.fromkeys(self._plan.result_keys), **result}, ts_ns)
        event = self._last = self.context.emit(plan.kind, ts_ns, actor, data, game)
        if message is not None and message.event_id is None:
            message.event_id, message.game_id = event.id, event.game_id

    def _amend(self) -> None:
        """Add the changes of silent events to the event of their message; else they are the next one's."""
        if self._last is None:
            self.context.compact()
        elif self.context.pending_changes:
            self.context.amend(self._last)

    def _label(self, plan: EventPlan, scope: Scope) -> str:
        if plan.label is not None:
            values = plan.label.evaluate(scope)
            return label(plan.label.fill(lambda word: value_words(values[word])))
        players = next(filter(None, (state.get("players") for state in self._state.states)), None)
        if isinstance(players, dict) and 1 < len(players) < 9:
            return label(" – ".join(players))
        game, room = self._plan.specification.game, self._state.room
        if game is None or room is None:
            return self._plan.specification.title
        return label(f"{game.id if game.id.isidentifier() else self._plan.specification.title} {room}")

    # Rules.

    def _check(self, rule: RulePlan, scope: Scope, message: Message) -> None:
        """Report a violation if the condition is true and the demand false; unknown values are neither."""
        if rule.of_game and self._plan.opens_games and self._state.game is None:
            # A game that is on began before the capture.
            return
        if rule.of_game and self._rooms is not None and self._state is self._table:
            # It may be about any of the games.
            return
        _let(rule, scope)
        if rule.when is not None and rule.when.holds(scope) is not True:
            return
        if rule.unless is not None and rule.unless.holds(scope) is not False:
            return
        compared = rule.unless or rule.when
        known = compared.known(scope) if compared is not None else None
        inner = Scope({**scope.fields, "known": known}, scope.who, scope.states)
        inner.asked, inner.locals = scope.asked, scope.locals
        values = {**rule.say.evaluate(inner), **(rule.expected.evaluate(inner) if rule.expected else {})}
        words: dict[str, Any] = {word: value_words(value) for word, value in values.items()}
        self.context.report_violation(message, rule.spec.key, **words)


def _values(message: Message, names: Sequence[str]) -> tuple[Any, ...] | None:
    """Return the values of some fields; None if one is absent."""
    fields = message.fields
    values = tuple(fields[name] if name in fields else value_at(fields, name.split(".")) for name in names)
    return None if None in values else values


def _let(plan: EventPlan | RulePlan, scope: Scope) -> None:
    """Set the values that the plan names."""
    if scope.locals:
        scope.locals = {}
    for name, expression in plan.let:
        scope.let(name, expression.evaluate)


def _name(value: Any) -> str | None:
    """Return a value as the name of a player."""
    return None if value is None or isinstance(value, dict | list | bool) else label(step_text(value))


def _shortened(value: Any) -> Any:
    return label(value) if isinstance(value, str) else value
