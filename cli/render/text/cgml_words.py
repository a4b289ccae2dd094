"""What a hand of licitovaný mariáš looks like in words: cards, the game that is played, how it stands.

A card is its suit and its height, such as `♥10`; where there are no suits, the protocol's letter is theirs:
R red (hearts), B bells, G green (leaves), A acorns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kiebitz.cli.render.text.canvas import ASCII, SUIT_STYLES, Glyphs, without_accents
from kiebitz.cli.terminal.screen import LINE_BREAK, Text
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.cards import COLOURS, SEATS, WITHOUT_TRUMPS, Rules
from kiebitz.dissectors.protocols.cgml.words import SUIT_WORDS
from kiebitz.services.evidence.cells import cell_len

Part = dict[str, Any]
"""A hand's part of the state."""

Say = Callable[[int | None], Text]
"""A player's name as it is drawn."""

_SUITS = "AGRB"
"""The colours in the order of `Glyphs.suits`."""

_HEIGHTS = 2
_MOST_BIDS = 7
"""So many fit on two lines of 80 columns."""

_ENDS = ("result", "cancelled", "aborted")


# Cards and games.


def card_letters(card: str, glyphs: Glyphs) -> Text:
    """A card as short as it goes."""
    return Text(_suit(card[0], glyphs) + card[1:].lstrip("0"), SUIT_STYLES[_SUITS.index(card[0])])


def card_face(card: str, glyphs: Glyphs) -> Text:
    """What stands on a card that lies on the table; all are of the same width."""
    face = card_letters(card, glyphs)
    face.pad_right(cell_len(glyphs.suits[0]) + _HEIGHTS - face.cell_len)
    return face


def card_list(cards: Iterable[str], glyphs: Glyphs) -> Text:
    """Cards beside each other."""
    return Text(" ").join(card_letters(card, glyphs) for card in cards)


def sorted_hand(hand: Iterable[str], part: Part) -> list[str]:
    """A hand as players hold it: trumps first, in each colour the highest first."""
    trump = part.get("trump")
    rules = Rules(part.get("contract", ""), trump)
    return sorted(hand, key=lambda card: (card[0] != trump, COLOURS.index(card[0]), -rules.rank(card)))


def game_words(part: Part, glyphs: Glyphs) -> Text:
    """The game that is played: contract, trumps and second colour, as far as they are known."""
    contract = part.get("contract")
    if contract in (None, "PASS"):
        return Text()
    words = [Text(contract, "bold")]
    if contract in WITHOUT_TRUMPS:
        words.append(Text("no trumps"))
    elif "trump" in part:
        words.append(Text("trumps ") + _colour_words(part["trump"], glyphs))
    if "second" in part:
        words.append(Text("second ") + _colour_words(part["second"], glyphs))
    return Text(f" {glyphs.dot} ").join(words)


def _colour_words(colour: str, glyphs: Glyphs) -> Text:
    sign = _suit(colour, glyphs).rstrip()
    word = without_accents(SUIT_WORDS[colour]) if glyphs is ASCII else SUIT_WORDS[colour]
    return Text(f"{sign} {word}", SUIT_STYLES[_SUITS.index(colour)])


def _suit(colour: str, glyphs: Glyphs) -> str:
    return colour if glyphs is ASCII else glyphs.suits[_SUITS.index(colour)]


# What follows from the state.


def taken(part: Part) -> dict[str, Any] | None:
    """The trick that was over last, until the next card is played."""
    tricks: list[dict[str, Any]] = part.get("tricks", [])
    return tricks[-1] if tricks and not part.get("table") else None


def on_table(part: Part) -> dict[int, str]:
    """By player the card that lies before him; of whom it is not known, none does."""
    trick = taken(part)
    cards = trick["cards"] if trick is not None else part.get("table", ())
    return {played["player"]: played["card"] for played in cards if played["player"] is not None}


def around(part: Part) -> list[int | None]:
    """The three players from the bottom on, clockwise; None for one who is not known."""
    winners = (trick["winner"] for trick in part.get("tricks", ()))
    heard_of = [*part.get("seats", ()), *map(int, part.get("hands", {})), *winners, *on_table(part)]
    players: list[int | None] = [*dict.fromkeys(heard_of)][:SEATS]
    players += [None] * (SEATS - len(players))
    known = [player for player in players if player is not None]
    shown = [player for player in known if "hand" in part.get("private", {}).get(str(player), {})]
    bottom = players.index(min(shown or known, default=None))
    return players[bottom:] + players[:bottom]


def tricks_words(part: Part, player: int) -> str:
    """How many tricks a player has; before the first one nothing."""
    tricks = part.get("tricks")
    if not tricks:
        return ""
    count = sum(trick["winner"] == player for trick in tricks)
    more = "+" if "tricks" in part.get("unknown", ()) else ""
    return f"{count}{more} trick{'' if count == 1 and not more else 's'}"


