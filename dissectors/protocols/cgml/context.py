"""The context of the CGML table and of its parts: groups, hands and players, in memory and in the state."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from kiebitz.dissectors.game.broadcast_dedup import SWAPPED_NS
from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.model import Event, Findings, Game, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.protocols.cgml.conversation import Conversation
from kiebitz.dissectors.protocols.cgml.grammar import GRAMMAR
from kiebitz.dissectors.protocols.cgml.hand import MAX_TOLD, Group, Hand
from kiebitz.dissectors.protocols.cgml.names import known_names
from kiebitz.dissectors.protocols.cgml.places import place_of

MAX_PLAYERS = 1000
MAX_GROUPS = 100
"""So many are known; more are forgotten again, the oldest first."""

_MAX_WORDS_LENGTH = 200

_ONE = ("player", "winner", "id")
_SEVERAL = ("players", "winners", "losers")
"""The keys in an event's data under which a player stands, and those with a list of players."""


def short(text: str) -> str:
    """A text as it stands in events and in the state: one that is very long is cut short."""
    return text if len(text) <= _MAX_WORDS_LENGTH else f"{text[:60]}…"


def private(player: int, **hidden: Any) -> dict[str, Any]:
    """What goes into an event's data that only one player knows: what others see in place of it."""
    return {"known_to": [str(player)], "others_see": hidden}


class Announced(msgspec.Struct, eq=False):
    """A group that the login server has announced, with where it plays."""

    url: str
    players: list[int]
    told: dict[str, dict[str, Any]]
    """What was said of each player, by id."""
    told_ns: int
    formed: Event | None = None
    """Its event, once all of its players are known."""
    hearers: set[int] = msgspec.field(default_factory=set)
    """On which streams it was told."""


