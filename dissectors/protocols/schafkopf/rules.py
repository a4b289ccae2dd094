"""The rules that the table of a Schafkopf server checks."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import OWN_CLAUSE, Rule

_ORDER = "the order of a round"
_ASKED = f"{OWN_CLAUSE}; {_ORDER}"
_GAME = "the rules of the game"
_CONTRADICTS = "it contradicts an earlier message"
_NAMES = "SIEGER names {named}, but {player} plays"
_SEAT = "seat {seat}, or it plus 10"

RULES = (
    # The order of messages.
    Rule(
        "out-of-order",
        None,
        "{name} comes after {step}",
        "{step}, or what follows it",
        group="sequence",
        severity="warning",
        clause=_ORDER,
    ),
    Rule(
        "wrong-answer",
        None,
        "{name} does not answer the server's question",
        "{wanted}",
        group="sequence",
        clause=_ASKED,
    ),
    Rule(
        "out-of-turn",
        "MODEL",
        "plays a card, but it is {whose}'s turn",
        "to be asked with !MODEL !SPIEL",
        group="sequence",
        clause=_ASKED,
    ),
    Rule(
        "answered-twice", None, "{name} answers twice", "to be asked again", group="sequence", clause=_ASKED
    ),
    Rule(
        "unasked",
        None,
        "{name} answers a question that the server has not asked",
        "to be asked first",
        group="sequence",
        clause=_ASKED,
    ),
    # Repeated contents.
    Rule(
        "told-otherwise",
        None,
        "{name} differs from what this or another player was sent before",
        "{known}",
        group="state",
        clause=None,
        unwritten=_CONTRADICTS,
    ),
    Rule(
        "told-otherwise/answer",
        None,
        "{name} reports {told} for {player}, who answered {answer}",
        "{answer}",
        group="state",
        clause=None,
        unwritten=_CONTRADICTS,
    ),
    # Bids.
    Rule(
        "no-si",
        "SPIELSTDU",
        "SI is bid without the six highest trumps; real servers accept it from any hand",
        "{cards}",
        severity="note",
        clause=None,
        unwritten="a rule of the game that no server enforces",
    ),
    Rule(
        "not-in-hand/given",
        "KARTE",
        "{card} is given, which is not in this hand",
        "one of {hand}",
        clause=None,
        unwritten="only a held card can be given",
    ),
    Rule(
        "wrong-player/bid",
        "SPIELT",
        "SPIELT names {named}, who has bid NICHTS (a known fault of real servers)",
        "the seat of the highest bid",
        group="state",
        severity="note",
        clause=None,
        unwritten=_CONTRADICTS,
    ),
    # Cards that a client lays.
    Rule(
        "no-card",
        "MODEL",
        "no card lies before seat {seat}, whose turn it is",
        "a card of the hand on the table",
        clause=_GAME,
    ),
    Rule("not-in-hand", "MODEL", "{card} is not in this hand", "one of {hand}", clause=_GAME),
    Rule("hand-changed", "MODEL", "the hand is not what is left of it after {card}", "{left}", clause=_GAME),
    Rule("table-changed", "MODEL", "{problem}", clause=_GAME),
    Rule(
        "table-changed/seat",
        "MODEL",
        "{card} lies before seat {seat}, which has not played yet",
        clause=_GAME,
    ),
    Rule(
        "suit-not-followed",
        "MODEL",
        "{player} plays {card} on {led} and does not follow {suit}",
        "{allowed}",
        clause=_GAME,
    ),
    Rule(
        "suit-not-followed/earlier",
        "MODEL",
        "{player} has {card}, but did not follow {suit} in trick {trick}",
        "{suit}",
        clause=_GAME,
    ),
    # Cards that the server shows.
    Rule("contradiction", "MODEL", "{problem}", group="state", clause=_GAME),
    Rule("card-twice", "MODEL", "{card} is here twice", group="state", clause=_GAME),
    Rule("card-twice/hands", "MODEL", "{card} is in the hand of {player}, too", group="state", clause=_GAME),
    Rule("card-twice/played", "MODEL", "{card} was already played by {player}", group="state", clause=_GAME),
    Rule("card-twice/held", "MODEL", "{card} is in the hand of {player}", group="state", clause=_GAME),
    Rule("not-in-hand/shown", "MODEL", "{card} was not in the hand of {player}", group="state", clause=_GAME),
    # The same from a client whose previous snapshots are unknown.
    Rule("not-in-hand/laid", "MODEL", "{card} was not in the hand of {player}", clause=_GAME),
    Rule("hand-changed/dealt", "MODEL", "{card} is no longer in this hand", group="state", clause=_GAME),
    Rule("hand-changed/back", "MODEL", "{card} is back in this hand", group="state", clause=_GAME),
    Rule("hand-changed/new", "MODEL", "{card} has come into this hand", group="state", clause=_GAME),
    Rule("hand-changed/gone", "MODEL", "{card} has vanished from this hand", group="state", clause=_GAME),
    # Tricks and results.
    Rule(
        "trick-winner",
        None,
        "{player} begins, but trick {trick} goes to {winner}",
        "seat {seat}",
        clause=_GAME,
    ),
    Rule(
        "same-seat-twice",
        "SIEGER",
        "SIEGER {first} {second} names the same seat twice (a known fault of real servers)",
        "two seats, or 4 for nobody",
        severity="note",
        clause=_GAME,
    ),
    Rule("wrong-player", "SIEGER", _NAMES, _SEAT, clause=_GAME),
    # After a declined Hochzeit, real servers can be wrong about who plays.
    Rule("wrong-player/refused", "SIEGER", _NAMES, _SEAT, severity="note", clause=_GAME),
    Rule(
        "wrong-partner",
        "SIEGER",
        "SIEGER names {named} as partner, but {partner} had {card}",
        _SEAT,
        clause=_GAME,
    ),
    Rule(
        "wrong-winner",
        "SIEGER",
        "SIEGER reports that {player} {said} with {taken}",
        "{right}: {needed} are needed",
        clause=_GAME,
    ),
)
