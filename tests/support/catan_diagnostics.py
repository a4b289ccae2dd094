"""Games of Catan with rule violations, and their diagnostics with places in the bytes."""

from __future__ import annotations

from typing import Any, NamedTuple

from catan_island import Counts, Place, Spot
from catan_play import NAMES, Dialect, Server, a_game
from catan_wire import Step, wrong

from kiebitz.dissectors.protocols.catan.words import ROHSTOFFE

ROLL_FOR = {"Holz": 6, "Lehm": 8, "Wolle": 5, "Getreide": 9, "Erz": 10}


class Maker(NamedTuple):
    """Makes games on the map, or on the mirrored one."""

    mirrored: bool

    def game(self, numbers: str = "", **dialect: Any) -> Server:
        return a_game(numbers, Dialect(**dialect), self.mirrored)

    def built(self, *buildings: tuple[int, str, Spot], robber: Place = (0, 0)) -> Server:
        """Return a game whose map has these buildings already; Anna has the turn."""
        server = Server(*NAMES[:3], mirrored=self.mirrored)
        told = [{"Eigentümer": owner, "Typ": typ, "Ort": server.where(at)} for owner, typ, at in buildings]
        server.truth.robber = robber
        server.start(karte=server.karte() | {"Gebäude": told})
        server.truth.robber = robber
        server.truth.buildings = {at: (owner, typ) for owner, typ, at in buildings}
        server.rounds("3")
        return server


def fund(server: Server, player: int, counts: Counts) -> Server:
    """Let the players roll until one has these resources, given by the others, and the turn."""
    hands = server.truth.hands
    while True:
        lacking = {kind: count - hands[player][kind] for kind, count in counts.items()}
        everywhere = {kind: sum(hand[kind] for hand in hands.values()) for kind in ROHSTOFFE}
        wanted = [ROLL_FOR[kind] for kind, count in counts.items() if everywhere[kind] < count]
        server.rounds(str(wanted[0] if wanted else 3))
        turn = server.truth.turn
        assert turn is not None
        if turn == player and max(lacking.values()) <= 0:
            return server
        given = {kind: min(count, hands[turn][kind]) for kind, count in lacking.items() if count > 0}
        if turn != player and any(given.values()):
            server.give(turn, player, {kind: count for kind, count in given.items() if count})


class ReportedDiagnostic(NamedTuple):
    """A diagnostic of a case: `where` is the part of the message's bytes that it is about, or ""."""

    code: str
    severity: str
    name: str
    where: str
    expected: str | None
    blame: str = "server"


def told(server: Server) -> list[ReportedDiagnostic]:
    """Return the diagnostics, with their places in the sent bytes."""
    findings = server.found()
    sent: dict[tuple[str, str], bytes] = {}
    for step in server.steps:
        if isinstance(step, Step):
            key = step.client, step.direction
            sent[key] = sent.get(key, b"") + step.data
    names = {f"127.0.0.1:{40_001 + number}": name for number, name in enumerate(NAMES)}
    found = []
    for diagnostic in wrong(findings):
        message = next(message for message in findings.messages if message.id == diagnostic.message_id)
        data = sent[names[diagnostic.stream.client], diagnostic.direction]
        where = data[diagnostic.offset : diagnostic.offset + diagnostic.length].decode()
        # Without the name and the colon before it, and the brace and the line feed after it.
        frame = data[message.offset : message.offset + message.length].decode()
        body = frame[len(f'{{"{message.name}":') : -2]
        part = "" if where == body else where
        found.append(
            ReportedDiagnostic(
                diagnostic.code,
                diagnostic.severity,
                message.name,
                part,
                diagnostic.expected,
                diagnostic.blame,
            )
        )
    return found
