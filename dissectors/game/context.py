"""The context of a game table: its state, events, games and diagnostics.

A protocol whose table has several parts derives its own context, which they share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from kiebitz.dissectors.game.broadcast_dedup import EventLog, broadcast_key
from kiebitz.dissectors.game.state import RunningGame, State, set_at
from kiebitz.dissectors.grammar.grammar import MessageType, Rule, blame_of, to_json
from kiebitz.dissectors.grammar.sentences import value_at
from kiebitz.dissectors.model import (
    Blame,
    Change,
    Diagnostic,
    Direction,
    Event,
    Findings,
    Game,
    Group,
    Ids,
    Message,
    Severity,
    Snapshot,
    Stream,
    TableInfo,
)

EVENT_BYTES = 1000
"""Memory in bytes that an event takes without its values."""

_DIAGNOSTIC_BYTES = 300
"""Memory in bytes that a diagnostic takes without its sentences."""

SNAPSHOT_EVERY = 200
"""Number of events between two snapshots, which bounds the events to replay for a seek."""

DIALECT = "dialect"
"""Code of a deviation from the specification that is noted once per table."""

_MAX_GAMES_ON = 256

_MAX_PENDING = 1000
"""Maximum number of changes that wait for the next event."""

_MAX_LABEL_LENGTH = 200
_CUT_LABEL = 60


def label(name: str) -> str:
    """Return a name for events and the state, shortened if it is very long."""
    return name if len(name) <= _MAX_LABEL_LENGTH else f"{name[:_CUT_LABEL]}…"


class GameContext:
    """The state, events, games and diagnostics of one table; `rules` are those of the grammar."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings, rules: Mapping[str, Rule]) -> None:
        self.info = info
        self.rules = rules
        self.state: State = {}
        self.log = EventLog(doubled=False, overtaken_ns=0)
        """The latest broadcasts of the server, to recognise their copies."""
        self._ids = ids
        self._findings = findings
        self._seq = 0
        self._changes: list[Change] = []
        self._noted: set[str] = set()
        self.decoded_bytes = 0
        """Approximate memory in bytes of the findings that the inspector has not counted yet."""
        self.allowance = 0
        """Approximate memory in bytes of further findings that the messages so far allow."""
        self.certain = True
        """False if a message that could not be read may have changed the state: no rule is reported then."""
        self.games_on: dict[int, Game] = {}
        """Running games by number: the latest ones, if some never end."""
        self.is_unfinished: Callable[[Stream, Direction], bool] = lambda stream, direction: False
        """A function that returns True if bytes of an incomplete message have arrived in a direction of a
        stream.
        """
        self.peers: Sequence[GameContext] = ()
        """The contexts of all tables of the same protocol in this session, including this one."""

    def set_state(self, value: Any, *path: str) -> None:
        """Set the value at `path` of the state, or remove it if None; the next event contains the change."""
        if set_at(self.state, path, value):
            self.record_change([*path], value)

    def record_change(self, path: list[str], value: Any) -> None:
        """Add a change of the state to the next event."""
        self._changes.append((path, value))

    @property
    def pending_changes(self) -> Sequence[Change]:
        """Changes that will be part of the next event."""
        return self._changes

    def emit(
        self, kind: str, ts_ns: int, actor: str | None, data: dict[str, Any], game: Game | None = None
    ) -> Event:
        """Report an event, with all changes of the state since the last one."""
        self._ids.event += 1
        self._seq += 1
        game_id = game.id if game is not None else None
        event = Event(
            self._ids.event, self.info.id, game_id, self._seq, ts_ns, kind, actor, data, self._changes
        )
        self._changes = []
        self.decoded_bytes += EVENT_BYTES
        self._findings.events.append(event)
        if self._seq % SNAPSHOT_EVERY == 0:
            state = to_json(self.state)
            self.decoded_bytes += len(state)
            self._findings.snapshots.append(Snapshot(self.info.id, self._seq, ts_ns, state))
        return event

    def compact(self) -> None:
        """Replace the pending changes by the whole values that they have led to, if there are many."""
        if len(self._changes) <= _MAX_PENDING:
            return
        # Below `games` and the number of a game are its keys.
        tops = dict.fromkeys(tuple(path[: 3 if path[0] == "games" else 1]) for path, _ in self._changes)
        self._changes = [([*top], deepcopy(value_at(self.state, top))) for top in tops]

    def amend(self, event: Event) -> None:
        """Add the changes of the state since the last event to it, whose message is still being handled."""
        event.changes.extend(self._changes)
        self._changes = []
        if event.seq % SNAPSHOT_EVERY == 0:
            self._findings.snapshots[-1] = Snapshot(self.info.id, event.seq, event.ts_ns, to_json(self.state))

    def emit_of(
        self, message: Message, kind: str, actor: str | None, data: dict[str, Any], game: Game | None = None
    ) -> Event:
        """Report the event of a message, which then refers to it and to its game."""
        event = self.emit(kind, message.ts_ns, actor, data, game)
        message.event_id, message.game_id = event.id, event.game_id
        return event

    def emit_broadcast(
        self,
        message: Message,
        kind: str,
        actor: str | None,
        data: dict[str, Any],
        running: RunningGame | None = None,
        key: Hashable = None,
    ) -> Event:
        """Report the event of a broadcast, and log it for its copies: under a key, or by its fields."""
        event = self.emit_of(message, kind, actor, data, running.game if running is not None else None)
        key = broadcast_key(message.name, message.fields_json) if key is None else key
        self.log.add(message.stream.id, key, event)
        return event

    def open_game(self, label: str, ts_ns: int) -> Game:
        """Report a new game, whose state is certain."""
        self.certain = True
        self._ids.game += 1
        game = Game(self._ids.game, self.info.id, self.info.protocol, label, ts_ns)
        self._findings.games.append(game)
        self.games_on[game.id] = game
        if len(self.games_on) > _MAX_GAMES_ON:
            del self.games_on[next(iter(self.games_on))]
        return game

    def open_part(self, label: str, ts_ns: int) -> tuple[GameContext, Game, tuple[str, str], State]:
        """Report a new game, and return the first values of its `RunningGame`."""
        game = self.open_game(label, ts_ns)
        place = "games", str(game.id)
        return self, game, place, self.state.setdefault(place[0], {}).setdefault(place[1], {})

    def changed_game(self, game: Game) -> None:
        """Report a new label, end or result of a game."""
        self._findings.games.append(game)
        if game.ended_ns is not None:
            self.games_on.pop(game.id, None)

    def report_violation(
        self,
        message: Message,
        key: str,
        /,
        *,
        at: tuple[int, int] | None = None,
        part: str | None = None,
        blame: Blame | None = None,
        **values: Any,
    ) -> None:
        """Report that `message` breaks the rule of this key; `values` fill the rule's templates.

        `at` is the offset and length in bytes of the error in the message; `part` names that part, after the
        sentence. `blame` is the side at fault, if the rule does not determine it.
        """
        if not self.certain:
            return
        rule = self.rules[key]
        text = rule.text.format_map(values)
        self.diagnose(
            message,
            rule.severity,
            rule.group,
            rule.code,
            text if part is None else f"{text} ({part})",
            expected=_filled(rule.expected, values),
            clause=_filled(rule.clause, values),
            blame=blame or rule.blame or blame_of(message.direction),
            at=at,
        )

    def diagnose(
        self,
        message: Message,
        severity: Severity,
        group: Group,
        code: str,
        text: str,
        *,
        expected: str | None = None,
        clause: str | None = None,
        blame: Blame = "unknown",
        at: tuple[int, int] | None = None,
    ) -> None:
        """Report a diagnostic of `message`, or of the part `at`: offset and length in bytes.

        Report a broken rule with `report_violation`, so that the reference lists each check.
        """
        self.decoded_bytes += _DIAGNOSTIC_BYTES + len(text) + len(expected or "")
        offset, length = at if at is not None else (0, message.length)
        self._findings.diagnostics.append(
            Diagnostic(
                message.stream,
                message.direction,
                message.ts_ns,
                severity,
                group,
                code,
                text,
                message.offset + offset,
                length,
                expected,
                clause,
                blame,
                message.id,
            )
        )

    def note_dialect(self, message: Message, row: MessageType) -> None:
        """Note, once per table, that a row of the grammar differs from the specification."""
        if row.deviation is not None:
            self.note_once(message, row.deviation, row.clause)

    def note_once(
        self, message: Message, deviation: str, clause: str, at: tuple[int, int] | None = None
    ) -> None:
        """Note, once per table, a deviation of a server or its clients from the specification."""
        if deviation not in self._noted:
            self._noted.add(deviation)
            self.diagnose(
                message,
                "note",
                "malformed",
                DIALECT,
                deviation,
                clause=clause,
                blame=blame_of(message.direction),
                at=at,
            )


def _filled(sentence: str | None, values: Mapping[str, object]) -> str | None:
    return None if sentence is None else sentence.format_map(values)
