"""One hand of licitovaný mariáš on a server, from the deal to the result."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from typing import Protocol

from kiebitz.dissectors.protocols.cgml.cards import (
    HAND,
    LADDER,
    PACK,
    SEATS,
    TALON,
    WITH_TWO_SEVENS,
    Rules,
    has_trumps,
)
from peers.cgml_wire import Element, cards, codes, element, player, text, words

GAME = element("game", "licitovany_marias")
HIGHEST_FLEK = 16
STAKE = 10
_COUNTS = ("10", "0A")
TO_WIN = 50


class Broken(Exception):
    """A player, by seat, has broken a rule of the game."""

    def __init__(self, seat: int, why: str) -> None:
        super().__init__(why)
        self.seat = seat


class Members(Protocol):
    """Three players, in this hand's order: who leads comes first."""

    random: random.Random

    def tell(self, seat: int, *elements: str) -> None: ...
    def number(self, seat: int) -> int: ...
    def name(self, seat: int) -> str: ...
    def breathe(self) -> None: ...
    def has(self, fault: str) -> bool: ...
    def want(self, seat: int, tag: str, kind: str) -> None: ...


Asking = Generator[None, Element, Element]


class Hand:
    """`play` waits for answers: elements of the tag and type that were asked for, from who was asked.

    It raises Broken.
    """

    def __init__(self, members: Members) -> None:
        self._members = members
        self._random = members.random
        pack = list(PACK)
        self._random.shuffle(pack)
        if members.has("deals-a-card-twice"):
            pack[HAND] = pack[0]
        self._hands = [pack[HAND * seat : HAND * seat + HAND] for seat in range(SEATS)]
        self._talon = pack[-TALON:]
        self._tricks: list[tuple[int, list[str]]] = []

    # Messages.

    def _all(self, *elements: str) -> None:
        for seat in range(SEATS):
            self._members.tell(seat, *elements)
        self._members.breathe()

    def _others(self, seat: int, *elements: str) -> None:
        for other in range(SEATS):
            if other != seat:
                self._members.tell(other, *elements)
        self._members.breathe()

    def _ask(self, seat: int, tag: str, *content: str) -> Asking:
        self._members.tell(seat, element(tag, *content, type="ask"))
        self._members.want(seat, tag, "cards" if tag == "playcard" else "answer")
        return (yield)

    def _info(self, tag: str, seat: int, *content: str, **attributes: str) -> str:
        return element(tag, *content, type="info", **attributes, playerid=self._members.number(seat))

    # The hand.

    def play(self) -> Generator[None, Element, str | None]:
        """Play the hand; return why there was no game, None if there was one."""
        self._deal()
        declarer, game = yield from self._bid()
        if game == "PASS":
            return "pass"
        number = self._members.number(declarer)
        self._all(element("licite", game, type="result", playerid=number))
        yield from self._take_talon(declarer)
        game, trumf = yield from self._name_trumps(declarer, game)
        named = element("licite", game) + (element("trumf", trumf) if trumf else "")
        self._all(self._info("gametype", declarer, named))
        level = yield from self._double(declarer)
        self._all(self._info("gametype", declarer, named, element("flek", str(level))))
        rules = Rules(game, trumf[:1].upper() or None)
        leader = declarer
        for _ in range(HAND):
            leader = yield from self._trick(rules, leader)
        self._result(declarer, game, trumf, level)
        return None

    def _deal(self) -> None:
        for seat in range(SEATS):
            for other, hand in enumerate(self._hands):
                if other == seat:
                    self._members.tell(seat, element("dial", cards(hand), type="cards", to="hand", **_DESK))
                else:
                    shown = hand if self._members.has("shows-hands") else [None] * HAND
                    self._members.tell(seat, self._info("dial", other, cards(shown), to="hand", **_DESK))
            talon = element("dial", cards([None] * TALON), type="cards", to="talon", **_DESK)
            self._members.tell(seat, talon)
        self._members.breathe()

    def _bid(self) -> Generator[None, Element, tuple[int, str]]:
        holder, standing = 0, "PASS"
        for challenger in range(1, SEATS):
            while LADDER.index(standing) < len(LADDER) - 1:
                bid = words((yield from self._ask(challenger, "licite")))
                is_higher = bid in LADDER and LADDER.index(bid) > LADDER.index(standing)
                if bid != "PASS" and not is_higher and not self._members.has("takes-any-bid"):
                    raise Broken(challenger, f"you must bid more than {standing}, or PASS")
                self._all(self._info("licite", challenger, bid))
                if bid == "PASS" or bid not in LADDER:
                    break
                answer = words((yield from self._ask(holder, "licite", bid)))
                if answer not in ("YES", "NO"):
                    raise Broken(holder, "you must say YES or NO")
                self._all(self._info("licite", holder, bid if answer == "YES" else "PASS"))
                standing = bid
                if answer == "NO":
                    holder = challenger
                    break
        return holder, standing

    def _take_talon(self, declarer: int) -> Generator[None, Element, None]:
        move = {"from": "talon", "to": "hand"}
        self._members.tell(declarer, element("dial", cards(self._talon), type="cards", **move))
        self._others(declarer, self._info("dial", declarer, cards([None] * TALON), **move))
        hand = self._hands[declarer] = self._hands[declarer] + self._talon
        self._members.want(declarer, "playcard", "cards")
        answer = yield
        given = codes(answer)
        if len({*given}) != TALON or len(given) != TALON or not {*given} <= {*hand}:
            if not self._members.has("takes-any-discard"):
                raise Broken(declarer, "you must discard two of your cards")
            given = hand[:TALON]
        self._hands[declarer] = [card for card in hand if card not in given]
        back = {"from": "hand", "to": "talon"}
        shown = given if self._members.has("shows-discards") else [None] * TALON
        self._others(declarer, self._info("playcard", declarer, cards(shown), **back))

    def _name_trumps(self, declarer: int, game: str) -> Generator[None, Element, tuple[str, str]]:
        answer = yield from self._ask(declarer, "gametype", element("licite", game))
        named, trumf = (
            words(one) if one is not None else "" for one in map(answer.find, ("licite", "trumf"))
        )
        if named not in LADDER or LADDER.index(named) < LADDER.index(game):
            raise Broken(declarer, "the game may only be raised")
        colours = trumf.split(":") if trumf else []
        needed = (1 + (named in WITH_TWO_SEVENS)) if has_trumps(named) else 0
        if len(colours) != needed or any(colour not in ("r", "b", "g", "a") for colour in colours):
            raise Broken(declarer, "these are not the trumps of this game")
        return named, trumf

    def _double(self, declarer: int) -> Generator[None, Element, int]:
        """Yield the level at the end: the others may double, then the declarer, and so on."""
        level = 1
        others = [(declarer + step) % SEATS for step in range(1, SEATS)]
        for turn in range(8):
            before = level
            for seat in others if turn % 2 == 0 else [declarer]:
                answer = words((yield from self._ask(seat, "flek", str(level))))
                if answer not in (str(level), str(min(2 * level, HIGHEST_FLEK))):
                    raise Broken(seat, f"you must say {level}, or the double of it")
                level = int(answer)
                self._all(self._info("flek", seat, answer))
            if level == before:
                break
        return level

    def _trick(self, rules: Rules, leader: int) -> Generator[None, Element, int]:
        table: list[str] = []
        for step in range(SEATS):
            seat = (leader + step) % SEATS
            played = codes((yield from self._ask(seat, "playcard")))
            card = played[0] if played else ""
            allowed = rules.allowed(table, self._hands[seat])
            if self._members.has("takes-any-card") and card in PACK:
                self._hands[seat][0] = card if card not in self._hands[seat] else self._hands[seat][0]
            elif self._members.has("lets-colours-be") and card in self._hands[seat]:
                pass
            elif len(played) != 1 or card not in allowed:
                raise Broken(seat, f"you must play {' or '.join(allowed)}!")
            self._hands[seat].remove(card)
            table.append(card)
            self._others(seat, self._info("playcard", seat, cards([card]), **_LAID))
        winner = (leader + rules.winner(table)) % SEATS
        if self._members.has("gives-tricks-to-the-first"):
            winner = leader
        self._tricks.append((winner, table))
        self._all(self._round(len(self._tricks), winner, table))
        return winner

    def _round(self, number: int, winner: int, table: Sequence[str]) -> str:
        return element("round", cards(table), number=number, playerid=self._members.number(winner))

    def _result(self, declarer: int, game: str, trumf: str, level: int) -> None:
        own = [table for winner, table in self._tricks if winner == declarer]
        counted = sum(STAKE for table in own for card in table if card[1:] in _COUNTS)
        counted += STAKE * (self._tricks[-1][0] == declarer)
        won = {"SMALL": not own, "BIG": len(own) == HAND}.get(game, counted >= TO_WIN)
        stake = STAKE * level
        due = 2 * stake + (stake if self._members.has("pays-too-much") else 0)
        sides = []
        for seat in range(SEATS):
            money = due if seat == declarer else stake
            gets = (seat == declarer) == won
            paid = element("money", str(money), type="get" if gets else "lost")
            sides.append(element("winer" if gets else "loser", paid, playerid=self._members.number(seat)))
        named = element("licite", game) + (element("trumf", trumf) if trumf else "")
        rounds = [self._round(number, *trick) for number, trick in enumerate(self._tricks, 1)]
        self._all(element("result", GAME, named, element("flek", str(level)), *rounds, *sides))


def renonc(number: int, name: str, why: str) -> str:
    """Return the message about a broken rule."""
    return element("renonc", player(number, name), element("message", text(why)))


_DESK = {"from": "desk"}
_LAID = {"from": "hand", "to": "desk"}
