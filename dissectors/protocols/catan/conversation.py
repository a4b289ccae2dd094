"""One client's connection: who he is, and what he has asked for that is not answered yet.

Answers name no request, and programs differ in whether they confirm before what follows, after it, or not at
all. So a request counts as performed once its effect was told, and a refusal is of the first that was not.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.catan.requests import Objection

_MAX_REQUESTS = 16
"""So many requests wait for an answer; a server may lose some."""

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
"""Which requests have this effect."""


class Request(msgspec.Struct, eq=False):
    """Something a client has asked for, and what speaks against it."""

    message: Message
    told_ns: int
    """When the client had been told something last."""
    performed: bool = False
    observation: Observation | None = None
    objection: Objection | None = None


class Conversation(msgspec.Struct, eq=False):
    """One client's connection; `whole` says that nothing of it is missing, from its beginning on."""

    stream_id: int
    whole: bool = True
    in_hole: bool = False
    """Whether something is missing since he was told something last."""
    told_ns: int = 0
    """When he was told something last."""
    hole_ns: int | None = None
    """From when on something was missing last."""
    player: int | None = None
    requests: list[Request] = msgspec.field(default_factory=list)

    def asks(self, message: Message) -> Request:
        """The client asks for something."""
        request = Request(message, self.told_ns)
        self.requests.append(request)
        del self.requests[:-_MAX_REQUESTS]
        return request

    def hears(self, message: Message) -> None:
        """The server tells something that may be what was asked for."""
        if not self.requests or _acting(message) not in (None, self.player):
            return
        wanted = _EFFECTS.get(message.name, ())
        for request in self.requests:
            if request.message.name in wanted and not request.performed:
                request.performed = True
                return

    def confirmed(self) -> None:
        """The server says OK to the first request whose effect was told, or else to the first."""
        if self.requests:
            done = (number for number, request in enumerate(self.requests) if request.performed)
            del self.requests[next(done, 0)]

    def waiting(self) -> Request | None:
        """The first request of which no effect was told."""
        return next((request for request in self.requests if not request.performed), None)

    def latest(self) -> int:
        """The id of the message with the latest request."""
        return self.requests[-1].message.id

    def refused(self) -> Request | None:
        """The server says no: to which request. What was asked before it was passed over."""
        request = self.waiting()
        if request is not None:
            del self.requests[: self.requests.index(request) + 1]
        return request


def _acting(message: Message) -> int | None:
    """Whose doing something is that the server tells."""
    fields = message.fields
    if message.name == "Statusupdate":
        return int(fields["Spieler"]["id"])
    if message.name == "Bauvorgang":
        return int(fields["Gebäude"]["Eigentümer"])
    if message.name == "Handelsangebot angenommen":
        return int(fields["Mitspieler"] if "Mitspieler" in fields else fields["Spieler"])
    found = fields.get("Spieler", fields.get("Absender"))
    return found if isinstance(found, int) else None
