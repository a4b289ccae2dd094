"""The registered players, by name and connection (Anmelden)."""

from __future__ import annotations

import re
from collections.abc import Collection

from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.maexchen.context import MaexchenContext
from kiebitz.dissectors.protocols.maexchen.round_state import ClientConnection

MAX_NAME_LENGTH = 20
"""Maximum length in UTF-16 units, as the newest server counts them."""

_NOT_IN_A_NAME = re.compile(r"[\s,;:]")

MAX_ABSENT = 1000
"""Maximum number of players without an open connection; the least recently seen one is evicted."""

_MAX_PER_CONNECTION = 64
"""Maximum number of players on one connection."""


def registered(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    """Handle REGISTERED: the oldest pending request was granted."""
    name: str | None = None
    spectator = False
    connection.refused = connection.gone = False
    if connection.registering:
        request, row = connection.registering.popleft()
        # Noted now, not when it was sent: a rejected request has its own diagnostic.
        context.note_dialect(request, row)
        name = request.fields["name"]
        spectator = request.name == "REGISTER_SPECTATOR"
    elif connection.nameless:
        name = "undefined"
    if name is not None:
        assign(context, connection, name)
        context.set_state({"address": connection.stream.client, "spectator": spectator}, "players", name)
        if "," in name:
            context.with_commas.add(name)
    context.emit_of(message, "registered", name, {"name": name}, None)


def rejected(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    """Handle REJECTED; report a name that newer servers do not accept."""
    request = connection.registering.popleft()[0] if connection.registering else None
    connection.refused = True
    name: str | None = request.fields["name"] if request is not None else None
    reason: str | None = message.fields.get("reason")
    context.emit_of(message, "rejected", name, {"name": name, "reason": reason}, None)
    if request is None or name is None:
        return
    if reason == "INVALID_NAME":
        start = len(request.name) + 1
        offset, length, problem = _name_violation(name)
        context.report_violation(request, "invalid-name", at=(start + offset, length), problem=problem)
    else:
        context.report_violation(request, "name-taken")


def unregistered(context: MaexchenContext, message: Message, connection: ClientConnection) -> str | None:
    """Handle UNREGISTERED; return the player's name, None if ambiguous."""
    name = connection.name
    if name is not None:
        _forget(context, name)
        context.gone[name] = None
        if len(context.gone) > MAX_ABSENT:
            context.gone.popitem(last=False)
    connection.gone = not connection.names
    return name


def restart(context: MaexchenContext, newcomers: Collection[int]) -> None:
    """Keep only the players on these streams, as the server was restarted."""
    for name, connection in list(context.owners.items()):
        if connection.stream.id not in newcomers:
            _forget(context, name)
    for name in list(context.absent):
        _forget(context, name)
    context.gone.clear()


def _forget(context: MaexchenContext, name: str) -> None:
    connection = context.owners.pop(name, None)
    if connection is not None and name in connection.names:
        connection.names.remove(name)
    context.absent.pop(name, None)
    context.with_commas.discard(name)
    if name in context.state.get("players", {}):
        context.set_state(None, "players", name)


def assign(context: MaexchenContext, connection: ClientConnection, name: str) -> None:
    """Assign a player to a connection."""
    before = context.owners.get(name)
    if before is not None and before is not connection and name in before.names:
        before.names.remove(name)
    if name not in connection.names:
        connection.names.append(name)
    context.owners[name] = connection
    context.absent.pop(name, None)
    context.gone.pop(name, None)
    if len(connection.names) > _MAX_PER_CONNECTION:
        _note_absent(context, connection.names.pop(0))


def disconnect(context: MaexchenContext, connection: ClientConnection) -> None:
    """Handle the end of a connection, whose players may return."""
    for name in connection.names:
        _note_absent(context, name)


def _note_absent(context: MaexchenContext, name: str) -> None:
    """Note a player without an open connection."""
    context.absent[name] = None
    context.absent.move_to_end(name)
    if len(context.absent) > MAX_ABSENT:
        forgotten = next(iter(context.absent))
        _forget(context, forgotten)
        if forgotten in context.state.get("scores", {}):
            context.set_state(None, "scores", forgotten)


def assign_by_turn(context: MaexchenContext, name: str) -> None:
    """Assign a player who has just moved to the only unnamed connection that did so, if any."""
    if name in context.owners:
        return
    nameless = [
        connection
        for connection in context.connections.values()
        if not connection.names
        and (question := connection.open.get("turn")) is not None
        and not question.over
        and question.answer is not None
    ]
    if len(nameless) == 1:
        assign(context, nameless[0], name)


def seen(context: MaexchenContext, name: str) -> None:
    """Add a player whose registration is not in the capture."""
    if name in context.absent:
        context.absent.move_to_end(name)
    elif name not in context.owners and name not in context.gone:
        context.set_state({}, "players", name)
        _note_absent(context, name)


def connection_of(context: MaexchenContext, name: str) -> ClientConnection | None:
    """Return a player's connection, None if it is not known."""
    return context.owners.get(name)


def names_at(context: MaexchenContext, client: str) -> list[str]:
    """Return the players at an address, from an earlier connection."""
    return [
        name
        for name in context.absent
        if (connection := context.owners.get(name)) is not None and connection.stream.client == client
    ]


def split(context: MaexchenContext, names: list[str]) -> list[str]:
    """Join the parts of names that contain commas (old servers allow them)."""
    if not context.with_commas or len(names) < 2:
        return names
    whole: list[str] = []
    at = 0
    while at < len(names):
        end = next(
            (end for end in range(len(names), at + 1, -1) if ",".join(names[at:end]) in context.with_commas),
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
