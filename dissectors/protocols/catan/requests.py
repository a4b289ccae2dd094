"""Checks of clients' requests against the rules of the game.

A violation is reported when the server refuses the request, to explain why. If the server grants the request,
only the server's own messages are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kiebitz.dissectors.game.broadcast_dedup import SWAPPED_NS
from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.protocols.catan.board import Board, at, spot
from kiebitz.dissectors.protocols.catan.game import CARD_COST, COSTS, CatanGame, Player
from kiebitz.dissectors.protocols.catan.hand import plain, total
from kiebitz.dissectors.protocols.catan.phrases import counts_text
from kiebitz.dissectors.protocols.catan.placement import placement_problem
from kiebitz.dissectors.protocols.catan.words import KARTEN_ABGEBEN, RÄUBER_VERSETZEN, WÜRFELN

_NEED_TURN = frozenset(
    (
        *("Würfeln", "Räuber versetzen", "Zug beenden", "Bauen", "Entwicklungskarte kaufen", "Seehandel"),
        *("Handel anbieten", "Handel abschließen", "Ritter ausspielen", "Straßenbaukarte ausspielen"),
        *("Monopol", "Erfindung"),
    )
)
_CARD_OF = {
    "Ritter ausspielen": "Ritter",
    "Straßenbaukarte ausspielen": "Straßenbau",
    "Monopol": "Monopol",
    "Erfindung": "Erfindung",
}


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
    is_sure = told_ns >= game.turned_ns or observation.ts_ns - game.turned_ns >= SWAPPED_NS
    if observation.name in _NEED_TURN and whose is not None and whose is not player and is_sure:
        return RequestViolation("out-of-turn/asked", (), {"whose": whose.name})
    question = _CHECKS.get(observation.name)
    return question(observation, game, game.board, player) if question is not None else None


def _check_roll(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> RequestViolation | None:
    if player.status not in (WÜRFELN, None):
        return RequestViolation("not-now", (), {"status": player.status})
    return None


def _check_building(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> RequestViolation | None:
    typ = observation.fields["Typ"]
    problem = placement_problem(game, board, player.id, typ, spot(map(at, observation.fields["Ort"])))
    if problem is not None:
        values = {"problem": problem}
        return None if game.buildings_contradicted else RequestViolation("bad-place/asked", ("Ort",), values)
    return None if game.in_setup else _check_affordable(player, COSTS[typ], ("Typ",))


def _check_card_purchase(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> RequestViolation | None:
    return _check_affordable(player, CARD_COST, ())


def _check_sea_trade(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> RequestViolation | None:
    offer, demand = plain(observation.fields["Angebot"]), plain(observation.fields["Nachfrage"])
    rates = board.rates(game.towns(player.id))
    worth = sum(count // rates[kind] for kind, count in offer.items())
    if total(demand) > worth:
        best = ", ".join(f"{kind} {rates[kind]}:1" for kind in offer)
        values = {"offer": counts_text(offer), "demand": counts_text(demand), "rates": best}
        return RequestViolation("trade-rate/asked", ("Angebot",), values)
    return _check_affordable(player, offer, ("Angebot",))


def _check_offer(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> RequestViolation | None:
    return _check_affordable(player, plain(observation.fields["Angebot"]), ("Angebot",))


def _check_trade_number(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> RequestViolation | None:
    number = observation.fields["Handel id"]
    if number not in game.trades:
        return RequestViolation("no-trade/asked", ("Handel id",), {"number": number})
    return None


def _check_discard(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> RequestViolation | None:
    if player.status not in (KARTEN_ABGEBEN, None):
        return RequestViolation("not-now", (), {"status": player.status})
    counts, held = plain(observation.fields["Abgeben"]), player.hand.total
    if held is not None and total(counts) != held // 2:
        values = {"held": held, "half": held // 2, "count": total(counts)}
        return RequestViolation("wrong-count", ("Abgeben",), values)
    return _check_affordable(player, counts, ("Abgeben",))


def _check_robber_move(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> RequestViolation | None:
    if player.status not in (RÄUBER_VERSETZEN, None):
        return RequestViolation("not-now", (), {"status": player.status})
    return _check_target_field(observation, game, board, player)


def _check_target_field(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> RequestViolation | None:
    place, target = at(observation.fields["Ort"]), observation.fields.get("Ziel")
    if place == game.robber:
        return RequestViolation("bad-place/asked", ("Ort",), {"problem": "the robber is there already"})
    if not board.is_land(place):
        return RequestViolation("bad-place/asked", ("Ort",), {"problem": "that is not a field of the island"})
    if target is not None and not game.lives_at(target, place):
        return RequestViolation("bad-target/asked", ("Ziel",), {"target": target})
    return None


def _check_card(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> RequestViolation | None:
    card = _CARD_OF[observation.name]
    if player.played:
        return _card_violation("a second development card in one turn")
    if player.cards.most[card] <= player.bought.get(card, 0):
        return _card_violation(f"no {card} was bought in an earlier turn")
    return _check_target_field(observation, game, board, player) if "Ort" in observation.fields else None


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


_CHECKS: dict[str, Callable[[Observation, CatanGame, Board, Player], RequestViolation | None]] = {
    "Würfeln": _check_roll,
    "Bauen": _check_building,
    "Entwicklungskarte kaufen": _check_card_purchase,
    "Seehandel": _check_sea_trade,
    "Handel anbieten": _check_offer,
    "Handel annehmen": _check_trade_number,
    "Handel abschließen": _check_trade_number,
    "Handel abbrechen": _check_trade_number,
    "Karten abgeben": _check_discard,
    "Räuber versetzen": _check_robber_move,
    "Ritter ausspielen": _check_card,
    "Straßenbaukarte ausspielen": _check_card,
    "Monopol": _check_card,
    "Erfindung": _check_card,
}
