"""Rules applied to one message after the other: which copies of it go on, and what was done to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import AssignmentError
from kiebitz.dissectors.editing.message_encoding import edit_message, encode_new
from kiebitz.dissectors.filters import FilterError, Predicate, Row
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.inspection import memo as remembered
from kiebitz.dissectors.model import OPPOSITE, Action, Direction, Message
from kiebitz.dissectors.session_numbering import FROM_ONE
from kiebitz.proxy.relay.endpoints import Notice
from kiebitz.services.alteration.delivery_queue import Copy, Passage, Slot, Way
from kiebitz.services.alteration.hook_protocol import Outcome
from kiebitz.services.alteration.impairment import Impairment
from kiebitz.services.alteration.raw_values import forced
from kiebitz.services.alteration.rules import Change, Delay, Double, Drop, Hold, Impair, Insert, Rule, Script
from kiebitz.services.alteration.selectors import chance

MOST_COPIES = 64
"""So many messages come of one at the most."""

_PAUSE_NS = 10_000_000
"""Between two pieces into which a message is cut, so that they arrive one by one."""

_CUT_INTO = 3

Asks = Callable[[Hold | Script, Passage, Slot, Copy], bool]
"""Has somebody say what is to become of a copy, as a rule has it; False if nobody will."""


class Applying:
    """Applies `rules` in their order. Sessions begin at `started_ns`.

    `names` has what clients call themselves, by stream; `state` gives the state of a stream's table.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        started_ns: int,
        names: Mapping[int, str],
        state: Callable[[Passage], Mapping[str, Any] | None],
        asks: Asks,
        on_notice: Notice,
    ) -> None:
        self._rules = rules
        self._started_ns = started_ns
        self._names = names
        self._state = state
        self._asks = asks
        self._on_notice = on_notice
        self._predicates: list[Predicate | None] = [
            rule.wanted.predicate("messages", FROM_ONE)
            if not isinstance(rule, Impair | Script) and rule.wanted is not None
            else None
            for rule in rules
        ]
        self._asks_for_state = [_asks_for_state(rule) for rule in rules]
        self._given_up: set[int] = set()
        self._added: list[Copy] = []
        """Copies that no later rule has looked at yet; the last comes first."""
        self._made: dict[tuple[int, str, Direction], tuple[Direction, bytes]] = {}
        """The messages that rules put in, by the rule, the protocol and the way of what they come behind."""
        self.reads = any(not isinstance(rule, Impair) for rule in rules)
        """Whether any rule asks what a message says."""
        self.asks_for_state = any(self._asks_for_state)

    def begin(self, passage: Passage, slot: Slot, copy: Copy) -> None:
        """Take the first copy of what was sent through all rules."""
        slot.copies.append(copy)
        self.go_on(passage, slot, copy)

    def go_on(self, passage: Passage, slot: Slot, copy: Copy) -> None:
        """Take a copy on from the rule that is its next; and then those that come of it, so that rules count
        them in the order in which they are passed on."""
        self._go_on(passage, slot, copy)
        while self._added:
            self._go_on(passage, slot, self._added.pop())

    def _go_on(self, passage: Passage, slot: Slot, copy: Copy) -> None:
        while copy.rule < len(self._rules) and not copy.is_dropped and not copy.resets:
            number = copy.rule
            copy.rule += 1
            rule = self._rules[number]
            if isinstance(rule, Impair):
                self._impair(rule.text, rule.impairment, passage, slot, copy, number)
            elif copy.message is not None and number not in self._given_up:
                if not self._is_meant(number, rule, passage, copy):
                    continue
                if isinstance(rule, Hold | Script):
                    if self._asks(rule, passage, slot, copy):
                        slot.waits += 1
                        return
                else:
                    self._act(rule, passage, slot, copy, number)

    def _is_meant(self, number: int, rule: Rule, passage: Passage, copy: Copy) -> bool:
        """Whether a rule is about this message, now."""
        if isinstance(rule, Impair | Script):
            return True
        message, meets = copy.message, self._predicates[number]
        assert message is not None
        if meets is not None:
            assert rule.wanted is not None
            state = self._state(passage) if self._asks_for_state[number] else None
            row = Row(self._started_ns, (message,), names=self._names, state=state)
            try:
                if not meets(row):
                    return False
            except FilterError as error:
                self._given_up.add(number)
                self._on_notice(f"rule-{number}", f"{rule.text}: {error}; it is not followed any more.")
                return False
        way = passage.ways[copy.direction]
        count = way.counts[number] = way.counts.get(number, 0) + 1
        return rule.pick.takes(count, way.place)

    def _act(
        self,
        rule: Drop | Change | Double | Delay | Insert,
        passage: Passage,
        slot: Slot,
        copy: Copy,
        number: int,
    ) -> None:
        if isinstance(rule, Drop):
            self.drop(slot, copy, rule.text)
        elif isinstance(rule, Double):
            self._add(passage, slot, copy, copy.direction, copy.data, copy.message, "double", rule.text)
        elif isinstance(rule, Delay):
            way = passage.ways[copy.direction]
            spread = chance(rule.pick.seed, way.counts[number], way.place, "delay")
            copy.due_ns += rule.duration.at(spread)
            copy.may_be_passed |= rule.may_pass
            copy.deeds.append((rule.action, rule.text))
        else:
            try:
                if isinstance(rule, Change):
                    self._change(rule, passage, copy)
                else:
                    self._insert(rule, passage, slot, copy, number)
            except AssignmentError as error:
                self._on_notice(
                    f"rule-{number}", f"{rule.text}: {error}. The message is passed on as it was."
                )

    def drop(self, slot: Slot, copy: Copy, rule: str) -> None:
        """A copy is not passed on: one that was sent leaves a mark, one that we made leaves nothing."""
        copy.is_dropped = True
        if copy.is_original:
            copy.deeds.append(("drop", rule))
        else:
            slot.copies.remove(copy)

    def replace(self, passage: Passage, copy: Copy, data: bytes, rule: str) -> None:
        """Other bytes are passed on in place of a copy's."""
        if data != copy.data:
            copy.data = data
            copy.message = read(passage, copy.direction, data, copy.due_ns)
            copy.deeds.append(("change", rule))

    def give_way(
        self, passage: Passage, slot: Slot, copy: Copy, outcomes: Sequence[Outcome], rule: str
    ) -> None:
        """Pass on what a hook gave back in place of a copy: itself, changed or not, and others beside it."""
        kept = next((one for one in outcomes if one.is_same), None) or next(
            (one for one in outcomes if one.direction == copy.direction), None
        )
        at = slot.copies.index(copy)
        added: list[Copy] = []
        for one in outcomes:
            if one is kept:
                at = slot.copies.index(copy) + 1
                self.replace(passage, copy, one.data, rule)
                changed = copy
            else:
                message = read(passage, one.direction, one.data, copy.due_ns)
                deeds: list[tuple[Action, str]] = [("insert", rule)]
                changed = Copy(one.direction, one.data, message, copy.due_ns, copy.rule, deeds=deeds)
                slot.copies.insert(at, changed)
                added.append(changed)
                at += 1
            if one.delay_ns:
                changed.due_ns += one.delay_ns
                changed.deeds.append(("delay", rule))
        if kept is None:
            self.drop(slot, copy, rule)
        for other in added:
            self.go_on(passage, slot, other)

    def _add(
        self,
        passage: Passage,
        slot: Slot,
        behind: Copy,
        direction: Direction,
        data: bytes,
        message: Message | None,
        action: Action,
        rule: str,
    ) -> None:
        if len(slot.copies) >= MOST_COPIES:
            return
        added = Copy(direction, data, message, behind.due_ns, behind.rule, deeds=[(action, rule)])
        slot.copies.insert(slot.copies.index(behind) + 1, added)
        self._added.append(added)

    def _change(self, rule: Change, passage: Passage, copy: Copy) -> None:
        dissector = speaks(passage)
        try:
            data = edit_message(dissector, copy.data, copy.direction, rule.assignments)
        except AssignmentError:
            if not rule.is_forced:
                raise
            data = forced(dissector, copy.data, copy.direction, rule.assignments)
        self.replace(passage, copy, data, rule.text)

    def _insert(self, rule: Insert, passage: Passage, slot: Slot, copy: Copy, number: int) -> None:
        dissector = speaks(passage)
        directions = (copy.direction, OPPOSITE[copy.direction])
        known_as = number, dissector.protocol, copy.direction
        try:
            if known_as not in self._made:
                self._made[known_as] = encode_new(dissector, rule.name, directions, rule.assignments)
            direction, data = self._made[known_as]
        except AssignmentError:
            if not rule.is_forced:
                raise
            latest = passage.server.latest
            known = next((way for way in directions if (way, rule.name) in latest), None)
            if known is None:
                raise
            direction = known
            data = forced(dissector, latest[known, rule.name], known, rule.assignments)
        message = read(passage, direction, data, copy.due_ns)
        self._add(passage, slot, copy, direction, data, message, "insert", rule.text)

    def _impair(
        self, rule: str, how: Impairment, passage: Passage, slot: Slot, copy: Copy, number: int
    ) -> None:
        way = passage.ways[copy.direction]
        count = way.counts[number] = way.counts.get(number, 0) + 1

        def happens(share: float, purpose: str) -> bool:
            return share > 0 and chance(how.seed, count, way.place, purpose) < share

        if how.delay is not None:
            copy.due_ns += how.delay.at(chance(how.seed, count, way.place, "delay"))
            copy.deeds.append(("delay", rule))
        if how.rate is not None:
            copy.takes_ns += round(len(copy.data) * 8e9 / how.rate)
            copy.deeds.append(("delay", rule))
        if passage.stream.transport == "udp":
            if happens(how.loss, "loss"):
                self.drop(slot, copy, rule)
                return
            if happens(how.double, "double"):
                self._add(passage, slot, copy, copy.direction, copy.data, copy.message, "double", rule)
            if happens(how.reorder, "reorder"):
                copy.may_be_passed = copy.comes_behind = True
                copy.deeds.append(("reorder", rule))
        elif happens(how.reset, "reset"):
            copy.resets = True
            copy.deeds.append(("reset", rule))
        elif happens(how.cut, "cut") and len(copy.data) > 1:
            self._cut(rule, slot, copy)

    def _cut(self, rule: str, slot: Slot, copy: Copy) -> None:
        """Pass a copy on in pieces, with a pause between them. No later rule looks at pieces."""
        size = -(-len(copy.data) // _CUT_INTO)
        pieces = [copy.data[start : start + size] for start in range(0, len(copy.data), size)]
        copy.data, copy.message, copy.rule = pieces[0], None, len(self._rules)
        copy.deeds.append(("cut", rule))
        at = slot.copies.index(copy) + 1
        slot.copies[at:at] = [
            Copy(
                copy.direction,
                piece,
                None,
                copy.due_ns,
                len(self._rules),
                takes_ns=_PAUSE_NS,
                deeds=[("cut", rule)],
            )
            for piece in pieces[1:]
        ]


def _asks_for_state(rule: Rule) -> bool:
    return not isinstance(rule, Impair | Script) and rule.wanted is not None and rule.wanted.asks_for_state


def speaks(passage: Passage) -> Dissector:
    """The protocol of a stream on which a message was read."""
    dissector = passage.server.dissector
    assert dissector is not None
    return dissector


def read(passage: Passage, direction: Direction, data: bytes, ts_ns: int) -> Message | None:
    """The message that a frame is, as filters are asked about it; None where no protocol is known."""
    dissector = passage.server.dissector
    if dissector is None:
        return None
    decoded = remembered.decode_cached(passage.server.memo[direction], dissector, data, direction)
    row = decoded.row
    way: Way = passage.ways[direction]
    return Message(
        0,
        passage.stream,
        direction,
        ts_ns,
        row.name if row is not None else UNREADABLE,
        decoded.fields,
        decoded.fields_json,
        way.passed,
        len(data),
    )
