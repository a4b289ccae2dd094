"""The questions of a recorded server with the recorded answers, to be given whenever a live server asks.

A question contains a token: an identifier that the server generates for one connection, and that the client
returns in its answer. A live server decides whom it asks and how often; the record decides the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.replay.script import RecordedLine, Script


class Exchange(msgspec.Struct, eq=False):
    """A question, and all messages of its receiver before the next question on the connection.

    `asked` is the number of the role that the live server has asked.
    """

    question: RecordedLine
    answers: list[RecordedLine]
    asked: int | None = None


class Exchanges:
    """The exchanges of a script that have not taken place, in the order of their questions."""

    def __init__(self, script: Script, dissectors: Mapping[str, Dissector]) -> None:
        kinds = {
            line.number: _token_kinds(line, dissectors[line.role.protocol])
            for line in script.steps
            if isinstance(line, RecordedLine)
        }
        # Only a token that clients return makes a question.
        returned = {
            kind
            for line in script.steps
            if isinstance(line, RecordedLine) and line.direction == "c2s"
            for kind in kinds[line.number]
        }
        asked: dict[int, Exchange] = {}
        found: list[Exchange] = []
        for line in script.steps:
            if not isinstance(line, RecordedLine):
                continue
            if line.direction == "c2s" and line.role.number in asked:
                asked[line.role.number].answers.append(line)
            elif line.direction == "s2c" and returned & kinds[line.number]:
                asked[line.role.number] = exchange = Exchange(line, [])
                found.append(exchange)
        self._pending = found
        self.by_answer = {line.number: exchange for exchange in found for line in exchange.answers}
        """The exchanges by the numbers of their answers."""
        first = next((exchange.question.number for exchange in found if exchange.answers), 1)
        self._span = (first, max(self.by_answer, default=0))

    def covers(self, line: RecordedLine) -> bool:
        """Return True if a message is between the first question and the last answer."""
        first, last = self._span
        return first <= line.number <= last

    def is_pending(self, exchange: Exchange) -> bool:
        """Return True if an exchange has not taken place."""
        return exchange in self._pending

    def take(self, role: int, name: str) -> Exchange | None:
        """Choose and return the exchange for a live question to this role; None if the record has none.

        It is the next one with a question of this name. If several players were asked in a row, each gives
        their own answer, or none.
        """
        same = [*_first_run(self._pending, name)]
        if not same:
            return None
        # Drop earlier questions without an answer: no step of the script waits for them.
        passed = self._pending.index(same[0])
        self._pending[:passed] = [one for one in self._pending[:passed] if one.answers]
        own = (exchange for exchange in same if exchange.question.role.number == role)
        chosen = next(own, same[0])
        self._pending.remove(chosen)
        chosen.asked = role
        return chosen

    def drop(self, exchange: Exchange) -> bool:
        """Remove an exchange; return True if a later one has taken place."""
        self._pending.remove(exchange)
        later = {one.question.number for one in self.by_answer.values()} - {
            one.question.number for one in self._pending
        }
        return max(later) > exchange.question.number


def _first_run(pending: list[Exchange], name: str) -> Iterator[Exchange]:
    """Yield the first exchanges in a row whose question has this name."""
    first = next((place for place, one in enumerate(pending) if one.question.name == name), len(pending))
    yield from takewhile(lambda one: one.question.name == name, pending[first:])


def _token_kinds(line: RecordedLine, dissector: Dissector) -> set[IdentifierKind]:
    """Return the kinds of the identifiers that are generated for one message and one connection."""
    decoded = dissector.codec.decode(line.data, line.direction)
    if decoded.row is None or not line.whole:
        return set()
    fresh = {field.name for field in decoded.row.fields if field.generated}
    fields = {name: decoded.fields[name] for name in fresh & decoded.fields.keys()}
    return {kind for kind, _ in decoded.row.identifiers(fields) if kind.per_stream}
