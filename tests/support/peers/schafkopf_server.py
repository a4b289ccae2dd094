"""A Schafkopf server with the short pack: one table, with bots on the empty seats."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from functools import partial
from typing import NamedTuple

from kiebitz.dissectors.protocols.schafkopf.cards import MODI, PACK, TO_WIN, Mode, mode, points
from peers import schafkopf_choices as choices
from peers.program import Died, LineServer, Link, Setup
from peers.schafkopf_wire import NOTHING, Model, Pakete, card_of, cards_of, model, paket

PAUSE_S = 0.05
SEATS = 4
NOBODY = 4
EMPTY: list[str | None] = [None] * SEATS
LONGEST_NAME = 64


class Answer(NamedTuple):
    """A client's answer: a field, or a card, or all cards as it sees them."""

    text: str = ""
    cards: Model = ([], [], [])


Asking = Generator[None, Answer | None, Answer | None]
"""Waits for an answer; None if the client is gone, or has broken a rule."""


class Guest:
    """A client: its name, once it is known, and its money."""

    def __init__(self, link: Link, pakete: Pakete) -> None:
        self.link = link
        self.pakete = pakete
        self.name: str | None = None
        self.money = 1000


class SchafkopfServer(LineServer):
    """A server that begins once `players` have sent their names (one by default)."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._guests: dict[Link, Guest] = {}
        self._round: Generator[None, Answer | None, None] | None = None
        self._wanted: tuple[Link, str] | None = None
        self._seats: list[Guest | None] = []
        self._names: list[str] = []
        self._stock = 0
        self._hands: list[list[str]] = []
        self._last: list[str | None] = EMPTY

    # Clients.

    def welcome(self, link: Link) -> None:
        self._guests[link] = Guest(link, Pakete(lambda flag, fields: self._paket(link, flag, fields)))
        self._send(link, paket("NAME", NOTHING))

    def line(self, link: Link, line: bytes) -> None:
        self._guests[link].pakete.line(self.text(line))

    def leave(self, link: Link) -> None:
        if self.has("waits-for-who-is-gone"):
            return
        del self._guests[link]
        if self._wanted is not None and self._wanted[0] is link:
            self._go_on(None)

    def farewell(self, link: Link, why: str) -> None:
        self._send(link, paket("BEENDEN", NOTHING))

    def _paket(self, link: Link, flag: str, fields: list[str]) -> None:
        guest = self._guests.get(link)
        if guest is None:
            return
        try:
            answer = self._read(flag, fields)
        except ValueError as problem:
            self.give_up(link, str(problem))
            return
        if answer is None:
            return
        if flag == "NAME":
            guest.name = answer.text[:LONGEST_NAME]
            if self._round is None and self._present() >= max(self.setup.players, 1):
                self._begin()
        elif flag == "BEENDEN":
            self.lose(link)
            link.close()
        elif self._wanted == (link, flag) or (
            self.has("takes-turn-from-anyone") and self._wanted is not None and self._wanted[1] == flag
        ):
            self._go_on(answer)

    def _read(self, flag: str, fields: list[str]) -> Answer | None:
        if self.has("dies-on-a-missing-field") and not fields:
            raise Died(flag)
        first = fields[0] if fields else ""
        match flag:
            case "NAME" | "BEENDEN" if fields or flag == "BEENDEN":
                return Answer(first)
            case "ERSTE3" | "KONTRA" | "HOCHZEIT" if first in ("JA", "NEIN"):
                return Answer(first)
            case "SPIELSTDU" if first in MODI:
                return Answer(first)
            case "KARTE" if len(fields) > 1:
                return Answer(card_of(*fields[:2]))
            case "MODEL" if first == "!SPIEL" or self.has("takes-any-flag"):
                if self.has("dies-on-an-unknown-card"):
                    self._look_up(fields[1:])
                return Answer(cards=cards_of(fields[1:]))
            case "NAME" | "ERSTE3" | "KONTRA" | "HOCHZEIT" | "SPIELSTDU" | "KARTE" | "MODEL":
                raise ValueError(f"{flag} is malformed")
        return None

    def _look_up(self, lines: list[str]) -> None:
        known = {part for card in PACK for part in card.split(" ")} | {NOTHING}
        for line in lines:
            if line not in known:
                raise Died(line)

    # Messages.

    def _send(self, link: Link, data: bytes) -> None:
        if self.has("writes-latin-1"):
            data = data.decode().encode("latin-1", "replace")
        if self.has("ends-cards-with-end") and data.startswith(b"!MODEL"):
            data += b"!END\n"
        link.send(data)

    def _notify(self, seat: int, data: bytes) -> None:
        guest = self._seats[seat]
        if guest is not None and guest.link in self._guests:
            self._send(guest.link, data)

    def _tell_all(self, flag: str, *fields: str) -> None:
        for seat in range(SEATS):
            self._notify(seat, paket(flag, *fields))
        self.breathe()

    def _model(self, flag: str, seat: int, table: list[str | None], hand: list[str] | None = None) -> None:
        cards = self._hands[seat] if hand is None else hand
        self._notify(seat, model(flag, cards, table, self._last))

    def _ask(self, seat: int, flag: str) -> Asking:
        guest = self._seats[seat]
        if guest is None or guest.link not in self._guests:
            return None
        self._wanted = guest.link, flag
        answer = yield
        self._wanted = None
        return answer

    def _refuse(self, seat: int, why: str) -> None:
        """A seat has broken a rule: it is given up, and a bot plays on."""
        guest = self._seats[seat]
        if guest is not None:
            self.give_up(guest.link, why)

    def _ask_for(
        self, seat: int, flag: str, choose: Callable[[], str]
    ) -> Generator[None, Answer | None, str]:
        answer = yield from self._ask(seat, flag)
        return choose() if answer is None else answer.text

    # Rounds.

    def _present(self) -> int:
        return sum(guest.name is not None for guest in self._guests.values())

    def _begin(self) -> None:
        if not self._present():
            self._round = None
            return
        self._round = self._one_round()
        self._go_on(None)

    def _go_on(self, answer: Answer | None) -> None:
        assert self._round is not None
        self._wanted = None
        try:
            self._round.send(answer)
        except StopIteration:
            self.count_game()
            if self.over:
                self.close_all()
            else:
                self.after(PAUSE_S, self._begin)

    def _one_round(self) -> Generator[None, Answer | None, None]:
        here: list[Guest | None] = [guest for guest in self._guests.values() if guest.name is not None]
        here += [None] * (SEATS - len(here))
        first = self.games % len(here)
        self._seats = [here[(first + seat) % len(here)] for seat in range(SEATS)]
        bots = iter(range(SEATS))
        self._names = [(guest.name or "") if guest else f"[BOT]-{next(bots)}" for guest in self._seats]
        pack = sorted(PACK)
        self.random.shuffle(pack)
        self._hands = [pack[6 * seat : 6 * seat + 6] for seat in range(SEATS)]
        self._last = EMPTY
        for seat in range(SEATS):
            self._notify(seat, paket("ID", str(0 if self.has("numbers-all-alike") else seat)))
        self._tell_all("MITSPIELER", *self._names)
        self._accounts("KONTO")
        yield from self._knock()
        modus, bidder, given = yield from self._bid()
        partner = NOBODY
        if modus == "HOCHZEIT":
            partner = yield from self._marry(bidder, given)
        if modus in ("NICHTS", "SI") or (modus == "HOCHZEIT" and partner == NOBODY):
            self._accounts("ENDE")
            return
        self._tell_all("SPIELT", str(bidder), str(partner))
        kontras = []
        for seat in range(SEATS):
            self._turn(seat)
            self._notify(seat, paket("MODUS", modus))
            kontras.append((yield from self._ask_for(seat, "KONTRA", lambda: "NEIN")))
        self._tell_all("KONTRA", *kontras)
        rules = mode(modus)
        played, tricks = yield from self._play(rules)
        if rules.called is not None:
            partner = next(seat for seat, card in played if card == rules.called)
        self._settle(rules, bidder, partner, tricks)

    def _accounts(self, flag: str) -> None:
        for seat, guest in enumerate(self._seats):
            if guest is not None:
                self._notify(seat, paket(flag, str(guest.money), str(self._stock)))
        self.breathe()

    def _turn(self, seat: int) -> None:
        self._tell_all("DRAN", str(seat))
        if self.has("tells-turns-twice"):
            self._tell_all("DRAN", str((seat + 1) % SEATS))

    def _knock(self) -> Generator[None, Answer | None, None]:
        knocks = []
        for seat in range(SEATS):
            self._turn(seat)
            self._model("ERSTE3", seat, EMPTY, self._hands[seat][:3])
            knocks.append((yield from self._ask_for(seat, "ERSTE3", lambda: "NEIN")))
        self._tell_all("GEKLOPFT", *knocks)

    def _bid(self) -> Generator[None, Answer | None, tuple[str, int, str]]:
        best, bidder, given = "NICHTS", 0, ""
        for seat in range(SEATS):
            hand = self._hands[seat]
            self._turn(seat)
            self._notify(seat, paket("BESTESSPIEL", best))
            self._model("SPIELSTDU", seat, EMPTY)
            bid = yield from self._ask_for(seat, "SPIELSTDU", partial(_bots_bid, self.random, hand, best))
            if not choices.may_bid(bid, hand) and not self.has("takes-any-bid"):
                self._refuse(seat, f"{bid} cannot be bid")
                continue
            card = ""
            if bid == "HOCHZEIT":
                card = yield from self._ask_for(seat, "KARTE", partial(self.random.choice, hand))
                if card not in hand:
                    self._refuse(seat, f"{card} is not held")
                    continue
            if bid != "NICHTS" and (best == "NICHTS" or MODI.index(bid) > MODI.index(best)):
                best, bidder, given = bid, seat, card
        return best, bidder, given

    def _marry(self, bidder: int, given: str) -> Generator[None, Answer | None, int]:
        for step in range(1, SEATS):
            seat = (bidder + step) % SEATS
            self._turn(seat)
            self._notify(seat, paket("HOCHZEIT", NOTHING))
            if (yield from self._ask_for(seat, "HOCHZEIT", lambda: "NEIN")) == "NEIN":
                continue
            hand = self._hands[seat]
            card = yield from self._ask_for(seat, "KARTE", partial(self.random.choice, hand))
            if card not in hand:
                self._refuse(seat, f"{card} is not held")
                continue
            for giver, taker, gift in ((bidder, seat, given), (seat, bidder, card)):
                self._hands[giver].remove(gift)
                self._hands[taker].append(gift)
            return seat
        return NOBODY

    def _play(
        self, rules: Mode
    ) -> Generator[None, Answer | None, tuple[list[tuple[int, str]], list[tuple[int, int]]]]:
        leader = 0
        played: list[tuple[int, str]] = []
        tricks: list[tuple[int, int]] = []
        while self._hands[leader]:
            table, order = list(EMPTY), list[str]()
            for step in range(SEATS):
                seat = (leader + step) % SEATS
                self._turn(seat)
                for other in range(SEATS):
                    hand = self._hands[seat] if self.has("shows-a-hand") else None
                    self._model("SPIEL" if other == seat else "UPDATE", other, table, hand)
                card = yield from self._card(seat, rules, table, order)
                self._hands[seat].remove(card)
                table[seat] = card
                order.append(card)
                played.append((seat, card))
            for seat in range(SEATS):
                self._model("UPDATE", seat, table)
            self.breathe()
            best = rules.winner(order)
            if self.has("gives-tricks-to-the-first"):
                best = 0
            leader = (leader + best) % SEATS
            tricks.append((leader, points(order)))
            self._last = table
        return played, tricks

    def _card(
        self, seat: int, rules: Mode, table: list[str | None], order: list[str]
    ) -> Generator[None, Answer | None, str]:
        hand = self._hands[seat]
        allowed = choices.playable(rules, hand, order)
        answer = yield from self._ask(seat, "MODEL")
        if answer is None:
            return self.random.choice(allowed)
        left, laid, last = answer.cards
        card = laid[seat]
        if card is not None and self.has("takes-any-card"):
            hand[0] = card if card not in hand else hand[0]
            return card
        if self.has("lets-suits-be"):
            allowed = hand
        is_told_right = [*laid[:seat], None, *laid[seat + 1 :]] == table and last == self._last
        if card is None or card not in allowed or sorted([*left, card]) != sorted(hand) or not is_told_right:
            self._refuse(seat, f"{card} cannot be played")
            return self.random.choice(choices.playable(rules, hand, order))
        return card

    def _settle(self, rules: Mode, bidder: int, partner: int, tricks: list[tuple[int, int]]) -> None:
        party = {bidder, partner} - {NOBODY}
        taken = [count for winner, count in tricks if winner in party]
        won = len(taken) == len(tricks) if rules.du else sum(taken) >= TO_WIN
        self._accounts("ENDE")
        if self.has("names-the-losers"):
            won = not won
        lost = 0 if won else 10
        self._tell_all("SIEGER", str(bidder + lost), str(NOBODY if partner == NOBODY else partner + lost))
        for seat, guest in enumerate(self._seats):
            if guest is not None:
                guest.money += 50 if (seat in party) == won else -50


def _bots_bid(chance: random.Random, hand: list[str], best: str) -> str:
    bid = choices.bid(chance, hand, best)
    return "NICHTS" if bid == "HOCHZEIT" else bid
