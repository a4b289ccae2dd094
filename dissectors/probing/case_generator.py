"""The generator of a protocol's test cases, which derives them from its grammar and rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial

import msgspec

from kiebitz.dissectors.conformance.expectations import (
    ANY_REACTION,
    INPUT_DIRECTION,
    ROLES,
    Expectation,
    Reaction,
    Situation,
    Spelling,
    TargetRole,
)
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Field, MessageType
from kiebitz.dissectors.model import OPPOSITE, Transport
from kiebitz.dissectors.probing import actions
from kiebitz.dissectors.probing.actions import CaseActions, delivery_variants_of
from kiebitz.dissectors.probing.case import Case, is_same_message, to_case_name
from kiebitz.dissectors.probing.mutations import Mutator

_STREAM = "RFC 9293, 2.2 Key TCP Concepts"
_OF_STREAM = "TCP provides a reliable, in-order, byte-stream service to applications."
_HUGE_SIZE = 60_000
_LINE_ENDS = Spelling("line-ends", "with LF for CR LF, or the other way round", actions.swap_line_ends)


def generate_cases(dissector: Dissector, role: TargetRole) -> tuple[Case, ...]:
    """Return all cases of a protocol for programs of a role: those in play, then in the grammar's order."""
    return tuple(_CaseGenerator(dissector, role).cases())


def cases_by_rule(dissector: Dissector) -> dict[str, tuple[str, ...] | str]:
    """Return, for each rule of a protocol's table, the cases that break it or why there are none."""
    reactions = dissector.conformance.expectations
    cases = [case.name for role in ROLES for case in generate_cases(dissector, role)]
    found: dict[str, tuple[str, ...] | str] = {}
    for rule in dissector.grammar.rules:
        patterns = reactions.broken_by.get(rule, f"*/rule/{rule}").split()
        breakers = tuple(
            case
            for case in cases
            if any(fnmatchcase(case, f"{dissector.protocol}/{pattern}") for pattern in patterns)
        )
        found[rule] = tuple(dict.fromkeys(breakers)) or reactions.unreachable.get(
            rule, "its protocol declares no way to break it"
        )
    return found


def unmatched_patterns(dissector: Dissector) -> Iterator[tuple[Expectation, str]]:
    """Yield the patterns of expectations that fit no case."""
    for role in ROLES:
        names = [case.name for case in generate_cases(dissector, role)]
        for expectation in dissector.conformance.expectations.expectations:
            for pattern in expectation.cases.split() if expectation.role == role else ():
                if not any(fnmatchcase(name, f"{dissector.protocol}/{pattern}") for name in names):
                    yield expectation, pattern


