"""The registered players, by name and conversation (Anmelden)."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection

from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.maexchen.context import Rounds
from kiebitz.dissectors.protocols.maexchen.questions import Seat

MAX_NAME_LENGTH = 20
"""Maximum length in UTF-16 units, as the newest server counts them."""

_NOT_IN_A_NAME = re.compile(r"[\s,;:]")

MAX_ABSENT = 1000
"""Maximum number of players without an open conversation; the least recently seen one is evicted."""

_MAX_PER_CONVERSATION = 64
"""Maximum number of players on one conversation."""


class Registration:
    """The players of a table. A name belongs to the conversation that registered it last."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds
        self._owner: dict[str, Seat] = {}
        self._absent: OrderedDict[str, None] = OrderedDict()
        """Players without an open conversation, the most recently seen last."""
        self._with_commas: set[str] = set()
        self._gone: OrderedDict[str, None] = OrderedDict()
        """Players who are no longer registered; servers still list them with the points."""

    def registered(self, message: Message, seat: Seat) -> None:
        """Handle REGISTERED: the oldest pending request was granted."""
        name: str | None = None
        spectator = False
        seat.refused = seat.gone = False
        if seat.registering:
            request, row = seat.registering.popleft()
            # Noted now, not when it was sent: a rejected request has its own diagnostic.
            self._rounds.note_dialect(request, row)
            name = request.fields["name"]
            spectator = request.name == "REGISTER_SPECTATOR"
        elif seat.nameless:
            name = "undefined"
        if name is not None:
            self.assign(seat, name)
            self._rounds.set_state({"address": seat.stream.client, "spectator": spectator}, "players", name)
            if "," in name:
                self._with_commas.add(name)
        self._rounds.emit_of(message, "registered", name, {"name": name}, None)

    def rejected(self, message: Message, seat: Seat) -> None:
        """Handle REJECTED; report a name that newer servers do not accept."""
        request = seat.registering.popleft()[0] if seat.registering else None
        seat.refused = True
        name: str | None = request.fields["name"] if request is not None else None
        reason: str | None = message.fields.get("reason")
        self._rounds.emit_of(message, "rejected", name, {"name": name, "reason": reason}, None)
        if request is None or name is None:
            return
        if reason == "INVALID_NAME":
            start = len(request.name) + 1
            offset, length, problem = _name_violation(name)
            self._rounds.report_violation(
                request, "invalid-name", at=(start + offset, length), problem=problem
            )
        else:
            self._rounds.report_violation(request, "name-taken")

    def unregistered(self, message: Message, seat: Seat) -> str | None:
        """Handle UNREGISTERED; return the player's name, None if ambiguous."""
        name = seat.name
        if name is not None:
            self._forget(name)
            self._gone[name] = None
            if len(self._gone) > MAX_ABSENT:
                self._gone.popitem(last=False)
        seat.gone = not seat.names
        return name

    def restart(self, newcomers: Collection[int]) -> None:
        """Keep only the players on these streams, as the server was restarted."""
        for name, seat in list(self._owner.items()):
            if seat.stream.id not in newcomers:
                self._forget(name)
        for name in list(self._absent):
            self._forget(name)
        self._gone.clear()

    def _forget(self, name: str) -> None:
        seat = self._owner.pop(name, None)
        if seat is not None and name in seat.names:
            seat.names.remove(name)
        self._absent.pop(name, None)
        self._with_commas.discard(name)
        if name in self._rounds.state.get("players", {}):
            self._rounds.set_state(None, "players", name)

    def assign(self, seat: Seat, name: str) -> None:
        """Assign a player to a seat."""
        before = self._owner.get(name)
        if before is not None and before is not seat and name in before.names:
            before.names.remove(name)
        if name not in seat.names:
            seat.names.append(name)
        self._owner[name] = seat
        self._absent.pop(name, None)
        self._gone.pop(name, None)
        if len(seat.names) > _MAX_PER_CONVERSATION:
            self._note_absent(seat.names.pop(0))

    def disconnect(self, seat: Seat) -> None:
        """Handle the end of a conversation, whose players may return."""
        for name in seat.names:
            self._note_absent(name)

    def _note_absent(self, name: str) -> None:
        """Note a player without an open conversation."""
        self._absent[name] = None
        self._absent.move_to_end(name)
        if len(self._absent) > MAX_ABSENT:
            forgotten = next(iter(self._absent))
            self._forget(forgotten)
            if forgotten in self._rounds.state.get("scores", {}):
                self._rounds.set_state(None, "scores", forgotten)

    def assign_by_turn(self, name: str) -> None:
        """Assign a player who has just moved to the only unnamed conversation that did so, if any."""
        if name in self._owner:
            return
        nameless = [
            seat
            for seat in self._rounds.seats.values()
            if not seat.names
            and (question := seat.open.get("turn")) is not None
            and not question.over
            and question.answer is not None
        ]
        if len(nameless) == 1:
            self.assign(nameless[0], name)

    def seen(self, name: str) -> None:
        """Add a player whose registration is not in the capture."""
        if name in self._absent:
            self._absent.move_to_end(name)
        elif name not in self._owner and name not in self._gone:
            self._rounds.set_state({}, "players", name)
            self._note_absent(name)

    def seat_of(self, name: str) -> Seat | None:
        """Return a player's seat, None if no conversation is known."""
        return self._owner.get(name)

    def names_at(self, client: str) -> list[str]:
        """Return the players at an address, from an earlier conversation."""
        return [
            name
            for name in self._absent
            if (seat := self._owner.get(name)) is not None and seat.stream.client == client
        ]

    def split(self, names: list[str]) -> list[str]:
        """Join the parts of names that contain commas (old servers allow them)."""
        if not self._with_commas or len(names) < 2:
            return names
        whole: list[str] = []
        at = 0
        while at < len(names):
            end = next(
                (
                    end
                    for end in range(len(names), at + 1, -1)
                    if ",".join(names[at:end]) in self._with_commas
                ),
                at + 1,
            )
            whole.append(",".join(names[at:end]))
            at = end
        return whole


def _name_violation(name: str) -> tuple[int, int, str]:
    """Return byte offset, length and description of the error in a name."""
    wrong = _NOT_IN_A_NAME.search(name)
    if not name:
        return 0, 0, "it is empty"
    if wrong is not None:
        return len(name[: wrong.start()].encode()), len(wrong[0].encode()), f"it contains {wrong[0]!r}"
    units = len(name.encode("utf-16-le")) // 2
    if units > MAX_NAME_LENGTH:
        fits = name.encode("utf-16-le")[: 2 * MAX_NAME_LENGTH].decode("utf-16-le", "ignore")
        start = len(fits.encode())
        return start, len(name.encode()) - start, f"it is {units} characters long"
    return 0, len(name.encode()), "it breaks no known rule for names"
