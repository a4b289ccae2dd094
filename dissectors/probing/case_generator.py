"""The cases of a protocol: what can be asked of a program that speaks it, made from its grammar and rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial

import msgspec

from kiebitz.dissectors.conformance.expectations import (
    ANY_REACTION,
    HEARS,
    ROLES,
    Demand,
    Reaction,
    Role,
    Situation,
    Spelling,
)
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Field, MessageType
from kiebitz.dissectors.model import OPPOSITE, Transport
from kiebitz.dissectors.probing import actions as acts
from kiebitz.dissectors.probing.actions import Acts
from kiebitz.dissectors.probing.case import Case, as_name, is_same_message
from kiebitz.dissectors.probing.delivery_variants import Form, forms_of
from kiebitz.dissectors.probing.mutations import Spoiler

_STREAM = "RFC 9293, 2.2 Key TCP Concepts"
_OF_STREAM = "TCP provides a reliable, in-order, byte-stream service to applications."
_LINE_ENDS = Spelling("line-ends", "with LF for CR LF, or the other way round", acts.other_line_ends)


def cases_of(dissector: Dissector, role: Role) -> tuple[Case, ...]:
    """All cases of a protocol for programs of a role, in the grammar's order; first those in play."""
    return tuple(_Maker(dissector, role).cases())


def breaking(dissector: Dissector) -> dict[str, tuple[str, ...] | str]:
    """By rule of a protocol's table the cases that break it, or why there are none."""
    reactions = dissector.conformance.reactions
    cases = [case.name for role in ROLES for case in cases_of(dissector, role)]
    found: dict[str, tuple[str, ...] | str] = {}
    for rule in dissector.grammar.rules:
        patterns = reactions.broken_by.get(rule, f"*/rule/{rule}").split()
        breakers = tuple(
            case
            for case in cases
            if any(fnmatchcase(case, f"{dissector.protocol}/{pattern}") for pattern in patterns)
        )
        found[rule] = tuple(dict.fromkeys(breakers)) or reactions.unreachable.get(
            rule, "its protocol does not say how it is broken"
        )
    return found


