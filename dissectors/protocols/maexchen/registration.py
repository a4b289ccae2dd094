"""The registered players, by name and connection (Anmelden)."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection

from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.maexchen.context import MaexchenContext
from kiebitz.dissectors.protocols.maexchen.questions import ClientConnection

MAX_NAME_LENGTH = 20
"""Maximum length in UTF-16 units, as the newest server counts them."""

_NOT_IN_A_NAME = re.compile(r"[\s,;:]")

MAX_ABSENT = 1000
"""Maximum number of players without an open connection; the least recently seen one is evicted."""

_MAX_PER_CONNECTION = 64
"""Maximum number of players on one connection."""


class Registration:
    """The players of a table. A name belongs to the connection that registered it last."""

    def __init__(self, context: MaexchenContext) -> None:
        self._context = context
        self._owner: dict[str, ClientConnection] = {}
        self._absent: OrderedDict[str, None] = OrderedDict()
        """Players without an open connection, the most recently seen last."""
        self._with_commas: set[str] = set()
        self._gone: OrderedDict[str, None] = OrderedDict()
        """Players who are no longer registered; servers still list them with the points."""

    def registered(self, message: Message, connection: ClientConnection) -> None:
        """Handle REGISTERED: the oldest pending request was granted."""
        name: str | None = None
        spectator = False
        connection.refused = connection.gone = False
        if connection.registering:
            request, row = connection.registering.popleft()
            # Noted now, not when it was sent: a rejected request has its own diagnostic.
            self._context.note_dialect(request, row)
            name = request.fields["name"]
            spectator = request.name == "REGISTER_SPECTATOR"
        elif connection.nameless:
            name = "undefined"
        if name is not None:
            self.assign(connection, name)
            self._context.set_state(
                {"address": connection.stream.client, "spectator": spectator}, "players", name
            )
            if "," in name:
                self._with_commas.add(name)
        self._context.emit_of(message, "registered", name, {"name": name}, None)

    def rejected(self, message: Message, connection: ClientConnection) -> None:
        """Handle REJECTED; report a name that newer servers do not accept."""
        request = connection.registering.popleft()[0] if connection.registering else None
        connection.refused = True
        name: str | None = request.fields["name"] if request is not None else None
        reason: str | None = message.fields.get("reason")
        self._context.emit_of(message, "rejected", name, {"name": name, "reason": reason}, None)
        if request is None or name is None:
            return
        if reason == "INVALID_NAME":
            start = len(request.name) + 1
            offset, length, problem = _name_violation(name)
            self._context.report_violation(
                request, "invalid-name", at=(start + offset, length), problem=problem
            )
        else:
            self._context.report_violation(request, "name-taken")

    def unregistered(self, message: Message, connection: ClientConnection) -> str | None:
        """Handle UNREGISTERED; return the player's name, None if ambiguous."""
        name = connection.name
        if name is not None:
            self._forget(name)
            self._gone[name] = None
            if len(self._gone) > MAX_ABSENT:
                self._gone.popitem(last=False)
        connection.gone = not connection.names
        return name

    def restart(self, newcomers: Collection[int]) -> None:
        """Keep only the players on these streams, as the server was restarted."""
        for name, connection in list(self._owner.items()):
            if connection.stream.id not in newcomers:
                self._forget(name)
        for name in list(self._absent):
            self._forget(name)
        self._gone.clear()

    def _forget(self, name: str) -> None:
        connection = self._owner.pop(name, None)
        if connection is not None and name in connection.names:
            connection.names.remove(name)
        self._absent.pop(name, None)
        self._with_commas.discard(name)
        if name in self._context.state.get("players", {}):
            self._context.set_state(None, "players", name)

    def assign(self, connection: ClientConnection, name: str) -> None:
        """Assign a player to a connection."""
        before = self._owner.get(name)
        if before is not None and before is not connection and name in before.names:
            before.names.remove(name)
        if name not in connection.names:
            connection.names.append(name)
        self._owner[name] = connection
        self._absent.pop(name, None)
        self._gone.pop(name, None)
        if len(connection.names) > _MAX_PER_CONNECTION:
            self._note_absent(connection.names.pop(0))

    def disconnect(self, connection: ClientConnection) -> None:
        """Handle the end of a connection, whose players may return."""
        for name in connection.names:
            self._note_absent(name)

    def _note_absent(self, name: str) -> None:
        """Note a player without an open connection."""
        self._absent[name] = None
        self._absent.move_to_end(name)
        if len(self._absent) > MAX_ABSENT:
            forgotten = next(iter(self._absent))
            self._forget(forgotten)
            if forgotten in self._context.state.get("scores", {}):
                self._context.set_state(None, "scores", forgotten)

    def assign_by_turn(self, name: str) -> None:
        """Assign a player who has just moved to the only unnamed connection that did so, if any."""
        if name in self._owner:
            return
        nameless = [
            connection
            for connection in self._context.connections.values()
            if not connection.names
            and (question := connection.open.get("turn")) is not None
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
            self._context.set_state({}, "players", name)
            self._note_absent(name)

    def connection_of(self, name: str) -> ClientConnection | None:
        """Return a player's connection, None if it is not known."""
        return self._owner.get(name)

    def names_at(self, client: str) -> list[str]:
        """Return the players at an address, from an earlier connection."""
        return [
            name
            for name in self._absent
            if (connection := self._owner.get(name)) is not None and connection.stream.client == client
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
