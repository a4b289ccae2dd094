"""The Catan table: turns messages into players, games, dice, buildings, resources and trades.

All copies of a broadcast are merged into one observation. Observations and requests are then processed in
order, by the handlers in `lobby.py`, `turns.py`, `resources.py`, `building.py` and `cards.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from kiebitz.dissectors.game.broadcast_dedup import text_key
from kiebitz.dissectors.game.observation_merge import Observation, ObservationMerger, PartialView
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.grammar.json.layouts import JsonRow
from kiebitz.dissectors.inspection.memo import BoundedCache
from kiebitz.dissectors.model import LOST, Direction, Findings, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.protocols.catan import building, cards, lobby, resources, turns
from kiebitz.dissectors.protocols.catan.board import Board, Building, at, spot
from kiebitz.dissectors.protocols.catan.context import MAX_COPY_DELAY_NS, CatanContext
from kiebitz.dissectors.protocols.catan.game import TURNS_IN_DOUBT, place_text
from kiebitz.dissectors.protocols.catan.ledger import Claim, Hand, plain, total
from kiebitz.dissectors.protocols.catan.requests import ClientConnection, Request, check_request
from kiebitz.dissectors.protocols.catan.words import KARTEN, ROHSTOFFE

_COMPARED = 200
"""Number of characters compared of a text."""


class RefusalKey:
    """The key of a refusal: its text and the stream of the request, None if unknown.

    Two are equal if they may be copies of each other.
    """

    __slots__ = ("asker", "text")

    def __init__(self, text: str, asker: int | None) -> None:
        self.text = text[:_COMPARED]
        self.asker = asker

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RefusalKey)
            and self.text == other.text
            and (self.asker is None or other.asker is None or self.asker == other.asker)
        )

    def __hash__(self) -> int:
        return hash(self.text)


_MAX_VERSIONS = 256
_MAX_REMEMBERED_LENGTH = 500
"""Maximum number of cached views, and maximum length of their messages in characters."""


class PartialViews:
    """A cache of the recent messages' partial views, as most messages are copies of earlier ones."""

    def __init__(self) -> None:
        self._lately: BoundedCache[tuple[str, str], PartialView] = BoundedCache(
            _MAX_VERSIONS, _MAX_REMEMBERED_LENGTH
        )

    def of(self, message: Message) -> PartialView:
        """Return the partial view that a copy of a broadcast shows."""
        key = (message.name, message.fields_json)
        found = self._lately.get(key)
        if found is None:
            found = _partial_view(message)
            # A view that hides something is completed by other copies, so it belongs to one observation.
            if found.open is not None:
                self._lately.keep(key, found, len(message.fields_json))
        return found


def _partial_view(message: Message) -> PartialView:
    name, fields = message.name, message.fields
    if name == "Statusupdate":
        player = fields["Spieler"]
        resources, cards = player.get("Rohstoffe"), player.get("Entwicklungskarten")
        public = (
            name,
            player["id"],
            player.get("Status"),
            (player.get("Name") or "")[:_COMPARED],
            player.get("Farbe"),
            player.get("Rittermacht"),
            player.get("Längste Handelsstraße"),
            player.get("Größte Rittermacht"),
            None if resources is None else total(resources),
        )
        # A player's own points include hidden cards; on some servers, so do the player's own cards.
        hides = isinstance(resources, int) or isinstance(cards, int)
        return PartialView(public, None if hides else (_comparable(resources), _comparable(cards)))
    resources = fields.get("Rohstoffe")
    if resources is not None:
        is_open = not isinstance(resources, int)
        return PartialView(
            (name, fields["Spieler"], total(resources)), _comparable(resources) if is_open else None
        )
    if name == "Entwicklungskarte gekauft":
        card = fields.get("Entwicklungskarte", 1)
        return PartialView((name, fields["Spieler"]), None if card == 1 else card)
    # Some servers send each player chat messages about their own cards, often with the same words.
    to_one = name == "Chatnachricht" and "Absender" not in fields
    # Its JSON has the names in a fixed order and spelling.
    return PartialView((name, text_key(message.fields_json)), (), to_one)


def _comparable(counts: dict[str, int] | None) -> Hashable:
    return None if counts is None else frozenset(plain(counts).items())


_OF_A_GAME = frozenset(
    ("Würfelwurf", "Ertrag", "Kosten", "Bauvorgang", "Räuber versetzt", "Handelsangebot", "Handel ausgeführt")
)
"""Messages sent only during a game; without a recorded beginning, they show that it was missed."""


