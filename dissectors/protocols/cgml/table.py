"""The CGML table: from messages to players, groups, bids, cards, tricks, results and money.

`observation_merge.py` makes one observation of all copies of a message; here each observation, and each
client's answer, is handled in order, by `lobby.py`, `bidding.py` and `card_play.py`. A login server and a
game server are two tables; the game server's looks up in its peers what a login server has announced.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from kiebitz.dissectors.game.broadcast_dedup import text_key
from kiebitz.dissectors.game.observation_merge import Observation, ObservationMerger, PartialView
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType, to_json
from kiebitz.dissectors.grammar.xml.shapes import ElementType
from kiebitz.dissectors.model import Direction, Findings, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.protocols.cgml import bidding, card_play, lobby
from kiebitz.dissectors.protocols.cgml.cards import SEATS
from kiebitz.dissectors.protocols.cgml.context import CgmlContext
from kiebitz.dissectors.protocols.cgml.grammar import location_of
from kiebitz.dissectors.protocols.cgml.hand import (
    ClientConnection,
    Group,
    Hand,
    answered_question,
    is_answer,
    is_question,
)

_LOGIN_SERVER, _GAME_SERVER = "a login server", "a game server"
_OF_LOGIN = frozenset(("connect", "load", "newgroup init", "newgroup ack"))
"""Messages to and from the login server, on ports 7001 and 7003; most others are those of a game server."""


class CgmlTable(GameTable):
    """A CGML server: its players, groups and hands."""

    context: CgmlContext

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(CgmlContext(info, ids, findings))
        self._merger = ObservationMerger(self._take, self._may_reveal, overtaken_ns=0)
        self._roles: set[str | None] = {None}
        """The roles that this server has shown; it may have both."""
        self._asked: dict[int, str] = {}
        """The text of the question that a client's message answers, by message id."""

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        assert isinstance(row, ElementType)
        if not valid:
            return
        if message.direction == "s2c":
            connection = self.context.connections.of(message.stream)
            self._roles.add(_server_of(row))
            connection.asks(message, row)
            if row.kind == "connect complete":
                lobby.announce(self.context, message, connection)
            if row.name == "newgame" or not connection.certain:
                self.context.find_group(connection, _named_players(message))
            self._merger.add(message, row, frame, self._version(message, row, connection))
            return
        if self._is_of_another_server(message, row, frame):
            return
        connection = self.context.connections.of(message.stream)
        if row.name in ("newgroup", "newgame") and "player" in message.fields:
            player: int = message.fields["player"]["id"]
            connection.is_of(player)
            if row.name == "newgroup":
                connection.group = str(message.fields["id"])
            elif not connection.certain:
                self.context.find_group(connection, [player])
        if is_answer(row):
            asked = connection.answers(message, row)
            if asked is None and self._is_certain(message, row, connection):
                self.context.report_violation(
                    message, "unasked", at=location_of(frame), clause=row.clause, name=row.name
                )
                return
            if asked is not None:
                self._asked[message.id] = asked
        self._merger.add(message, row, frame)

    def _is_certain(self, message: Message, row: ElementType, connection: ClientConnection) -> bool:
        """Return True if no question that this message answers can have been missed."""
        return (
            connection.knows_player
            and not connection.unread.explains(answered_question(message, row))
            and not self.context.is_unfinished(message.stream, "s2c")
            and not self.context.has_violation(message)
        )

    def _is_of_another_server(self, message: Message, row: ElementType, frame: bytes) -> bool:
        role = _server_of(row)
        if role in self._roles or self._roles == {None}:
            return False
        if any(known.url == self.context.info.server for known in self.context.announced.values()):
            # It redirects the players of a group to itself.
            return False
        self.context.report_violation(
            message, "wrong-server", at=location_of(frame), clause=row.clause, name=row.name, role=role
        )
        return True

    def _version(self, message: Message, row: ElementType, connection: ClientConnection) -> Hashable:
        """Return the key by which copies of a message are recognised; None for a message to one client."""
        fields = message.fields
        key = connection.group
        if row.name == "dial":
            owner = fields.get("playerid", connection.player)
            if fields["to"] == "talon":
                owner = 0
            if owner is None or key is None:
                return None
            cards = fields["card"]
            public = ("dial", key, owner, fields["to"], fields["from"], len(cards))
            return PartialView(public, None if None in cards else tuple(cards))
        if not row.broadcast or key is None or row.name in ("connect", "disconnect"):
            return None
        if "version" not in fields:
            return (row.name, key, text_key(message.fields_json))
        without = {name: value for name, value in fields.items() if name != "version"}
        return (row.name, key, text_key(to_json(without)))

    def _may_reveal(self, observation: Observation) -> set[int]:
        """Return the streams on which a copy of a deal that shows the cards may still arrive."""
        fields = observation.fields
        if fields["to"] != "hand" or "playerid" not in fields:
            return set()
        return {
            connection.stream.id
            for connection in self.context.connections.values()
            if connection.player == fields["playerid"]
            and connection.knows_player
            and connection.unread.certain
            and not connection.left
        }

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        connection = self.context.connections.of(stream)
        connection.doubt()
        if is_gap:
            connection.certain = False
        if direction == "c2s" and not is_gap:
            return
        self._merger.expect_no_more(stream.id)
        group = self.context.by_key.get(connection.group or "")
        if group is not None and group.hand is not None:
            # Messages are missing that could explain contradictions.
            group.hand.certain = False

    def closed(self, stream: Stream, ts_ns: int) -> None:
        connection = self.context.connections.get(stream.id)
        if connection is None:
            return
        self._merger.finish()
        self._merger.forget(stream.id)
        lobby.gone(self.context, connection, stream.ending or "closed", ts_ns)
        del self.context.connections[stream.id]
        if not self.context.connections:
            self._merger.clear()

    def undecided(self) -> int | None:
        return self._merger.first_waiting()

    def finish(self, ts_ns: int) -> None:
        self._merger.finish()

    def _take(self, observation: Observation) -> None:
        row = observation.row
        assert isinstance(row, ElementType)
        kind = row.kind
        asked = self._asked.pop(observation.message.id, None)
        if kind in _WITHOUT_CONNECTION:
            _WITHOUT_CONNECTION[kind](self.context, observation)
            return
        connection = self.context.connection_of(observation)
        if row.name == "dial":
            _dealt(self.context, observation, connection)
            return
        if row.name in ("pause", "cancelgame", "abort", "result"):
            _of_the_group(self.context, observation, row, connection)
            return
        hand = self.context.hand_of(observation)
        if hand is None:
            return
        bidding.deal_is_over(self.context, observation, hand)
        if kind in _OF_A_HAND:
            _OF_A_HAND[kind](self.context, observation, hand)
        elif connection.player is not None and not hand.ended:
            _of_a_player(self.context, observation, hand, row, connection.player, asked)


