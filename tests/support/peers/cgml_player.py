"""A CGML player: logs in, goes where it is sent, bids little and plays what the eleven steps allow."""

from __future__ import annotations

import zlib

from kiebitz.dissectors.protocols.cgml.cards import (
    COLOURS,
    LADDER,
    PACK,
    TALON,
    WITH_TWO_SEVENS,
    Rules,
    has_trumps,
)
from peers.cgml_wire import Element, Messages, Unreadable, cards, codes, element, message, player, read, words
from peers.program import Died, LinePlayer, Setup

HIGHEST_BID = LADDER.index("B7")
GAME = element("game", "licitovany_marias")


class CgmlPlayer(LinePlayer):
    """A player; its number follows from its name."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._number = 1000 + zlib.crc32(setup.name.encode()) % 9000
        self._group = ""
        self._messages = Messages()
        self._hand: list[str] = []
        self._table: list[str] = []
        self._rules = Rules("G", None)
        self._standing = "PASS"

    @property
    def _self(self) -> str:
        number = self._number + self.has("answers-for-another")
        return player(number, self.setup.name)

    def begin(self) -> None:
        self._messages = Messages()
        if self._group:
            self._say(element("newgroup", GAME, self._self, status="accept", id=self._group))
        else:
            me = player(self._number, self.setup.name)
            self._say(element("connect", me, GAME, status="active"))

    def _say(self, said: str) -> None:
        data = message(said)
        if self.has("forgets-the-empty-line") and said.startswith("<licite"):
            data = data.removesuffix(b"\r\n")
        if self.has("shouts") and said.startswith("<flek"):
            data = data.upper()
        if self.has("leaves-elements-open") and said.startswith("<playcard"):
            data = data.replace(b"</playcard>", b"")
        self.says.append(data)

    def line(self, line: bytes) -> None:
        whole = self._messages.line(line)
        if whole is None:
            return
        self.text(whole)
        try:
            elements = read(whole)
        except Unreadable as problem:
            if self.has("dies-on-broken-xml"):
                raise Died from problem
            return
        for one in elements:
            self._element(one)

    def _element(self, one: Element) -> None:
        kind = one.get("type") or one.get("status")
        match one.tag, kind:
            case "connect", "complete":
                self._group, self.calls = one.get("id", ""), True
                url = one.find("url")
                self.url = words(url) if url is not None else ""
            case "newgame", "ask":
                self._say(element("newgame", self._self, status="reject" if self.over else "accept"))
                self._hand, self._table, self._standing = [], [], "PASS"
            case "dial", "cards" if one.get("to") == "hand":
                self._hand += codes(one)
                if one.get("from") == "talon":
                    self._discard()
            case "licite", "ask":
                self._bid(words(one))
            case "licite", "info" if words(one) != "PASS":
                self._standing = words(one)
            case "gametype", "ask":
                self._name_trumps(one)
            case "gametype", "info":
                self._hear_trumps(one)
            case "flek", "ask":
                self._double(words(one))
            case "playcard", "ask":
                self._play()
            case "playcard", "info" if one.get("to") == "desk":
                self._table += codes(one)
            case "round", _:
                self._table = []
            case "result" | "cancelgame", _:
                self.count_game()
            case (("disconnect" | "abort"), _):
                pass
            case tag, _ if self.has("dies-on-an-unknown-element") and tag not in _KNOWN:
                raise Died(tag)

    def _answer(self, tag: str, *content: str) -> None:
        self._say(element(tag, *content, type="answer"))

    def _bid(self, asked: str) -> None:
        if asked:
            answer = "YES" if LADDER.index(asked) < HIGHEST_BID and self.random.random() < 0.6 else "NO"
            self._answer("licite", asked if self.has("repeats-the-bid") else answer)
            return
        next_one = LADDER.index(self._standing) + 1
        bid = LADDER[next_one] if next_one <= HIGHEST_BID and self.random.random() < 0.8 else "PASS"
        if self.has("bids-what-there-is-not"):
            bid = "8"
        self._answer("licite", bid)

    def _discard(self) -> None:
        given = self.random.sample(self._hand, TALON - self.has("discards-too-few"))
        self._hand = [card for card in self._hand if card not in given]
        self._say(element("playcard", cards(given), type="cards", **{"from": "hand", "to": "talon"}))

    def _name_trumps(self, one: Element) -> None:
        asked = one.find("licite")
        game = words(asked) if asked is not None else "G"
        colours = self.random.sample(COLOURS.lower(), 1 + (game in WITH_TWO_SEVENS))
        trumf = element("trumf", ":".join(colours)) if has_trumps(game) else ""
        if self.has("names-no-trumps"):
            trumf = ""
        self._answer("gametype", element("licite", game), trumf)

    def _hear_trumps(self, one: Element) -> None:
        game, trumf = one.find("licite"), one.find("trumf")
        colour = words(trumf)[:1].upper() if trumf is not None else ""
        self._rules = Rules(words(game) if game is not None else "G", colour or None)

    def _double(self, asked: str) -> None:
        level = asked.partition(":")[0]
        is_bold = level in ("1", "2") and self.random.random() < 0.2
        if self.has("lowers-the-level"):
            level, is_bold = "0", False
        self._answer("flek", str(2 * int(level)) if is_bold else asked if level != "0" else level)

    def _play(self) -> None:
        allowed = self._rules.allowed(self._table, self._hand)
        card = self.random.choice(allowed)
        if self.has("does-not-follow"):
            card = next((other for other in self._hand if other not in allowed), card)
        self._hand.remove(card)
        if self.has("plays-what-it-has-not"):
            card = next(other for other in PACK if other not in (*self._hand, *self._table, card))
        self._table.append(card)
        laid = element("playcard", cards([card]), type="cards", **{"from": "hand", "to": "desk"})
        self._say(laid)
        if self.has("answers-twice"):
            self._say(laid)


_KNOWN = ("licite", "dial", "gametype", "flek", "playcard", "newgame", "connect", "pause", "renonc")
