"""A client's connection: its player, and the requests that are not answered yet.

Answers name no request, and programs differ in whether they confirm before the consequences, after them, or
not at all. Therefore a request counts as performed once its effect was sent, and a refusal belongs to the
first request that is not performed.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import Message, Stream
from kiebitz.dissectors.protocols.catan.requests import RequestViolation

_MAX_REQUESTS = 16
"""Maximum number of pending requests; a server may fail to answer some."""

_EFFECTS = {
    "Chatnachricht": ("Chatnachricht senden",),
    "Statusupdate": ("Spieler", "Spiel starten", "Zug beenden"),
    "Spiel gestartet": ("Spiel starten",),
    "Würfelwurf": ("Würfeln",),
    "Kosten": ("Karten abgeben", "Seehandel"),
    "Räuber versetzt": ("Räuber versetzen",),
    "Bauvorgang": ("Bauen",),
    "Entwicklungskarte gekauft": ("Entwicklungskarte kaufen",),
    "Handelsangebot": ("Handel anbieten",),
    "Handelsangebot angenommen": ("Handel annehmen",),
    "Handel ausgeführt": ("Handel abschließen",),
    "Handelsangebot abgebrochen": ("Handel abbrechen",),
    "Ritter ausspielen": ("Ritter ausspielen",),
    "Straßenbaukarte ausspielen": ("Straßenbaukarte ausspielen",),
    "Monopol": ("Monopol",),
    "Erfindung": ("Erfindung",),
}
"""The requests that can cause a message."""


class Request(msgspec.Struct, eq=False):
    """A client's request, and the rule that it breaks."""

    message: Message
    told_ns: int
    """Time of the server's last message to the client before it, in nanoseconds."""
    performed: bool = False
    observation: Observation | None = None
    objection: RequestViolation | None = None


class ClientConnection(msgspec.Struct, eq=False):
    """A client's connection; `certain` if nothing of it is in doubt from its beginning on."""

    stream: Stream
    certain: bool = True
    in_doubt: bool = False
    """True if a message of unknown content followed the server's last one to the client."""
    told_ns: int = 0
    """Time of the server's last message to the client, in nanoseconds."""
    doubt_ns: int | None = None
    """Time of the last message before the latest doubt, in nanoseconds."""
    player: int | None = None
    requests: list[Request] = msgspec.field(default_factory=list)

    def asks(self, message: Message) -> Request:
        """Add a request of the client."""
        request = Request(message, self.told_ns)
        self.requests.append(request)
        del self.requests[:-_MAX_REQUESTS]
        return request

    def hears(self, message: Message) -> None:
        """Mark the first request that can have caused a broadcast as performed."""
        if not self.requests or _acting_player(message) not in (None, self.player):
            return
        wanted = _EFFECTS.get(message.name, ())
        for request in self.requests:
            if request.message.name in wanted and not request.performed:
                request.performed = True
                return

    def confirmed(self) -> None:
        """Remove the first performed request, or else the first, as the server has confirmed it."""
        if self.requests:
            done = (number for number, request in enumerate(self.requests) if request.performed)
            del self.requests[next(done, 0)]

    def waiting(self) -> Request | None:
        """Return the first request without an effect."""
        return next((request for request in self.requests if not request.performed), None)

    def latest(self) -> int:
        """Return the id of the latest request's message."""
        return self.requests[-1].message.id

    def refused(self) -> Request | None:
        """Remove and return the request that the server refuses, and drop earlier ones."""
        request = self.waiting()
        if request is not None:
            del self.requests[: self.requests.index(request) + 1]
        return request


def _acting_player(message: Message) -> int | None:
    fields = message.fields
    if message.name == "Statusupdate":
        return int(fields["Spieler"]["id"])
    if message.name == "Bauvorgang":
        return int(fields["Gebäude"]["Eigentümer"])
    if message.name == "Handelsangebot angenommen":
        return int(fields["Mitspieler"] if "Mitspieler" in fields else fields["Spieler"])
    found = fields.get("Spieler", fields.get("Absender"))
    return found if isinstance(found, int) else None
