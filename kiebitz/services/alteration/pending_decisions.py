"""Messages that wait for the decision of a viewer or a hook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kiebitz.dissectors.model import Direction, Stream
from kiebitz.services.alteration.delivery_queue import Copy, RelayedStream, Slot
from kiebitz.services.alteration.hook_process import HookProcess
from kiebitz.services.alteration.hook_protocol import Outcome
from kiebitz.services.alteration.rule_applier import RuleApplier, known_dissector
from kiebitz.services.alteration.rules import Hold, Script


class Ticket(msgspec.Struct, eq=False):
    """A message that waits for a decision."""

    number: int
    rule: Hold | Script
    relayed: RelayedStream
    slot: Slot
    copy: Copy

    @property
    def is_held(self) -> bool:
        """True if it is held for a manual decision."""
        return isinstance(self.rule, Hold)


class DecisionBroker:
    """Requests decisions about messages and carries them out.

    `wake` is called with the direction of a stream in which a message need no longer wait. With `drops_held`
    messages held at the end are dropped. `applier` is set after construction.
    """

    applier: RuleApplier

    def __init__(
        self,
        hooks: Mapping[str, HookProcess],
        wake: Callable[[RelayedStream, Direction], None],
        *,
        drops_held: bool,
    ) -> None:
        self.on_held: Callable[[], None] = lambda: None
        """Called when the held messages have changed."""
        self._hooks = dict(hooks)
        for hook in self._hooks.values():
            hook.on_answer = self._answered
        self._wake = wake
        self._tickets: dict[int, Ticket] = {}
        self._last = 0
        self.is_over = False
        """True if no more decisions are requested."""
        self._drops_held = drops_held

    @property
    def held(self) -> Sequence[Ticket]:
        """The held messages, oldest first."""
        return [ticket for ticket in self._tickets.values() if ticket.is_held]

    def ticket(self, number: int) -> Ticket:
        """Return a message that waits for a decision. Raises KeyError, as the methods below do."""
        return self._tickets[number]

    def let_go(self, number: int) -> None:
        """Forward a message after applying the remaining rules."""
        ticket = self._tickets[number]
        ticket.copy.alterations.append(("hold", ticket.rule.text))
        self._decided(ticket)

    def drop(self, number: int) -> None:
        """Drop a message."""
        ticket = self._tickets[number]
        self.applier.drop(ticket.slot, ticket.copy, ticket.rule.text)
        self._decided(ticket)

    def replace(self, number: int, data: bytes) -> None:
        """Replace the bytes of a message and forward it."""
        ticket = self._tickets[number]
        self.applier.replace(ticket.relayed, ticket.copy, data, ticket.rule.text)
        self.let_go(number)

    def ask(self, rule: Hold | Script, relayed: RelayedStream, slot: Slot, copy: Copy) -> bool:
        """Request a decision; return False if none will follow and the message need not wait."""
        if self.is_over:
            if isinstance(rule, Hold) and self._drops_held:
                self.applier.drop(slot, copy, rule.text)
            return False
        number = self._last = self._last + 1
        self._tickets[number] = Ticket(number, rule, relayed, slot, copy)
        if isinstance(rule, Hold):
            self.on_held()
            return True
        stream, protocol = relayed.stream, known_dissector(relayed).protocol
        hook = self._hooks[rule.path]
        if hook.ask(number, stream.id, copy.direction, slot.sent_ns, protocol, copy.data):
            return True
        del self._tickets[number]
        return False

    def opened(self, stream: Stream) -> None:
        """Report a new stream to the hooks."""
        for hook in self._hooks.values():
            hook.opened(stream.id, stream.transport, stream.client, stream.server)

    def passed_on(self, relayed: RelayedStream, copy: Copy, now_ns: int) -> None:
        """Report forwarded data to the hooks."""
        offset = relayed.queues[copy.direction].passed
        for hook in self._hooks.values():
            hook.passed_on(relayed.stream.id, copy.direction, now_ns, offset, copy.data)

    def closed(self, relayed: RelayedStream) -> None:
        """Report the end of a stream to the hooks and discard its pending decisions."""
        for hook in self._hooks.values():
            hook.closed(relayed.stream.id)
        gone = [ticket for ticket in self._tickets.values() if ticket.relayed is relayed]
        for ticket in gone:
            del self._tickets[ticket.number]
        if gone:
            self.on_held()

    def finish(self) -> None:
        """Decide about all messages: held ones are forwarded or dropped, the others forwarded unchanged."""
        self.is_over = True
        for ticket in [*self._tickets.values()]:
            if not ticket.is_held:
                self._decided(ticket)
            elif self._drops_held:
                self.drop(ticket.number)
            else:
                self.let_go(ticket.number)

    def _decided(self, ticket: Ticket) -> None:
        del self._tickets[ticket.number]
        if ticket.is_held:
            self.on_held()
        ticket.slot.waits -= 1
        self.applier.resume(ticket.relayed, ticket.slot, ticket.copy)
        self._wake(ticket.relayed, ticket.copy.direction)

    def _answered(self, number: int, outcomes: Sequence[Outcome] | None) -> None:
        """Carry out a hook's decision, unless it is too late."""
        ticket = self._tickets.get(number)
        if ticket is None:
            return
        if outcomes is not None:
            self.applier.apply_outcomes(ticket.relayed, ticket.slot, ticket.copy, outcomes, ticket.rule.text)
        self._decided(ticket)
