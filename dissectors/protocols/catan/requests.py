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
from kiebitz.dissectors.protocols.catan.phrases import words
from kiebitz.dissectors.protocols.catan.placing import objection
from kiebitz.dissectors.protocols.catan.words import KARTEN_ABGEBEN, RÄUBER_VERSETZEN, WÜRFELN

_IN_ONES_TURN = frozenset(
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


class Objection(NamedTuple):
    """A violation by a request: the rule, the path of the field, and the values for the rule's text."""

    key: str
    path: tuple[str, ...]
    values: Mapping[str, Any]


def against(observation: Observation, game: CatanGame, player: Player, told_ns: int) -> Objection | None:
    """Return the rule that a client's request breaks, as far as that is known; None if it breaks none.

    Args:
        observation: The request.
        game: The current game.
        player: The sender.
        told_ns: Time of the server's last message to the client, in nanoseconds.
    """
    if not game.whole or game.board is None:
        return None
    whose = game.players.get(game.turn) if game.turn is not None else None
    # If the client has not been told of the turn yet, it may have sent the request before.
    is_sure = told_ns >= game.turned_ns or observation.ts_ns - game.turned_ns >= SWAPPED_NS
    if observation.name in _IN_ONES_TURN and whose is not None and whose is not player and is_sure:
        return Objection("out-of-turn/asked", (), {"whose": whose.name})
    question = _QUESTIONS.get(observation.name)
    return question(observation, game, game.board, player) if question is not None else None


def _rolls(observation: Observation, game: CatanGame, board: Board, player: Player) -> Objection | None:
    if player.status not in (WÜRFELN, None):
        return Objection("not-now", (), {"status": player.status})
    return None


def _builds(observation: Observation, game: CatanGame, board: Board, player: Player) -> Objection | None:
    typ = observation.fields["Typ"]
    problem = objection(game, board, player.id, typ, spot(map(at, observation.fields["Ort"])))
    if problem is not None:
        return Objection("bad-place/asked", ("Ort",), {"problem": problem})
    return None if game.in_setup else _lacks(player, COSTS[typ], ("Typ",))


def _buys(observation: Observation, game: CatanGame, board: Board, player: Player) -> Objection | None:
    return _lacks(player, CARD_COST, ())


def _trades_overseas(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> Objection | None:
    offer, demand = plain(observation.fields["Angebot"]), plain(observation.fields["Nachfrage"])
    rates = board.rates(game.towns(player.id))
    worth = sum(count // rates[kind] for kind, count in offer.items())
    if total(demand) > worth:
        best = ", ".join(f"{kind} {rates[kind]}:1" for kind in offer)
        values = {"offer": words(offer), "demand": words(demand), "rates": best}
        return Objection("trade-rate/asked", ("Angebot",), values)
    return _lacks(player, offer, ("Angebot",))


def _offers(observation: Observation, game: CatanGame, board: Board, player: Player) -> Objection | None:
    return _lacks(player, plain(observation.fields["Angebot"]), ("Angebot",))


def _names_trade(observation: Observation, game: CatanGame, board: Board, player: Player) -> Objection | None:
    number = observation.fields["Handel id"]
    if number not in game.trades:
        return Objection("no-trade/asked", ("Handel id",), {"number": number})
    return None


def _discards(observation: Observation, game: CatanGame, board: Board, player: Player) -> Objection | None:
    if player.status not in (KARTEN_ABGEBEN, None):
        return Objection("not-now", (), {"status": player.status})
    counts, held = plain(observation.fields["Abgeben"]), player.hand.total
    if held is not None and total(counts) != held // 2:
        values = {"held": held, "half": held // 2, "count": total(counts)}
        return Objection("wrong-count", ("Abgeben",), values)
    return _lacks(player, counts, ("Abgeben",))


def _moves_robber(
    observation: Observation, game: CatanGame, board: Board, player: Player
) -> Objection | None:
    if player.status not in (RÄUBER_VERSETZEN, None):
        return Objection("not-now", (), {"status": player.status})
    return _to_field(observation, game, board, player)


def _to_field(observation: Observation, game: CatanGame, board: Board, player: Player) -> Objection | None:
    place, target = at(observation.fields["Ort"]), observation.fields.get("Ziel")
    if place == game.robber:
        return Objection("bad-place/asked", ("Ort",), {"problem": "the robber is there already"})
    if not board.is_land(place):
        return Objection("bad-place/asked", ("Ort",), {"problem": "that is not a field of the island"})
    if target is not None and not game.lives_at(target, place):
        return Objection("bad-target/asked", ("Ziel",), {"target": target})
    return None


def _plays(observation: Observation, game: CatanGame, board: Board, player: Player) -> Objection | None:
    card = _CARD_OF[observation.name]
    if player.played:
        return _not_allowed("a second development card in one turn")
    if player.cards.most[card] <= player.bought.get(card, 0):
        return _not_allowed(f"no {card} was bought in an earlier turn")
    return _to_field(observation, game, board, player) if "Ort" in observation.fields else None


def _lacks(player: Player, counts: Mapping[str, int], path: tuple[str, ...]) -> Objection | None:
    hand = player.hand
    missing = [kind for kind, count in counts.items() if hand.most[kind] < count]
    if not missing:
        return None
    return Objection("cannot-pay", path, {"cost": words(counts), "missing": " or ".join(missing)})


def _not_allowed(problem: str) -> Objection:
    return Objection("card-not-allowed/asked", (), {"problem": problem})


_QUESTIONS: dict[str, Callable[[Observation, CatanGame, Board, Player], Objection | None]] = {
    "Würfeln": _rolls,
    "Bauen": _builds,
    "Entwicklungskarte kaufen": _buys,
    "Seehandel": _trades_overseas,
    "Handel anbieten": _offers,
    "Handel annehmen": _names_trade,
    "Handel abschließen": _names_trade,
    "Handel abbrechen": _names_trade,
    "Karten abgeben": _discards,
    "Räuber versetzen": _moves_robber,
    "Ritter ausspielen": _plays,
    "Straßenbaukarte ausspielen": _plays,
    "Monopol": _plays,
    "Erfindung": _plays,
}