def marks(part: Part, player: int) -> list[Text]:
    """What a player is and has said."""
    if part.get("declarer") == player and part.get("contract") != "PASS":
        return [Text("declarer", "bold")]
    if "contract" in part:
        return []
    calls = [bid["call"] for bid in part.get("bidding", ()) if bid["player"] == player]
    return [Text("passes" if calls[-1] == "PASS" else f"bids {calls[-1]}")] if calls else []


# What is going on.


def ending(events: Sequence[Event]) -> Event | None:
    """How a hand ended, if these events of it tell."""
    return next((event for event in reversed(events) if event.kind in _ENDS), None)


def ending_words(event: Event, name: Say, words: Callable[[str], Text], space: Text) -> Text:
    """How a hand ended; `words` makes what a server has written safe, `space` stands between winners."""
    data = event.data
    if event.kind == "result":
        return Text.assemble(" and", space).join(map(name, data["winners"])).append(" won", "bold")
    if event.kind == "cancelled":
        return Text.assemble(("cancelled", "bold"), ": ", words(data["why"]))
    return Text.assemble(
        ("broken off", "bold"), " because of ", name(data["player"]), ": ", words(data["why"])
    )


def story(
    part: Part, events: Sequence[Event], name: Say, words: Callable[[str], Text], glyphs: Glyphs
) -> Text:
    """What is going on; `events` are the latest of the hand."""
    end = ending(events)
    if end is not None:
        return ending_words(end, name, words, LINE_BREAK)
    if "pause" in part:
        pause = part["pause"]
        said = (LINE_BREAK, words(pause["message"])) if pause["message"] else ()
        return Text.assemble(("pause", "bold"), " of ", name(pause["player"]), *said)
    latest = events[-1] if events else None
    if latest is not None and latest.kind == "renonc":
        return _renonc(latest, name, glyphs)
    if part.get("tricks") or part.get("table"):
        return _trick(part, name)
    return _before_the_first_card(part, name)


def _renonc(event: Event, name: Say, glyphs: Glyphs) -> Text:
    card, should = event.data["card"], event.data["should"]
    told = Text.assemble(name(event.data["player"]), (" revokes", "bold"))
    if card is not None:
        told.append_text(LINE_BREAK).append_text(card_letters(card, glyphs))
        told.append(" for ").append_text(card_list(should, glyphs))
    return told


def _trick(part: Part, name: Say) -> Text:
    trick = taken(part)
    if trick is not None:
        return Text.assemble(f"trick {trick['number']}", LINE_BREAK, "for ", name(trick["winner"]))
    tricks = part.get("tricks")
    if tricks:
        return Text(f"trick {tricks[-1]['number'] + 1}")
    return Text("trick ?" if "tricks" in part.get("unknown", ()) else "trick 1")


def _before_the_first_card(part: Part, name: Say) -> Text:
    contract = part.get("contract")
    if contract is None:
        bids = [bid for bid in part.get("bidding", ()) if bid["call"] != "PASS"]
        if not bids:
            is_known = "bidding" not in part.get("unknown", ())
            return Text.assemble("bidding", LINE_BREAK, "no bid yet") if is_known else Text("bidding")
        return Text.assemble(
            "bidding", LINE_BREAK, (bids[-1]["call"], "bold"), " of ", name(bids[-1]["player"])
        )
    if contract == "PASS":
        return Text("all have passed")
    declarer = name(part.get("declarer"))
    if "talon" not in part:
        return Text.assemble(declarer, LINE_BREAK, "has the talon")
    if "trump" not in part and contract not in WITHOUT_TRUMPS:
        return Text.assemble(declarer, LINE_BREAK, "has won the bidding")
    return Text("doubling")


# What stands below the table.


def bidding_line(part: Part, name: Say, glyphs: Glyphs) -> Text | None:
    """The latest bids in their order; None if there are none."""
    bidding = part.get("bidding", [])
    bids = [Text.assemble(name(bid["player"]), f" {bid['call']}") for bid in bidding[-_MOST_BIDS:]]
    before = f"{glyphs.ellipsis} " if len(bidding) > _MOST_BIDS else ""
    return Text.assemble(("bidding: ", "dim"), before, Text(", ").join(bids)) if bids else None


def last_trick(part: Part, name: Say, glyphs: Glyphs) -> Text | None:
    """The last trick that is over, its cards in the order played; None if there is none."""
    if not part.get("tricks"):
        return None
    trick = part["tricks"][-1]
    cards = card_list((played["card"] for played in trick["cards"]), glyphs)
    return Text.assemble(
        (f"trick {trick['number']} ", "dim"), ("for ", "dim"), name(trick["winner"]), ": ", cards
    )


def laid_down(part: Part, name: Say, glyphs: Glyphs) -> Text | None:
    """Who has laid down the rest of his cards, and which; None if nobody has."""
    laid = part.get("laid")
    if laid is None:
        return None
    return Text.assemble(
        ("laid down by ", "dim"), name(laid["player"]), ": ", card_list(laid["cards"], glyphs)
    )


def not_known(part: Part) -> Text | None:
    """What should be known and is not; None if there is nothing."""
    unknown = part.get("unknown")
    return Text(f"not known: {', '.join(unknown)}", "dim") if unknown else None
