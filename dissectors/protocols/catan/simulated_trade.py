"""Trade in a simulated server's game: with the bank, and among the players."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kiebitz.dissectors.grammar.field_type import Fields

if TYPE_CHECKING:
    from kiebitz.dissectors.protocols.catan.simulated_game import SimulatedGame
    from kiebitz.dissectors.protocols.catan.simulated_server import CatanServer

_MAX_OFFERS = 8


class RequestRefused(Exception):
    """A request is refused; the message is the reason."""


def require(allowed: bool, why: str) -> None:
    """Raise RequestRefused unless something is allowed."""
    if not allowed:
        raise RequestRefused(why)


class _Offer(NamedTuple):
    offer: Mapping[str, int]
    demand: Mapping[str, int]
    ready: set[int]


class Market:
    """The open offers."""

    def __init__(self, host: CatanServer, game: SimulatedGame) -> None:
        self._host = host
        self._game = game
        self._offers: dict[int, _Offer] = {}
        self._trades = 0

    def close(self, player: int) -> None:
        """Withdraw all offers at the end of a player's turn."""
        for trade in [*self._offers]:
            del self._offers[trade]
            self._host.broadcast("Handelsangebot abgebrochen", **{"Spieler": player, "Handel id": trade})

    def overseas(self, player: int, fields: Fields) -> None:
        """Trade with the bank at the rates of the player's harbours. Raises Refused."""
        self._game.may(player, "Handeln oder Bauen")
        offer, demand = fields["Angebot"], fields["Nachfrage"]
        self._game.afford(player, offer)
        rates = self._game.rates(player)
        is_fair = all(count % rates[kind] == 0 for kind, count in offer.items())
        due = sum(count // rates[kind] for kind, count in offer.items())
        require(is_fair and due == sum(demand.values()) > 0 and not {*offer} & {*demand}, "Falscher Kurs")
        require(all(self._game.left(kind) >= count for kind, count in demand.items()), "Nicht genug da")
        self._game.pay(player, offer)
        self._game.gain(player, demand)

    def offer(self, player: int, fields: Fields) -> None:
        """Offer a trade to the other players. Raises Refused."""
        self._game.may(player, "Handeln oder Bauen")
        self._game.afford(player, fields["Angebot"])
        require(len(self._offers) < _MAX_OFFERS, "Zu viele Angebote")
        self._trades += 1
        self._offers[self._trades] = _Offer(fields["Angebot"], fields["Nachfrage"], set())
        self._host.broadcast("Handelsangebot", **{"Spieler": player, "Handel id": self._trades, **fields})

    def _wanted(self, fields: Fields) -> tuple[int, _Offer]:
        trade = fields["Handel id"]
        require(trade in self._offers, "Kein solches Angebot")
        return trade, self._offers[trade]

    def accept(self, player: int, fields: Fields) -> None:
        """Declare that the player would accept an offer. Raises Refused."""
        trade, offer = self._wanted(fields)
        require(player != self._game.turn, "Das ist dein Angebot")
        offer.ready.add(player)
        self._host.broadcast("Handelsangebot angenommen", **{"Spieler": player, "Handel id": trade})

    def cancel(self, player: int, fields: Fields) -> None:
        """Withdraw an offer or an acceptance. Raises Refused."""
        trade, offer = self._wanted(fields)
        is_mine = player == self._game.turn
        require(is_mine or player in offer.ready, "Nicht angenommen")
        offer.ready.discard(player)
        if is_mine:
            del self._offers[trade]
        self._host.broadcast("Handelsangebot abgebrochen", **{"Spieler": player, "Handel id": trade})

    def conclude(self, player: int, fields: Fields) -> None:
        """Trade with a player that has accepted. Raises Refused."""
        self._game.may(player, "Handeln oder Bauen")
        trade, offer = self._wanted(fields)
        partner = fields["Mitspieler"]
        require(partner in offer.ready, "Nicht angenommen")
        self._game.afford(player, offer.offer)
        self._game.afford(partner, offer.demand)
        del self._offers[trade]
        self._host.broadcast("Handel ausgeführt", Spieler=player, Mitspieler=partner)
        for payer, getter, counts in ((player, partner, offer.offer), (partner, player, offer.demand)):
            self._game.pay(payer, counts)
            self._game.gain(getter, counts)


TRADING: dict[str, Callable[[Market, int, Fields], None]] = {
    "Seehandel": Market.overseas,
    "Handel anbieten": Market.offer,
    "Handel annehmen": Market.accept,
    "Handel abbrechen": Market.cancel,
    "Handel abschließen": Market.conclude,
}
"""The handlers of requests, by message name."""
