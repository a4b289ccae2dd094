"""Driver that passes scripted datagrams to a table, without sockets, files or clocks."""

from __future__ import annotations

from conversation import Conversation, games_of, sentences, state_of, violations

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Diagnostic, Event, Game
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN


class Play(Conversation):
    """A server at port 9000 and its clients, by name."""

    def __init__(self) -> None:
        super().__init__(MAEXCHEN, 9000)

    def client(self, name: str, text: str, after_ms: float = 1) -> None:
        """A client sends."""
        self.say(name, "c2s", text.encode(), after_ms)

    def server(self, names: str, text: str, after_ms: float = 1) -> None:
        """Send a copy of a message to each of the clients, whose names are separated by blanks."""
        for name in names.split():
            self.say(name, "s2c", text.encode(), after_ms)
            after_ms = 0.1

    def register(self, *names: str) -> None:
        for name in names:
            self.client(name, f"REGISTER;{name}")
            self.server(name, "REGISTERED")

    def start(self, number: int, *players: str) -> None:
        """A round of the newest dialect starts; tokens are the player's name and `-join`."""
        for name in players:
            self.server(name, f"ROUND STARTING;{name}-join-{number}")
            self.client(name, f"JOIN;{name}-join-{number}")
        self.server(" ".join(players), f"ROUND STARTED;{number};{','.join(players)}", after_ms=250)

    def turn(self, everybody: str, name: str, rolled: str, announced: str, token: str) -> None:
        """Play one whole turn: question, roll, announcement."""
        self.server(name, f"YOUR TURN;{token}-turn")
        self.client(name, f"ROLL;{token}-turn")
        self.server(everybody, f"PLAYER ROLLS;{name}")
        self.server(name, f"ROLLED;{rolled};{token}-roll")
        self.client(name, f"ANNOUNCE;{announced};{token}-roll")
        self.server(everybody, f"ANNOUNCED;{name};{announced}")

    @property
    def events(self) -> list[Event]:
        return self.found_so_far().events

    @property
    def told(self) -> list[str]:
        """Return the events as sentences."""
        return sentences(MAEXCHEN, self.found_so_far())

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return all diagnostics but notes, with the last verdicts."""
        return violations(self.found())

    @property
    def notes(self) -> list[Diagnostic]:
        return [one for one in self.found_so_far().diagnostics if one.severity == "note"]

    @property
    def games(self) -> list[Game]:
        """Each game's last reported state."""
        return games_of(self.found_so_far())

    @property
    def state(self) -> State:
        return state_of(self.found_so_far())
