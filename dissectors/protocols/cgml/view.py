"""The view of a table of licitovaný mariáš: three players, the current game, the cards in front of them.

The order of play moves on by one from hand to hand, but players keep their places in the view. The one with
the lowest id among those with known cards sits at the bottom, the others follow clockwise. Between hands, the
view has the groups with their money; for a login server, its players.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypedDict

import msgspec

from kiebitz.dissectors.game.valid_state import (
    Key,
    Number,
    Types,
    valid_events,
    valid_game,
    valid_items,
)
from kiebitz.dissectors.game.view import (
    SIGNS,
    Card,
    Contract,
    Deck,
    Element,
    Fact,
    Figure,
    Group,
    Hand,
    Line,
    Name,
    Pile,
    Scene,
    Seat,
    Span,
    Suit,
    View,
    counted,
    latest,
    not_known,
)
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.cards import (
    COLOURS,
    HEIGHTS,
    SEATS,
    SUIT_WORDS,
    WITHOUT_TRUMPS,
    Rules,
    level_words,
    player_name,
    player_names,
    value_words,
)

_Card = Annotated[str, msgspec.Meta(pattern=f"^[{COLOURS}]({'|'.join(HEIGHTS)})$")]
_Colour = Literal["R", "B", "G", "A"]
_Id = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
_Part = dict[str, Any]
"""A hand's part of the state."""


class _Own(TypedDict, total=False):
    hand: list[_Card]
    talon: list[_Card]


class _Bid(TypedDict):
    call: str
    player: _Id | None


class _Played(TypedDict):
    card: _Card
    player: _Id | None


class _Trick(TypedDict):
    cards: list[_Played]
    number: Number
    winner: _Id | None


class _Pause(TypedDict):
    player: _Id | None
    message: str | None


class _Laid(TypedDict):
    player: _Id | None
    cards: list[_Card]


class _Player(TypedDict, total=False):
    name: str
    race: str


class _Group(TypedDict, total=False):
    players: list[Number]
    money: dict[Key, Number]


class _Server(TypedDict):
    numplayers: Number


_TYPES = Types(
    {
        "group": str,
        "hand": Number,
        "seats": list[_Id],
        "hands": dict[Key, Number],
        "private": dict[Key, _Own],
        "bidding": list[_Bid],
        "declarer": _Id,
        "contract": str,
        "talon": Annotated[int, msgspec.Meta(ge=0, le=32)],
        "trump": _Colour,
        "second": _Colour,
        "flek": Annotated[str, msgspec.Meta(pattern="^[0-9]{1,9}(:[0-9]{1,9})?$")],
        "tricks": list[_Trick],
        "table": list[_Played],
        "turn": _Id,
        "pause": _Pause,
        "laid": _Laid,
        "unknown": list[str],
    }
)
_DATA = {
    "result": Types({"winners": list[_Id], "money": dict[Key, Number]}),
    "cancelled": Types({"why": str}),
    "aborted": Types({"player": _Id | None, "why": str}),
    "renonc": Types({"player": _Id | None, "card": _Card | None, "should": list[_Card] | None}),
    "played": Types({"player": _Id | None}),
}

_SUITS = {letter: Suit(sign, SUIT_WORDS[letter], letter) for letter, sign in zip("AGRB", SIGNS, strict=True)}
_DECK = Deck(tuple(_SUITS.values()))
_BRIEF = {"0Q": "svr", "0J": "spo"}
_ENDS = ("result", "cancelled", "aborted")


