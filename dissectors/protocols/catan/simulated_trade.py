"""Trade in a game that a simple server leads: with the bank, and among the players."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kiebitz.dissectors.protocols.catan.granting import require
from kiebitz.dissectors.protocols.catan.words import HANDELN_ODER_BAUEN

if TYPE_CHECKING:
    from kiebitz.dissectors.protocols.catan.simulated_game import HostedGame
    from kiebitz.dissectors.protocols.catan.simulated_server import CatanHost

Fields = Mapping[str, Any]

_MAX_OFFERS = 8


class _Offer(NamedTuple):
    offer: Mapping[str, int]
    demand: Mapping[str, int]
    ready: set[int]


class Market:
    """The offers that are open."""

    def __init__(self, host: CatanHost, game: HostedGame) -> None:
        self._host = host
        self._game = game
        self._offers: dict[int, _Offer] = {}
        self._trades = 0

    def close(self, player: int) -> None:
        """The turn of a player ends, and with it all offers."""
        for trade in [*self._offers]:
            del self._offers[trade]
            self._host.tell("Handelsangebot abgebrochen", **{"Spieler": player, "Handel id": trade})

    def overseas(self, player: int, fields: Fields) -> None:
        """Exchange with the bank, by the rates of the player's harbours. Raises Refused."""
        self._game.may(player, HANDELN_ODER_BAUEN)
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
        """Offer something to the others. Raises Refused."""
        self._game.may(player, HANDELN_ODER_BAUEN)
        self._game.afford(player, fields["Angebot"])
        require(len(self._offers) < _MAX_OFFERS, "Zu viele Angebote")
        self._trades += 1
        self._offers[self._trades] = _Offer(fields["Angebot"], fields["Nachfrage"], set())
        self._host.tell("Handelsangebot", **{"Spieler": player, "Handel id": self._trades, **fields})

    def _wanted(self, fields: Fields) -> tuple[int, _Offer]:
        trade = fields["Handel id"]
        require(trade in self._offers, "Kein solches Angebot")
        return trade, self._offers[trade]

    def accept(self, player: int, fields: Fields) -> None:
        """Be ready to take an offer. Raises Refused."""
        trade, offer = self._wanted(fields)
        require(player != self._game.turn, "Das ist dein Angebot")
        offer.ready.add(player)
        self._host.tell("Handelsangebot angenommen", **{"Spieler": player, "Handel id": trade})

    def cancel(self, player: int, fields: Fields) -> None:
        """Take back an offer, or an acceptance. Raises Refused."""
        trade, offer = self._wanted(fields)
        is_mine = player == self._game.turn
        require(is_mine or player in offer.ready, "Nicht angenommen")
        offer.ready.discard(player)
        if is_mine:
            del self._offers[trade]
        self._host.tell("Handelsangebot abgebrochen", **{"Spieler": player, "Handel id": trade})

    def conclude(self, player: int, fields: Fields) -> None:
        """Trade with one who is ready to. Raises Refused."""
        self._game.may(player, HANDELN_ODER_BAUEN)
        trade, offer = self._wanted(fields)
        partner = fields["Mitspieler"]
        require(partner in offer.ready, "Nicht angenommen")
        self._game.afford(player, offer.offer)
        self._game.afford(partner, offer.demand)
        del self._offers[trade]
        self._host.tell("Handel ausgeführt", Spieler=player, Mitspieler=partner)
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
"""By the name of a request, what is done about it."""