class Groups(GameContext):
    """What is known of a server's groups and their hands."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings, GRAMMAR.rules)
        self.conversations: dict[int, Conversation] = {}
        self.by_key: dict[str, Group] = {}
        """Each group by its key in the state."""
        self.announced: dict[int, Announced] = {}
        """The groups that this server has announced, by id."""
        self._names: dict[str, str] | None = None
        """The players' names by id, as far as they are known; None if they have to be looked up again."""
        self._gone: dict[str, str] = {}
        """The names of players who have left, by id."""

    # Who is in which group.

    def conversation(self, stream: Stream) -> Conversation:
        """The conversation on a stream."""
        found = self.conversations.get(stream.id)
        if found is None:
            found = self.conversations[stream.id] = Conversation(stream.id)
        return found

    def find_group(self, conversation: Conversation, players: list[int]) -> None:
        """After a start in mid-stream the group is not known: it is the one of whoever is heard of."""
        known = self.by_key.get(conversation.group or "")
        if known is None or known.number is None:
            for player in players:
                known = self._with(player, known)
                conversation.group = known.key

    def _with(self, player: int, known: Group | None) -> Group:
        """The group that has a player, `known` if no other has."""
        groups = (group for group in self.by_key.values() if player in group.players and group is not known)
        other = next(groups, None)
        if other is None or (known is not None and player in known.players):
            known = known or self.group(f"?{player}", None)
            known.joins(player)
            return known
        if known is None:
            return other
        # Two that were heard of apart are one.
        for talk in self.conversations.values():
            if talk.group == known.key:
                talk.group = other.key
        self.leave(known)
        return other

    # Groups and hands.

    def conversation_of(self, observation: Observation) -> Conversation:
        """On which connection something was said first."""
        return self.conversations[observation.message.stream.id]

    def group(self, key: str, number: int | None) -> Group:
        """A group by its key in the state."""
        found = self.by_key.get(key)
        if found is None:
            found = self.by_key[key] = Group(key, number)
            if len(self.by_key) > MAX_GROUPS:
                oldest = next(iter(self.by_key))
                self.leave(self.by_key[oldest])
        return found

    def leave(self, group: Group) -> None:
        """A group is over; what became of a hand that is still on is not known."""
        self.by_key.pop(group.key, None)
        if group.hand is not None:
            group.hand.ended = True
            self.set_state(None, *group.hand.place)
        self.set_state(None, "groups", group.key)

    def hand_of(self, observation: Observation) -> Hand | None:
        """The hand that a message is about, which may be one that is met in its middle.

        None if the connection was seen from its beginning and no hand has begun on it.
        """
        conversation = self.conversation_of(observation)
        if conversation.group is None:
            return None
        group = self.group(conversation.group, None)
        hand = group.hand
        # Of whom only one is known may yet turn out to be of another group that was heard of.
        is_met = not conversation.whole and len(group.players) > 1
        if (hand is None or hand.ended) and is_met and not self._is_late(hand, observation):
            hand = self.open_hand(group, observation, whole=False)
        if hand is not None:
            observation.game_id = hand.game.id
        return hand

    def _is_late(self, hand: Hand | None, observation: Observation) -> bool:
        """Whether a hand is over, and this still belongs to it: copies and questions between two hands."""
        return hand is not None and observation.name in ("result", "cancelgame", "abort", "renonc", "round")

    def open_hand(self, group: Group, observation: Observation, whole: bool) -> Hand:
        """Begin a hand."""
        self.close_hand(group, None, observation.ts_ns)
        group.count += 1
        name = group.key if group.number is not None else "?"
        game = self.open_game(f"group {name}, hand {group.count}", observation.ts_ns)
        hand = group.hand = Hand(game, group.count, group.asked_players or group.players.copy(), whole)
        hand.place, hand.state = self.part_of(game)
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
        self.set_state(None, *hand.place)

    # The state.

    def part(self, hand: Hand) -> dict[str, Any]:
        """A hand's part of the state."""
        return {} if hand.ended else hand.state

    def put_in(self, hand: Hand, value: Any, *path: str) -> None:
        """Change a hand's part of the state, as long as it is in it."""
        if not hand.ended:
            self.set_part(hand.place, hand.state, path, value)

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
            gone = [*hand.played.values()].count(player)
            if player == hand.declarer:
                dealt += len(hand.talon or ()) - len(hand.discards or ())
            key = str(player)
            self.put_in(hand, dealt - gone, "hands", key)
            self.put_in(hand, hand.cards_of(player), "private", key, "hand")

    def put_player(self, told: dict[str, Any]) -> int | None:
        """Keep what a <player> says of himself; give his id."""
        number: int | None = told.get("id")
        if number is None:
            return None
        known = self.state.get("players", {})
        if str(number) in known or len(known) < MAX_PLAYERS:
            if told.get("name"):
                self.set_state(short(told["name"]), "players", str(number), "name")
                self._names = None
            if told.get("race"):
                self.set_state(told["race"], "players", str(number), "race")
        return number

    def take_leave(self, number: int, why: str, ts_ns: int, is_gone: bool) -> Event:
        """Make the event of a player who leaves; one who is gone leaves the state with it."""
        player = str(number)
        if is_gone:
            name = self._called(player)
            if name is not None:
                self._gone[player] = name
                if len(self._gone) > MAX_PLAYERS:
                    del self._gone[next(iter(self._gone))]
            self.set_state(None, "players", player)
            self._names = None
        return self.emit("left", ts_ns, player, {"player": number, "why": why}, None)

    def _called(self, player: str) -> str | None:
        """Return a player's name; None if it was never told."""
        if self._names is None:
            self._names = known_names(self.state)
        return self._names.get(player) or self._gone.get(player)

    # What is told.

    def emit(
        self, kind: str, ts_ns: int, actor: str | None, data: dict[str, Any], game: Game | None = None
    ) -> Event:
        """Make an event, and add the names of the players in its data."""
        players = [data[key] for key in _ONE if data.get(key) is not None]
        for key in _SEVERAL:
            players += data.get(key, ())
        if players:
            called = {str(player): self._called(str(player)) for player in players}
            data = {**data, CALLED: {player: name for player, name in called.items() if name is not None}}
        return super().emit(kind, ts_ns, actor, data, game)

    def tell(
        self, observation: Observation, kind: str, actor: int | None, data: dict[str, Any], hand: Hand | None
    ) -> Event:
        """Make an event of an observation."""
        game = hand.game if hand is not None else None
        event = self.emit(kind, observation.ts_ns, None if actor is None else str(actor), data, game)
        observation.event = event
        observation.game_id = event.game_id
        return event

    def told_before(self, hand: Hand, key: Hashable, observation: Observation) -> bool:
        """Whether a hand has heard this already; then the observation is part of that event."""
        event = hand.told.get(key)
        if event is None:
            # A hand in which so much was told is none: the rest is passed over.
            return hand.ended or len(hand.told) >= MAX_TOLD
        observation.event = event
        observation.game_id = event.game_id
        return True

    def foretold(self, hand: Hand, key: Hashable, observation: Observation) -> bool:
        """Whether the server was heard to tell what a client says only now; then it is part of that event.

        In a capture packets of several connections may have changed places.
        """
        event = hand.told.get(key)
        if event is None or key not in hand.foretold or observation.ts_ns - event.ts_ns >= SWAPPED_NS:
            return False
        hand.foretold.discard(key)
        return self.told_before(hand, key, observation)

    def flaw_of(
        self,
        observation: Observation,
        key: str,
        /,
        *,
        part: str = "tag",
        path: tuple[int, ...] = (),
        **values: Any,
    ) -> None:
        """Report that a part of a message, named as in `values.Unfit`, breaks the rule of this key."""
        at = place_of(observation.frame, part, path) if observation.frame else None
        self.flaw(observation.message, key, at=at, clause=observation.row.clause, **values)

    def has_flaw(self, message: Message) -> bool:
        """Whether something was told of this message already: one flaw is enough."""
        told = self._findings.diagnostics
        return bool(told) and told[-1].message_id == message.id
