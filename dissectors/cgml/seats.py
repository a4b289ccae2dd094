"""Groups, hands and players of a CGML server, in memory and in its table's state."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from kiebitz.dissectors.broadcast import SWAPPED_NS
from kiebitz.dissectors.cgml.conversation import Conversation
from kiebitz.dissectors.cgml.grammar import GRAMMAR
from kiebitz.dissectors.cgml.hand import MOST_TOLD, Group, Hand
from kiebitz.dissectors.cgml.places import place_of
from kiebitz.dissectors.hearing import Fact
from kiebitz.dissectors.records import Event, Findings, Ids, TableInfo
from kiebitz.dissectors.table import GameTable

MOST_PLAYERS = 1000
MOST_GROUPS = 100
"""So many are known; more are forgotten again, the oldest first."""

_LONGEST_WORDS = 200


def short(text: str) -> str:
    """A text as it stands in events and in the state: one that is very long is cut short."""
    return text if len(text) <= _LONGEST_WORDS else f"{text[:60]}…"


def private(player: int, **hidden: Any) -> dict[str, Any]:
    """What goes into an event's data that only one player knows: what others see in place of it."""
    return {"known_to": [str(player)], "others_see": hidden}


class SeatTable(GameTable):
    """What a server's table knows of its groups and their hands."""

    rules = GRAMMAR.rules

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings)
        self.conversations: dict[int, Conversation] = {}
        self.groups: dict[str, Group] = {}

    # Groups and hands.

    def conversation_of(self, fact: Fact) -> Conversation:
        """On which connection something was said first."""
        return self.conversations[fact.message.stream.id]

    def group(self, key: str, number: int | None) -> Group:
        """A group by its key in the state."""
        found = self.groups.get(key)
        if found is None:
            found = self.groups[key] = Group(key, number)
            if len(self.groups) > MOST_GROUPS:
                oldest = next(iter(self.groups))
                self.leave(self.groups[oldest])
        return found

    def leave(self, group: Group) -> None:
        """A group is over; what became of a hand that is still on is not known."""
        self.groups.pop(group.key, None)
        if group.hand is not None:
            group.hand.ended = True
            self.put(None, "games", str(group.hand.game.id))
        self.put(None, "groups", group.key)

    def hand_of(self, fact: Fact) -> Hand | None:
        """The hand that a message is about, which may be one that is met in its middle.

        None if the connection was seen from its beginning and no hand has begun on it.
        """
        conversation = self.conversation_of(fact)
        if conversation.group is None:
            return None
        group = self.group(conversation.group, None)
        hand = group.hand
        # Of whom only one is known may yet turn out to be of another group that was heard of.
        is_met = not conversation.whole and len(group.players) > 1
        if (hand is None or hand.ended) and is_met and not self._is_late(hand, fact):
            hand = self.open_hand(group, fact, whole=False)
        if hand is not None:
            fact.game_id = hand.game.id
        return hand

    def _is_late(self, hand: Hand | None, fact: Fact) -> bool:
        """Whether a hand is over, and this still belongs to it: copies and questions between two hands."""
        return hand is not None and fact.name in ("result", "cancelgame", "abort", "renonc", "round")

    def open_hand(self, group: Group, fact: Fact, whole: bool) -> Hand:
        """Begin a hand."""
        self.close_hand(group, None, fact.ts_ns)
        group.count += 1
        name = group.key if group.number is not None else "?"
        game = self.open_game(f"group {name}, hand {group.count}", fact.ts_ns)
        hand = group.hand = Hand(game, group.count, group.asked_players or group.players.copy(), whole)
        group.asked = None
        self.put_in(hand, group.key, "group")
        self.put_in(hand, group.count, "hand")
        self.put_in(hand, hand.seats.copy(), "seats")
        if not whole:
            self.put_in(hand, ["bidding", "contract", "hands", "talon", "trump", "tricks"], "unknown")
        return hand

    def close_hand(self, group: Group, result: dict[str, Any] | None, ts_ns: int) -> None:
        """A hand is over; it leaves the state with the next event."""
        hand = group.hand
        if hand is None or hand.ended:
            return
        hand.ended = True
        hand.game.ended_ns = ts_ns
        hand.game.result = result
        self.changed_game(hand.game)
        self.put(None, "games", str(hand.game.id))

    # The state.

    def part(self, hand: Hand) -> dict[str, Any]:
        """A hand's part of the state."""
        found: dict[str, Any] = self.state.get("games", {}).get(str(hand.game.id), {})
        return found

    def put_in(self, hand: Hand, value: Any, *path: str) -> None:
        """Change a hand's part of the state, as long as it is in it."""
        if not hand.ended:
            self.put(value, "games", str(hand.game.id), *path)

    def put_known(self, hand: Hand, what: str) -> None:
        """Something that could not be known is told."""
        part = self.part(hand)
        unknown = [other for other in part.get("unknown", ()) if other != what]
        if "unknown" in part:
            self.put_in(hand, unknown or None, "unknown")

    def put_hands(self, hand: Hand, *players: int) -> None:
        """Who has how many cards, and which."""
        for player in players:
            dealt = len(hand.dealt.get(player, ()))
            if not dealt:
                continue
            gone = sum(1 for whose in hand.played.values() if whose == player)
            if player == hand.declarer:
                dealt += len(hand.talon or ()) - len(hand.discards or ())
            self.put_in(hand, dealt - gone, "hands", str(player))
            held = hand.cards_of(player)
            self.put_in(hand, held, "private", str(player), "hand")

    def put_player(self, told: dict[str, Any]) -> int | None:
        """Keep what a <player> says of himself; give his id."""
        number: int | None = told.get("id")
        if number is None:
            return None
        known = self.state.get("players", {})
        if str(number) in known or len(known) < MOST_PLAYERS:
            if told.get("name"):
                self.put(short(told["name"]), "players", str(number), "name")
            if told.get("race"):
                self.put(told["race"], "players", str(number), "race")
        return number

    # What is told.

    def tell(
        self, fact: Fact, kind: str, actor: int | None, data: dict[str, Any], hand: Hand | None
    ) -> Event:
        """Make an event of a fact."""
        game = hand.game if hand is not None else None
        event = self.emit(kind, fact.ts_ns, None if actor is None else str(actor), data, game)
        fact.event = event
        fact.game_id = event.game_id
        return event

    def told_before(self, hand: Hand, key: Hashable, fact: Fact) -> bool:
        """Whether a hand has heard this already; then the fact is part of that event."""
        event = hand.told.get(key)
        if event is None:
            # A hand in which so much was told is none: the rest is passed over.
            return hand.ended or len(hand.told) >= MOST_TOLD
        fact.event = event
        fact.game_id = event.game_id
        return True

    def foretold(self, hand: Hand, key: Hashable, fact: Fact) -> bool:
        """Whether the server was heard to tell what a client says only now; then it is part of that event.

        In a capture packets of several connections may have changed places.
        """
        event = hand.told.get(key)
        if event is None or key not in hand.foretold or fact.ts_ns - event.ts_ns >= SWAPPED_NS:
            return False
        hand.foretold.discard(key)
        return self.told_before(hand, key, fact)

    def flaw_of(
        self, fact: Fact, key: str, /, *, part: str = "tag", path: tuple[int, ...] = (), **values: Any
    ) -> None:
        """Report that a part of a message, named as in `values.Unfit`, breaks the rule of this key."""
        at = place_of(fact.frame, part, path) if fact.frame else None
        self.flaw(fact.message, key, at=at, clause=fact.row.clause, **values)
