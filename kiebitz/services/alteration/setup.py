"""Setup of interception in a relay: the engine, its hooks, and the control socket for held messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from kiebitz.dissectors.editing.assignment_parser import AssignmentError, parse_assignments, split_name
from kiebitz.dissectors.editing.message_encoding import edit_message, encode_new
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.proxy.forwarder import Companion
from kiebitz.proxy.relay.endpoints import Notice
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.alteration.control_server import Act, ControlServer, HeldMessage
from kiebitz.services.alteration.engine import Engine
from kiebitz.services.alteration.hook_process import HookProcess
from kiebitz.services.alteration.pending_decisions import Ticket
from kiebitz.services.alteration.rule_applier import known_dissector
from kiebitz.services.alteration.rules import Hold, Rule, Script
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.standard_streams import warn


class Alteration(NamedTuple):
    """An engine, and the companions that run with the relay."""

    engine: Engine
    beside: Sequence[Companion]


@contextmanager
def alteration(
    rules: Sequence[Rule],
    *,
    decode_as: tuple[str, ...],
    on_notice: Notice,
    is_forced: bool,
    drops_held: bool,
    folder: Path,
    session: Callable[[], str],
) -> Iterator[Alteration]:
    """Set up interception; `folder` is that of the recording's journal, `session` returns the session's name.

    Raises HookError and ControlError.
    """
    with ExitStack() as stack:
        hooks: dict[str, HookProcess] = {}
        for rule in rules:
            if isinstance(rule, Script) and rule.path not in hooks:
                hook = HookProcess(rule.path, tell=warn, is_forced=is_forced, decode_as=decode_as)
                stack.callback(hook.discard)
                hook.start()
                hooks[rule.path] = hook
        engine = Engine(
            rules,
            started_ns=now_ns(),
            on_notice=on_notice,
            decode_as=parse_decode_as(decode_as),
            hooks=hooks,
            drops_held=drops_held,
        )
        beside: list[Companion] = [*hooks.values()]
        if any(isinstance(rule, Hold) for rule in rules):
            hands = ControlServer(_ManualDecisions(engine), folder, session)
            stack.callback(hands.close)
            beside.append(hands)
        yield Alteration(engine, beside)


class _ManualDecisions:
    """The messages held by `engine`, as a `control_server.Holding`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._broker = engine.broker
        self.on_change: Callable[[], None] = lambda: None
        self._broker.on_held = lambda: self.on_change()

    def held(self) -> Sequence[HeldMessage]:
        """Return all held messages, oldest first."""
        return [self._shown(ticket) for ticket in self._broker.held]

    def act(self, do: Act, number: int, text: str) -> None:
        """Carry out a decision.

        Raises KeyError if the message is not held any more, AssignmentError if `text` does not fit.
        """
        match do:
            case "let-go":
                self._broker.let_go(number)
            case "drop":
                self._broker.drop(number)
            case "change":
                ticket = self._broker.ticket(number)
                dissector, copy = known_dissector(ticket.relayed), ticket.copy
                data = edit_message(dissector, copy.data, copy.direction, parse_assignments(text))
                self._broker.replace(number, data)
            case "answer":
                self._answer(self._broker.ticket(number), text)
            case "let-all-go" | "drop-all":
                decide = self._broker.drop if do == "drop-all" else self._broker.let_go
                for ticket in self._broker.held:
                    decide(ticket.number)

    def _answer(self, ticket: Ticket, text: str) -> None:
        """Send the sender a message, written as `NAME field=value`; its own remains held."""
        name, rest = split_name(text)
        if not name:
            raise AssignmentError("write the answer's name first: NAME FIELD=VALUE …")
        back = OPPOSITE[ticket.copy.direction]
        direction, data = encode_new(known_dissector(ticket.relayed), name, (back,), parse_assignments(rest))
        self._engine.insert(ticket.relayed, direction, data, ticket.rule.text)

    def _shown(self, ticket: Ticket) -> HeldMessage:
        stream, copy = ticket.relayed.stream, ticket.copy
        message, dissector = copy.message, ticket.relayed.server.dissector
        name = message.name if message is not None else UNREADABLE
        patience = dissector.conformance.timeouts.get(name) if dissector is not None else None
        return HeldMessage(
            ticket.number,
            stream.id,
            copy.direction,
            stream.client,
            stream.server,
            stream.player,
            stream.protocol or "",
            name,
            message.fields if message is not None else {},
            ticket.slot.sent_ns,
            ticket.rule.text,
            copy.data,
            round(patience * 1e9) if patience is not None else None,
        )