def _of_a_player(
    context: CgmlContext,
    observation: Observation,
    hand: Hand,
    row: ElementType,
    player: int,
    asked: str | None,
) -> None:
    if is_question(row):
        card_play.turn(context, observation, hand, player)
    elif row.kind == "licite answer":
        bidding.answers(context, observation, hand, player, asked)
    elif row.kind == "flek answer":
        bidding.doubles(context, observation, hand, player, asked)
    elif row.kind == "playcard cards":
        if observation.fields["to"] == "talon":
            bidding.discards(context, observation, hand, player)
        else:
            card_play.plays(context, observation, hand, player)


def _shown(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Process an announcement of cards put on the table, or of two put into the talon."""
    if observation.fields.get("to", "desk") == "talon" or None in observation.fields["card"]:
        bidding.discards(context, observation, hand, observation.fields["playerid"])
    else:
        card_play.shown(context, observation, hand)


def _dealt(context: CgmlContext, observation: Observation, connection: ClientConnection) -> None:
    if connection.group is None:
        return
    group = context.group(connection.group, None)
    player: int | None = observation.fields.get("playerid", connection.player)
    hand = group.hand
    if observation.fields["from"] == "talon":
        hand = context.hand_of(observation)
        if hand is not None:
            bidding.deal_is_over(context, observation, hand)
            bidding.takes_talon(context, observation, hand, player)
        return
    if hand is None or hand.ended or group.asked is not None:
        hand = context.open_hand(group, observation, certain=group.asked is not None or connection.certain)
    elif not hand.dealing:
        if hand.certain:
            # A late copy.
            return
        # The end of the previous hand was missed.
        hand = context.open_hand(group, observation, certain=False)
    hand.dealing = True
    observation.game_id = hand.game.id
    bidding.dealt(context, observation, hand, player)


def _of_the_group(
    context: CgmlContext, observation: Observation, row: ElementType, connection: ClientConnection
) -> None:
    if connection.group is None:
        return
    group: Group = context.group(connection.group, None)
    hand = group.hand
    if hand is not None:
        observation.game_id = hand.game.id
    if row.name == "pause":
        player = connection.player if observation.message.direction == "c2s" else None
        handle = card_play.pauses if row.kind == "pause start" else card_play.resumes
        handle(context, observation, hand if hand is not None and not hand.ended else None, group, player)
    elif row.name == "cancelgame":
        card_play.cancelled(context, observation, hand, group)
    elif row.name == "abort":
        card_play.aborted(context, observation, hand, group)
    else:
        found = context.hand_of(observation)
        if found is not None:
            card_play.result(context, observation, found, group)


def _named_players(message: Message) -> list[int]:
    """Return the players in a server's message, who belong to the group of the connection."""
    if message.name == "newgame":
        return [player["id"] for player in message.fields["player"]][:SEATS]
    return [message.fields["playerid"]] if "playerid" in message.fields else []


def _server_of(row: ElementType) -> str | None:
    """Return the server with which a message is exchanged, None if it may be either."""
    if row.name == "disconnect":
        return None
    return _LOGIN_SERVER if _OF_LOGIN & {row.name, row.kind} else _GAME_SERVER


_WITHOUT_CONNECTION: dict[str, Callable[[CgmlContext, Observation], None]] = {
    "connect server": lobby.connect_server,
    "connect passive": lobby.connect_player,
    "connect active": lobby.connect_player,
    "connect complete": lobby.complete,
    "newgroup accept": lobby.joins,
    "newgroup reject": lobby.declines,
    "newgame ask": lobby.asked,
    "newgame accept": lobby.plays_on,
    "newgame reject": lobby.stops,
    "load": lobby.load,
    "disconnect": lobby.disconnect,
}
"""Handlers for messages that need no hand, by kind of message."""

_OF_A_HAND: dict[str, Callable[[CgmlContext, Observation, Hand], None]] = {
    "licite info": bidding.handle_bid,
    "licite result": bidding.result,
    "gametype answer": bidding.names,
    "gametype info": bidding.game,
    "flek info": bidding.level,
    "playcard info": _shown,
    "round": card_play.trick,
    "renonc": card_play.renonc,
}
"""Handlers for messages of a hand."""
