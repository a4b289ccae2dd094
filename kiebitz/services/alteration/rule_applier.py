"""Application of rules to messages: which copies of a message are forwarded, and what was altered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import Assignment, AssignmentError
from kiebitz.dissectors.editing.message_encoding import edit_message, encode_new
from kiebitz.dissectors.escaping import json_text
from kiebitz.dissectors.filters import FilterError, Predicate, Row
from kiebitz.dissectors.filters.fields import written
from kiebitz.dissectors.filters.syntax import Step
from kiebitz.dissectors.grammar.grammar import UNREADABLE, Path, replaced, unreadable
from kiebitz.dissectors.inspection import memo as remembered
from kiebitz.dissectors.model import OPPOSITE, Action, Direction, Message
from kiebitz.dissectors.session_numbering import FROM_ONE
from kiebitz.proxy.relay.endpoints import Notice
from kiebitz.services.alteration.delivery_queue import Copy, DirectionQueue, RelayedStream, Slot
from kiebitz.services.alteration.hook_protocol import Outcome
from kiebitz.services.alteration.rule_values import Impairment, chance
from kiebitz.services.alteration.rules import Change, Delay, Double, Drop, Hold, Impair, Insert, Rule, Script

MAX_COPIES = 64
"""Maximum number of copies that rules make of one message."""

_PAUSE_NS = 10_000_000
"""Pause between the pieces of a cut message, so that they arrive separately."""

_CUT_PIECES = 3

RequestDecision = Callable[[Hold | Script, RelayedStream, Slot, Copy], bool]
"""Request a decision about a copy from a viewer or a hook; return False if none will come."""


class RuleApplier:
    """Applies `rules` in order; times in filters count from `started_ns`.

    `state` returns the state of a stream's table.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        started_ns: int,
        state: Callable[[RelayedStream], Mapping[str, Any] | None],
        asks: RequestDecision,
        on_notice: Notice,
    ) -> None:
        self._rules = rules
        self._started_ns = started_ns
        self._state = state
        self._asks = asks
        self._on_notice = on_notice
        self._predicates: list[Predicate | None] = [
            None if rule.wanted is None else rule.wanted.predicate("messages", FROM_ONE) for rule in rules
        ]
        self._asks_for_state = [rule.wanted is not None and rule.wanted.asks_for_state for rule in rules]
        self._given_up: set[int] = set()
        self._added: list[Copy] = []
        """Copies that no later rule has processed yet, the next one last."""
        self._made: dict[tuple[int, str, Direction], tuple[Direction, bytes]] = {}
        """Encoded messages to insert, by rule, protocol and direction of the message that they follow."""
        self.reads = any(not isinstance(rule, Impair) for rule in rules)
        """True if any rule needs decoded messages."""
        self.asks_for_state = any(self._asks_for_state)

    def begin(self, relayed: RelayedStream, slot: Slot, copy: Copy) -> None:
        """Apply all rules to the original copy of received data."""
        slot.copies.append(copy)
        self.resume(relayed, slot, copy)

    def resume(self, relayed: RelayedStream, slot: Slot, copy: Copy) -> None:
        """Apply the remaining rules to a copy, then to the copies made of it: in the order sent."""
        self._resume(relayed, slot, copy)
        while self._added:
            self._resume(relayed, slot, self._added.pop())

    def _resume(self, relayed: RelayedStream, slot: Slot, copy: Copy) -> None:
        while copy.rule < len(self._rules) and not copy.is_dropped and not copy.resets:
            number = copy.rule
            copy.rule += 1
            rule = self._rules[number]
            if isinstance(rule, Impair):
                self._impair(rule.text, rule.impairment, relayed, slot, copy, number)
            elif copy.message is not None and number not in self._given_up:
                if not self._matches(number, rule, relayed, copy):
                    continue
                if isinstance(rule, Hold | Script):
                    if self._asks(rule, relayed, slot, copy):
                        slot.waits += 1
                        return
                else:
                    self._act(rule, relayed, slot, copy, number)

    def _matches(self, number: int, rule: Rule, relayed: RelayedStream, copy: Copy) -> bool:
        if isinstance(rule, Impair | Script):
            return True
        message, meets = copy.message, self._predicates[number]
        assert message is not None
        if meets is not None:
            assert rule.wanted is not None
            state = self._state(relayed) if self._asks_for_state[number] else None
            row = Row(self._started_ns, (message,), state=state)
            try:
                if not meets(row):
                    return False
            except FilterError as error:
                self._given_up.add(number)
                self._on_notice(f"rule-{number}", f"{rule.text}: {error}; the rule is disabled.")
                return False
        queue = relayed.queues[copy.direction]
        count = queue.counts[number] = queue.counts.get(number, 0) + 1
        return rule.pick.takes(count, queue.place)

    def _act(
        self,
        rule: Drop | Change | Double | Delay | Insert,
        relayed: RelayedStream,
        slot: Slot,
        copy: Copy,
        number: int,
    ) -> None:
        if isinstance(rule, Drop):
            self.drop(slot, copy, rule.text)
        elif isinstance(rule, Double):
            self._add(slot, copy, copy.direction, copy.data, copy.message, "double", rule.text)
        elif isinstance(rule, Delay):
            queue = relayed.queues[copy.direction]
            spread = chance(rule.pick.seed, queue.counts[number], queue.place, "delay")
            copy.due_ns += rule.duration.at(spread)
            copy.may_be_overtaken |= rule.may_pass
            copy.alterations.append((rule.action, rule.text))
        else:
            try:
                if isinstance(rule, Change):
                    self._change(rule, relayed, copy)
                else:
                    self._insert(rule, relayed, slot, copy, number)
            except AssignmentError as error:
                self._on_notice(
                    f"rule-{number}", f"{rule.text}: {error}. The message is forwarded unchanged."
                )

    def drop(self, slot: Slot, copy: Copy, rule: str) -> None:
        """Drop a copy; only the original leaves a mark."""
        copy.is_dropped = True
        if copy.is_original:
            copy.alterations.append(("drop", rule))
        else:
            slot.copies.remove(copy)

    def replace(self, relayed: RelayedStream, copy: Copy, data: bytes, rule: str) -> None:
        """Replace the bytes of a copy."""
        if data != copy.data:
            copy.data = data
            copy.message = decode_message(relayed, copy.direction, data, copy.due_ns)
            copy.alterations.append(("change", rule))

    def apply_outcomes(
        self, relayed: RelayedStream, slot: Slot, copy: Copy, outcomes: Sequence[Outcome], rule: str
    ) -> None:
        """Replace a copy by the messages that a hook returned, which may include the original."""
        kept = next((one for one in outcomes if one.is_same), None) or next(
            (one for one in outcomes if one.direction == copy.direction), None
        )
        at = slot.copies.index(copy)
        added: list[Copy] = []
        for one in outcomes:
            if one is kept:
                at = slot.copies.index(copy) + 1
                self.replace(relayed, copy, one.data, rule)
                changed = copy
            else:
                message = decode_message(relayed, one.direction, one.data, copy.due_ns)
                alterations: list[tuple[Action, str]] = [("insert", rule)]
                changed = Copy(
                    one.direction, one.data, message, copy.due_ns, copy.rule, alterations=alterations
                )
                slot.copies.insert(at, changed)
                added.append(changed)
                at += 1
            if one.delay_ns:
                changed.due_ns += one.delay_ns
                changed.alterations.append(("delay", rule))
        if kept is None:
            self.drop(slot, copy, rule)
        for other in added:
            self.resume(relayed, slot, other)

    def _add(
        self,
        slot: Slot,
        behind: Copy,
        direction: Direction,
        data: bytes,
        message: Message | None,
        action: Action,
        rule: str,
    ) -> None:
        if len(slot.copies) >= MAX_COPIES:
            return
        added = Copy(direction, data, message, behind.due_ns, behind.rule, alterations=[(action, rule)])
        slot.copies.insert(slot.copies.index(behind) + 1, added)
        self._added.append(added)

    def _change(self, rule: Change, relayed: RelayedStream, copy: Copy) -> None:
        dissector = known_dissector(relayed)
        try:
            data = edit_message(dissector, copy.data, copy.direction, rule.assignments)
        except AssignmentError:
            if not rule.is_forced:
                raise
            data = force_values(dissector, copy.data, copy.direction, rule.assignments)
        self.replace(relayed, copy, data, rule.text)

    def _insert(self, rule: Insert, relayed: RelayedStream, slot: Slot, copy: Copy, number: int) -> None:
        dissector = known_dissector(relayed)
        directions = (copy.direction, OPPOSITE[copy.direction])
        known_as = number, dissector.protocol, copy.direction
        try:
            if known_as not in self._made:
                self._made[known_as] = encode_new(dissector, rule.name, directions, rule.assignments)
            direction, data = self._made[known_as]
        except AssignmentError:
            if not rule.is_forced:
                raise
            latest = relayed.server.latest
            known = next((one for one in directions if (one, rule.name) in latest), None)
            if known is None:
                raise
            direction = known
            data = force_values(dissector, latest[known, rule.name], known, rule.assignments)
        message = decode_message(relayed, direction, data, copy.due_ns)
        self._add(slot, copy, direction, data, message, "insert", rule.text)

    def _impair(
        self, rule: str, how: Impairment, relayed: RelayedStream, slot: Slot, copy: Copy, number: int
    ) -> None:
        queue = relayed.queues[copy.direction]
        count = queue.counts[number] = queue.counts.get(number, 0) + 1

        def happens(share: float, purpose: str) -> bool:
            return share > 0 and chance(how.seed, count, queue.place, purpose) < share

        if how.delay is not None:
            copy.due_ns += how.delay.at(chance(how.seed, count, queue.place, "delay"))
            copy.alterations.append(("delay", rule))
        if how.rate is not None:
            copy.takes_ns += round(len(copy.data) * 8e9 / how.rate)
            copy.alterations.append(("delay", rule))
        if relayed.stream.transport == "udp":
            if happens(how.loss, "loss"):
                self.drop(slot, copy, rule)
                return
            if happens(how.double, "double"):
                self._add(slot, copy, copy.direction, copy.data, copy.message, "double", rule)
            if happens(how.reorder, "reorder"):
                copy.may_be_overtaken = copy.is_reordered = True
                copy.alterations.append(("reorder", rule))
        elif happens(how.reset, "reset"):
            copy.resets = True
            copy.alterations.append(("reset", rule))
        elif happens(how.cut, "cut") and len(copy.data) > 1:
            self._cut(rule, relayed, slot, copy)

    def _cut(self, rule: str, relayed: RelayedStream, slot: Slot, copy: Copy) -> None:
        """Split a copy into pieces with pauses between them; later rules do not see pieces."""
        copy.data, copy.is_wire = relayed.to_send(copy), True
        size = -(-len(copy.data) // _CUT_PIECES)
        pieces = [copy.data[start : start + size] for start in range(0, len(copy.data), size)]
        copy.data, copy.message, copy.rule = pieces[0], None, len(self._rules)
        copy.alterations.append(("cut", rule))
        at = slot.copies.index(copy) + 1
        slot.copies[at:at] = [
            Copy(
                copy.direction,
                piece,
                None,
                copy.due_ns,
                len(self._rules),
                is_wire=True,
                takes_ns=_PAUSE_NS,
                alterations=[("cut", rule)],
            )
            for piece in pieces[1:]
        ]


def known_dissector(relayed: RelayedStream) -> Dissector:
    """Return the protocol of a stream on which a message was decoded."""
    dissector = relayed.server.dissector
    assert dissector is not None
    return dissector


def decode_message(relayed: RelayedStream, direction: Direction, data: bytes, ts_ns: int) -> Message | None:
    """Return a frame as a message for filters, None if the protocol is unknown."""
    dissector = relayed.server.dissector
    if dissector is None:
        return None
    try:
        decoded = remembered.decode_cached(relayed.server.memo[direction], dissector, data, direction)
    except Exception:
        # The recorder, which reads the same bytes, reports it.
        decoded = unreadable()
    row = decoded.row
    queue: DirectionQueue = relayed.queues[direction]
    return Message(
        0,
        relayed.stream,
        direction,
        ts_ns,
        row.name if row is not None else UNREADABLE,
        decoded.fields,
        decoded.fields_json,
        queue.passed,
        len(data),
    )


_NAME = re.compile(rb"""\s*(?:"(?:[^"\\]|\\.)*"\s*:|[\w:-]+\s*=(?=\s*["']))?\s*""")
"""The name before a value: of a member of a JSON object, or of an attribute."""

_TAG = re.compile(rb"<[\w:-]+(?:\s[^<>]*)?(?<!/)>")


def force_values(
    dissector: Dissector, frame: bytes, direction: Direction, assignments: Sequence[Assignment]
) -> bytes:
    """Return a frame with other bytes in these fields, for testing parsers. Raises AssignmentError.

    The frame remains one message: names, tags, quotation marks, line ends, lengths and blank lines stay.

    A lone surrogate in an assignment's text represents a raw byte (`surrogateescape`).
    """
    pieces = dissector.codec.anatomy(frame, direction)
    places: dict[tuple[int, int], bytes] = {}
    for assignment in assignments:
        # The innermost piece of a field is last.
        piece = next((piece for piece in reversed(pieces) if _matches(piece.path, assignment.steps)), None)
        if piece is None:
            raise AssignmentError(f"{assignment.text} cannot be forced: the field has no bytes of its own")
        text = assignment.own if assignment.own is not None else json_text(assignment.values[0])
        start, end = _value_span(frame[piece.offset : piece.offset + piece.length])
        places[piece.offset + start, end - start] = text.encode("utf-8", "surrogateescape")
    data = replaced(frame, places)
    carried = dissector.encapsulation
    if carried is not None:
        # It ends any message; only its length has to be right.
        again = carried.unwrap(carried.wrap(data, direction), direction)
        return data if again is None else again.data
    if dissector.transport == "tcp":
        # The end of a message may only be found with the beginning of the next, which is in another segment.
        framer = dissector.framer(direction)
        first = next(iter((*framer.feed(0, data), *framer.feed(len(data), frame))), None)
        if first is None or (first.offset, first.size, first.cut) != (0, len(data), None):
            raise AssignmentError("with this value it would no longer be one message")
    return data


def _matches(path: Path, steps: Sequence[Step]) -> bool:
    return len(path) == len(steps) and all(
        step == part or (isinstance(part, str) and written(part) == step)
        for part, step in zip(path, steps, strict=True)
    )


def _value_span(field: bytes) -> tuple[int, int]:
    """Return start and end of the value within a field's bytes, without its JSON or XML syntax."""
    name = _NAME.match(field)
    assert name is not None
    start, end = name.end(), len(field.rstrip().removesuffix(b",").rstrip())
    if end - start > 1 and field[start] in b"\"'" and field[end - 1] == field[start]:
        return start + 1, end - 1
    tag = _TAG.match(field, start, end)
    closing = field.rfind(b"</", start, end)
    if tag is not None and closing >= tag.end():
        return tag.end(), closing
    return start, max(start, end)
