"""The Schafkopf table: from messages to rounds, bids, cards, tricks, winners and accounts.

A game is a round. A broadcast makes one event, observed by all clients; a message to one client makes an
event of that client. `context.py` assigns messages to context, `order.py` checks their order, `snapshots.py`
reads the MODELs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction, Findings, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.protocols.schafkopf import bidding, order, snapshots
from kiebitz.dissectors.protocols.schafkopf.cards import NOBODY, SEATS, TRICKS
from kiebitz.dissectors.protocols.schafkopf.context import SchafkopfContext
from kiebitz.dissectors.protocols.schafkopf.round_state import ClientConnection, Round, is_confirmed, verdict

_ONCE = frozenset(("GEKLOPFT", "SPIELT", "MODUS", "KONTRA", "SIEGER"))
"""Messages that the server sends to each client once in a round, with the same fields."""

_MAX_NAMES = 1000
"""Maximum number of players, and of accounts, that are kept after they have left."""


class SchafkopfTable(GameTable):
    """One Schafkopf server: its players, and its consecutive rounds."""

    context: SchafkopfContext

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(SchafkopfContext(info, ids, findings))

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        connection = self.context.connections.of(message.stream)
        self.context.note_dialect(message, row)
        if not valid:
            return
        if connection.round is not None:
            message.game_id = connection.round.game.id
        if message.direction == "s2c":
            order.asked(self.context, message, connection)
            outside, inside = _SERVER, _SERVER_IN_ROUND
        elif order.answered(self.context, message, row, connection):
            outside, inside = _CLIENT, _CLIENT_IN_ROUND
        else:
            return
        if row.name in outside:
            outside[row.name](self.context, message, connection)
        elif row.name in inside:
            played = self.context.playing(connection, message.ts_ns)
            message.game_id = played.game.id
            is_once = message.direction == "s2c" and row.name in _ONCE
            if not (is_once and self.context.is_repeated(message, connection, played)):
                inside[row.name](self.context, message, connection, played)

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        # It may have been the answer, or the question.
        connection = self.context.connections.of(stream)
        connection.certain_question = connection.lead_due = False
        if direction == "s2c" or is_gap:
            connection.certain_round = connection.certain_cards = connection.certain_account = False

    def closed(self, stream: Stream, ts_ns: int) -> None:
        connection = self.context.connections.pop(stream.id, None)
        self.context.log.forget(stream.id)
        if connection is not None:
            assert stream.ending is not None
            _leaves(self.context, None, connection, stream.ending, ts_ns)
        if not self.context.connections:
            self.context.log.clear()


def _named(context: SchafkopfContext, message: Message, connection: ClientConnection) -> None:
    _remove_name(context, connection)
    name: str = message.fields["name"]
    connection.name = label(name)
    context.set_state(True, "players", connection.name, "here")
    context.emit_of(message, "joined", connection.name, {"name": name}, None)


def _remove_name(context: SchafkopfContext, connection: ClientConnection) -> None:
    """Remove a name, unless another client has the same."""
    name, connection.name = connection.name, None
    if name is not None and all(other.name != name for other in context.connections.values()):
        is_kept = len(context.state.get("players", {})) <= _MAX_NAMES
        context.set_state(None, "players", name, *(("here",) if is_kept else ()))


def _id(context: SchafkopfContext, message: Message, connection: ClientConnection) -> None:
    connection.id = message.fields["id"]
    connection.step = 0
    message.game_id = None


def _mitspieler(context: SchafkopfContext, message: Message, connection: ClientConnection) -> None:
    names: list[str] = message.fields["namen"]
    played = connection.round
    if connection.id is not None or played is None or played.ended or played.names not in (None, names):
        played = context.enter(connection, names, message.ts_ns)
    elif played.names is None:
        context.name(played, names)
    message.game_id = played.game.id
    if not context.is_repeated(message, connection, played):
        data = {"round": played.number, "names": names}
        context.emit_repeated(message, played, "round_started", None, data)


def _leaves(
    context: SchafkopfContext, message: Message | None, connection: ClientConnection, reason: str, ts_ns: int
) -> None:
    if connection.left or (connection.name is None and connection.round is None):
        return
    connection.left = True
    played = connection.round
    name = connection.name
    _remove_name(context, connection)
    data: dict[str, Any] = {"seat": connection.seat, "name": name, "reason": reason}
    game = played.game if played is not None else None
    if message is not None:
        context.emit_of(message, "left", name, data, game)
    else:
        context.emit("left", ts_ns, name, data, game)


def _beenden(context: SchafkopfContext, message: Message, connection: ClientConnection) -> None:
    _leaves(context, message, connection, "BEENDEN", message.ts_ns)


def _dran(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    seat: int = message.fields["dran"]
    connection.dran = seat
    # The first turn after a trick is its winner's; the next may be sent before the winner's card is
    # shown.
    leads, connection.lead_due = connection.lead_due, False
    key = ("turn", played.game.id, seat)
    if context.log.is_copy(message, key):
        return
    play = played.play
    if leads and 0 < connection.tricks == len(play.tricks) and not play.current.cards and not play.over:
        snapshots.leads(context, message, played, seat)
    who = played.who(seat)
    played.set_state(who, "turn")
    event = context.emit_of(message, "turn", who, {"seat": seat, "name": who}, played.game)
    context.log.add(message.stream.id, key, event)


# Cards.


def _model(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    if message.fields["flag"] in ("ERSTE3", "SPIELSTDU"):
        snapshots.dealt(context, message, connection, played)
    else:
        snapshots.shown(context, message, connection, played)


def _ende(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    connection.settled, connection.certain_account = played, True
    if not played.ended:
        snapshots.infer_last(context, message, connection, played)
        _end(context, message, played)
    else:
        told = played.broadcasts.get("ENDE")
        message.event_id = told[1] if told is not None else None
    if played.mode is None:
        _settle(context, message, connection, played)


def _end(context: SchafkopfContext, message: Message, played: Round) -> None:
    played.ended = True
    if played.play.over:
        reason = "played"
    elif played.mode is None:
        reason = "not played"
    else:
        reason = "broken off"
    played.advance("over")
    played.set_state(None, "turn")
    played.game.ended_ns = message.ts_ns
    _result(context, played)
    context.emit_repeated(message, played, "round_ended", None, {"reason": reason})


def _result(context: SchafkopfContext, played: Round, **more: Any) -> None:
    """Update the result of a round with what is known now."""
    before = played.game.result or {}
    result = {
        **before,
        "mode": played.mode,
        "player": played.who(played.player),
        "partner": played.who(played.partner),
        "points": played.points() if played.mode is not None else None,
        **more,
    }
    played.game.result = {"winner": None, "accounts": {}, **result}
    context.changed_game(played.game)


def _konto(context: SchafkopfContext, message: Message, connection: ClientConnection) -> None:
    if connection.id is not None:
        context.enter(connection, None, message.ts_ns)
    over = connection.settled
    if over is not None:
        message.game_id = over.game.id
        _settle(context, message, connection, over)
        connection.settled = None
    else:
        _note_account(context, message, connection)


def _settle(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    """Handle the change of a player's account after a round."""
    before = connection.account
    name = _note_account(context, message, connection)
    if name is None or (before == connection.account and message.name == "KONTO" and played.mode is None):
        return
    if before is not None and message.name == "KONTO":
        _check_account(context, message, connection, played, before)
    data = {"accounts": {name: connection.account}, "stock": message.fields.get("stock")}
    context.emit_of(message, "settled", name, data, played.game)
    accounts = {**(played.game.result or {}).get("accounts", {}), name: connection.account}
    _result(context, played, accounts=accounts)