class CatanTable(GameTable):
    """A Catan server: its players, and its games one after another."""

    context: CatanContext

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(CatanContext(info, ids, findings))
        self._merger = ObservationMerger(self._take, self._may_reveal, MAX_COPY_DELAY_NS)
        self._versions = PartialViews()
        self._asking: dict[int, Request] = {}
        """Unprocessed requests by message id."""
        self._refusals: dict[int, Request | None] = {}
        """Refused requests of unprocessed refusals, by the refusal's message id."""

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        assert isinstance(row, JsonRow)
        stream = message.stream
        connection = self.context.connections.of(stream)
        self.context.note_dialect(message, row)
        if not valid:
            return
        if message.direction == "c2s":
            if message.name != "Hallo":
                self._asking[message.id] = connection.asks(message)
            self._merger.add(message, row, frame)
            return
        if connection.has_gap:
            self.context.resumed_ns = message.ts_ns
        connection.in_doubt = connection.has_gap = False
        connection.told_ns = message.ts_ns
        version = self._version(message, row, connection)
        is_answer = isinstance(version, RefusalKey) and version.asker == stream.id
        self._merger.add(message, row, frame, version, is_answer)

    def _version(self, message: Message, row: JsonRow, connection: ClientConnection) -> Hashable:
        """Return the key by which copies of a message are recognised; None for a message to one client."""
        name = message.name
        if name == "Willkommen":
            connection.player = message.fields["id"]
        elif _confirms(message):
            connection.confirmed()
        elif name in ("Fehler", "Serverantwort"):
            return self._refusal(message, connection)
        elif row.broadcast:
            connection.hears(message)
            return self._versions.of(message)
        return None

    def _refusal(self, message: Message, connection: ClientConnection) -> Hashable:
        """Return the key of a refusal, which the requesting client gets and, on some servers, all clients.

        A Serverantwort is about the client's own requests, also if it informs of a performed one.
        """
        asker = connection
        if message.name == "Fehler" and connection.waiting() is None:
            told = RefusalKey(message.fields["Meldung"], None)
            if self._merger.has(told, message):
                # A copy of an earlier message to other clients.
                return told
            asking = [other for other in self.context.connections.values() if other.waiting() is not None]
            asker = max(asking, key=lambda other: other.latest(), default=connection)
        self._refusals[message.id] = asker.refused()
        return RefusalKey(message.fields["Meldung"], asker.stream.id)

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        connection = self.context.connections.of(stream)
        if direction == "c2s":
            if self.context.game is not None and connection.player is not None:
                self.context.game.unread[connection.player] = TURNS_IN_DOUBT
            return
        connection.certain = False
        connection.in_doubt = True
        connection.has_gap = connection.has_gap or is_gap
        connection.doubt_ns = connection.told_ns
        self._merger.expect_no_more(stream.id)
        # The other clients were sent the missing messages at about the same time.
        since = connection.told_ns - MAX_COPY_DELAY_NS
        players = [other for other in self.context.connections.values() if other.player is not None]
        if all(other.doubt_ns is not None and other.doubt_ns >= since for other in players):
            self._doubt_counts()

    def _doubt_counts(self) -> None:
        """Reset all counts, as messages are missing that no other client was recorded to receive."""
        self._merger.finish()
        game = self.context.game
        if game is None:
            return
        game.certain = False
        for player in game.players.values():
            player.hand, player.cards = Hand(ROHSTOFFE, False), Hand(KARTEN, False)
            self.context.put_hand(player)
            self.context.put_cards(player)
        self.context.put_in(["resources", "cards"], "unknown")

    def closed(self, stream: Stream, ts_ns: int) -> None:
        self._merger.forget(stream.id)
        connection = self.context.connections.get(stream.id)
        if connection is None:
            return
        if connection.player is not None:
            # Process earlier messages before the connection is removed.
            self._merger.finish()
        del self.context.connections[stream.id]
        if connection.player is None:
            return
        known = self.context.players.get(connection.player)
        game = self.context.game
        if known is not None and not known.gone:
            data = {"player": known.id, "name": known.name, "reason": stream.ending}
            lobby.remove(self.context, known.id)
            self.context.emit("left", ts_ns, known.name, data, game.game if game is not None else None)
        if game is not None and all(
            connection.player not in game.players for connection in self.context.connections.values()
        ):
            self.context.abort(ts_ns, LOST)
            self.context.leave_state()
        if not self.context.connections:
            # The next client may meet a restarted server, which assigns these numbers to others.
            self._merger.clear()
            self.context.players.clear()

    def undecided(self) -> int | None:
        return self._merger.first_waiting()

    def finish(self, ts_ns: int) -> None:
        self._merger.finish()
        self.context.explain_result()

    def _may_reveal(self, observation: Observation) -> set[int]:
        """Return the streams on which a copy that hides nothing may still arrive."""
        fields = observation.fields
        owner = fields["Spieler"]["id"] if observation.name == "Statusupdate" else fields["Spieler"]
        # Both players see a stolen card.
        by_both = observation.name in ("Ertrag", "Kosten") and fields["Rohstoffe"] == 1
        return {
            connection.stream.id
            for connection in self.context.connections.values()
            if connection.certain
            and (connection.player == owner or (by_both and connection.player is not None))
        }

    def _take(self, observation: Observation) -> None:
        if observation.message.direction == "c2s":
            self._asked(observation)
        else:
            if self.context.game is None and observation.name in _OF_A_GAME:
                _met(self.context, observation)
            if observation.name in ("Fehler", "Serverantwort"):
                self._refused(observation)
            elif observation.name in _HANDLERS:
                _HANDLERS[observation.name](self.context, observation)
        if self.context.game is not None:
            observation.game_id = self.context.game.game.id

    def _asked(self, observation: Observation) -> None:
        """Process a request; the server does not repeat everything of it."""
        request = self._asking.pop(observation.message.id, None)
        number = self.context.connections.of(observation.message.stream).player
        game = self.context.game
        if request is None or game is None or number not in game.players:
            return
        player = game.players[number]
        request.observation, request.objection = (
            observation,
            check_request(observation, game, player, request.told_ns),
        )
        if observation.name == "Karten abgeben":
            player.discard = plain(observation.fields["Abgeben"])
        elif observation.name == "Seehandel":
            resources.claim(
                self.context,
                *(
                    Claim(observation, number, sign, plain(counts), "sea trade", firm=False)
                    for sign, counts in (
                        (-1, observation.fields["Angebot"]),
                        (1, observation.fields["Nachfrage"]),
                    )
                ),
            )

    def _refused(self, observation: Observation) -> None:
        request = self._refusals.pop(observation.messages[0].id, None)
        if _confirms(observation.message):
            return
        asked = request.message if request is not None else None
        number = self.context.connections.of(
            asked.stream if asked is not None else observation.message.stream
        ).player
        if asked is not None and self.context.game is not None:
            self.context.game.ledger.refuse(asked)
        lobby.refused(self.context, observation, number, asked)
        if request is not None and request.observation is not None and request.objection is not None:
            key, path, values = request.objection
            self.context.report_violation_of(
                request.observation, key, *path, request=request.message.name, **values
            )