class _CaseGenerator:
    """The generator for one protocol and role."""

    def __init__(self, dissector: Dissector, role: TargetRole) -> None:
        self._dissector = dissector
        self._role: TargetRole = role
        self._direction = INPUT_DIRECTION[role]
        self._mutator = Mutator(dissector, self._direction)
        self._rows = [row for row in dissector.grammar.rows if row.direction == self._direction]
        self._transport: Transport = dissector.transport
        self._reactions = dissector.conformance.expectations
        # A field that every message has, such as the version, belongs to no message in particular.
        first = self._rows[0].fields if len(self._rows) > 1 else ()
        self._common_fields = [each for each in first if all(each in row.fields for row in self._rows)]

    def cases(self) -> Iterator[Case]:
        yield from self._in_play_cases()
        yield from self._protocol_cases()
        for each in self._common_fields:
            yield from self._field_cases(None, "", each)
        for row in self._rows:
            label = self._label(row)
            specified = (each for each in self._rows if each.deviation is None)
            if row.deviation is None or not any(is_same_message(row, each) for each in specified):
                yield from self._delivery_cases(row, label)
                yield from self._spelling_cases(row, label)
                yield from self._charset_cases(row, label)
                for each in row.fields:
                    if each not in self._common_fields:
                        yield from self._field_cases(row, f"{label}/", each)
                yield from self._rule_cases(row, label)
            else:
                yield self._dialect_case(row)

    # The program's own messages in an undisturbed game.

    def _in_play_cases(self) -> Iterator[Case]:
        yield self._in_play_case("game", "an undisturbed game")
        rows = (row for row in self._dissector.grammar.rows if row.direction == OPPOSITE[self._direction])
        for name, row in {row.name: row for row in rows if row.deviation is None}.items():
            sentence = f"{name}: as the program sends it in an undisturbed game"
            yield self._in_play_case(f"{to_case_name(name)}/said", sentence, row)

    def _in_play_case(self, label: str, sentence: str, checked: MessageType | None = None) -> Case:
        clause = None if checked is None else checked.clause
        return Case(
            f"{self._dissector.protocol}/{label}",
            self._role,
            label.rpartition("/")[2],
            sentence,
            Expectation(label, self._role, "must", ("answers",), clause),
            actions.fixed_actions(),
            is_in_play=True,
            checked_message=None if checked is None else checked.name,
        )

    # Cases of no particular message.

    def _protocol_cases(self) -> Iterator[Case]:
        make = actions.replace_with(self._mutator.renamed)
        yield self._case("unknown-message", "a message with an unknown name", make, uses=0)
        make = actions.fixed_actions(actions.Send(bytes(range(256))))
        yield self._case("rubbish", "every byte once, from 0 to 255", make, uses=0)
        if self._transport == "udp":
            yield self._case("empty", "an empty datagram", actions.fixed_actions(actions.Send(b"")), uses=0)
            make = actions.replace_with(lambda frame: frame.ljust(_HUGE_SIZE, b"x"))
            yield self._case("huge", f"a datagram of {_HUGE_SIZE:,} bytes", make)
        else:
            yield self._case("empty", "a line end alone", actions.replace_with(actions.line_end_of), uses=0)
            yield self._case("endless", "a message that begins and does not end", actions.send_endless)
        if self._transport == "tcp" and self._role == "server":
            ends: dict[str, actions.CaseAction] = {
                "half-close": actions.HalfClose("stranger"),
                "close": actions.Close("stranger"),
                "reset": actions.Reset("stranger"),
            }
            for word, end in ends.items():
                sentence = f"a client connects and leaves without a message ({word})"
                yield self._case(f"come-and-go/{word}", sentence, actions.fixed_actions(end), uses=0)
            sentence = "a message as it is, after half a message of another new client"
            yield self._case("come-and-stay", sentence, actions.send_during_half, harmless=True)
        silence_s = self._reactions.silence_s
        if silence_s is not None:
            make = actions.fixed_actions(actions.Pause(silence_s + 1))
            yield self._case("silence", f"no message for more than {silence_s:g} s", make, uses=0)

    # Cases of a message.

    def _delivery_cases(self, row: MessageType, label: str) -> Iterator[Case]:
        for form in delivery_variants_of(row, self._dissector, self._role):
            yield self._case(
                f"{label}/{form.kind}",
                form.sentence,
                form.make,
                row,
                kind=form.kind,
                uses=form.uses,
                harmless=form.harmless,
            )
        if row.name not in self._dissector.identity.login_messages:
            sentence = "before any other message"
            yield self._case(f"{label}/first", sentence, actions.send_whole, row, at_start=True)

    def _spelling_cases(self, row: MessageType, label: str) -> Iterator[Case]:
        known = self._reactions.spellings
        if self._transport == "tcp" and all(each.word != _LINE_ENDS.word for each in known):
            known = (_LINE_ENDS, *known)
        for spelling in known:
            if any(fnmatchcase(label, pattern) for pattern in spelling.messages.split()):
                name = f"{label}/spelling/{spelling.word}"
                make = actions.replace_with(partial(self._mutator.respell, spelling))
                yield self._case(
                    name, spelling.sentence, make, row, kind="spelling", harmless=True, spelling=spelling
                )

    def _charset_cases(self, row: MessageType, label: str) -> Iterator[Case]:
        mutator = self._mutator
        forms: list[tuple[str, str, Callable[[bytes], bytes]]] = [
            ("utf-16", "in UTF-16", mutator.to_utf_16),
            ("byte-order-mark", "with a byte order mark before it", mutator.add_byte_order_mark),
        ]
        if self._transport == "udp":
            forms.insert(0, ("cut", "only its first half as a datagram", mutator.halve))
        for kind, sentence, rewrite in forms:
            yield self._case(f"{label}/{kind}", sentence, actions.replace_with(rewrite), row)

    def _field_cases(self, row: MessageType | None, label: str, of: Field) -> Iterator[Case]:
        mutator = self._mutator
        at_field = f"{label}{to_case_name(of.name)}"

        def case(name: str, sentence: str, rewrite: Callable[[bytes], bytes]) -> Case:
            return self._case(name, sentence, actions.replace_with(rewrite), row, of=of)

        yield case(f"{at_field}/left-out", "it is left out", partial(mutator.remove_field, of))
        yield case(f"{at_field}/doubled", "it occurs twice", partial(mutator.repeat_field, of))
        yield case(
            f"{at_field}/latin-1", "a byte in it is not valid UTF-8", partial(mutator.insert_latin_1, of)
        )
        out_of_range = False
        for wrong in of.type.wrong_values():
            if of.optional and wrong.kind == "null":
                # This is another way to leave it out.
                continue
            if of.optional and wrong.kind == "empty" and not wrong.part:
                wrong = wrong._replace(allowed=True)
            out_of_range = out_of_range or wrong.kind == "out-of-range"
            name = f"{at_field}/{wrong.kind}"
            if wrong.part:
                own = [] if row is None else [each for each in row.fields if each not in self._common_fields]
                around = label if own == [of] else f"{at_field}."
                name = f"{around}{to_case_name(wrong.part)}/{wrong.kind}"
            yield case(name, wrong.title, partial(mutator.replace_text, of, wrong))
        # No client is redirected to a server other than the configured one.
        for handle in dict.fromkeys(each for each in of.type.identifiers() if not each.of_server):
            for is_others in (True, False) if not out_of_range else (True,):
                whose = "others" if is_others else "nobodys"
                sentence = f"another's {handle.title}" if is_others else f"an unknown {handle.title}"
                make = actions.build_from(partial(mutator.replace_identifier, of, handle, is_others))
                name = f"{at_field}/{whose}-{to_case_name(handle.title)}"
                yield self._case(name, sentence, make, row, of=of)

    def _dialect_case(self, row: MessageType) -> Case:
        alike = [each for each in self._rows if each.name == row.name and each.deviation is not None]
        name = f"{to_case_name(row.name)}/dialect/{alike.index(row) + 1}"
        make = actions.replace_with(partial(self._mutator.dialect, row))
        return self._case(name, str(row.deviation), make, row, kind="dialect", harmless=True)

    def _rule_cases(self, row: MessageType, label: str) -> Iterator[Case]:
        for breach in self._reactions.violations:
            if (breach.role, to_case_name(breach.message)) == (self._role, label):
                sentence = f"violates the rule: {self._dissector.grammar.rules[breach.rule].text}"
                make = actions.build_from(partial(self._mutator.break_rule, breach))
                yield self._case(f"{label}/rule/{breach.rule}", sentence, make, row)

    # Helpers.

    def _label(self, row: MessageType) -> str:
        """Return a row's name, with the fixed words that distinguish it from rows of the same name."""
        alike = [each for each in self._rows if each.name == row.name and each.deviation is None]
        if len(alike) < 2 or row.deviation is not None:
            return to_case_name(row.name)
        words = next((words for each in row.fields if (words := _fixed_words(each))), ("",))
        return f"{to_case_name(row.name)}.{'+'.join(words)}"

    def _case(
        self,
        name: str,
        sentence: str,
        make: Callable[[Situation], CaseActions],
        row: MessageType | None = None,
        *,
        kind: str = "",
        of: Field | None = None,
        uses: int = 1,
        at_start: bool = False,
        harmless: bool = False,
        spelling: Spelling | None = None,
    ) -> Case:
        """Return a case of any message, or of a row or a field; its kind is the last word of its name."""
        is_general = row is None and of is None
        kind = kind or name.split("/")[0 if is_general else -1]
        expectation = self._expectation(name, row, kind, harmless, spelling)
        if not self._reactions.spares_others:
            expectation = msgspec.structs.replace(expectation, spares_others=False)
        about = (each.name for each in (row, of) if each is not None)
        return Case(
            f"{self._dissector.protocol}/{name}",
            self._role,
            kind,
            ": ".join((*about, sentence)),
            expectation,
            make,
            row,
            None if of is None else of.name,
            uses,
            at_start,
            harmless,
        )

    def _harmless_reactions(self, row: MessageType | None) -> tuple[Reaction, ...]:
        """Return the right reactions to a harmless case; a client that is asked nothing may stay silent."""
        grammar = self._dissector.grammar
        is_asked = (
            row is not None
            and not grammar.is_shared(row.direction, row.name)
            and any(row.name in each.answers and each.direction != row.direction for each in grammar.rows)
        )
        return ("answers",) if self._role == "server" or is_asked else ("answers", "ignores")

    def _expectation(
        self, name: str, row: MessageType | None, kind: str, harmless: bool, spelling: Spelling | None
    ) -> Expectation:
        """Return what the specification says about a case, or what follows from grammar and transport."""
        right = self._harmless_reactions(row) if harmless else ANY_REACTION
        if row is not None and row.deviation is not None:
            # The specification knows no such message.
            return Expectation(name, self._role, "open", right, None)
        for expectation in self._reactions.expectations:
            if expectation.applies_to(self._role, name):
                return expectation
        if spelling is not None:
            return Expectation(name, self._role, spelling.level, right, spelling.clause, spelling.quote)
        if kind == "whole" and row is not None:
            return Expectation(name, self._role, "must", right, row.clause)
        if harmless:
            return Expectation(name, self._role, "must", right, _STREAM, _OF_STREAM)
        return Expectation(name, self._role, "open", right, None)


def _fixed_words(of: Field) -> tuple[str, ...]:
    """Return the allowed words of a field if there are at most two."""
    words: tuple[str, ...] = getattr(of.type, "words", ())
    return words if 0 < len(words) <= 2 else ()
