"""A simulated Schafkopf server with the short pack: round after round at one table of four."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from kiebitz.dissectors.conformance.bots import Disconnect, SendMessage, SimulatedServer
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.schafkopf.cards import (
    HAND,
    HOCHZEIT,
    MODI,
    NICHTS,
    NOBODY,
    PACK,
    SEATS,
    TO_WIN,
    Mode,
    mode,
    playable,
    points,
)
from kiebitz.dissectors.protocols.schafkopf.grammar import EMPTY, LOST

_PAUSE_S = 0.05
_STAKE = 50
_NONE: list[str | None] = [None] * SEATS

_Question = Generator[None, Fields, Fields]
"""Waits for the answer to a question."""

_Phase = Generator[None, Fields, None]


class _Trick(NamedTuple):
    winner: int
    cards: list[str]


class SchafkopfServer(SimulatedServer):
    """A simulated Schafkopf server that begins once all four have sent their names.

    Each round counts as a game.
    """

    def __init__(self, players: int = SEATS, seed: int = 1, games: int = 0) -> None:
        super().__init__(SEATS, seed, games)
        self._names: dict[int, str] = {}
        """The names by connection, in order of arrival."""
        self._money: dict[int, int] = {}
        self._round: _Phase | None = None
        self._wanted: tuple[int, str] | None = None
        self._seats: list[int] = []
        """The connection of each seat in this round."""
        self._hands: list[list[str]] = []
        self._last: list[str | None] = _NONE
        self._played: list[tuple[int, str]] = []
        """Seat and card of each move in this round."""

    def _client_connected(self, connection: int, address_index: int) -> None:
        self._send_to(connection, "NAME", name=EMPTY)

    def _receive(self, connection: int, name: str, fields: Fields) -> None:
        match name:
            case "NAME" if connection not in self._names:
                self._names[connection] = fields["name"]
                self._money[connection] = 1000
                if len(self._names) == SEATS:
                    self._schedule(_PAUSE_S, self._begin)
            case "BEENDEN":
                self._queue(Disconnect(connection))
                self._end()
            case _ if self._wanted == (connection, name):
                self._wanted = None
                self._resume(fields)

    def _client_disconnected(self, connection: int) -> None:
        if self._names.pop(connection, None) is not None:
            self._end()

    def _end(self) -> None:
        """End the game for all, as a player has left or all rounds have been played."""
        if self._round is None:
            return
        self._round, self._wanted = None, None
        for other in self._names:
            self._send_to(other, "BEENDEN")
            self._queue(Disconnect(other))

    # Sending.

    def _to(self, seat: int, name: str, /, **fields: Any) -> None:
        self._queue(SendMessage(name, fields, self._seats[seat]))

    def _all(self, name: str, /, **fields: Any) -> None:
        for seat in range(SEATS):
            self._to(seat, name, **fields)

    def _model(
        self, flag: str, seat: int, table: Sequence[str | None], hand: Sequence[str] | None = None
    ) -> None:
        cards: list[Any] = [*(self._hands[seat] if hand is None else hand)]
        self._to(
            seat,
            "MODEL",
            flag=flag,
            spielerhand=cards + [None] * (HAND - len(cards)),
            tisch=[*table],
            letzter_stich=[*self._last],
        )

    def _ask(self, seat: int, name: str) -> _Question:
        self._wanted = self._seats[seat], name
        return (yield)

    def _resume(self, answer: Fields) -> None:
        if self._round is None:
            return
        try:
            self._round.send(answer)
        except StopIteration:
            self.games += 1
            if self.is_finished:
                self._end()
            else:
                self._schedule(_PAUSE_S, self._begin)

    # A round.

    def _begin(self) -> None:
        if len(self._names) == SEATS:
            self._round = self._one_round()
            next(self._round)

    def _one_round(self) -> _Phase:
        here = [*self._names]
        first = self.games % SEATS
        self._seats = here[first:] + here[:first]
        pack = sorted(PACK)
        self.random.shuffle(pack)
        self._hands = [pack[HAND * seat : HAND * seat + HAND] for seat in range(SEATS)]
        self._last = _NONE
        for seat in range(SEATS):
            self._to(seat, "ID", id=seat)
        self._all("MITSPIELER", namen=[self._names[connection] for connection in self._seats])
        self._accounts("KONTO")
        self._all("STOCK", stock=0)
        yield from self._knock()
        modus, bidder, given = yield from self._bid()
        partner = NOBODY
        if modus == HOCHZEIT:
            partner = yield from self._marry(bidder, given)
        if modus in (NICHTS, "SI") or (modus == HOCHZEIT and partner == NOBODY):
            self._accounts("ENDE")
            return
        self._all("SPIELT", spieler=bidder, mitspieler=partner)
        kontras = []
        for seat in range(SEATS):
            self._all("DRAN", dran=seat)
            self._to(seat, "MODUS", modus=modus)
            kontras.append((yield from self._ask(seat, "KONTRA"))["kontra"])
        self._all("KONTRA", kontra=kontras)
        rules = mode(modus)
        tricks = yield from self._play(rules)
        if rules.called is not None:
            holders = (seat for seat, card in self._played if card == rules.called)
            partner = next(holders, NOBODY)
        self._settle(rules, bidder, partner, tricks)

    def _accounts(self, name: str) -> None:
        for seat, connection in enumerate(self._seats):
            self._to(seat, name, konto=self._money[connection])

    def _knock(self) -> _Phase:
        knocks = []
        for seat in range(SEATS):
            self._all("DRAN", dran=seat)
            self._model("ERSTE3", seat, _NONE, self._hands[seat][:3])
            knocks.append((yield from self._ask(seat, "ERSTE3"))["klopft"])
        self._all("GEKLOPFT", geklopft=knocks)

    def _bid(self) -> Generator[None, Fields, tuple[str, int, str]]:
        """Return the mode of the game, the bidder's seat, and the card offered in a Hochzeit."""
        best, bidder, given = NICHTS, 0, ""
        for seat in range(SEATS):
            self._all("DRAN", dran=seat)
            self._to(seat, "BESTESSPIEL", modus=best)
            self._model("SPIELSTDU", seat, _NONE)
            bid = (yield from self._ask(seat, "SPIELSTDU"))["modus"]
            card = ""
            if bid == HOCHZEIT:
                card = (yield from self._ask(seat, "KARTE"))["karte"]
            if bid != NICHTS and (best == NICHTS or MODI.index(bid) > MODI.index(best)):
                best, bidder, given = bid, seat, card
        return best, bidder, given

    def _marry(self, bidder: int, given: str) -> Generator[None, Fields, int]:
        """Offer the Hochzeit to the others, and return the seat that takes it, after exchanging the cards."""
        for step in range(1, SEATS):
            seat = (bidder + step) % SEATS
            self._all("DRAN", dran=seat)
            self._to(seat, HOCHZEIT)
            answer = yield from self._ask(seat, HOCHZEIT)
            if answer["nimmt"] == "NEIN":
                continue
            # The card may be in the answer, or follow in another message.
            card = answer.get("karte") or (yield from self._ask(seat, "KARTE"))["karte"]
            if card in self._hands[seat] and given in self._hands[bidder]:
                for giver, taker, gift in ((bidder, seat, given), (seat, bidder, card)):
                    self._hands[giver].remove(gift)
                    self._hands[taker].append(gift)
                return seat
        return NOBODY

    def _play(self, rules: Mode) -> Generator[None, Fields, list[_Trick]]:
        leader = 0
        self._played = []
        tricks: list[_Trick] = []
        while self._hands[leader]:
            table, laid = [*_NONE], list[str]()
            for step in range(SEATS):
                seat = (leader + step) % SEATS
                self._all("DRAN", dran=seat)
                for other in range(SEATS):
                    self._model("SPIEL" if other == seat else "UPDATE", other, table)
                told = (yield from self._ask(seat, "MODEL"))["tisch"][seat]
                allowed = playable(rules, self._hands[seat], laid)
                card = told if told in allowed else allowed[0]
                self._hands[seat].remove(card)
                table[seat] = card
                laid.append(card)
                self._played.append((seat, card))
            for seat in range(SEATS):
                self._model("UPDATE", seat, table)
            leader = (leader + rules.winner(laid)) % SEATS
            tricks.append(_Trick(leader, laid))
            self._last = table
        return tricks

    def _settle(self, rules: Mode, bidder: int, partner: int, tricks: list[_Trick]) -> None:
        party = {bidder, partner} - {NOBODY}
        taken = [trick for trick in tricks if trick.winner in party]
        counted = sum(points(trick.cards) for trick in taken)
        won = len(taken) == len(tricks) if rules.du else counted >= TO_WIN
        self._accounts("ENDE")
        lost = 0 if won else LOST
        self._all("SIEGER", spieler=bidder + lost, mitspieler=NOBODY if partner == NOBODY else partner + lost)
        for seat, connection in enumerate(self._seats):
            self._money[connection] += _STAKE if (seat in party) == won else -_STAKE
