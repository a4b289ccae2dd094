"""Trade among the players, clause 12: offers, acceptances and conclusions."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.protocols.catan.context import CatanContext
from kiebitz.dissectors.protocols.catan.game import CatanGame, Trade
from kiebitz.dissectors.protocols.catan.hand import plain
from kiebitz.dissectors.protocols.catan.ledger import Claim
from kiebitz.dissectors.protocols.catan.resources import Resources

_WHY = "trade"
_MAX_TRADES = 100
"""Maximum number of open offers, and of acceptances of one; the oldest offers are dropped."""


class Trading:
    """Handlers for trades among the players."""

    def __init__(self, context: CatanContext, resources: Resources) -> None:
        self._context = context
        self._resources = resources

    def offered(self, observation: Observation) -> None:
        """Process an offer."""
        fields = observation.fields
        player = self._context.player(fields["Spieler"])
        offer, demand = plain(fields["Angebot"]), plain(fields["Nachfrage"])
        game = self._context.game
        if game is not None:
            trade = Trade(fields["Handel id"], player.id, offer, demand)
            game.trades[trade.id] = trade
            self._put(trade)
            if len(game.trades) > _MAX_TRADES:
                self._drop(game, next(iter(game.trades.values())))
        data = {"trade": fields["Handel id"], "offer": offer, "demand": demand}
        self._context.emit_observed(observation, "trade_offered", player, data)

    def accepted(self, observation: Observation) -> None:
        """Process an acceptance or, in a dialect, a rejection."""
        fields = observation.fields
        player = self._context.player(fields["Mitspieler"] if "Mitspieler" in fields else fields["Spieler"])
        takes = fields.get("Annehmen", True)
        trade = self._trade(observation)
        if trade is not None:
            if takes and player.id not in trade.accepted and len(trade.accepted) < _MAX_TRADES:
                trade.accepted.append(player.id)
                self._put(trade)
            elif not takes and player.id in trade.accepted:
                trade.accepted.remove(player.id)
                self._put(trade)
        kind = "trade_accepted" if takes else "trade_declined"
        self._context.emit_observed(observation, kind, player, {"trade": fields["Handel id"]})

    def cancelled(self, observation: Observation) -> None:
        """Process the withdrawal of an offer or an acceptance."""
        player = self._context.player(observation.fields["Spieler"])
        trade = self._trade(observation)
        game = self._context.game
        if trade is not None and game is not None:
            if trade.player == player.id:
                self._drop(game, trade)
            elif player.id in trade.accepted:
                trade.accepted.remove(player.id)
                self._put(trade)
        self._context.emit_observed(
            observation, "trade_cancelled", player, {"trade": observation.fields["Handel id"]}
        )

    def done(self, observation: Observation) -> None:
        """Process a concluded trade: each of the two pays what the other gains."""
        context = self._context
        fields = observation.fields
        player, partner = context.player(fields["Spieler"]), context.player(fields["Mitspieler"])
        game = context.game
        trade = self._concluded(observation, player.id, partner.id)
        data: dict[str, Any] = {"partner": partner.id, "partner_name": partner.name}
        if trade is not None and game is not None:
            data["trade"] = trade.id
            self._drop(game, trade)
        context.emit_observed(observation, "trade_done", player, data)
        if trade is None:
            if game is not None and game.certain:
                context.report_violation_of(observation, "no-trade", player=player.name, partner=partner.name)
            return
        for owner, sign, counts in (
            (player.id, -1, trade.offer),
            (partner.id, 1, trade.offer),
            (partner.id, -1, trade.demand),
            (player.id, 1, trade.demand),
        ):
            if counts:
                self._resources.claim(Claim(observation, owner, sign, counts, _WHY))

    def _concluded(self, observation: Observation, player: int, partner: int) -> Trade | None:
        game = self._context.game
        if game is None:
            return None
        if "Handel id" in observation.fields:
            return self._trade(observation)
        ours = [trade for trade in game.trades.values() if trade.player == player]
        return next(
            (trade for trade in reversed(ours) if partner in trade.accepted), ours[-1] if ours else None
        )

    def _trade(self, observation: Observation) -> Trade | None:
        game = self._context.game
        return game.trades.get(observation.fields["Handel id"]) if game is not None else None

    def _put(self, trade: Trade) -> None:
        shown = {
            "player": trade.player,
            "offer": trade.offer,
            "demand": trade.demand,
            "accepted": list(trade.accepted),
        }
        self._context.put_in(shown, "trades", str(trade.id))

    def _drop(self, game: CatanGame, trade: Trade) -> None:
        del game.trades[trade.id]
        self._context.put_in(None, "trades", str(trade.id))
