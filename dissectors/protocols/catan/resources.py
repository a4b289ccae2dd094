"""Gains and payments of resources (clauses 10.3 and 10.4); trade overseas, and among the players (12).

The reason of a gain or payment comes from the ledger, or is guessed from the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.protocols.catan.context import CatanContext
from kiebitz.dissectors.protocols.catan.game import CARD_COST, COSTS, CatanGame, Player, Trade
from kiebitz.dissectors.protocols.catan.ledger import (
    DISCARD,
    MONOPOLY,
    ROBBER,
    Claim,
    Counts,
    Entry,
    counts_text,
    plain,
    total,
)
from kiebitz.dissectors.protocols.catan.words import DORF, STADT, STRASSE

_COSTS = {"road": COSTS[STRASSE], "village": COSTS[DORF], "city": COSTS[STADT], "development card": CARD_COST}


def ertrag(context: CatanContext, observation: Observation) -> None:
    """Process a player's gain of resources."""
    _enter(context, observation, 1)


def kosten(context: CatanContext, observation: Observation) -> None:
    """Process a player's payment or loss of resources."""
    _enter(context, observation, -1)


def claim(context: CatanContext, *claims: Claim) -> None:
    """Add expected or possible gains and payments; several claims together belong to one observation."""
    game = context.game
    if game is not None:
        found = [(entry, claim) for claim in claims for entry in game.ledger.claim(claim)]
        # Only the last entry can complete the claims.
        for entry, claim in found[-1:]:
            _explained(context, entry, claim)


def _enter(context: CatanContext, observation: Observation, sign: int) -> None:
    player = context.player(observation.fields["Spieler"])
    counts: Counts = observation.fields["Rohstoffe"]
    if not (counts if isinstance(counts, int) else any(counts.values())):
        # Some servers send an `Ertrag` to every player, even if it is empty.
        if context.game is not None:
            observation.event = context.game.roll
        return
    if not isinstance(counts, int):
        counts = plain(counts)
    kind = "gained" if sign > 0 else "paid"
    if context.game is None:
        context.emit_observed(observation, kind, player, {"resources": counts})
        return
    data: dict[str, Any] = {"resources": counts}
    if isinstance(counts, int):
        expected = context.game.ledger.expected(player.id, sign, counts)
        if expected is not None and not isinstance(expected, int):
            counts = dict(expected)
            data = {"resources": counts, "inferred": True}
    if sign < 0:
        context.game.yielding = False
        if player.id == context.game.turn:
            # A player that trades or builds has already received everything due to it.
            context.game.ledger.forget(ROBBER)
            context.game.ledger.forget(MONOPOLY)
    entry = Entry(observation, player.id, sign, counts, of_roll=context.game.yielding)
    claim = context.game.ledger.enter(entry)
    if sign > 0:
        player.hand.gain(counts)
    elif not player.hand.pay(counts) and context.game.certain:
        context.report_violation_of(
            observation, "below-zero", "Rohstoffe", player=player.name, counts=counts_text(counts)
        )
    context.put_hand(player)
    why = entry.why or _likely_reason(context.game, player, sign, counts)
    if why == ROBBER:
        # Only the two players involved see the resource.
        context.game.robbed = player.id if sign < 0 else context.game.robbed
        both = (context.game.turn, context.game.robbed, player.id)
        names = sorted({name for name in map(context.name, both) if name is not None})
        data |= {"known_to": names, "others_see": {"resources": total(counts)}}
    elif why is None and any(isinstance(copy.fields.get("Rohstoffe"), int) for copy in observation.messages):
        # No event that the others see explains it.
        data |= {"known_to": [player.name], "others_see": {"resources": total(counts)}}
    if why == DISCARD:
        player.discard = None
        data |= {"known_to": [player.name], "others_see": {"resources": total(counts)}}
        context.emit_observed(observation, "discarded", player, data)
    else:
        context.emit_observed(observation, kind, player, {**data, "why": why})
    if claim is not None:
        _explained(context, entry, claim)
    else:
        _overseas(context, context.game, entry)


# Trade overseas has no message of its own; it is recognised by its payment and its gain.


def _explained(context: CatanContext, entry: Entry, claim: Claim) -> None:
    game = context.game
    if claim.why != "sea trade" or game is None:
        return
    if all(other.observation is not claim.observation for other in game.ledger.claims):
        wanted = claim.observation.fields
        _sea_trade(context, game, entry, plain(wanted["Angebot"]), plain(wanted["Nachfrage"]))


def _overseas(context: CatanContext, game: CatanGame, entry: Entry) -> None:
    """Emit a trade overseas if this entry and an earlier one are its two halves."""
    for other in game.ledger.entries:
        if other.player != entry.player or other.sign == entry.sign:
            continue
        given, taken = (entry, other) if entry.sign < 0 else (other, entry)
        if isinstance(given.counts, int) or isinstance(taken.counts, int):
            continue
        if len(given.counts) == 1 and total(given.counts) >= 2 * total(taken.counts) > 0:
            if any(
                trade.player == entry.player and trade.offer == given.counts and trade.accepted
                for trade in game.trades.values()
            ):
                continue
            game.ledger.entries.remove(entry)
            game.ledger.entries.remove(other)
            _sea_trade(context, game, entry, given.counts, taken.counts)
            return


def _sea_trade(
    context: CatanContext, game: CatanGame, entry: Entry, paid: Mapping[str, int], gained: Mapping[str, int]
) -> None:
    player = context.player(entry.player)
    context.emit_observed(entry.observation, "sea_trade", player, {"paid": paid, "gained": gained})
    if game.board is None or not game.certain:
        return
    rates = game.board.rates(game.buildings.towns(player.id))
    worth = sum(count // rates[kind] for kind, count in paid.items())
    if total(gained) > worth:
        best = ", ".join(f"{kind} {rates[kind]}:1" for kind in paid)
        context.report_violation_of(
            entry.observation,
            "trade-rate",
            "Rohstoffe",
            player=player.name,
            gained=counts_text(gained),
            paid=counts_text(paid),
            rates=best,
        )


def _likely_reason(game: CatanGame, player: Player, sign: int, counts: Counts) -> str | None:
    """Return the likely reason for a change of resources that is announced before its cause."""
    if game.in_setup:
        return "start" if sign > 0 else None
    if any(_is_traded(trade, player.id, sign, counts) for trade in game.trades.values()):
        return "trade"
    turn = game.players.get(game.turn) if game.turn is not None else None
    if turn is not None and total(counts) == 1:
        # A card that another player loses and the player whose turn it is gains is stolen.
        stolen = (
            player is not turn if sign < 0 else any(_is_theft(game, entry) for entry in game.ledger.entries)
        )
        if turn.status == "Räuber versetzen" or stolen:
            return ROBBER
    if sign < 0:
        if player.status == "Karten wegen Räuber abgeben":
            return DISCARD
        return next((why for why, cost in _COSTS.items() if cost == counts), None)
    return None


def _is_theft(game: CatanGame, entry: Entry) -> bool:
    return entry.sign < 0 and entry.player != game.turn and total(entry.counts) == 1


def _is_traded(trade: Trade, player: int, sign: int, counts: Counts) -> bool:
    """Return True if the counts are the player's share of a trade that a player has accepted."""
    if not trade.accepted or player not in (trade.player, *trade.accepted):
        return False
    gives = (player == trade.player) == (sign < 0)
    return counts == (trade.offer if gives else trade.demand)


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
            claim(context, Claim(observation, owner, sign, counts, _WHY))


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