class _Maker:
    """Makes the cases of a protocol and a role."""

    def __init__(self, dissector: Dissector, role: Role) -> None:
        self._dissector = dissector
        self._role: Role = role
        self._direction = HEARS[role]
        self._spoiler = Spoiler(dissector, self._direction)
        self._rows = [row for row in dissector.grammar.rows if row.direction == self._direction]
        self._transport: Transport = dissector.transport
        self._reactions = dissector.conformance.reactions
        # A field of every message, such as the version, is no message's own.
        first = self._rows[0].fields if len(self._rows) > 1 else ()
        self._everywhere = [each for each in first if all(each in row.fields for row in self._rows)]

    def cases(self) -> Iterator[Case]:
        yield from self._in_play()
        yield from self._of_the_protocol()
        for each in self._everywhere:
            yield from self._of_field(None, "", each)
        for row in self._rows:
            label = self._label(row)
            if row.deviation is None or not any(_is_specified(row, each) for each in self._rows):
                yield from self._of_forms(row, label)
                yield from self._of_spellings(row, label)
                yield from self._of_charsets(row, label)
                for each in row.fields:
                    if each not in self._everywhere:
                        yield from self._of_field(row, f"{label}/", each)
                yield from self._of_rules(row, label)
            else:
                yield self._dialect(row)

    # What the program says in a game without anything odd.

    def _in_play(self) -> Iterator[Case]:
        game = Demand("game", self._role, "must", ("answers",), None)
        yield Case(
            f"{self._dissector.protocol}/game",
            self._role,
            "game",
            "a game in which nothing odd is done",
            game,
            acts.only(),
            is_in_play=True,
        )
        rows = (row for row in self._dissector.grammar.rows if row.direction == OPPOSITE[self._direction])
        for name, row in {row.name: row for row in rows if row.deviation is None}.items():
            label = f"{as_name(name)}/said"
            yield Case(
                f"{self._dissector.protocol}/{label}",
                self._role,
                "said",
                f"{name}: as the program says it in a game in which nothing odd is done",
                Demand(label, self._role, "must", ("answers",), row.clause),
                acts.only(),
                is_in_play=True,
                says=name,
            )

    # What belongs to no message.

    def _of_the_protocol(self) -> Iterator[Case]:
        spoiler = self._spoiler
        yield self._case(
            "unknown-message",
            "a message that nobody knows",
            acts.instead(spoiler.renamed),
            uses=0,
        )
        yield self._case(
            "rubbish", "every byte once, from 0 to 255", acts.only(acts.Send(bytes(range(256)))), uses=0
        )
        if self._transport == "udp":
            yield self._case("empty", "an empty datagram", acts.only(acts.Send(b"")), uses=0)
            yield self._case(
                "huge",
                "a datagram of 60,000 bytes",
                acts.instead(acts.padded(60_000)),
            )
        else:
            yield self._case("empty", "a line end alone", acts.instead(acts.line_end), uses=0)
            yield self._case("endless", "a message that begins and does not end", acts.endless)
            ends: tuple[tuple[str, acts.Act], ...] = (
                ("half-close", acts.HalfClose("stranger")),
                ("close", acts.Close("stranger")),
                ("reset", acts.Reset("stranger")),
            )
            for word, end in ends if self._role == "server" else ():
                sentence = f"somebody comes, and goes without a word ({word})"
                yield self._case(f"come-and-go/{word}", sentence, acts.only(end), uses=0)
            if self._role == "server":
                sentence = "a message as it is, while half of somebody's who has come has arrived"
                yield self._case("come-and-stay", sentence, acts.beside_half, harmless=True)
        silence_s = self._reactions.silence_s
        if silence_s is not None:
            yield self._case(
                "silence",
                f"nothing for more than {silence_s:g} s",
                acts.only(acts.Pause(silence_s + 1)),
                uses=0,
            )

    # What belongs to a message.

    def _of_forms(self, row: MessageType, label: str) -> Iterator[Case]:
        for form in forms_of(row, self._dissector, self._role):
            yield self._message_case(row, f"{label}/{form.kind}", form.sentence, form.make, form)
        if row.name not in self._dissector.identity.login_messages:
            yield self._message_case(row, f"{label}/first", "before anything else", acts.whole, at_start=True)

    def _of_spellings(self, row: MessageType, label: str) -> Iterator[Case]:
        known = self._reactions.spellings
        if self._transport == "tcp" and all(each.word != _LINE_ENDS.word for each in known):
            known = (_LINE_ENDS, *known)
        for spelling in known:
            if not any(fnmatchcase(label, pattern) for pattern in spelling.messages.split()):
                continue
            yield self._message_case(
                row,
                f"{label}/spelling/{spelling.word}",
                spelling.sentence,
                acts.instead(partial(self._spoiler.spelt, spelling)),
                Form("spelling", "", acts.whole, harmless=True),
                spelling=spelling,
            )

    def _of_charsets(self, row: MessageType, label: str) -> Iterator[Case]:
        spoiler = self._spoiler
        if self._transport == "udp":
            yield self._message_case(
                row,
                f"{label}/cut",
                "the first half as all of the datagram",
                acts.instead(spoiler.halved),
            )
        yield self._message_case(row, f"{label}/utf-16", "in UTF-16", acts.instead(spoiler.in_utf_16))
        yield self._message_case(
            row,
            f"{label}/byte-order-mark",
            "with a byte order mark before it",
            acts.instead(spoiler.marked),
        )

    def _of_field(self, row: MessageType | None, label: str, of: Field) -> Iterator[Case]:
        spoiler = self._spoiler
        at_field = f"{label}{as_name(of.name)}"

        def case(name: str, sentence: str, written: Callable[[bytes], bytes]) -> Case:
            return self._message_case(row, name, sentence, acts.instead(written), of=of)

        yield case(f"{at_field}/left-out", "it is left out", partial(spoiler.left_out, of))
        yield case(f"{at_field}/doubled", "it stands there twice", partial(spoiler.doubled, of))
        yield case(f"{at_field}/latin-1", "a byte in it is no UTF-8", partial(spoiler.in_latin_1, of))
        out_of_range = False
        for wrong in of.type.wrong_values():
            if of.optional and wrong.kind == "null":
                # That is another way to leave it out.
                continue
            if of.optional and wrong.kind == "empty" and not wrong.part:
                wrong = wrong._replace(allowed=True)
            out_of_range = out_of_range or wrong.kind == "out-of-range"
            name = f"{at_field}/{wrong.kind}"
            if wrong.part:
                around = label if row is not None and self._own(row) == [of] else f"{at_field}."
                name = f"{around}{as_name(wrong.part)}/{wrong.kind}"
            yield case(name, wrong.title, partial(spoiler.with_text, of, wrong))
        # Nobody is sent to another server than the one that is given.
        for identifier in dict.fromkeys(each for each in of.type.identifiers() if not each.of_server):
            for is_others in (True, False) if not out_of_range else (True,):
                whose = "others" if is_others else "nobodys"
                sentence = (
                    f"another's {identifier.title}"
                    if is_others
                    else f"a {identifier.title} that there is not"
                )
                make = acts.made(partial(spoiler.naming, of, identifier, is_others))
                name = f"{at_field}/{whose}-{as_name(identifier.title)}"
                yield self._message_case(row, name, sentence, make, of=of)

    def _dialect(self, row: MessageType) -> Case:
        alike = [each for each in self._rows if each.name == row.name and each.deviation is not None]
        name = f"{as_name(row.name)}/dialect/{alike.index(row) + 1}"
        make = acts.instead(partial(self._spoiler.dialect, row))
        form = Form("dialect", "", acts.whole, harmless=True)
        return self._message_case(row, name, str(row.deviation), make, form)

    def _of_rules(self, row: MessageType, label: str) -> Iterator[Case]:
        for breach in self._reactions.breaches:
            if (breach.of, as_name(breach.message)) == (self._role, label):
                rule = self._dissector.grammar.rules[breach.rule]
                yield self._message_case(
                    row,
                    f"{label}/rule/{breach.rule}",
                    f"against the rule: {rule.text}",
                    acts.made(partial(self._spoiler.breached, breach)),
                )

    # Rows.

    def _own(self, row: MessageType) -> list[Field]:
        """The fields of a row that are not in every one."""
        return [each for each in row.fields if each not in self._everywhere]

    def _label(self, row: MessageType) -> str:
        """A row's name, with the words that tell it from others of its name in the specification."""
        alike = [each for each in self._rows if each.name == row.name and each.deviation is None]
        if len(alike) < 2 or row.deviation is not None:
            return as_name(row.name)
        words = next((words for each in row.fields if (words := _fixed_words(each))), ("",))
        return f"{as_name(row.name)}.{'+'.join(words)}"

    def _case(
        self,
        name: str,
        sentence: str,
        make: Callable[[Situation], Acts],
        uses: int = 1,
        harmless: bool = False,
    ) -> Case:
        full = f"{self._dissector.protocol}/{name}"
        kind = name.split("/")[0]
        demand = self._demand(name, harmless=harmless)
        return Case(full, self._role, kind, sentence, demand, make, uses=uses, harmless=harmless)

    def _message_case(
        self,
        row: MessageType | None,
        name: str,
        sentence: str,
        make: Callable[[Situation], Acts],
        form: Form | None = None,
        *,
        of: Field | None = None,
        at_start: bool = False,
        spelling: Spelling | None = None,
    ) -> Case:
        kind = name.rsplit("/", 1)[1] if form is None else form.kind
        harmless = form is not None and form.harmless
        return Case(
            f"{self._dissector.protocol}/{name}",
            self._role,
            kind,
            ": ".join(
                [*([row.name] if row is not None else ()), *([of.name] if of is not None else ()), sentence]
            ),
            self._demand(name, row, kind, harmless, spelling),
            make,
            row,
            None if of is None else of.name,
            1 if form is None else form.uses,
            at_start,
            harmless,
        )

    def _demand(
        self,
        name: str,
        row: MessageType | None = None,
        kind: str = "",
        harmless: bool = False,
        spelling: Spelling | None = None,
    ) -> Demand:
        """What is wanted in a case."""
        found = self._wanted(name, row, kind, harmless, spelling)
        return found if self._reactions.spares_others else msgspec.structs.replace(found, spares_others=False)

    def _right_if_harmless(self, row: MessageType | None) -> tuple[Reaction, ...]:
        """To go on; a client that is asked nothing may well have nothing to say."""
        is_asked = row is not None and any(row.name in each.answers for each in self._dissector.grammar.rows)
        return ("answers",) if self._role == "server" or is_asked else ("answers", "ignores")

    def _wanted(
        self,
        name: str,
        row: MessageType | None,
        kind: str,
        harmless: bool,
        spelling: Spelling | None,
    ) -> Demand:
        """What the specification says of a case, or else what follows from its grammar and its transport."""
        right = self._right_if_harmless(row) if harmless else ANY_REACTION
        if row is not None and row.deviation is not None:
            # The specification knows no such message.
            return Demand(name, self._role, "open", right, None)
        for demand in self._reactions.demands:
            if demand.is_for(self._role, name):
                return demand
        if spelling is not None:
            return Demand(name, self._role, spelling.level, right, spelling.clause, spelling.quote)
        if kind == "whole" and row is not None:
            return Demand(name, self._role, "must", right, row.clause)
        if harmless:
            return Demand(name, self._role, "must", right, _STREAM, _OF_STREAM)
        return Demand(name, self._role, "open", right, None)


def _is_specified(row: MessageType, other: MessageType) -> bool:
    """Whether another row is the specification's of the same message."""
    return is_same_message(row, other) and other.deviation is None


def _fixed_words(of: Field) -> tuple[str, ...]:
    """The few words that a field can have."""
    words: tuple[str, ...] = getattr(of.type, "words", ())
    return words if 0 < len(words) <= 2 else ()
