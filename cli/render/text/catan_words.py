"""What a Catan table looks like in words: hands, what a player is about, trades, how the game stands.

All words are as they came from the network: whoever draws them makes them safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kiebitz.cli.render.text.canvas import ASCII
from kiebitz.cli.render.text.catan_look import Count, Look, Player
from kiebitz.cli.render.text.pen import Pen
from kiebitz.dissectors.protocols.catan.words import (
    KARTEN,
    ROHSTOFFE,
    SPIEL_STARTEN,
    WARTEN,
    WARTET_AUF_BEGINN,
    in_ascii,
)

NOT_KNOWN = "?"
_READINESS = {SPIEL_STARTEN: "not ready yet", WARTET_AUF_BEGINN: "ready"}


def spelt(pen: Pen, word: str, width: int = 200) -> str:
    """A word as a terminal can show it: without umlauts if it has none."""
    return pen.words(in_ascii(word) if pen.glyphs is ASCII else word, width).plain


def short(resource: str, width: int) -> str:
    """A resource in so many letters."""
    if len(resource) <= width:
        return resource
    return resource[:3] if width < 5 else f"{resource[: width - 1]}."


def count_words(count: Count | None) -> str:
    """How many: a number, `0-2` if that is all that is known, or a question mark."""
    if count is None:
        return NOT_KNOWN
    return str(count) if isinstance(count, int) else "-".join(map(str, count))


def counted(count: int, thing: str) -> str:
    """`1 point`, `2 points`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def points(player: Player) -> str:
    """How many points a player is known to have."""
    known = player.about.get("points")
    return counted(known, "point") if known is not None else f"{NOT_KNOWN} points"


def hand(known: Mapping[str, Count] | None) -> list[str]:
    """How many there are of each resource; what is not there is hidden."""
    return [count_words(known.get(resource) if known is not None else None) for resource in ROHSTOFFE]


def facts(player: Player, part: Mapping[str, Any]) -> list[str]:
    """What there is to say of a player besides his points and resources."""
    found = []
    status = player.about.get("status", WARTEN)
    if status != WARTEN and (player.number != part.get("turn") or status != part.get("phase")):
        found.append(status)
    if part.get("longest_road") == player.number:
        found.append("longest road")
    knights = counted(player.about.get("knights", 0), "knight")
    if part.get("largest_army") == player.number:
        found.append(f"largest army: {knights}")
    elif player.about.get("knights"):
        found.append(knights)
    return found + _cards(player)


def _cards(player: Player) -> list[str]:
    """The development cards in a hand."""
    if player.cards is None:
        total = player.about.get("cards")
        return [f"{counted(total, 'hidden card')}"] if total else []
    kinds = [(player.cards[card], card) for card in KARTEN if player.cards.get(card, 0) not in (0, [0, 0])]
    return [f"holds {' and '.join(f'{count_words(count)} {card}' for count, card in kinds)}"] if kinds else []


def headline(look: Look) -> tuple[Player | None, str]:
    """Who is to do what, or has won."""
    if "winner" in look.part:
        winner = look.player(look.part["winner"])
        return winner, "has won" if winner is not None else "the game is over, nobody has won"
    return look.player(look.part.get("turn")), look.part.get("phase", "")


def readiness(player: Player) -> str:
    """What a player in the lobby is about."""
    status: str = player.about.get("status", NOT_KNOWN)
    return _READINESS.get(status, status)


def goods(resources: Mapping[str, Count]) -> str:
    """`1 Holz, 2 Erz`; a question mark for none, as somebody may ask for any offer."""
    kinds = [(resources[name], name) for name in ROHSTOFFE if resources.get(name, 0) != 0]
    return ", ".join(f"{count_words(count)} {name}" for count, name in kinds) or NOT_KNOWN


def bank(part: Mapping[str, Any]) -> str:
    """What the bank has, those resources included of which it has nothing left; empty if nobody knows."""
    if "bank" not in part:
        return ""
    counts = zip(hand(part["bank"]), ROHSTOFFE, strict=True)
    return "bank: " + ", ".join(f"{count} {name}" for count, name in counts)


def offers(look: Look) -> Iterable[tuple[Player | None, str, list[Player]]]:
    """The open trades: who offers, what for what, and who has accepted."""
    trades = look.part.get("trades", {})
    for trade in (trades[number] for number in sorted(trades, key=int)):
        accepted = [player for player in map(look.player, trade.get("accepted", ())) if player is not None]
        words = f"offers {goods(trade.get('offer', {}))} for {goods(trade.get('demand', {}))}"
        yield look.player(trade.get("player")), words, accepted


def not_known(part: Mapping[str, Any]) -> str:
    """What should be there and cannot be known; empty if there is nothing."""
    unknown = part.get("unknown", ())
    return f"not known: {', '.join(unknown)}" if unknown else ""
