"""Trade among the players, clause 12: offers, acceptances and conclusions."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.protocols.catan import resources
from kiebitz.dissectors.protocols.catan.context import CatanContext
from kiebitz.dissectors.protocols.catan.game import CatanGame, Trade
from kiebitz.dissectors.protocols.catan.hand import plain
from kiebitz.dissectors.protocols.catan.ledger import Claim

_WHY = "trade"
_MAX_TRADES = 100
"""Maximum number of open offers, and of acceptances of one; the oldest offers are dropped."""


def offered(context: CatanContext, observation: Observation) -> None:
    """Process an offer."""
    fields = observation.fields
    player = context.player(fields["Spieler"])
    offer, demand = plain(fields["Angebot"]), plain(fields["Nachfrage"])
    game = context.game
    if game is not None:
        trade = Trade(fields["Handel id"], player.id, offer, demand)
        game.trades[trade.id] = trade
        _put(context, trade)
        if len(game.trades) > _MAX_TRADES:
            _drop(context, game, next(iter(game.trades.values())))
    data = {"trade": fields["Handel id"], "offer": offer, "demand": demand}
    context.emit_observed(observation, "trade_offered", player, data)


def accepted(context: CatanContext, observation: Observation) -> None:
    """Process an acceptance or, in a dialect, a rejection."""
    fields = observation.fields
    player = context.player(fields["Mitspieler"] if "Mitspieler" in fields else fields["Spieler"])
    takes = fields.get("Annehmen", True)
    trade = _trade(context, observation)
    if trade is not None:
        if takes and player.id not in trade.accepted and len(trade.accepted) < _MAX_TRADES:
            trade.accepted.append(player.id)
            _put(context, trade)
        elif not takes and player.id in trade.accepted:
            trade.accepted.remove(player.id)
            _put(context, trade)
    kind = "trade_accepted" if takes else "trade_declined"
    context.emit_observed(observation, kind, player, {"trade": fields["Handel id"]})


def cancelled(context: CatanContext, observation: Observation) -> None:
    """Process the withdrawal of an offer or an acceptance."""
    player = context.player(observation.fields["Spieler"])
    trade = _trade(context, observation)
    game = context.game
    if trade is not None and game is not None:
        if trade.player == player.id:
            _drop(context, game, trade)
        elif player.id in trade.accepted:
            trade.accepted.remove(player.id)
            _put(context, trade)
    context.emit_observed(observation, "trade_cancelled", player, {"trade": observation.fields["Handel id"]})


def done(context: CatanContext, observation: Observation) -> None:
    """Process a concluded trade: each of the two pays what the other gains."""
    fields = observation.fields
    player, partner = context.player(fields["Spieler"]), context.player(fields["Mitspieler"])
    game = context.game
    trade = _concluded(context, observation, player.id, partner.id)
    data: dict[str, Any] = {"partner": partner.id, "partner_name": partner.name}
    if trade is not None and game is not None:
        data["trade"] = trade.id
        _drop(context, game, trade)
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
            resources.claim(context, Claim(observation, owner, sign, counts, _WHY))


def _concluded(context: CatanContext, observation: Observation, player: int, partner: int) -> Trade | None:
    game = context.game
    if game is None:
        return None
    if "Handel id" in observation.fields:
        return _trade(context, observation)
    ours = [trade for trade in game.trades.values() if trade.player == player]
    return next((trade for trade in reversed(ours) if partner in trade.accepted), ours[-1] if ours else None)


def _trade(context: CatanContext, observation: Observation) -> Trade | None:
    game = context.game
    return game.trades.get(observation.fields["Handel id"]) if game is not None else None


def _put(context: CatanContext, trade: Trade) -> None:
    shown = {
        "player": trade.player,
        "offer": trade.offer,
        "demand": trade.demand,
        "accepted": list(trade.accepted),
    }
    context.put_in(shown, "trades", str(trade.id))


def _drop(context: CatanContext, game: CatanGame, trade: Trade) -> None:
    del game.trades[trade.id]
    context.put_in(None, "trades", str(trade.id))
