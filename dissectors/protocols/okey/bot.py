"""An Okey bot: uses the lobby and its chat, puts tiles at random, and sometimes cheats."""

from __future__ import annotations

from kiebitz.dissectors.conformance.bots import Aim, Fields, Player, Say
from kiebitz.dissectors.protocols.okey.tiles import DECK, is_won, tiles

_LOBBY = 1
_CHEATS = 0.02
_OWN_STACK = 0.3
"""Probability of drawing from its exchange stack if there is a tile."""


class OkeyPlayer(Player):
    """An Okey bot that plays in lobby 1."""

    def __init__(self, name: str, seed: int = 1, games: int = 0) -> None:
        super().__init__(name, seed, games)
        self._deck: list[str] = []
        self._seat = 0
        self._waits = False
        """True if a draw or put of its own is not answered yet."""

    def _begin(self) -> None:
        self._deck, self._waits = [], False
        self._say("LOGI", nickname=self.name)

    def _hear(self, name: str, fields: Fields) -> None:
        if name in ("PING", "STRT", "STAT", "PWIN", "EMPT", "CATS", "JOND", "LEFT", "NAMS"):
            self._say(f"+{name}")
        match name:
            case "+LOGI":
                self.name = fields["actualname"]
                self._look_around()
            case "+NAME":
                self.name = fields["actualname"]
            case "+JLOB" if fields["joinsuccessful"]:
                self._say("CATC", messagetype="l", msg="Hallo, wer spielt mit?")
                self._say("REDY")
            case "STRT":
                self._deck, self._seat = tiles(fields["startdeck"]), fields["playeridx"]
                self._waits = False
                self._may(Say("CATC", {"messagetype": "l", "msg": "Viel Glück"}), optional=True)
                if len(self._deck) > DECK:
                    self._put()
            case "STAT":
                self._turn(fields)
            case "+DRAW" if fields["tile"] is not None:
                self._deck.append(fields["tile"])
                self._put(may_cheat=True)
            case "+DRAW":
                self._waits = False
            case "+PUTT":
                self._waits = False
            case "+WINC":
                self._deck = tiles(fields["deck"])
                self._put()
            case "PWIN" | "EMPT":
                self._game_over()

    def _look_around(self) -> None:
        """Queue the requests that are possible before a game, in a sensible order."""
        self._say("PING")
        self._say("NAME", nickname=f"{self.name}_")
        self._say("LPLA")
        self._say("LLPL")
        for status in "orf":
            self._say("LGAM", gamestatus=status)
        self._say("CATC", messagetype="b", msg="Grüß Gott")
        self._say("CATC", messagetype="w", msg="Bist du da?", whisperrecipient=self.name)
        self._say("JLOB", n=_LOBBY)

    def _turn(self, fields: Fields) -> None:
        if fields["currentplayeridx"] != self._seat or len(self._deck) != DECK or self._waits:
            return
        self._waits = True
        pile, own = (Say("DRAW", {"drawstack": stack}) for stack in "me")
        if fields["exchangestacks"][self._seat] is None:
            self._may(pile)
        elif self.random.random() < _OWN_STACK:
            self._may(own, pile)
        else:
            self._may(pile, own)

    def _put(self, may_cheat: bool = False) -> None:
        """Queue putting a tile, preferably one that wins."""
        kinds = sorted({*self._deck})
        wins = [tile for tile in kinds if is_won(self._without(tile))]
        first = wins or [self.random.choice(kinds)]
        ways = [self._putting(tile) for tile in (*first, *(tile for tile in kinds if tile not in first))]
        cheat = Say("WINC", {})
        if not may_cheat:
            self._may(*ways)
        elif self.random.random() < _CHEATS:
            self._may(cheat, *ways)
        else:
            self._may(*ways, cheat)

    def _without(self, tile: str) -> list[str]:
        left = [*self._deck]
        left.remove(tile)
        return left

    def _putting(self, tile: str) -> Say:
        return Say("PUTT", {"tile": tile, "deck": self._without(tile)})

    def _said(self, said: Say) -> None:
        if said.name == "PUTT":
            self._deck = [*said.fields["deck"]]
            self._waits = True

    def _leads(self, aim: Aim, way: Say) -> bool:
        if aim.name in ("EMPT", "+EMPT"):
            # The pile runs empty if no player wins and all draw from it.
            is_safe = way.name == "PUTT" and not is_won(way.fields["deck"])
            return is_safe or way == Say("DRAW", {"drawstack": "m"})
        if aim.name in ("CATS", "+CATS"):
            return way.name == "CATC"
        # Winning by cheating ends the game soon.
        return aim.name in ("PWIN", "+PWIN", "LOGO", "+LOGO") and way.name == "WINC"

    def _game_over(self) -> None:
        self._deck = []
        self.games += 1
        again, leave = Say("REDY", {}), Say("LOGO", {})
        self._may(*((leave,) if self.had_enough else (again, leave)))
