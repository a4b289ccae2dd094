"""The context of the Schafkopf table: rounds and connections, and which message belongs to which round.

The server sends each client its seat (`!ID`), then all names (`!MITSPIELER`). The seats advance by one from
round to round, so the names by seat distinguish consecutive rounds. A fifth player pauses sometimes, and
receives nothing of that round.
"""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.connections import Connections
from kiebitz.dissectors.game.context import GameContext, label
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.model import Blame, Findings, Ids, Message, TableInfo
from kiebitz.dissectors.protocols.schafkopf.cards import SEATS, Play
from kiebitz.dissectors.protocols.schafkopf.codec import card_place
from kiebitz.dissectors.protocols.schafkopf.grammar import GRAMMAR
from kiebitz.dissectors.protocols.schafkopf.round_state import ClientConnection, Round

_MAX_LAG = 4
"""Maximum number of rounds by which a connection may lag behind the others."""

_MAX_WORDS_LENGTH = 200

_JOIN_NS = 30_000_000_000
"""Time within which all clients of a round are informed of its beginning."""


class SchafkopfContext(GameContext):
    """A Schafkopf server's rounds and connections, without the meaning of its messages."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings, GRAMMAR.rules)
        self._latest: list[Round] = []
        """The latest rounds, the newest last."""
        self._count = 0
        self.connections = Connections(ClientConnection)

    # Rounds.

    def enter(self, connection: ClientConnection, names: list[str] | None, ts_ns: int) -> Round:
        """Return the round of a client's seat and names, which may be a new one."""
        known = connection.round
        after = self._latest.index(known) + 1 if known in self._latest else 0
        seat = connection.id
        connection.id = None
        found = None
        for candidate in self._latest[after:]:
            taken_by = candidate.taken.get(seat) if seat is not None else None
            if (
                not candidate.ended
                and (names is None or candidate.names in (None, names))
                and taken_by in (None, connection.stream.id)
                and ts_ns - candidate.game.started_ns < _JOIN_NS
            ):
                found = candidate
                break
        if found is None:
            found = self._begin(ts_ns, certain=names is not None or seat is not None)
        connection.round = found
        connection.certain_round = names is not None or seat is not None
        connection.step = 0
        connection.tricks = 0
        connection.lead_due = False
        connection.seat = None
        connection.dran = None
        if names is not None and found.names is None:
            self.name(found, names)
        self.sit(connection, seat)
        return found

    def playing(self, connection: ClientConnection, ts_ns: int) -> Round:
        """Return the round of a message.

        If the round's beginning was not seen, that is the newest one, or a new one.
        """
        if connection.id is not None:
            return self.enter(connection, None, ts_ns)
        if connection.round is None:
            latest = self._latest[-1] if self._latest and not self._latest[-1].ended else None
            connection.round = latest or self._begin(ts_ns, certain=False)
            connection.certain_round = False
        return connection.round

    def _begin(self, ts_ns: int, certain: bool) -> Round:
        self._count += 1
        opened = self.open_part(f"round {self._count}", ts_ns)
        started = Round(*opened, number=self._count, names=None, play=Play(certain))
        self._latest.append(started)
        kept = self._latest[-_MAX_LAG:]
        for older in self._latest[:-1]:
            if older.ended or older not in kept:
                older.remove()
        self._latest = kept
        started.set_state(self._count, "round")
        started.advance("dealing")
        started.set_state(["names", "player", "partner"], "unknown")
        return started

    def name(self, played: Round, names: list[str]) -> None:
        """Set the names by seat."""
        before = [played.who(seat) for seat in range(SEATS)]
        played.names = names
        now = [played.who(seat) for seat in range(SEATS)]
        played.set_state(now, "seats")
        played.mark_known("names")
        # The state of a player was stored by seat, and is stored by name from now on.
        part = played.state
        for seat, name in zip(before, now, strict=True):
            if part.get("turn") == seat:
                played.set_state(name, "turn")
            for what, value in dict(part.get("private", {}).get(seat, {})).items():
                played.set_state(value, "private", str(name), what)
            played.set_state(None, "private", str(seat))
        for connection in self.connections.values():
            if connection.round is played:
                self.sit(connection, connection.seat)

    def sit(self, connection: ClientConnection, seat: int | None) -> None:
        """Set a client's seat; from now on the client has the name that the server uses."""
        played = connection.round
        if seat is None or played is None:
            return
        connection.seat = seat
        played.taken[seat] = connection.stream.id
        if played.names is not None:
            name = label(played.names[seat])
            if connection.name not in (None, name):
                self.set_state(None, "players", str(connection.name))
            connection.name = name
            self.set_state(True, "players", name, "here")

    # Broadcasts: the first copy makes an event, the others must be equal.

    def is_repeated(self, message: Message, connection: ClientConnection, played: Round) -> bool:
        """Return True if a round has this message already; report another content of it."""
        told = played.broadcasts.get(message.name)
        if told is None:
            return False
        known, event_id = told
        if known == message.fields:
            message.event_id = event_id
        elif connection.certain_round:
            self.report_violation(message, "told-otherwise", name=message.name, known=_in_words(known))
        return True

    def emit_repeated(
        self, message: Message, played: Round, kind: str, actor: str | None, data: dict[str, Any]
    ) -> None:
        """Report the event of a message that is sent to each client once in a round."""
        event = self.emit_of(message, kind, actor, data, played.game)
        played.broadcasts[message.name] = (message.fields, event.id)

    # Cards.

    def is_impossible(self, message: Message, played: Round) -> bool:
        """Report a MODEL with a card twice; return True if it is one."""
        seen: set[str] = set()
        for field in ("spielerhand", "tisch", "letzter_stich"):
            for place, card in enumerate(message.fields[field]):
                if card is not None and card in seen:
                    self.report_card_violation(message, played, "card-twice", field, place, card=card)
                    return True
                if card is not None:
                    seen.add(card)
        return False

    def report_card_violation(
        self,
        message: Message,
        played: Round,
        key: str,
        field: str,
        place: int,
        /,
        blame: Blame | None = None,
        **values: Any,
    ) -> None:
        """Report that a MODEL breaks a rule at one of its cards: the `place` of a `field`."""
        if played.contested:
            return
        if message.direction == "s2c":
            # The same cards are sent to several clients, and again with the next card.
            text = self.rules[key].text.format_map(values)
            if text in played.objections:
                return
            played.objections.add(text)
        at = card_place(message.direction, message.fields, message.length, field, place)
        self.report_violation(message, key, at=at, blame=blame, **values)

    def seat_by_turn(self, connection: ClientConnection) -> None:
        """Infer an unknown seat from a question: the client asked has the turn."""
        if connection.seat is None and connection.dran is not None:
            self.sit(connection, connection.dran)


def cards_of(message: Message, field: str) -> list[str]:
    """Return the known cards in a field of a message."""
    return [card for card in message.fields[field] if card is not None]


def _in_words(fields: Fields) -> str:
    values = (value if isinstance(value, list) else [value] for value in fields.values())
    return shortened(" ".join(str(each) for value in values for each in value), _MAX_WORDS_LENGTH)
