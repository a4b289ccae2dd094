"""A client's connection, its requests that are not answered yet, and their checks by the rules.

Answers name no request, and programs differ in whether they confirm before the consequences, after them, or
not at all. Therefore a request counts as performed once its effect was sent, and a refusal belongs to the
first request that is not performed. A violation is reported when the server refuses the request, to explain
why. If the server grants it, only the server's own messages are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import Message, Stream
from kiebitz.dissectors.protocols.catan.board import Board, at, placement_problem, spot
from kiebitz.dissectors.protocols.catan.game import CARD_COST, COSTS, HAS_THE_TURN, CatanGame, Player
from kiebitz.dissectors.protocols.catan.ledger import counts_text, plain, total

_NEED_TURN = frozenset(
    (
        *("Würfeln", "Räuber versetzen", "Zug beenden", "Bauen", "Entwicklungskarte kaufen", "Seehandel"),
        *("Handel anbieten", "Handel abschließen", "Ritter ausspielen", "Straßenbaukarte ausspielen"),
        *("Monopol", "Erfindung"),
    )
)
_STATUS = {
    "Würfeln": "Würfeln",
    "Karten abgeben": "Karten wegen Räuber abgeben",
    "Räuber versetzen": "Räuber versetzen",
}
"""The player's status that a request needs."""

_CARD_OF = {
    "Ritter ausspielen": "Ritter",
    "Straßenbaukarte ausspielen": "Straßenbau",
    "Monopol": "Monopol",
    "Erfindung": "Erfindung",
}


class _Request(NamedTuple):
    """A request with its sender, its game and that game's board."""

    observation: Observation
    game: CatanGame
    board: Board
    player: Player

    @property
    def fields(self) -> Mapping[str, Any]:
        """The request's fields."""
        return self.observation.fields


class RequestViolation(NamedTuple):
    """A violation by a request: the rule, the path of the field, and the values for the rule's text."""

    key: str
    path: tuple[str, ...]
    values: Mapping[str, Any]


def check_request(
    observation: Observation, game: CatanGame, player: Player, told_ns: int
) -> RequestViolation | None:
    """Return the rule that a client's request breaks, as far as that is known; None if it breaks none.

    Args:
        observation: The request.
        game: The current game.
        player: The sender.
        told_ns: Time of the server's last message to the client, in nanoseconds.
    """
    if not game.certain or game.board is None:
        return None
    whose = game.players.get(game.turn) if game.turn is not None else None
    # If the client has not received the turn yet, it may have sent the request before.
    may_act = told_ns < game.turned_ns or player.status in HAS_THE_TURN
    if observation.name in _NEED_TURN and whose is not None and whose is not player and not may_act:
        return RequestViolation("out-of-turn/asked", (), {"whose": whose.name})
    if player.status not in (_STATUS.get(observation.name), None) and observation.name in _STATUS:
        return RequestViolation("not-now", (), {"status": player.status})
    check = _CHECKS.get(observation.name)
    return check(_Request(observation, game, game.board, player)) if check is not None else None


def _check_building(asked: _Request) -> RequestViolation | None:
    game, typ = asked.game, asked.fields["Typ"]
    where = spot(map(at, asked.fields["Ort"]))
    problem = placement_problem(game.buildings, asked.board, asked.player.id, typ, where, game.in_setup)
    if problem is not None:
        violation = RequestViolation("bad-place/asked", ("Ort",), {"problem": problem})
        return None if game.buildings_contradicted else violation
    return None if game.in_setup else _check_affordable(asked.player, COSTS[typ], ("Typ",))


def _check_card_purchase(asked: _Request) -> RequestViolation | None:
    return _check_affordable(asked.player, CARD_COST, ())


def _check_sea_trade(asked: _Request) -> RequestViolation | None:
    offer, demand = plain(asked.fields["Angebot"]), plain(asked.fields["Nachfrage"])
    rates = asked.board.rates(asked.game.buildings.towns(asked.player.id))
    worth = sum(count // rates[kind] for kind, count in offer.items())
    if total(demand) > worth:
        best = ", ".join(f"{kind} {rates[kind]}:1" for kind in offer)
        values = {"offer": counts_text(offer), "demand": counts_text(demand), "rates": best}
        return RequestViolation("trade-rate/asked", ("Angebot",), values)
    return _check_affordable(asked.player, offer, ("Angebot",))


def _check_offer(asked: _Request) -> RequestViolation | None:
    return _check_affordable(asked.player, plain(asked.fields["Angebot"]), ("Angebot",))


def _check_trade_number(asked: _Request) -> RequestViolation | None:
    number = asked.fields["Handel id"]
    if number not in asked.game.trades:
        return RequestViolation("no-trade/asked", ("Handel id",), {"number": number})
    return None


def _check_discard(asked: _Request) -> RequestViolation | None:
    counts, held = plain(asked.fields["Abgeben"]), asked.player.hand.total
    if held is not None and total(counts) != held // 2:
        values = {"held": held, "half": held // 2, "count": total(counts)}
        return RequestViolation("wrong-count", ("Abgeben",), values)
    return _check_affordable(asked.player, counts, ("Abgeben",))


def _check_target_field(asked: _Request) -> RequestViolation | None:
    place, target = at(asked.fields["Ort"]), asked.fields.get("Ziel")
    if place == asked.game.robber:
        return RequestViolation("bad-place/asked", ("Ort",), {"problem": "the robber is there already"})
    if not asked.board.is_land(place):
        return RequestViolation("bad-place/asked", ("Ort",), {"problem": "that is not a field of the island"})
    if target is not None and target not in asked.game.buildings.owners_at(place):
        return RequestViolation("bad-target/asked", ("Ziel",), {"target": target})
    return None


def _check_card(asked: _Request) -> RequestViolation | None:
    card = _CARD_OF[asked.observation.name]
    if asked.player.played:
        return _card_violation("a second development card in one turn")
    if asked.player.cards.most[card] <= asked.player.bought.get(card, 0):
        return _card_violation(f"no {card} was bought in an earlier turn")
    return _check_target_field(asked) if "Ort" in asked.fields else None


def _check_affordable(
    player: Player, counts: Mapping[str, int], path: tuple[str, ...]
) -> RequestViolation | None:
    hand = player.hand
    missing = [kind for kind, count in counts.items() if hand.most[kind] < count]
    if not missing:
        return None
    return RequestViolation(
        "cannot-pay", path, {"cost": counts_text(counts), "missing": " or ".join(missing)}
    )


def _card_violation(problem: str) -> RequestViolation:
    return RequestViolation("card-not-allowed/asked", (), {"problem": problem})


_CHECKS: dict[str, Callable[[_Request], RequestViolation | None]] = {
    "Bauen": _check_building,
    "Entwicklungskarte kaufen": _check_card_purchase,
    "Seehandel": _check_sea_trade,
    "Handel anbieten": _check_offer,
    "Handel annehmen": _check_trade_number,
    "Handel abschließen": _check_trade_number,
    "Handel abbrechen": _check_trade_number,
    "Karten abgeben": _check_discard,
    "Räuber versetzen": _check_target_field,
    "Ritter ausspielen": _check_card,
    "Straßenbaukarte ausspielen": _check_card,
    "Monopol": _check_card,
    "Erfindung": _check_card,
}


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
    has_gap: bool = False
    """True if a gap followed the server's last message to the client."""
    told_ns: int = 0
    """Time of the server's last message to the client, in nanoseconds."""
    doubt_ns: int | None = None
    """Time of the last message before the latest doubt, in nanoseconds."""
    player: int | None = None
    requests: list[Request] = []

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