def view_of(scene: Scene) -> View:
    """Return the view of the current hand, or of the groups; of a login server, of its players."""
    state = {
        "players": valid_items(scene.state.get("players"), _Player, Key),
        "groups": valid_items(scene.state.get("groups"), _Group),
        "servers": valid_items(scene.state.get("servers"), _Server),
        "loads": valid_items(scene.state.get("loads"), Number),
    }
    names = player_names(state)
    number, part, events = valid_game(scene, _TYPES, _DATA)
    # Sessions identify players by their ids.
    colours = [names.get(player, player) for player in scene.names]
    if not number:
        facts = _last_hand(valid_events(scene.events, _DATA), names) + _servers(state)
        groups = _groups(state, names, None)
        idle = "no hand is played" if facts or groups else "nobody is here yet"
        return View(names=colours, idle=idle, facts=facts, groups=groups)
    hand = _Hand(part, events, names, state["groups"].get(part.get("group", ""), {}).get("money", {}))
    return View(
        names=colours,
        title=(f"group {_group_name(part.get('group'))}", f"hand {part.get('hand', '?')}"),
        seats=tuple(map(hand.seat, around(part))),
        story=hand.story(),
        deck=_DECK,
        contract=contract(part),
        piles=hand.talon(),
        facts=hand.facts() + _servers(state),
        unknown=not_known(part.get("unknown", ())),
        groups=_groups(state, names, part.get("group")),
    )


def card(code: str) -> Card:
    """Return a card by its code in the protocol, such as `R07`."""
    word = value_words(code[1:])
    return Card(_SUITS[code[0]], word, code[1:].lstrip("0"), _BRIEF.get(code[1:], ""))


def _cards(codes: Iterable[str]) -> tuple[Card, ...]:
    return tuple(map(card, codes))


def sorted_hand(hand: Iterable[str], part: _Part) -> list[str]:
    """Return a hand as players hold it: trumps first, in each colour the highest first."""
    trump = part.get("trump")
    rules = Rules(part.get("contract", ""), trump)
    return sorted(hand, key=lambda card: (card[0] != trump, COLOURS.index(card[0]), -rules.rank(card)))


def contract(part: _Part) -> Contract | None:
    """Return the current game: contract, trumps and second colour, as far as known."""
    game = part.get("contract")
    if game in (None, "PASS"):
        return None
    parts: list[Line] = [(Span(game, "strong"),)]
    suit = None
    if game in WITHOUT_TRUMPS:
        parts.append(("no trumps",))
    elif "trump" in part:
        suit = _SUITS[part["trump"]]
        parts.append(("trumps ", suit))
    second: tuple[Line, ...] = (("second ", _SUITS[part["second"]]),) if "second" in part else ()
    return Contract(tuple(parts), second, level_words(part.get("flek", "1")), suit)


def _taken(part: _Part) -> dict[str, Any] | None:
    tricks: list[dict[str, Any]] = part.get("tricks", [])
    return tricks[-1] if tricks and not part.get("table") else None


def _on_table(part: _Part) -> dict[int, str]:
    trick = _taken(part)
    cards = trick["cards"] if trick is not None else part.get("table", ())
    return {played["player"]: played["card"] for played in cards if played["player"] is not None}


def around(part: _Part) -> list[int | None]:
    """Return the three players from the bottom on, clockwise; None for an unknown one."""
    winners = (trick["winner"] for trick in part.get("tricks", ()))
    heard_of = [*part.get("seats", ()), *map(int, part.get("hands", {})), *winners, *_on_table(part)]
    players: list[int | None] = [*dict.fromkeys(heard_of)][:SEATS]
    players += [None] * (SEATS - len(players))
    known = [player for player in players if player is not None]
    shown = [player for player in known if "hand" in part.get("private", {}).get(str(player), {})]
    bottom = players.index(min(shown or known, default=None))
    return players[bottom:] + players[:bottom]


def tricks_words(part: _Part, player: int) -> str:
    """Return a player's number of tricks as text; empty before the first one."""
    tricks = part.get("tricks")
    if not tricks:
        return ""
    count = sum(trick["winner"] == player for trick in tricks)
    return f"{count}+ tricks" if "tricks" in part.get("unknown", ()) else counted(count, "trick")