def _started(context: CatanContext, observation: Observation) -> None:
    context.abort(observation.ts_ns, "another game began")
    context.leave_state()
    for connection in context.connections.values():
        # Earlier gaps no longer matter.
        connection.certain = not connection.in_doubt
    game = context.begin(observation.ts_ns, certain=True)
    karte = observation.fields["Karte"]
    board = game.board = Board.from_karte(karte)
    context.put_in(
        {
            "fields": [
                {
                    "at": list(place),
                    "type": typ,
                    **({"number": board.numbers[place]} if place in board.numbers else {}),
                }
                for place, typ in board.fields.items()
            ],
            "harbours": [
                {"at": [list(place) for place in edge], "type": typ} for edge, typ in board.harbours.items()
            ],
            "slant": board.slant,
        },
        "board",
    )
    if "Räuber" in karte:
        game.robber = at(karte["Räuber"])
        context.put_in(list(game.robber), "robber")
    for told in karte.get("Gebäude", ()):
        where = spot(map(at, told["Ort"]))
        owner, typ = told["Eigentümer"], told["Typ"]
        game.buildings[where] = Building(owner, typ)
        context.put_in({"owner": owner, "type": typ}, "buildings", place_text(where))
    context.emit_observed(observation, "started", None, {"map": karte})


def _met(context: CatanContext, observation: Observation) -> None:
    if any(not connection.certain for connection in context.connections.values()):
        context.begin(observation.ts_ns, certain=False)


def _ended(context: CatanContext, observation: Observation) -> None:
    """Process the end of the game; some servers continue, and some repeat it."""
    winner: int = observation.fields["Sieger" if "Sieger" in observation.fields else "Spieler"]
    game = context.game
    if game is None or game.ended:
        return
    if winner < 0:
        context.abort(observation.ts_ns, observation.fields.get("Nachricht", LOST)[:200])
        context.emit_observed(observation, "ended", None, {"winner": None, "name": None})
        return
    game.ended = True
    game.game.ended_ns = observation.ts_ns
    game.winner, game.ending = winner, observation
    context.put_in(winner, "winner")
    points = context.count_points()
    context.emit_observed(observation, "ended", context.player(winner), {"winner": winner, "points": points})


def _confirms(message: Message) -> bool:
    """Return True if a message confirms a request; some servers do so in the message for refusals."""
    return message.name == "OK" or (
        message.name == "Serverantwort" and message.fields["Meldung"].casefold() == "ok"
    )


_HANDLERS: dict[str, Callable[[CatanContext, Observation], None]] = {
    "Hallo": lobby.hallo,
    "Willkommen": lobby.willkommen,
    "Statusupdate": lobby.statusupdate,
    "Chatnachricht": lobby.chat,
    "Spiel gestartet": _started,
    "Spiel beendet": _ended,
    "Würfelwurf": turns.rolled,
    "Ertrag": resources.ertrag,
    "Kosten": resources.kosten,
    "Räuber versetzt": turns.robber,
    "Bauvorgang": building.bauvorgang,
    "Längste Handelsstraße": building.longest,
    "Größte Rittermacht": cards.army,
    "Entwicklungskarte gekauft": cards.bought,
    "Ritter ausspielen": cards.ritter,
    "Straßenbaukarte ausspielen": cards.straßenbau,
    "Monopol": cards.monopol,
    "Erfindung": cards.erfindung,
    "Handelsangebot": resources.offered,
    "Handelsangebot angenommen": resources.accepted,
    "Handelsangebot abgebrochen": resources.cancelled,
    "Handel ausgeführt": resources.done,
}
"""Handlers of the server's messages by name, except for refusals."""
