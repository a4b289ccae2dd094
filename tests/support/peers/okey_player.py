"""An Okey player: joins lobby 1, puts tiles at random, and cheats now and then, as the protocol lets it."""

from __future__ import annotations

from kiebitz.dissectors.protocols.okey.tiles import DECK, is_won
from peers.okey_wire import listed, message, tokens
from peers.program import Died, LinePlayer, Lines, Setup


class OkeyPlayer(LinePlayer):
    """A client that plays the given number of games."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._deck: list[str] = []
        self._stack: str | None = None
        self._seat = 0
        self._waits = False
        """True while a draw or put of its own is unanswered."""

    def lines(self) -> Lines:
        return Lines(bare_cr=True)

    def begin(self) -> None:
        self._say("LOGI", self.setup.name)

    def _say(self, name: str, *arguments: str) -> None:
        text = message(name, *arguments)
        if self.has("writes-in-lower-case") and name in ("DRAW", "PUTT"):
            text = text.lower()
        self.says.append(f"{text}\r\n".encode())

    def line(self, line: bytes) -> None:
        words = tokens(self.text(line))
        if not words:
            return
        name, *arguments = words
        if name in ("PING", "STRT", "STAT", "PWIN", "EMPT", "CATS") and not (
            name == "PING" and self.has("answers-no-ping")
        ):
            self._say(f"+{name}")
        match name, arguments:
            case "+LOGI", [*_]:
                self._say("CATC", "b", f'Grüß Gott, ich bin "{self.setup.name}"')
                self._say("JLOB", "1")
            case "+JLOB", ["t", *_]:
                self._say("REDY")
            case "STRT", [deck, seat, *_]:
                self._deck = [tile for tile in tokens(deck) if tile]
                self._seat, self._stack, self._waits = int(seat), None, False
                if len(self._deck) > DECK:
                    self._put()
            case "STAT", [stacks, turn, *_]:
                self._turn(tokens(stacks), turn)
            case "+DRAW", [tile, *_] if tile:
                self._deck.append(tile)
                if self.random.random() < 0.02:
                    self._say("WINC")
                else:
                    self._put()
            case "+PUTT", [*_]:
                self._waits = False
            case "+WINC", [deck, *_]:
                self._deck = [tile for tile in tokens(deck) if tile]
                self._put()
            case ("PWIN", [*_]) | ("EMPT", [*_]):
                self._game_over()
            case "CATS", [_, said, _] if self.has("dies-on-quoted-chat") and '"' in said:
                raise Died(said)

    def _turn(self, stacks: list[str], turn: str) -> None:
        self._stack = stacks[self._seat] if len(stacks) > self._seat else None
        is_mine = turn == str(self._seat) or self.has("draws-out-of-turn")
        if is_mine and len(self._deck) == DECK and not self._waits:
            self._waits = True
            self._say("DRAW", "e" if self._stack and self.random.random() < 0.3 else "m")
            if self.has("draws-twice"):
                self._say("DRAW", "m")

    def _put(self) -> None:
        tile = next((tile for tile in sorted({*self._deck}) if self._wins_without(tile)), None)
        tile = tile or self.random.choice(self._deck)
        left = [*self._deck]
        left.remove(tile)
        self.random.shuffle(left)
        if self.has("puts-what-it-has-not"):
            tile = next(f"{number}:RED" for number in range(1, 14) if f"{number}:RED" not in self._deck)
        if self.has("keeps-its-tile"):
            self._say("PUTT", tile, listed([*left, tile]))
        elif self.has("sends-no-deck"):
            self._say("PUTT", tile)
        else:
            self._say("PUTT", tile, listed(left))
        self._deck = left
        self._waits = True

    def _wins_without(self, tile: str) -> bool:
        left = [*self._deck]
        left.remove(tile)
        return is_won(left)

    def _game_over(self) -> None:
        self._deck = []
        self.count_game()
        self._say("LOGO" if self.over else "REDY")
