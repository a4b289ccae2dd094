"""An Okey bot: uses the lobby and its chat, puts tiles at random, and sometimes cheats."""

from __future__ import annotations

from kiebitz.dissectors.conformance.bots import Bot, SendMessage, TargetMessage
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.okey.tiles import DECK, is_won, tiles

_MAX_LOBBY = 10_000
_JOIN_S = 1.0
"""Seconds to wait for the lists of lobbies before joining one."""

_CHEATS = 0.02
_OWN_STACK = 0.3
"""Probability of drawing from its exchange stack if there is a tile."""


class OkeyBot(Bot):
    """An Okey bot that plays in the first lobby where no game is running or finished."""

    def __init__(self, name: str, seed: int = 1, games: int = 0) -> None:
        super().__init__(name, seed, games)
        self._deck: list[str] = []
        self._seat = 0
        self._is_waiting = False
        """True if a draw or put of its own is not answered yet."""

    def _begin(self) -> None:
        self._deck, self._is_waiting = [], False
        self._lobby, self._is_joining = 1, False
        self._occupied: set[int] = set()
        self._send("LOGI", nickname=self.name)

    def _receive(self, name: str, fields: Fields) -> None:
        if name in ("PING", "STRT", "STAT", "PWIN", "EMPT", "CATS", "JOND", "LEFT", "NAMS"):
            self._send(f"+{name}")
        match name:
            case "+LOGI":
                self.name = fields["actualname"]
                self._queue_lobby_requests()
            case "+NAME":
                self.name = fields["actualname"]
            case "+LGAM" if fields["gamestatus"] in ("r", "f"):
                self._occupied.update(game["lobby"] for game in fields["games"])
                if fields["gamestatus"] == "f":
                    self._join()
            case "+JLOB" if not fields["joinsuccessful"] and self._lobby < _MAX_LOBBY:
                self._occupied.add(self._lobby)
                self._is_joining = False
                self._join()
            case "+JLOB" if fields["joinsuccessful"]:
                self._send("CATC", messagetype="l", msg="Hallo, wer spielt mit?")
                self._send("REDY")
            case "STRT":
                self._deck, self._seat = tiles(fields["startdeck"]), fields["playeridx"]
                self._is_waiting = False
                self._queue(SendMessage("CATC", {"messagetype": "l", "msg": "Viel Glück"}), optional=True)
                if len(self._deck) > DECK:
                    self._put()
            case "STAT":
                self._turn(fields)
            case "+DRAW" if fields["tile"] is not None:
                self._deck.append(fields["tile"])
                self._put(may_cheat=True)
            case "+DRAW":
                self._is_waiting = False
            case "+PUTT":
                self._is_waiting = False
            case "+WINC":
                self._deck = tiles(fields["deck"])
                self._put()
            case "PWIN" | "EMPT":
                self._game_over()

    def _queue_lobby_requests(self) -> None:
        """Queue the requests that are possible before a game, in a sensible order."""
        self._send("PING")
        self._send("NAME", nickname=f"{self.name}_")
        self._send("LPLA")
        self._send("LLPL")
        for status in "orf":
            self._send("LGAM", gamestatus=status)
        self._send("CATC", messagetype="b", msg="Grüß Gott")
        self._send("CATC", messagetype="w", msg="Bist du da?", whisperrecipient=self.name)
        self._schedule(_JOIN_S, self._join)

    def _join(self) -> None:
        """Join the first free lobby, once."""
        if not self._is_joining:
            self._is_joining = True
            self._lobby = next(n for n in range(1, _MAX_LOBBY + 1) if n not in self._occupied)
            self._send("JLOB", n=self._lobby)

    def _turn(self, fields: Fields) -> None:
        if fields["currentplayeridx"] != self._seat or len(self._deck) != DECK or self._is_waiting:
            return
        self._is_waiting = True
        pile, own = (SendMessage("DRAW", {"drawstack": stack}) for stack in "me")
        if fields["exchangestacks"][self._seat] is None:
            self._queue(pile)
        elif self.random.random() < _OWN_STACK:
            self._queue(own, pile)
        else:
            self._queue(pile, own)

    def _put(self, may_cheat: bool = False) -> None:
        """Queue putting a tile, preferably one that wins."""
        kinds = sorted({*self._deck})
        wins = [tile for tile in kinds if is_won(self._without(tile))]
        first = wins or [self.random.choice(kinds)]
        choices = [self._putting(tile) for tile in (*first, *(tile for tile in kinds if tile not in first))]
        cheat = SendMessage("WINC", {})
        if not may_cheat:
            self._queue(*choices)
        elif self.random.random() < _CHEATS:
            self._queue(cheat, *choices)
        else:
            self._queue(*choices, cheat)

    def _without(self, tile: str) -> list[str]:
        left = [*self._deck]
        left.remove(tile)
        return left

    def _putting(self, tile: str) -> SendMessage:
        return SendMessage("PUTT", {"tile": tile, "deck": self._without(tile)})

    def _on_sent(self, sent: SendMessage) -> None:
        if sent.name == "PUTT":
            self._deck = [*sent.fields["deck"]]
            self._is_waiting = True

    def _leads_to(self, target_message: TargetMessage, choice: SendMessage) -> bool:
        if target_message.name in ("EMPT", "+EMPT"):
            # The pile runs empty if no player wins and all draw from it.
            is_safe = choice.name == "PUTT" and not is_won(choice.fields["deck"])
            return is_safe or choice == SendMessage("DRAW", {"drawstack": "m"})
        if target_message.name in ("CATS", "+CATS"):
            return choice.name == "CATC"
        # Winning by cheating ends the game soon.
        return target_message.name in ("PWIN", "+PWIN", "LOGO", "+LOGO") and choice.name == "WINC"

    def _game_over(self) -> None:
        self._deck = []
        self.games += 1
        again, leave = SendMessage("REDY", {}), SendMessage("LOGO", {})
        self._queue(*((leave,) if self.is_finished else (again, leave)))
