"""Messages about which somebody is asked: by hand, or a hook. Each has a ticket until that is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from kiebitz.dissectors.model import Direction, Stream, Transport
from kiebitz.services.alteration.applying import Applying, speaks
from kiebitz.services.alteration.delivery_queue import Copy, Passage, Slot
from kiebitz.services.alteration.hook_protocol import Outcome
from kiebitz.services.alteration.rules import Hold, Script


class Ticket(msgspec.Struct, eq=False):
    """A message about which somebody is asked: by hand, or a hook."""

    number: int
    rule: Hold | Script
    passage: Passage
    slot: Slot
    copy: Copy

    @property
    def is_held(self) -> bool:
        """Whether it waits for who decides by hand."""
        return isinstance(self.rule, Hold)


class Hook(Protocol):
    """Says what becomes of messages. Streams have the database's numbers."""

    on_answer: Callable[[int, Sequence[Outcome] | None], None]
    """Told what becomes of a message, by its ticket; None if it is to pass as it is."""

    def opened(self, number: int, transport: Transport, client: str, server: str) -> None:
        """A stream begins."""

    def closed(self, number: int) -> None:
        """A stream is over."""

    def passed_on(self, number: int, direction: Direction, ts_ns: int, offset: int, data: bytes) -> None:
        """Bytes were passed on."""

    def ask(
        self, ticket: int, number: int, direction: Direction, ts_ns: int, protocol: str, frame: bytes
    ) -> bool:
        """Ask what is to become of a message; False if it is to pass as it is."""


class Asking:
    """Asks about messages, and does with them what is decided. `wake` is told in which direction of a stream
    something need no longer wait. With `drops_held` what is held at the end is dropped. `applying` is set
    once it is there.
    """

    applying: Applying

    def __init__(
        self, hooks: Mapping[str, Hook], wake: Callable[[Passage, Direction], None], *, drops_held: bool
    ) -> None:
        self.on_held: Callable[[], None] = lambda: None
        """Called when other messages are held than before."""
        self._hooks = dict(hooks)
        for hook in self._hooks.values():
            hook.on_answer = self._answered
        self._wake = wake
        self._tickets: dict[int, Ticket] = {}
        self._last = 0
        self.is_over = False
        """Whether nobody is asked any more."""
        self._drops_held = drops_held

    @property
    def held(self) -> Sequence[Ticket]:
        """The messages that are held, the oldest first."""
        return [ticket for ticket in self._tickets.values() if ticket.is_held]

    def ticket(self, number: int) -> Ticket:
        """A message about which somebody is asked. Raises KeyError, as those below do."""
        return self._tickets[number]

    def let_go(self, number: int) -> None:
        """Pass a message on; the rules behind the one that held it look at it."""
        ticket = self._tickets[number]
        ticket.copy.deeds.append(("hold", ticket.rule.text))
        self._decided(ticket)

    def drop(self, number: int) -> None:
        """Do not pass a message on."""
        ticket = self._tickets[number]
        self.applying.drop(ticket.slot, ticket.copy, ticket.rule.text)
        self._decided(ticket)

    def replace(self, number: int, data: bytes) -> None:
        """Pass other bytes on in place of a message."""
        ticket = self._tickets[number]
        self.applying.replace(ticket.passage, ticket.copy, data, ticket.rule.text)
        self.let_go(number)

    def ask(self, rule: Hold | Script, passage: Passage, slot: Slot, copy: Copy) -> bool:
        """Ask about a message; False if nobody will answer: then it is decided, and need not wait."""
        if self.is_over:
            if isinstance(rule, Hold) and self._drops_held:
                self.applying.drop(slot, copy, rule.text)
            return False
        number = self._last = self._last + 1
        self._tickets[number] = Ticket(number, rule, passage, slot, copy)
        if isinstance(rule, Hold):
            self.on_held()
            return True
        stream, protocol = passage.stream, speaks(passage).protocol
        hook = self._hooks[rule.path]
        if hook.ask(number, stream.id, copy.direction, slot.sent_ns, protocol, copy.data):
            return True
        del self._tickets[number]
        return False

    def opened(self, stream: Stream) -> None:
        """A stream begins."""
        for hook in self._hooks.values():
            hook.opened(stream.id, stream.transport, stream.client, stream.server)

    def passed_on(self, passage: Passage, copy: Copy, now_ns: int) -> None:
        """A message, or bytes, are passed on now."""
        offset = passage.ways[copy.direction].passed
        for hook in self._hooks.values():
            hook.passed_on(passage.stream.id, copy.direction, now_ns, offset, copy.data)

    def closed(self, passage: Passage) -> None:
        """A stream is over, and nobody is asked about it any more."""
        for hook in self._hooks.values():
            hook.closed(passage.stream.id)
        gone = [ticket for ticket in self._tickets.values() if ticket.passage is passage]
        for ticket in gone:
            del self._tickets[ticket.number]
        if gone:
            self.on_held()

    def finish(self) -> None:
        """Nobody is asked any more: what is held is let go, or dropped; the others pass as they are."""
        self.is_over = True
        for ticket in [*self._tickets.values()]:
            if not ticket.is_held:
                self._decided(ticket)
            elif self._drops_held:
                self.drop(ticket.number)
            else:
                self.let_go(ticket.number)

    def _decided(self, ticket: Ticket) -> None:
        """A message waits for nobody any more."""
        del self._tickets[ticket.number]
        if ticket.is_held:
            self.on_held()
        ticket.slot.waits -= 1
        self.applying.go_on(ticket.passage, ticket.slot, ticket.copy)
        self._wake(ticket.passage, ticket.copy.direction)

    def _answered(self, number: int, outcomes: Sequence[Outcome] | None) -> None:
        """A hook has said what becomes of a message; it may be too late."""
        ticket = self._tickets.get(number)
        if ticket is None:
            return
        if outcomes is not None:
            self.applying.give_way(ticket.passage, ticket.slot, ticket.copy, outcomes, ticket.rule.text)
        self._decided(ticket)
