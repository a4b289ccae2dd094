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
from kiebitz.dissectors.protocols.schafkopf.bidding import Bidding
from kiebitz.dissectors.protocols.schafkopf.cards import NOBODY, SEATS
from kiebitz.dissectors.protocols.schafkopf.context import SchafkopfContext
from kiebitz.dissectors.protocols.schafkopf.hands import Hands
from kiebitz.dissectors.protocols.schafkopf.order import Order
from kiebitz.dissectors.protocols.schafkopf.play import TRICKS
from kiebitz.dissectors.protocols.schafkopf.round_state import ClientConnection, Round, is_confirmed, verdict
from kiebitz.dissectors.protocols.schafkopf.snapshots import Snapshots

_ONCE = frozenset(("GEKLOPFT", "SPIELT", "MODUS", "KONTRA", "SIEGER"))
"""Messages that the server sends to each client once in a round, with the same fields."""

_MAX_NAMES = 1000
"""Maximum number of players, and of accounts, that are kept after they have left."""


class SchafkopfTable(GameTable):
    """One Schafkopf server: its players, and its consecutive rounds."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        self._context = context = SchafkopfContext(info, ids, findings)
        super().__init__(context)
        self._order = Order(context)
        self._hands = Hands(context)
        self._snapshots = Snapshots(context, self._hands)
        bidding = Bidding(context, self._hands)
        self._server: dict[str, Callable[[Message, ClientConnection], None]] = {
            "ID": self._id,
            "MITSPIELER": self._mitspieler,
            "KONTO": self._konto,
            "STOCK": self._stock,
            "BEENDEN": self._beenden,
        }
        """Handlers for messages of the server that need no round."""
        self._server_in_round: dict[str, Callable[[Message, ClientConnection, Round], None]] = {
            "DRAN": self._dran,
            "GEKLOPFT": bidding.geklopft,
            "BESTESSPIEL": bidding.bestesspiel,
            "HOCHZEIT": bidding.hochzeit,
            "SPIELT": bidding.spielt,
            "MODUS": bidding.modus,
            "KONTRA": bidding.kontra,
            "MODEL": self._model,
            "ENDE": self._ende,
            "SIEGER": self._sieger,
        }
        self._client: dict[str, Callable[[Message, ClientConnection], None]] = {
            "NAME": self._named,
            "BEENDEN": self._beenden,
        }
        self._client_in_round: dict[str, Callable[[Message, ClientConnection, Round], None]] = {
            "ERSTE3": bidding.knocks,
            "SPIELSTDU": bidding.bids,
            "KONTRA": bidding.handle_kontra,
            "HOCHZEIT": bidding.takes_hochzeit,
            "KARTE": bidding.gives,
            "MODEL": self._plays,
        }

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        connection = self._context.connections.of(message.stream)
        if row.deviation is not None:
            self._context.note_dialect(message, row)
        if not valid:
            return
        if connection.round is not None:
            message.game_id = connection.round.game.id
        if message.direction == "s2c":
            self._order.asked(message, connection)
            outside, inside = self._server, self._server_in_round
        elif self._order.answered(message, row, connection):
            outside, inside = self._client, self._client_in_round
        else:
            return
        if row.name in outside:
            outside[row.name](message, connection)
        elif row.name in inside:
            played = self._context.playing(connection, message.ts_ns)
            message.game_id = played.game.id
            is_once = message.direction == "s2c" and row.name in _ONCE
            if not (is_once and self._context.is_repeated(message, connection, played)):
                inside[row.name](message, connection, played)

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        # It may have been the answer, or the question.
        connection = self._context.connections.of(stream)
        connection.certain_question = connection.lead_due = False
        if direction == "s2c" or is_gap:
            connection.certain_round = connection.certain_cards = connection.certain_account = False

    def closed(self, stream: Stream, ts_ns: int) -> None:
        connection = self._context.connections.pop(stream.id, None)
        self._context.log.forget(stream.id)
        if connection is not None:
            assert stream.ending is not None
            self._leaves(None, connection, stream.ending, ts_ns)
        if not self._context.connections:
            self._context.log.clear()

    def _named(self, message: Message, connection: ClientConnection) -> None:
        self._remove_name(connection)
        name: str = message.fields["name"]
        connection.name = label(name)
        self._context.set_state(True, "players", connection.name, "here")
        self._context.emit_of(message, "joined", connection.name, {"name": name}, None)

    def _remove_name(self, connection: ClientConnection) -> None:
        """Remove a name, unless another client has the same."""
        name, connection.name = connection.name, None
        if name is not None and all(other.name != name for other in self._context.connections.values()):
            is_kept = len(self._context.state.get("players", {})) <= _MAX_NAMES
            self._context.set_state(None, "players", name, *(("here",) if is_kept else ()))

    def _id(self, message: Message, connection: ClientConnection) -> None:
        connection.id = message.fields["id"]
        connection.step = 0
        message.game_id = None

    def _mitspieler(self, message: Message, connection: ClientConnection) -> None:
        names: list[str] = message.fields["namen"]
        played = connection.round
        if connection.id is not None or played is None or played.ended or played.names not in (None, names):
            played = self._context.enter(connection, names, message.ts_ns)
        elif played.names is None:
            self._context.name(played, names)
        message.game_id = played.game.id
        if not self._context.is_repeated(message, connection, played):
            data = {"round": played.number, "names": names}
            self._context.emit_repeated(message, played, "round_started", None, data)

    def _leaves(self, message: Message | None, connection: ClientConnection, reason: str, ts_ns: int) -> None:
        if connection.left or (connection.name is None and connection.round is None):
            return
        connection.left = True
        played = connection.round
        name = connection.name
        self._remove_name(connection)
        data: dict[str, Any] = {"seat": connection.seat, "name": name, "reason": reason}
        game = played.game if played is not None else None
        if message is not None:
            self._context.emit_of(message, "left", name, data, game)
        else:
            self._context.emit("left", ts_ns, name, data, game)

    def _beenden(self, message: Message, connection: ClientConnection) -> None:
        self._leaves(message, connection, "BEENDEN", message.ts_ns)

    def _dran(self, message: Message, connection: ClientConnection, played: Round) -> None:
        seat: int = message.fields["dran"]
        connection.dran = seat
        # The first turn after a trick is its winner's; the next may be sent before the winner's card is
        # shown.
        leads, connection.lead_due = connection.lead_due, False
        key = ("turn", played.game.id, seat)
        if self._context.log.is_copy(message, key):
            return
        play = played.play
        if leads and connection.tricks == len(play.tricks) and not play.current.cards and not play.over:
            self._snapshots.leads(message, played, seat)
        who = played.who(seat)
        self._context.set_in_game(played, who, "turn")
        event = self._context.emit_of(message, "turn", who, {"seat": seat, "name": who}, played.game)
        self._context.log.add(message.stream.id, key, event)

    # Cards.

    def _model(self, message: Message, connection: ClientConnection, played: Round) -> None:
        if message.fields["flag"] in ("ERSTE3", "SPIELSTDU"):
            self._hands.dealt(message, connection, played)
        else:
            self._snapshots.shown(message, connection, played)

    def _plays(self, message: Message, connection: ClientConnection, played: Round) -> None:
        self._snapshots.move(message, connection, played)

    # The end of a round.

    def _ende(self, message: Message, connection: ClientConnection, played: Round) -> None:
        connection.settled, connection.certain_account = played, True
        if not played.ended:
            self._snapshots.infer_last(message, connection, played)
            self._end(message, played)
        else:
            told = played.broadcasts.get("ENDE")
            message.event_id = told[1] if told is not None else None
        if played.mode is None:
            self._settle(message, connection, played)

    def _end(self, message: Message, played: Round) -> None:
        played.ended = True
        if played.play.over:
            reason = "played"
        elif played.mode is None:
            reason = "not played"
        else:
            reason = "broken off"
        self._context.advance(played, "over")
        self._context.set_in_game(played, None, "turn")
        played.game.ended_ns = message.ts_ns
        self._result(played)
        self._context.emit_repeated(message, played, "round_ended", None, {"reason": reason})

    def _result(self, played: Round, **more: Any) -> None:
        """Update the result of a round with what is known now."""
        before = played.game.result or {}
        result = {
            **before,
            "mode": played.mode,
            "player": played.who(played.player),
            "partner": played.who(played.partner),
            "points": self._context.points(played) if played.mode is not None else None,
            **more,
        }
        played.game.result = {"winner": None, "accounts": {}, **result}
        self._context.changed_game(played.game)

    def _konto(self, message: Message, connection: ClientConnection) -> None:
        if connection.id is not None:
            self._context.enter(connection, None, message.ts_ns)
        over = connection.settled
        if over is not None:
            message.game_id = over.game.id
            self._settle(message, connection, over)
            connection.settled = None
        else:
            self._note_account(message, connection)

    def _settle(self, message: Message, connection: ClientConnection, played: Round) -> None:
        """Handle the change of a player's account after a round."""
        before = connection.account
        name = self._note_account(message, connection)
        if name is None or (before == connection.account and message.name == "KONTO" and played.mode is None):
            return
        if before is not None and message.name == "KONTO":
            self._check_account(message, connection, played, before)
        data = {"accounts": {name: connection.account}, "stock": message.fields.get("stock")}
        self._context.emit_of(message, "settled", name, data, played.game)
        accounts = {**(played.game.result or {}).get("accounts", {}), name: connection.account}
        self._result(played, accounts=accounts)

    def _check_account(
        self, message: Message, connection: ClientConnection, played: Round, before: int
    ) -> None:
        """Report an account that contradicts the winners of the round."""
        seat = next((seat for seat, stream in played.taken.items() if stream == message.stream.id), None)
        after: int = message.fields["konto"]
        if seat is None or played.winners is None or not connection.certain_account:
            return
        has_won = seat in played.winners
        if after < before if has_won else after > before:
            done, expected = ("won", f"at least {before}") if has_won else ("lost", f"at most {before}")
            self._context.report_violation(
                message,
                "wrong-account",
                player=played.who(seat),
                done=done,
                before=before,
                after=after,
                expected=expected,
            )

    def _note_account(self, message: Message, connection: ClientConnection) -> str | None:
        """Store an account; return its owner."""
        account: int = message.fields["konto"]
        connection.account = account
        if "stock" in message.fields:
            self._context.set_state(message.fields["stock"], "stock")
        name = connection.name
        accounts = self._context.state.get("accounts", {})
        if name is not None and (name in accounts or len(accounts) < _MAX_NAMES):
            self._context.set_state(account, "accounts", name)
        return name

    def _stock(self, message: Message, connection: ClientConnection) -> None:
        self._context.set_state(message.fields["stock"], "stock")

    def _sieger(self, message: Message, connection: ClientConnection, played: Round) -> None:
        codes: tuple[int, int] = (message.fields["spieler"], message.fields["mitspieler"])
        won = [code for code in codes if code < NOBODY]
        lost = [code - 10 for code in codes if code > NOBODY]
        party = sorted({*won, *lost})
        objection = verdict(played, codes)
        if objection is not None:
            key, values = objection
            self._context.report_violation(message, key, **values)
        elif not (played.play.over and played.play.certain):
            shown = sum(trick.over for trick in played.play.tricks)
            self._context.report_violation(message, "tricks-missing", shown=shown, tricks=TRICKS)
        for seat in party:
            if seat != played.player and len(party) > 1:
                self._hands.partner(played, seat)
        seats, kind = (sorted(set(won)), "won") if won else (party, "lost")
        names = [played.who(seat) for seat in seats]
        winning = seats if won else [seat for seat in range(SEATS) if seat not in party]
        if objection is None and is_confirmed(played, len(party)):
            played.winners = winning
        self._context.emit_repeated(message, played, kind, None, {"seats": seats, "names": names})
        self._result(played, winner=[played.who(seat) for seat in winning])
