"""Development cards, bought and played, and the largest army: clauses 10.7, 10.10 and 13."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.protocols.catan import building, resources, turns
from kiebitz.dissectors.protocols.catan.board import at, spot
from kiebitz.dissectors.protocols.catan.context import CatanContext
from kiebitz.dissectors.protocols.catan.game import CARD_COST, CatanGame, Player
from kiebitz.dissectors.protocols.catan.ledger import MONOPOLY, Claim, Counts, total
from kiebitz.dissectors.protocols.catan.words import STRASSE

_ARMY = 3
"""Minimum number of knights of the largest army."""


def bought(context: CatanContext, observation: Observation) -> None:
    """Process the purchase of a card, which only its owner sees."""
    player = context.player(observation.fields["Spieler"])
    told = observation.fields.get("Entwicklungskarte", 1)
    card: str | None = told if isinstance(told, str) else None
    if context.game is not None:
        player.cards.gain(1 if card is None else {card: 1})
        player.bought[card] = player.bought.get(card, 0) + 1
        context.put_cards(player)
    hidden = {"known_to": [player.name], "others_see": {"card": None}} if card is not None else {}
    context.emit_observed(observation, "bought_card", player, {"card": card, **hidden})
    resources.claim(context, Claim(observation, player.id, -1, CARD_COST, "development card"))


def ritter(context: CatanContext, observation: Observation) -> None:
    """Process a knight, which moves the robber."""
    player = context.player(observation.fields["Spieler"])
    ort, target = observation.fields["Ort"], observation.fields.get("Ziel")
    game = context.game
    if game is not None:
        moved = (player.id, at(ort), target)
        if not (game.robber == at(ort) and game.robbed_by == player.id):
            # Some servers send the robber's move as a message of its own, before or after this one.
            turns.move_robber(context, observation, player, ort, target)
            game.moved = moved
        player.knights = (player.knights or 0) + 1 if player.knights is not None or game.certain else None
        context.put_player(player, "knights", player.knights)
    _played(context, observation, player, "Ritter", {"to": ort, "from_player": target})


def straßenbau(context: CatanContext, observation: Observation) -> None:
    """Process two free roads; most servers send a message for each, too."""
    player = context.player(observation.fields["Spieler"])
    names = [name for name in ("Straße 1", "Straße 2") if name in observation.fields]
    _played(
        context, observation, player, "Straßenbau", {"roads": [observation.fields[name] for name in names]}
    )
    # Some servers send the roads before the card that makes them free.
    told = context.game.ledger.waive(player.id, "road", len(names)) if context.game is not None else 0
    player.free_roads = len(names) - told
    for name in names:
        building.build(
            context, observation, player.id, STRASSE, spot(map(at, observation.fields[name])), (name,)
        )


def monopol(context: CatanContext, observation: Observation) -> None:
    """Process a monopoly: one player gets all cards of one resource."""
    player = context.player(observation.fields["Spieler"])
    kind: str = observation.fields["Rohstoff"]
    _played(context, observation, player, "Monopol", {"resource": kind})
    game = context.game
    for number in game.players if game is not None else ():
        sign = 1 if number == player.id else -1
        resources.claim(context, Claim(observation, number, sign, None, MONOPOLY, firm=False, kind=kind))


def erfindung(context: CatanContext, observation: Observation) -> None:
    """Process an invention: two resources of the player's choice, or one if the player asked for no more."""
    player = context.player(observation.fields["Spieler"])
    counts: Counts = observation.fields["Rohstoffe"]
    _played(context, observation, player, "Erfindung", {"resources": counts})
    # One server sends the whole hand here.
    wanted = counts if total(counts) in (1, 2) else 2
    resources.claim(context, Claim(observation, player.id, 1, wanted, "invention", partly=True))


def _played(
    context: CatanContext, observation: Observation, player: Player, card: str, data: dict[str, Any]
) -> None:
    game = context.game
    if game is not None:
        _check(context, observation, game, player, card)
        player.cards.pay({card: 1})
        player.played += 1
        context.put_cards(player)
    context.emit_observed(observation, "played_card", player, {"card": card, **data})


def _check(
    context: CatanContext, observation: Observation, game: CatanGame, player: Player, card: str
) -> None:
    if not game.certain:
        return
    problem = None
    just_bought = player.bought.get(card, 0)
    if player.played:
        problem, allowed = "the second development card in this turn", "one in a turn"
    elif player.cards.most[card] <= 0:
        problem, allowed = "a card that the player does not have", "one of the player's cards"
    elif just_bought and player.cards.most[card] <= just_bought:
        problem, allowed = "a card that was bought in this turn", "a card of an earlier turn"
    if problem is not None:
        context.report_violation_of(
            observation, "card-not-allowed", player=player.name, card=card, problem=problem, allowed=allowed
        )


def army(context: CatanContext, observation: Observation) -> None:
    """Process a new holder of the largest army."""
    number: int | None = observation.fields.get("Spieler")
    player = context.player(number) if number is not None else None
    game = context.game
    if game is not None and player is not None:
        game.largest_army = number
        context.put_in(number, "largest_army")
        knights = {other.id: other.knights for other in game.players.values()}
        ours = player.knights
        most = max((count for count in knights.values() if count is not None), default=0)
        if game.certain and ours is not None and (ours < _ARMY or ours < most):
            least = max(_ARMY, most)
            context.report_violation_of(
                observation, "largest-army", "Spieler", player=player.name, knights=ours, least=least
            )
    context.emit_observed(observation, "largest_army", player, {})