def _check_account(
    context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round, before: int
) -> None:
    """Report an account that contradicts the winners of the round."""
    seat = next((seat for seat, stream in played.taken.items() if stream == message.stream.id), None)
    after: int = message.fields["konto"]
    if seat is None or played.winners is None or not connection.certain_account:
        return
    has_won = seat in played.winners
    if after < before if has_won else after > before:
        done, expected = ("won", f"at least {before}") if has_won else ("lost", f"at most {before}")
        context.report_violation(
            message,
            "wrong-account",
            player=played.who(seat),
            done=done,
            before=before,
            after=after,
            expected=expected,
        )


def _note_account(context: SchafkopfContext, message: Message, connection: ClientConnection) -> str | None:
    """Store an account; return its owner."""
    account: int = message.fields["konto"]
    connection.account = account
    if "stock" in message.fields:
        context.set_state(message.fields["stock"], "stock")
    name = connection.name
    accounts = context.state.get("accounts", {})
    if name is not None and (name in accounts or len(accounts) < _MAX_NAMES):
        context.set_state(account, "accounts", name)
    return name


def _stock(context: SchafkopfContext, message: Message, connection: ClientConnection) -> None:
    context.set_state(message.fields["stock"], "stock")


def _sieger(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    codes: tuple[int, int] = (message.fields["spieler"], message.fields["mitspieler"])
    won = [code for code in codes if code < NOBODY]
    lost = [code - 10 for code in codes if code > NOBODY]
    party = sorted({*won, *lost})
    objection = verdict(played, codes)
    if objection is not None:
        key, values = objection
        context.report_violation(message, key, **values)
    elif (shown := sum(trick.over for trick in played.play.tricks)) < TRICKS:
        context.report_violation(message, "tricks-missing", shown=shown, tricks=TRICKS)
    for seat in party:
        if seat != played.player and len(party) > 1:
            snapshots.partner(played, seat)
    seats, kind = (sorted(set(won)), "won") if won else (party, "lost")
    names = [played.who(seat) for seat in seats]
    winning = seats if won else [seat for seat in range(SEATS) if seat not in party]
    if objection is None and is_confirmed(played, len(party)):
        played.winners = winning
    context.emit_repeated(message, played, kind, None, {"seats": seats, "names": names})
    _result(context, played, winner=[played.who(seat) for seat in winning])


_Handler = Callable[[SchafkopfContext, Message, ClientConnection], None]
_RoundHandler = Callable[[SchafkopfContext, Message, ClientConnection, Round], None]

_SERVER: dict[str, _Handler] = {
    "ID": _id,
    "MITSPIELER": _mitspieler,
    "KONTO": _konto,
    "STOCK": _stock,
    "BEENDEN": _beenden,
}
"""Handlers for messages of the server that need no round."""

_SERVER_IN_ROUND: dict[str, _RoundHandler] = {
    "DRAN": _dran,
    "GEKLOPFT": bidding.geklopft,
    "BESTESSPIEL": bidding.bestesspiel,
    "HOCHZEIT": bidding.hochzeit,
    "SPIELT": bidding.spielt,
    "MODUS": bidding.modus,
    "KONTRA": bidding.kontra,
    "MODEL": _model,
    "ENDE": _ende,
    "SIEGER": _sieger,
}

_CLIENT: dict[str, _Handler] = {"NAME": _named, "BEENDEN": _beenden}

_CLIENT_IN_ROUND: dict[str, _RoundHandler] = {
    "ERSTE3": bidding.knocks,
    "SPIELSTDU": bidding.bids,
    "KONTRA": bidding.handle_kontra,
    "HOCHZEIT": bidding.takes_hochzeit,
    "KARTE": bidding.gives,
    "MODEL": snapshots.move,
}
