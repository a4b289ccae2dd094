"""The Schafkopf table: from messages to rounds, bids, cards, tricks, winners and accounts.

A game is a round. A broadcast makes one event, observed by all clients; a message to one client makes an
event of that client. `context.py` assigns messages to rounds, `order.py` checks their order, `snapshots.py`
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
from kiebitz.dissectors.protocols.schafkopf.context import Rounds
from kiebitz.dissectors.protocols.schafkopf.hands import Hands
from kiebitz.dissectors.protocols.schafkopf.order import Order
from kiebitz.dissectors.protocols.schafkopf.play import TRICKS
from kiebitz.dissectors.protocols.schafkopf.round_state import Conversation, Round
from kiebitz.dissectors.protocols.schafkopf.snapshots import Snapshots
from kiebitz.dissectors.protocols.schafkopf.verdict import is_confirmed, verdict

_MAX_NAMES = 1000
"""Maximum number of players, and of accounts, that are kept after they have left."""


class SchafkopfTable(GameTable):
    """One Schafkopf server: its players, and its consecutive rounds."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        self._rounds = rounds = Rounds(info, ids, findings)
        super().__init__(rounds)
        self._order = Order(rounds)
        self._hands = Hands(rounds)
        self._snapshots = Snapshots(rounds, self._hands)
        bidding = Bidding(rounds, self._hands)
        self._server: dict[str, Callable[[Message, Conversation], None]] = {
            "NAME": lambda message, conversation: None,
            "ID": self._id,
            "MITSPIELER": self._mitspieler,
            "KONTO": self._konto,
            "STOCK": self._stock,
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
            "BEENDEN": self._beenden,
        }
        self._client: dict[str, Callable[[Message, Conversation], None]] = {
            "NAME": self._named,
            "ERSTE3": bidding.knocks,
            "SPIELSTDU": bidding.bids,
            "KONTRA": bidding.handle_kontra,
            "HOCHZEIT": bidding.takes_hochzeit,
            "KARTE": bidding.gives,
            "MODEL": self._plays,
            "BEENDEN": self._beenden,
        }

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        conversation = self._rounds.conversation(message.stream)
        if row.deviation is not None:
            self._rounds.note_dialect(message, row)
        if not valid:
            return
        if conversation.round is not None:
            message.game_id = conversation.round.game.id
        if message.direction == "s2c":
            self._order.asked(message, conversation)
            self._server[row.name](message, conversation)
        elif self._order.answered(message, row, conversation):
            self._client[row.name](message, conversation)

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        # It may have been the answer, or the question.
        conversation = self._rounds.conversation(stream)
        conversation.certain_question = conversation.lead_due = False
        if direction == "s2c" or is_gap:
            conversation.certain_round = conversation.certain_cards = conversation.certain_account = False

    def closed(self, stream: Stream, ts_ns: int) -> None:
        conversation = self._rounds.conversations.pop(stream.id, None)
        self._rounds.log.forget(stream.id)
        if conversation is not None:
            assert stream.ending is not None
            self._leaves(None, conversation, stream.ending, ts_ns)
        if not self._rounds.conversations:
            self._rounds.log.clear()

    def _named(self, message: Message, conversation: Conversation) -> None:
        self._remove_name(conversation)
        name: str = message.fields["name"]
        conversation.name = label(name)
        self._rounds.set_state(True, "players", conversation.name, "here")
        self._rounds.emit_of(message, "joined", conversation.name, {"name": name}, None)

    def _remove_name(self, conversation: Conversation) -> None:
        """Remove a name, unless another client has the same."""
        name, conversation.name = conversation.name, None
        if name is not None and all(other.name != name for other in self._rounds.conversations.values()):
            is_kept = len(self._rounds.state.get("players", {})) <= _MAX_NAMES
            self._rounds.set_state(None, "players", name, *(("here",) if is_kept else ()))

    def _id(self, message: Message, conversation: Conversation) -> None:
        conversation.id = message.fields["id"]
        conversation.step = 0
        message.game_id = None

    def _mitspieler(self, message: Message, conversation: Conversation) -> None:
        names: list[str] = message.fields["namen"]
        played = conversation.round
        if conversation.id is not None or played is None or played.ended or played.names not in (None, names):
            played = self._rounds.enter(conversation, names, message.ts_ns)
        elif played.names is None:
            self._rounds.name(played, names)
        message.game_id = played.game.id
        if not self._rounds.is_broadcast_copy(message, conversation, played, tuple(names)):
            data = {"round": played.number, "names": names}
            self._rounds.emit_broadcast(message, played, tuple(names), "round_started", None, data)

    def _leaves(self, message: Message | None, conversation: Conversation, reason: str, ts_ns: int) -> None:
        if conversation.left or (conversation.name is None and conversation.round is None):
            return
        conversation.left = True
        played = conversation.round
        name = conversation.name
        self._remove_name(conversation)
        data: dict[str, Any] = {"seat": conversation.seat, "name": name, "reason": reason}
        game = played.game if played is not None else None
        if message is not None:
            self._rounds.emit_of(message, "left", name, data, game)
        else:
            self._rounds.emit("left", ts_ns, name, data, game)

    def _beenden(self, message: Message, conversation: Conversation) -> None:
        self._leaves(message, conversation, "BEENDEN", message.ts_ns)

    def _dran(self, message: Message, conversation: Conversation) -> None:
        played = self._rounds.playing(conversation, message.ts_ns)
        seat: int = message.fields["dran"]
        conversation.dran = seat
        # The first turn after a trick is its winner's; the next may be sent before the winner's card is
        # shown.
        leads, conversation.lead_due = conversation.lead_due, False
        key = ("turn", played.game.id, seat)
        if self._rounds.log.is_copy(message, key):
            return
        play = played.play
        if leads and conversation.tricks == len(play.tricks) and not play.current.cards and not play.over:
            self._snapshots.leads(message, played, seat)
        who = played.who(seat)
        self._rounds.set_in_round(played, who, "turn")
        event = self._rounds.emit_of(message, "turn", who, {"seat": seat, "name": who}, played.game)
        self._rounds.log.add(message.stream.id, key, event)

    # Cards.

    def _model(self, message: Message, conversation: Conversation) -> None:
        played = self._rounds.playing(conversation, message.ts_ns)
        message.game_id = played.game.id
        if message.fields["flag"] in ("ERSTE3", "SPIELSTDU"):
            self._hands.dealt(message, conversation, played)
        else:
            self._snapshots.shown(message, conversation, played)

    def _plays(self, message: Message, conversation: Conversation) -> None:
        played = self._rounds.playing(conversation, message.ts_ns)
        message.game_id = played.game.id
        self._snapshots.move(message, conversation, played)

    # The end of a round.

    def _ende(self, message: Message, conversation: Conversation) -> None:
        played = self._rounds.playing(conversation, message.ts_ns)
        message.game_id = played.game.id
        conversation.settled, conversation.certain_account = played, True
        if not played.ended:
            self._snapshots.infer_last(message, conversation, played)
            self._end(message, played)
        else:
            told = played.broadcasts.get("ENDE")
            message.event_id = told[1] if told is not None else None
        if played.mode is None:
            self._settle(message, conversation, played)

    def _end(self, message: Message, played: Round) -> None:
        played.ended = True
        if played.play.over:
            reason = "played"
        elif played.mode is None:
            reason = "not played"
        else:
            reason = "broken off"
        self._rounds.advance(played, "over")
        self._rounds.set_in_round(played, None, "turn")
        played.game.ended_ns = message.ts_ns
        self._result(played)
        self._rounds.emit_broadcast(message, played, None, "round_ended", None, {"reason": reason})

    def _result(self, played: Round, **more: Any) -> None:
        """Update the result of a round with what is known now."""
        before = played.game.result or {}
        result = {
            **before,
            "mode": played.mode,
            "player": played.who(played.player),
            "partner": played.who(played.partner),
            "points": self._rounds.points(played) if played.mode is not None else None,
            **more,
        }
        played.game.result = {"winner": None, "accounts": {}, **result}
        self._rounds.changed_game(played.game)

    def _konto(self, message: Message, conversation: Conversation) -> None:
        if conversation.id is not None:
            self._rounds.enter(conversation, None, message.ts_ns)
        over = conversation.settled
        if over is not None:
            message.game_id = over.game.id
            self._settle(message, conversation, over)
            conversation.settled = None
        else:
            self._note_account(message, conversation)

    def _settle(self, message: Message, conversation: Conversation, played: Round) -> None:
        """Handle the change of a player's account after a round."""
        before = conversation.account
        name = self._note_account(message, conversation)
        if name is None or (
            before == conversation.account and message.name == "KONTO" and played.mode is None
        ):
            return
        if before is not None and message.name == "KONTO":
            self._check_account(message, conversation, played, before)
        data = {"accounts": {name: conversation.account}, "stock": message.fields.get("stock")}
        self._rounds.emit_of(message, "settled", name, data, played.game)
        accounts = {**(played.game.result or {}).get("accounts", {}), name: conversation.account}
        self._result(played, accounts=accounts)

    def _check_account(
        self, message: Message, conversation: Conversation, played: Round, before: int
    ) -> None:
        """Report an account that contradicts the winners of the round."""
        seat = next((seat for seat, stream in played.taken.items() if stream == message.stream.id), None)
        after: int = message.fields["konto"]
        if seat is None or played.winners is None or not conversation.certain_account:
            return
        has_won = seat in played.winners
        if after < before if has_won else after > before:
            done, expected = ("won", f"at least {before}") if has_won else ("lost", f"at most {before}")
            self._rounds.report_violation(
                message,
                "wrong-account",
                player=played.who(seat),
                done=done,
                before=before,
                after=after,
                expected=expected,
            )

    def _note_account(self, message: Message, conversation: Conversation) -> str | None:
        """Store an account; return its owner."""
        account: int = message.fields["konto"]
        conversation.account = account
        if "stock" in message.fields:
            self._rounds.set_state(message.fields["stock"], "stock")
        name = conversation.name
        accounts = self._rounds.state.get("accounts", {})
        if name is not None and (name in accounts or len(accounts) < _MAX_NAMES):
            self._rounds.set_state(account, "accounts", name)
        return name

    def _stock(self, message: Message, conversation: Conversation) -> None:
        self._rounds.set_state(message.fields["stock"], "stock")

    def _sieger(self, message: Message, conversation: Conversation) -> None:
        played = self._rounds.playing(conversation, message.ts_ns)
        codes: tuple[int, int] = (message.fields["spieler"], message.fields["mitspieler"])
        if self._rounds.is_broadcast_copy(message, conversation, played, codes):
            return
        won = [code for code in codes if code < NOBODY]
        lost = [code - 10 for code in codes if code > NOBODY]
        party = sorted({*won, *lost})
        objection = verdict(played, codes)
        if objection is not None:
            key, values = objection
            self._rounds.report_violation(message, key, **values)
        elif not (played.play.over and played.play.certain):
            shown = sum(trick.over for trick in played.play.tricks)
            self._rounds.report_violation(message, "tricks-missing", shown=shown, tricks=TRICKS)
        for seat in party:
            if seat != played.player and len(party) > 1:
                self._hands.partner(played, seat)
        seats, kind = (sorted(set(won)), "won") if won else (party, "lost")
        names = [played.who(seat) for seat in seats]
        winning = seats if won else [seat for seat in range(SEATS) if seat not in party]
        if objection is None and is_confirmed(played, len(party)):
            played.winners = winning
        self._rounds.emit_broadcast(message, played, codes, kind, None, {"seats": seats, "names": names})
        self._result(played, winner=[played.who(seat) for seat in winning])