class _Hand:
    """The current hand, with its latest events."""

    def __init__(
        self, part: _Part, events: Sequence[Event], names: dict[str, str], money: dict[str, int]
    ) -> None:
        self.part = part
        self.events = events
        self.names = names
        self.money = money
        self.ending = latest(events, *_ENDS)
        self.last = next((event.data["player"] for event in events[-2:] if event.kind == "played"), None)

    def name(self, player: int | None) -> Name:
        return Name(player_name(player, self.names))

    def seat(self, player: int | None) -> Seat:
        part, key = self.part, str(player)
        if player is None:
            return Seat(name="?", hand=Hand(hidden=None))
        known = part.get("private", {}).get(key, {}).get("hand")
        left = part.get("hands", {}).get(key)
        over = _taken(part)
        lies = _on_table(part).get(player)
        return Seat(
            name=player_name(player, self.names),
            state="turn" if part.get("turn") == player and self.ending is None else "",
            marks=self.marks(player),
            figures=self.figures(player),
            hand=Hand(
                _cards(sorted_hand(known, part)) if known is not None else (),
                left if known is None else max(0, (left or 0) - len(known)),
            ),
            lies=card(lies) if lies is not None else None,
            fresh=self.last == player,
            takes=over is not None and over["winner"] == player,
        )

    def marks(self, player: int) -> tuple[Span, ...]:
        """Return a player's role, or latest bid."""
        if self.part.get("declarer") == player and self.part.get("contract") != "PASS":
            return (Span("declarer", "strong"),)
        if "contract" in self.part:
            return ()
        calls = [bid["call"] for bid in self.part.get("bidding", ()) if bid["player"] == player]
        return (Span("passes" if calls[-1] == "PASS" else f"bids {calls[-1]}"),) if calls else ()

    def figures(self, player: int) -> tuple[Figure, ...]:
        """Return a player's id, which messages use, tricks, and money won or lost."""
        figures = [f"id {player}"]
        if tricks := tricks_words(self.part, player):
            figures.append(tricks)
        end = self.ending
        if end is not None and end.kind == "result" and str(player) in end.data["money"]:
            figures.append(f"this hand {end.data['money'][str(player)]:+d}")
        if str(player) in self.money:
            figures.append(f"money {self.money[str(player)]}")
        return tuple(map(Figure, figures))

    def talon(self) -> tuple[Pile, ...]:
        label = (Span("talon", "faint"),)
        declarer = self.part.get("private", {}).get(str(self.part.get("declarer")), {})
        if "talon" in declarer:
            return (Pile(label, _cards(declarer["talon"])),)
        return (Pile(label, hidden=self.part["talon"]),) if self.part.get("talon") else ()

    def story(self) -> tuple[Line, ...]:
        """Return the current situation."""
        part = self.part
        if self.ending is not None:
            return _ending_words(self.ending, self.names)
        if "pause" in part:
            pause = part["pause"]
            said: tuple[Line, ...] = ((pause["message"],),) if pause["message"] else ()
            return (Span("pause", "strong"), " of ", self.name(pause["player"])), *said
        if self.events and self.events[-1].kind == "renonc":
            return self._renonc(self.events[-1])
        if part.get("tricks") or part.get("table"):
            return self._trick()
        return self._before_the_first_card()

    def _renonc(self, event: Event) -> tuple[Line, ...]:
        told: Line = (self.name(event.data["player"]), Span(" revokes", "strong"))
        if event.data["card"] is None:
            return (told,)
        return told, (card(event.data["card"]), " for ", _cards(event.data["should"] or ()))

    def _trick(self) -> tuple[Line, ...]:
        trick = _taken(self.part)
        if trick is not None:
            return (f"trick {trick['number']}",), ("for ", self.name(trick["winner"]))
        if tricks := self.part.get("tricks"):
            return ((f"trick {tricks[-1]['number'] + 1}",),)
        return (("trick ?" if "tricks" in self.part.get("unknown", ()) else "trick 1",),)

    def _before_the_first_card(self) -> tuple[Line, ...]:
        part = self.part
        game = part.get("contract")
        if game is None:
            bids = [bid for bid in part.get("bidding", ()) if bid["call"] != "PASS"]
            if bids:
                by = self.name(bids[-1]["player"])
                return ("bidding",), (Span(bids[-1]["call"], "strong"), " of ", by)
            is_known = "bidding" not in part.get("unknown", ())
            return (("bidding",), ("no bid yet",)) if is_known else (("bidding",),)
        if game == "PASS":
            return (("all have passed",),)
        declarer: Line = (self.name(part.get("declarer")),)
        if "talon" not in part:
            return declarer, ("has the talon",)
        if "trump" not in part and game not in WITHOUT_TRUMPS:
            return declarer, ("has won the bidding",)
        return (("doubling",),)

    def facts(self) -> tuple[Fact, ...]:
        """Return the bids, the last trick with its cards in the order played, and the cards laid down."""
        bids = tuple(
            (self.name(bid["player"]), f" {bid['call'][:8]}") for bid in self.part.get("bidding", ())
        )
        facts = [Fact(("bidding",), bids)] if bids else []
        if self.part.get("tricks"):
            trick = self.part["tricks"][-1]
            cards = _cards(played["card"] for played in trick["cards"][:SEATS])
            facts.append(Fact((f"trick {trick['number']} for ", self.name(trick["winner"])), ((cards,),)))
        if "laid" in self.part:
            laid = self.part["laid"]
            cards = _cards(laid["cards"][:10])
            facts.append(Fact(("laid down by ", self.name(laid["player"])), ((cards,),)))
        return tuple(facts)


