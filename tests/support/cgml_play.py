"""A login server, a game server and three players of CGML, who play random hands by the rules.

Every message goes through an inspector at once. Other conversations are texts, in tests/data/conversations.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from conversation import Conversation, games_of, violations

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.model import (
    Diagnostic,
    Direction,
    Event,
    Game,
)
from kiebitz.dissectors.protocols.cgml.cards import PACK, Rules
from kiebitz.dissectors.protocols.cgml.dissector import CGML

LOGIN, GAME_SERVER = 7001, 7002
ANNA, BEDA, CYRIL = 11, 12, 13
PLAYERS = (ANNA, BEDA, CYRIL)
LM = "<game>licitovany_marias</game>"


def message(text: str, line_end: str = "\r\n") -> bytes:
    """Return the bytes of a message, written with `~` for each line end, with the empty line behind it."""
    return f"{text}~~".replace("~", line_end).encode()


def player(number: int) -> str:
    return f'<player id="{number}"><name>p{number}</name><race>human</race></player>'


def cards(codes: Sequence[str | None]) -> str:
    return "".join(f"<card>{code or ''}</card>" for code in codes)


class Cgml(Conversation):
    """Two servers and their clients by the numbers of their players."""

    def __init__(self, seen: Sequence[int] = PLAYERS) -> None:
        super().__init__(CGML, GAME_SERVER, LOGIN)
        self._seen = seen
        """The clients whose conversations are captured."""

    # Messages.

    def says(self, who: int, text: str, port: int = GAME_SERVER) -> None:
        """Send a client's message."""
        self._send(who, "c2s", text, port)

    def tells(self, whom: int | Sequence[int], text: str, port: int = GAME_SERVER) -> None:
        """Send the same message of the server to one client or several."""
        for one in (whom,) if isinstance(whom, int) else whom:
            self._send(one, "s2c", text, port)

    def _send(self, who: int, direction: Direction, text: str, port: int) -> None:
        if who in self._seen:
            self.say(str(who), direction, message(text), port=port)
        else:
            self.wait(0.001)

    # Findings.

    @property
    def events(self) -> list[Event]:
        return self.found().events

    def data(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of the events of a kind, without the names of the players in it."""
        return [without_names(event) for event in self.events if event.kind == kind]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return all diagnostics but notes."""
        return violations(self.found())

    @property
    def codes(self) -> list[tuple[str, str, str]]:
        """The diagnostics' codes, severities and origins."""
        return [
            (diagnostic.code, diagnostic.severity, diagnostic.blame)
            for diagnostic in self.diagnostics
            if diagnostic.group != "network"
        ]

    @property
    def games(self) -> list[Game]:
        return games_of(self.found())

    def state(self, port: int = GAME_SERVER) -> State:
        table = next(table.id for table in self.found().tables if table.server.endswith(f":{port}"))
        state: State = {}
        for event in self.events:
            if event.table_id == table:
                apply(state, event.changes)
        return state

    # How players come together.

    def log_in(self, group: int = 4) -> None:
        for who in PLAYERS:
            self.says(who, f'<connect status="active">{player(who)}{LM}</connect>', LOGIN)
        for who in PLAYERS:
            others = "".join(player(other) for other in PLAYERS if other != who)
            url = f"<url>127.0.0.1:{GAME_SERVER}</url>"
            self.tells(who, f'<connect status="complete" id="{group}">{LM}{others}{url}</connect>', LOGIN)

    def join(self, group: int = 4) -> None:
        for who in PLAYERS:
            self.says(who, f'<newgroup status="accept" id="{group}">{LM}{player(who)}</newgroup>')

    def ask_for_hand(self, order: Sequence[int] = PLAYERS) -> None:
        everybody = "".join(map(player, order))
        self.tells(order, f'<newgame status="ask">{everybody}</newgame>')
        for who in order:
            self.says(who, f'<newgame status="accept">{player(who)}</newgame>')


class Hand:
    """One hand, step by step: Anna leads, Beda bids first, Anna wins with a seven."""

    def __init__(self, table: Cgml, seed: int = 1, contract: str = "7", trumf: str = "r") -> None:
        self.table = table
        self.chance = random.Random(seed)
        self.contract, self.trumf = contract, trumf
        self.rules = Rules(contract, trumf[:1].upper() or None)
        pack = [*PACK]
        self.chance.shuffle(pack)
        self.dealt = {who: pack[10 * place : 10 * place + 10] for place, who in enumerate(PLAYERS)}
        self.talon = pack[30:]
        self.hands = {who: dealt.copy() for who, dealt in self.dealt.items()}
        self.tricks: list[tuple[int, list[str]]] = []
        self.leader = ANNA

    def deal(self) -> None:
        self.table.ask_for_hand()
        for who in PLAYERS:
            for other in PLAYERS:
                hidden = [None] * len(self.dealt[other])
                said = f'<dial type="info" to="hand" from="desk" playerid="{other}">{cards(hidden)}</dial>'
                if other == who:
                    said = f'<dial type="cards" to="hand" from="desk">{cards(self.dealt[who])}</dial>'
                self.table.tells(who, said)
            self.table.tells(who, f'<dial type="cards" to="talon" from="desk">{cards([None] * 2)}</dial>')

    def bid(self) -> None:
        self.bids(BEDA, "", "G")
        self.bids(ANNA, "G", "YES")
        self.bids(BEDA, "", "PASS")
        self.bids(CYRIL, "", "7")
        self.bids(ANNA, "7", "YES")
        self.bids(CYRIL, "", "PASS")
        self.table.tells(PLAYERS, f'<licite type="result" playerid="{ANNA}">7</licite>')

    def bids(self, who: int, asked: str, answer: str) -> None:
        self.table.tells(who, f'<licite type="ask">{asked}</licite>')
        self.table.says(who, f'<licite type="answer">{answer}</licite>')
        call = asked if answer == "YES" else answer
        self.table.tells(PLAYERS, f'<licite type="info" playerid="{who}">{call}</licite>')

    def take_talon(self) -> None:
        self.table.tells(ANNA, f'<dial type="cards" from="talon" to="hand">{cards(self.talon)}</dial>')
        info = f'<dial type="info" from="talon" to="hand" playerid="{ANNA}">{cards([None] * 2)}</dial>'
        self.table.tells((BEDA, CYRIL), info)
        self.hands[ANNA] += self.talon

    def discard(self) -> None:
        codes = self.hands[ANNA][:2]
        self.table.says(ANNA, f'<playcard type="cards" from="hand" to="talon">{cards(codes)}</playcard>')
        info = (
            f'<playcard type="info" from="hand" to="talon" playerid="{ANNA}">{cards([None] * 2)}</playcard>'
        )
        self.table.tells((BEDA, CYRIL), info)
        del self.hands[ANNA][:2]

    def name_trumps(self) -> None:
        self.table.tells(ANNA, '<gametype type="ask"><licite>7</licite></gametype>')
        self.table.says(ANNA, f'<gametype type="answer">{self._game()}</gametype>')
        self.table.tells(PLAYERS, f'<gametype type="info" playerid="{ANNA}">{self._game()}</gametype>')

    def _game(self) -> str:
        return f"<licite>{self.contract}</licite>" + (f"<trumf>{self.trumf}</trumf>" if self.trumf else "")

    def double(self) -> None:
        self.doubles(BEDA, "1", "2")
        self.doubles(CYRIL, "2", "2")
        self.doubles(ANNA, "2", "2")
        game = f"{self._game()}<flek>2</flek>"
        self.table.tells(PLAYERS, f'<gametype type="info" playerid="{ANNA}">{game}</gametype>')

    def doubles(self, who: int, asked: str, answer: str) -> None:
        self.table.tells(who, f'<flek type="ask">{asked}</flek>')
        self.table.says(who, f'<flek type="answer">{answer}</flek>')
        self.table.tells(PLAYERS, f'<flek type="info" playerid="{who}">{answer}</flek>')

    def until(self, last: str) -> None:
        """Do all that comes before the first card, up to this step."""
        steps = (self.deal, self.bid, self.take_talon, self.discard, self.name_trumps, self.double)
        for step in steps:
            step()
            if step.__name__ == last:
                return
        raise ValueError(f"there is no step {last}")

    def trick(self) -> None:
        """Play one trick at random by the rules."""
        table: list[str] = []
        at = PLAYERS.index(self.leader)
        order = [*PLAYERS[at:], *PLAYERS[:at]]
        for who in order:
            card = self.chance.choice(self.rules.allowed(table, self.hands[who]))
            self.table.tells(who, '<playcard type="ask"></playcard>')
            said = f'<playcard type="cards" from="hand" to="desk">{cards([card])}</playcard>'
            self.table.says(who, said)
            info = f'<playcard type="info" from="hand" to="desk" playerid="{who}">{cards([card])}</playcard>'
            self.table.tells([other for other in PLAYERS if other != who], info)
            self.hands[who].remove(card)
            table.append(card)
        winner = order[self.rules.winner(table)]
        self.tricks.append((winner, table))
        self.leader = winner
        self.table.tells(PLAYERS, self._round(len(self.tricks), winner, table))

    def _round(self, number: int, winner: int, codes: Sequence[str]) -> str:
        return f'<round number="{number}" playerid="{winner}">{cards(codes)}</round>'

    def result(self, *money: int) -> None:
        """The result; `money` is what Anna, Beda and Cyril have won."""
        said = {"licite": self.contract, "trumf": self.trumf, "flek": "2"}
        rounds = "".join(
            self._round(number, winner, table) for number, (winner, table) in enumerate(self.tricks, 1)
        )
        amounts = dict(zip(PLAYERS, money or self.due(), strict=True))
        sides = "".join(
            f'<{tag} playerid="{who}"><money type="{word}">{abs(amount)}</money></{tag}>'
            for tag, word, sign in (("winer", "get", 1), ("loser", "lost", -1))
            for who, amount in amounts.items()
            if amount * sign > 0
        )
        game = "".join(f"<{tag}>{text}</{tag}>" for tag, text in said.items() if text)
        self.table.tells(PLAYERS, f"<result>{LM}{game}{rounds}{sides}</result>")

    def due(self) -> tuple[int, int, int]:
        """Return what the players get: without trumps the tricks decide, otherwise the declarer wins."""
        taken = sum(winner == ANNA for winner, _ in self.tricks)
        lost = (self.contract == "SMALL" and taken > 0) or (
            self.contract == "BIG" and taken < len(self.tricks)
        )
        return (-4, 2, 2) if lost else (4, -2, -2)

    def whole(self) -> None:
        self.until("double")
        for _ in range(10):
            self.trick()
        self.result()


def without_names(event: Event) -> dict[str, Any]:
    """Return an event's data without what its players are called."""
    return {key: part for key, part in event.data.items() if key != CALLED}
