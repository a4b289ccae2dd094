"""Held messages as viewers see them; their decisions, carried out by the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kiebitz.dissectors.editing.assignment_parser import AssignmentError, parse_assignments, split_name
from kiebitz.dissectors.editing.message_encoding import edit_message, encode_new
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.services.alteration.applying import speaks
from kiebitz.services.alteration.control_server import Act, HeldMessage
from kiebitz.services.alteration.engine import Engine
from kiebitz.services.alteration.pending_decisions import Ticket


class ManualDecisions:
    """The messages that `engine` holds, as a `control_server.Holding`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asking = engine.asking
        self.on_change: Callable[[], None] = lambda: None
        self._asking.on_held = self._changed

    def held(self) -> Sequence[HeldMessage]:
        """Return all held messages, oldest first."""
        return [self._shown(ticket) for ticket in self._asking.held]

    def act(self, do: Act, number: int, text: str) -> None:
        """Carry out a decision.

        Raises KeyError if the message is not held any more, AssignmentError if `text` does not fit.
        """
        match do:
            case "let-go":
                self._asking.let_go(number)
            case "drop":
                self._asking.drop(number)
            case "change":
                ticket = self._asking.ticket(number)
                dissector, copy = speaks(ticket.passage), ticket.copy
                data = edit_message(dissector, copy.data, copy.direction, parse_assignments(text))
                self._asking.replace(number, data)
            case "answer":
                self._answer(self._asking.ticket(number), text)
            case "let-all-go" | "drop-all":
                decide = self._asking.drop if do == "drop-all" else self._asking.let_go
                for ticket in self._asking.held:
                    decide(ticket.number)

    def _answer(self, ticket: Ticket, text: str) -> None:
        """Send the sender a message, as in `NAME field=value`; its own stays held."""
        name, rest = split_name(text)
        if not name:
            raise AssignmentError("write the answer's name first: NAME FIELD=VALUE …")
        back = OPPOSITE[ticket.copy.direction]
        direction, data = encode_new(speaks(ticket.passage), name, (back,), parse_assignments(rest))
        self._engine.put_in(ticket.passage, direction, data, ticket.rule.text)

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
