"""The transcript of a test case as lines of text: all messages in order, with time and bytes."""

from __future__ import annotations

from collections.abc import Iterator

from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION
from kiebitz.dissectors.escaping import field_words
from kiebitz.dissectors.grammar.grammar import UNREADABLE, shortened
from kiebitz.services.evidence.excerpt import printable_bytes
from kiebitz.services.probing.results import ReportedMessage, Result, expectation_in_words
from kiebitz.services.wording import counted

_MAX_FIELDS_LENGTH = 120
"""Maximum number of characters shown of a message's fields."""

_MAX_BYTES = 64
"""Maximum number of bytes shown of a message."""


def transcript(result: Result, max_messages: int) -> Iterator[tuple[str, str]]:
    """Yield what was sent and received, as pairs of a heading and a text.

    The heading of a message has its direction as seen by Kiebitz, and its time in seconds; the one of its
    bytes is empty.
    """
    if result.unread:
        yield "sent", f"no message: {_bytes(result.unread)}"
    ours = INPUT_DIRECTION[result.role]
    for message in result.messages[:max_messages]:
        direction = "sent" if message.direction == ours else "got"
        yield f"{direction:4} {message.time:.3f} s", _words(message)
        if message.name != UNREADABLE:
            yield "", _bytes(bytes.fromhex(message.hex))
    more = len(result.messages) + result.left_out - max_messages
    if more > 0:
        yield "", f"and {counted(more, 'message')} more"


def specification(result: Result) -> str:
    """Return what the specification expects, with its clause and words."""
    demand = result.demand
    words = expectation_in_words(result)
    if demand.clause is None:
        return words
    return f"{words}; {demand.clause}" + ("" if demand.quote is None else f': "{demand.quote}"')


def _words(message: ReportedMessage) -> str:
    if message.name == UNREADABLE:
        return f"{message.name} {_bytes(bytes.fromhex(message.hex))}"
    return f"{message.name} {shortened(field_words(message.fields), _MAX_FIELDS_LENGTH)}".rstrip()


def _bytes(data: bytes) -> str:
    more = f"… ({counted(len(data), 'byte')})" if len(data) > _MAX_BYTES else ""
    return printable_bytes(data[:_MAX_BYTES]) + more
