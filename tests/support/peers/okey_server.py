"""An Okey server: who is logged in, the lobbies, the chat; `okey_table.py` has the game in a lobby."""

from __future__ import annotations

import re
from functools import partial

from kiebitz.dissectors.protocols.okey.tiles import SEATS
from peers.okey_table import Table
from peers.okey_wire import listed, message, quoted, tokens
from peers.program import Died, LineServer, Link, Setup

PING_S = 1.0
SILENCE_S = 15.0
"""Idle timeout of a client in seconds."""

LONGEST_NAME = 30
MOST_LOBBIES = 64


class OkeyServer(LineServer):
    """Every lobby begins once its four players are ready."""

    bare_cr = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._names: dict[Link, str] = {}
        self._heard: dict[Link, float] = {}
        self._tables: dict[int, Table] = {}
        self._at: dict[Link, Table] = {}
        self._finished: dict[int, str] = {}

    # Connections.

    def welcome(self, link: Link) -> None:
        self._heard[link] = self.now
        self._ping(link)

    def _ping(self, link: Link) -> None:
        if link not in self._heard:
            return
        if self.now - self._heard[link] >= SILENCE_S and not self.has("never-times-out"):
            self.lose(link)
            link.close()
            return
        self.say(link, "PING")
        self.after(PING_S, partial(self._ping, link))

    def unended(self, link: Link, rest: bytes) -> None:
        self.line(link, rest)

    def leave(self, link: Link) -> None:
        if self.has("forgets-nobody"):
            return
        self._names.pop(link, None)
        del self._heard[link]
        table = self._at.pop(link, None)
        if table is not None:
            table.leave(link)

    def farewell(self, link: Link, why: str) -> None:
        pass

    def say(self, link: Link, name: str, *arguments: str) -> None:
        text = message(name, *arguments)
        if self.has("escapes-nothing"):
            text = text.replace('\\"', '"')
        link.send(f"{text}\r\n".encode())

    def name_of(self, link: Link) -> str:
        return self._names.get(link, "")

    # Requests.

    def line(self, link: Link, line: bytes) -> None:
        self._heard[link] = self.now
        words = tokens(self.text(line))
        if self.has("closes-all") and not words:
            self.give_up(link, "an empty line")
            return
        if not words:
            if self.has("dies-on-an-empty-line"):
                raise Died("an empty line")
            return
        name, *arguments = words
        if len(arguments) < _ARGUMENTS.get(name, 0):
            if self.has("dies-on-a-missing-argument"):
                raise Died(name)
            return
        if self.has("dies-on-an-unknown-word") and not name.startswith("+") and name not in _KNOWN:
            raise Died(name)
        match name:
            case "LOGI" | "NAME":
                self._name(link, name, arguments[0])
            case "PING":
                self.say(link, "+PING")
            case "LPLA":
                self.say(link, "+LPLA", listed(self._names.values()))
            case "LLPL":
                self.say(link, "+LLPL", listed(self._lobbies()))
            case "LGAM":
                self._games(link, arguments[0])
            case "JLOB":
                self._join(link, arguments[0])
            case "LOGO":
                self.say(link, "+LOGO")
                self.lose(link)
                link.close()
            case "CATC":
                self._chat(link, *arguments[:3])
            case "REDY" | "DRAW" | "PUTT" | "WINC":
                self._play(link, name, arguments)
        if self.has("answers-twice") and name == "LPLA":
            self.say(link, "+LPLA", listed(self._names.values()))

    def _name(self, link: Link, request: str, wanted: str) -> None:
        wanted = re.sub(r"\s", "_", wanted)[:LONGEST_NAME] or "_"
        others = {name for other, name in self._names.items() if other is not link}
        if self.has("gives-names-twice"):
            others = set()
        actual, number = wanted, 0
        while actual in others:
            number += 1
            actual = f"{wanted[: LONGEST_NAME - 4]}_{number}"
        self._names[link] = actual
        self.say(link, f"+{request}", actual)

    def _lobbies(self) -> list[str]:
        return [
            text
            for number, table in self._tables.items()
            for text in (quoted(f"Lobby {number}"), listed(map(self.name_of, table.present())))
        ]

    def _games(self, link: Link, status: str) -> None:
        tables = self._tables.items()
        match status:
            case "o":
                games = [f"{number}:{len(table.present())}" for number, table in tables if not table.is_on]
            case "r":
                games = [str(number) for number, table in tables if table.is_on]
            case "f":
                games = [f"{number}:{winner}" for number, winner in self._finished.items()]
            case _:
                return
        self.say(link, "+LGAM", status, listed(games))

    def _join(self, link: Link, number: str) -> None:
        if not re.fullmatch(r"-?[0-9]{1,9}", number):
            if self.has("dies-on-a-bad-number"):
                raise Died(number)
            return
        key = int(number)
        is_new = key not in self._tables
        if link in self._at or link not in self._names or (is_new and len(self._tables) >= MOST_LOBBIES):
            self.say(link, "+JLOB", "f")
            return
        table = self._tables.setdefault(key, Table(self, key))
        if (table.is_on or len(table.present()) >= SEATS) and not self.has("lets-a-fifth-in"):
            self.say(link, "+JLOB", "f")
            return
        self._at[link] = table
        table.join(link)
        self.say(link, "+JLOB", "t")

    def _chat(self, link: Link, kind: str, text: str, whom: str = "") -> None:
        sender = self._names.get(link, "")
        others = [other for other in self._names if other is not link]
        match kind:
            case "b":
                visibility = others
            case "l" if link in self._at:
                visibility = [other for other in others if self._at.get(other) is self._at[link]]
            case "w" if whom:
                visibility = [other for other in others if self._names[other] == whom]
                if self.has("whispers-to-all"):
                    visibility = others
            case _:
                return
        for other in visibility:
            self.say(other, "CATS", kind, text, sender)
        self.breathe()
        whisper = (whom, "t" if visibility else "f") if kind == "w" else ()
        self.say(link, "+CATC", kind, text, *whisper)

    def _play(self, link: Link, name: str, arguments: list[str]) -> None:
        table = self._at.get(link)
        if table is None:
            # None, so that a request is refused as out of turn.
            if name in ("DRAW", "PUTT"):
                self.say(link, f"+{name}", *([""] if name == "DRAW" else ["f", "f"]))
            return
        match name:
            case "REDY":
                table.ready(link)
            case "DRAW":
                table.draw(link, arguments[0])
            case "PUTT":
                table.put(link, arguments[0], [tile or None for tile in tokens(arguments[1])])
            case "WINC":
                table.cheat(link)

    def ended(self, table: Table, winner: Link | None) -> None:
        """A game is over: who has left has no seat any more."""
        self._finished[table.number] = self._names.get(winner, "") if winner is not None else ""
        self.count_game()
        if self.over:
            self.close_all()


_ARGUMENTS = {"LOGI": 1, "NAME": 1, "LGAM": 1, "JLOB": 1, "DRAW": 1, "PUTT": 2, "CATC": 2}
"""Number of arguments of each request."""

_KNOWN = (*_ARGUMENTS, "LPLA", "LLPL", "LOGO", "REDY", "PING", "WINC")
