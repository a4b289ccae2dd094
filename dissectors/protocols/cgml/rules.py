"""The rules that the table of a CGML server checks."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import Rule
from kiebitz.dissectors.protocols.cgml.cards import HAND, TALON

_OF_PLAY = "3 Průběh jednotlivých her: Mariáš, Základní pravidla hraní"
_REVOKED = "{card} breaks the rule of play: {player} has {allowed}"

RULES = (
    # Order of messages.
    Rule(
        "wrong-server", None, "<{name}> belongs to {role}, but this is a different server", group="sequence"
    ),
    Rule(
        "unasked",
        None,
        "<{name}> answers a question that was not asked",
        "a question of the server first",
        group="sequence",
    ),
    Rule(
        "unknown-group",
        "newgroup",
        "group {group} was never announced",
        "a group's id",
        group="sequence",
        severity="warning",
    ),
    # The deal.
    Rule("dealt-twice", "dial", "{card} is dealt a second time", "each card once", group="state"),
    Rule("wrong-count/more", "dial", "{player} is dealt {count} cards", f"{HAND} cards", severity="warning"),
    # It is detected at the next message.
    Rule("wrong-count/fewer", None, "{player} was dealt {count} cards", f"{HAND} cards", severity="warning"),
    # Bids.
    Rule("wrong-answer/bid", "licite", "{answer} is bid, but the question was {asked}", "YES or NO"),
    Rule(
        "wrong-answer/no-bid", "licite", "{answer} is the answer, but a bid was asked for", "a game, or PASS"
    ),
    Rule("bid-not-higher", "licite", "{call} is not above {standing}", "{higher}", severity="warning"),
    Rule(
        "told-otherwise/bid",
        "licite",
        "the server announces {call} by {player}, who has bid {bid}",
        "{bid}",
        group="state",
    ),
    Rule(
        "not-bid",
        "licite",
        "the server announces that {player} has won with {game}, which {player} has not bid",
        "{bids}",
        group="state",
    ),
    # The talon.
    Rule("wrong-count/talon", "dial", "the talon has {count} cards", f"{TALON} cards"),
    Rule(
        "wrong-player",
        "dial",
        "the talon goes to {player}, but {declarer} has won the bidding",
        "{declarer}",
        group="state",
    ),
    Rule("wrong-count/discards", "playcard", "{count} cards go to the talon", f"{TALON} cards"),
    Rule(
        "not-in-hand/discarded",
        "playcard",
        "{card} is discarded, which {player} does not have",
        "one of {held}",
    ),
    # Trumps.
    Rule("no-trumps", "gametype", "{game} needs trumps", "<trumf>"),
    Rule("needless-trumps", "gametype", "{game} has no trumps", "no <trumf>"),
    Rule(
        "second-colour/lacking", "gametype", "{game} has a second colour", "two colours", severity="warning"
    ),
    Rule(
        "second-colour/needless", "gametype", "{game} has no second colour", "one colour", severity="warning"
    ),
    Rule(
        "told-otherwise/trumps",
        "gametype",
        "the server announces {said}, after {before}",
        "{before}",
        group="state",
    ),
    Rule(
        "told-otherwise/level",
        "gametype",
        "the server announces a level of {level}",
        "{known}",
        group="state",
    ),
    # Doubling.
    Rule("flek-lowered", "flek", "{level} is less than the level asked, {asked}", "{asked} or more"),
    Rule("flek-against", "flek", "{game} has no seven, and no game against it", "a level without a colon"),
    # Cards.
    Rule("not-in-hand/played", "playcard", "{card} is played, which {player} does not have", "{held}"),
    Rule(
        "not-all-cards",
        "playcard",
        "{count} cards are played at once, with {held} in the hand",
        "one card, or all that are left",
    ),
    Rule("renonc", "playcard", _REVOKED, "one of {allowed}", clause=_OF_PLAY),
    # "Have trumps been played?" may also mean: in this hand. Then a lower card of the colour is allowed.
    Rule("renonc/unsure", "playcard", _REVOKED, "one of {allowed}", severity="warning", clause=_OF_PLAY),
    Rule(
        "played-twice", "playcard", "{card} was played before, by {player}", "each card once", group="state"
    ),
    # Tricks.
    Rule(
        "told-otherwise/trick",
        "round",
        "trick {number} is announced with {card}, but {played} was played",
        "{cards}",
        group="state",
    ),
    Rule(
        "wrong-number", "round", "trick {number} is announced after trick {before}", "{next}", group="state"
    ),
    Rule(
        "wrong-winner",
        "round",
        "the trick goes to {winner}, but {card} of {player} is the highest card",
        "{player}",
    ),
    # The result.
    Rule(
        "twice-in-result/player",
        "result",
        "a player is in the result twice",
        "each player once",
        group="state",
    ),
    Rule("twice-in-result", "result", "{player} has won and lost", "each player once", group="state"),
    Rule("money", "result", "{won} is won, but {lost} lost", "as much lost as won", group="state"),
    Rule(
        "told-otherwise/result",
        "result",
        "the result has {said}, but it was {known}",
        "{known}",
        group="state",
    ),
)