def _ending_words(event: Event, names: dict[str, str]) -> tuple[Line, ...]:
    """Return the end of a hand in words, with one winner per line."""
    data = event.data
    if event.kind == "result":
        winners = [Name(player_name(player, names)) for player in data["winners"][:SEATS]]
        if not winners:
            return ((Span("nobody won", "strong"),),)
        return *((name, " and") for name in winners[:-1]), (winners[-1], Span(" won", "strong"))
    if event.kind == "cancelled":
        return ((Span("cancelled", "strong"), ": ", data["why"]),)
    blamed = Name(player_name(data["player"], names))
    return ((Span("aborted", "strong"), " because of ", blamed, ": ", data["why"]),)


def _group_name(group: str | None) -> str:
    """Return a group's number; it is unknown if its beginning was missed."""
    return "?" if group is None or group.startswith("?") else group[:20]


def _last_hand(events: Sequence[Event], names: dict[str, str]) -> tuple[Fact, ...]:
    # A group that is not completed is cancelled, too.
    end = latest([event for event in events if event.game_id is not None], *_ENDS)
    if end is None:
        return ()
    title: list[Element] = [Span("the last hand: ", "faint")]
    for number, line in enumerate(_ending_words(end, names)):
        title += [" ", *line] if number else line
    items: list[Line] = []
    if end.kind == "result":
        for player, amount in end.data["money"].items():
            items.append((Name(player_name(int(player), names)), f" {amount:+d}"))
    return (Fact(tuple(title), tuple(items)),)


def _groups(state: dict[str, Any], names: dict[str, str], drawn: str | None) -> tuple[Group, ...]:
    """Return the groups whose hand is not `drawn`, with their money, and the players in no group."""
    found, seated = [], set()
    for key, about in state["groups"].items():
        players = about.get("players", [])
        seated |= {*map(str, players)}
        if key != drawn:
            money = {player: f"money {amount}" for player, amount in about.get("money", {}).items()}
            members = tuple((player_name(player, names), money.get(str(player), "")) for player in players)
            found.append(Group(f"group {_group_name(key)}", members))
    waiting = tuple(
        (name, "bot" if state["players"][player].get("race") == "bot" else "")
        for player, name in names.items()
        if player not in seated
    )
    return (*found, Group("in no group", waiting)) if waiting else tuple(found)


def _servers(state: dict[str, Any]) -> tuple[Fact, ...]:
    """Return the servers known to a login server."""
    servers = [f"{url} for {about['numplayers']} players" for url, about in state["servers"].items()]
    loads = [f"{client} {load}" for client, load in state["loads"].items()]
    return tuple(
        Fact((title,), tuple((words,) for words in known))
        for title, known in (("game servers", servers), ("load of servers of bots", loads))
        if known
    )
