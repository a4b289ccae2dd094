"""What a relay holds, as those see it who decide by hand; their decisions, carried out by the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kiebitz.dissectors.editing.assignment_parser import AssignmentError, parse_assignments, split_name
from kiebitz.dissectors.editing.message_encoding import edited, made
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.services.alteration.applying import speaks
from kiebitz.services.alteration.control_server import HeldMessage
from kiebitz.services.alteration.engine import Engine
from kiebitz.services.alteration.pending_decisions import Ticket


class ByHand:
    """The messages that `engine` holds, as a `control_server.Holding`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asking = engine.asking
        self.on_change: Callable[[], None] = lambda: None
        self._asking.on_held = self._changed

    def held(self) -> Sequence[HeldMessage]:
        """All that wait, oldest first."""
        return [self._shown(ticket) for ticket in self._asking.held]

    def let_go(self, number: int) -> None:
        """Let a message go on as it is. Raises KeyError if it does not wait any more, as the others do."""
        self._asking.let_go(number)

    def drop(self, number: int) -> None:
        """Let it go nowhere."""
        self._asking.drop(number)

    def change(self, number: int, assignments: str) -> None:
        """Let it go with other values, as in `dice=2,1`. Raises AssignmentError."""
        ticket = self._asking.ticket(number)
        dissector, copy = speaks(ticket.passage), ticket.copy
        data = edited(dissector, copy.data, copy.direction, parse_assignments(assignments))
        self._asking.replace(number, data)

    def answer(self, number: int, text: str) -> None:
        """Send its sender a message, as in `NAME field=value`, for the one it was meant for.

        Raises AssignmentError.
        """
        ticket = self._asking.ticket(number)
        name, rest = split_name(text)
        if not name:
            raise AssignmentError("write the answer's name first: NAME FIELD=VALUE …")
        back = OPPOSITE[ticket.copy.direction]
        direction, data = made(speaks(ticket.passage), name, (back,), parse_assignments(rest))
        self._engine.put_in(ticket.passage, direction, data, ticket.rule.text)

    def let_all_go(self) -> None:
        """Let everything go on."""
        for ticket in self._asking.held:
            self._asking.let_go(ticket.number)

    def drop_all(self) -> None:
        """Let nothing of it go anywhere."""
        for ticket in self._asking.held:
            self._asking.drop(ticket.number)

    def _changed(self) -> None:
        self.on_change()

    def _shown(self, ticket: Ticket) -> HeldMessage:
        stream, copy = ticket.passage.stream, ticket.copy
        message, dissector = copy.message, ticket.passage.server.dissector
        name = message.name if message is not None else UNREADABLE
        patience = dissector.conformance.timeouts.get(name) if dissector is not None else None
        return HeldMessage(
            ticket.number,
            stream.id,
            copy.direction,
            stream.client,
            stream.server,
            self._engine.name_of(stream),
            stream.protocol or "",
            name,
            message.fields if message is not None else {},
            ticket.slot.sent_ns,
            ticket.rule.text,
            copy.data,
            round(patience * 1e9) if patience is not None else None,
        )
