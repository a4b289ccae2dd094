"""The rules that the table of a Catan server checks."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import OWN_CLAUSE, Rule

_GAME = "14 Hinweise"
"""The clause that refers to the rules of the game."""
_BOTH = f"{OWN_CLAUSE}; {_GAME}"
_YIELD, _COST = "10.3 Ertrag", "10.4 Kosten"

RULES = (
    # Requests that are refused.
    Rule("out-of-turn/asked", None, "{request}: it is {whose}'s turn", severity="warning"),
    Rule("not-now", None, '{request}: the server expects "{status}"', severity="warning"),
    Rule(
        "cannot-pay",
        None,
        "{request}: this costs {cost}, but the player has too little {missing}",
        severity="warning",
    ),
    Rule("bad-place/asked", None, "{request}: {problem}", severity="warning"),
    Rule("bad-target/asked", None, "{request}: player {target} has no building there", severity="warning"),
    Rule("card-not-allowed/asked", None, "{request}: {problem}", severity="warning"),
    Rule(
        "trade-rate/asked",
        "Seehandel",
        "{request}: {offer} for {demand} is too little; {rates}",
        severity="warning",
    ),
    Rule("no-trade/asked", None, "{request}: no trade {number} is open", severity="warning"),
    Rule(
        "wrong-count",
        "Karten abgeben",
        "{request}: half of {held} cards is {half}, not {count}",
        severity="warning",
    ),
    # Turns.
    Rule(
        "out-of-turn/roll", "Würfelwurf", "{player} rolls, but it is {whose}'s turn", "{next}", clause=_GAME
    ),
    Rule(
        "robber-stays",
        "Räuber versetzt",
        "the robber moves to {place}, where it already is",
        "another field",
        severity="warning",
        clause=_GAME,
    ),
    Rule(
        "bad-place/robber",
        "Räuber versetzt",
        "the robber moves to {place}, which is not a field of the island",
        "another field",
        severity="warning",
        clause=_GAME,
    ),
    Rule(
        "bad-target",
        "Räuber versetzt",
        "{player} is robbed, but has no building at {place}",
        "a player with a village or city there",
        clause="11.3 Räuber versetzen",
    ),
    Rule(
        "untold-discard",
        "Statusupdate",
        "the server does not send the cards discarded because of the robber",
        "Kosten",
        group="state",
        severity="note",
        clause="11.2 Räuber: Rohstoffe abgeben",
    ),
    # Buildings.
    Rule(
        "bad-place",
        "Bauvorgang",
        "{player} builds {piece} at {place}: {problem}",
        "an allowed place",
        clause=_BOTH,
    ),
    Rule(
        "road-through",
        "Bauvorgang",
        "{player} builds {piece} at {place}: {problem}",
        severity="warning",
        clause=_BOTH,
    ),
    Rule(
        "out-of-turn/build",
        "Bauvorgang",
        "{player} builds, but it is {whose}'s turn",
        "{roller}",
        clause=_GAME,
    ),
    Rule(
        "too-many-pieces",
        "Bauvorgang",
        "{player} builds {piece}, but has {most} already",
        "at most {most}",
        severity="warning",
        clause=_GAME,
    ),
    Rule("longest-road", "Längste Handelsstraße", "{holder}, but {others} {longest}", "{expected}"),
    # Development cards.
    Rule(
        "card-not-allowed",
        None,
        "{player} plays {card}: {problem}",
        "{allowed}",
        severity="warning",
        clause="13 Entwicklungskarten ausspielen",
    ),
    Rule("largest-army", "Größte Rittermacht", "{player} has played {knights} knights", "at least {least}"),
    # Resources.
    Rule("wrong-yield", None, "{player} must gain {due} ({why}), but gains {counts}", "{due}", clause=_YIELD),
    # A server's own rules may yield nothing: position of the robber, cards left in the bank.
    Rule(
        "missing-yield",
        None,
        "{player} must gain {due} ({why}), but gains nothing",
        "{due}",
        severity="warning",
        clause=_YIELD,
    ),
    Rule("wrong-cost", None, "{player} must pay {due} ({why}), but pays {counts}", "{due}", clause=_COST),
    Rule("missing-cost", None, "{player} must pay {due} ({why}), but pays nothing", "{due}", clause=_COST),
    Rule(
        "unexplained-gain",
        "Ertrag",
        "{player} gains {counts} for no known reason",
        severity="warning",
        clause=_BOTH,
    ),
    Rule(
        "unexplained-cost",
        "Kosten",
        "{player} pays {counts} for no known reason",
        severity="warning",
        clause=_BOTH,
    ),
    Rule(
        "no-start-yield",
        None,
        "{player} gains nothing for the second village",
        "{counts}",
        severity="warning",
        clause=_GAME,
    ),
    Rule(
        "below-zero",
        "Kosten",
        "{player} pays {counts}, but does not have that many",
        severity="warning",
        clause=_BOTH,
    ),
    Rule(
        "total-mismatch",
        "Statusupdate",
        "{player} has {told}, but by earlier messages {known}",
        "{count}",
        group="state",
        severity="warning",
    ),
    # Trades.
    Rule("trade-rate", None, "{player} gets {gained} for {paid}", "{rates}", clause="11.8 Seehandel"),
    Rule(
        "no-trade",
        "Handel ausgeführt",
        "{player} and {partner} trade, but {player} has no open offer",
        "Handelsangebot",
    ),
)
