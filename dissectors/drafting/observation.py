"""Sentences about traffic that no draft describes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kiebitz.dissectors.drafting.framing import TAG, Choice, is_text
from kiebitz.dissectors.drafting.traffic import Message, Segment
from kiebitz.dissectors.escaping import printable


def observed(segments: Sequence[Segment], choice: Choice, missed: Sequence[Message]) -> str:
    """Return what was seen in traffic that is not described, as a clause.

    Args:
        segments: The traffic.
        choice: The framing that fits best.
        missed: Messages that fit no row.
    """
    if choice.framing.kind == "datagrams" or (choice.fit >= 0.9 and missed):
        return _of_messages(missed)
    if not segments:
        return "no bytes"
    if choice.framing.kind == "length":
        return f"binary messages: {choice.evidence}"
    if not is_text(segments):
        return "binary messages without a length, or with one in a place that is not known"
    roots = Counter(found[1] for segment in segments if (found := TAG.match(segment.data)) is not None)
    if roots and roots.total() >= 0.5 * len(segments):
        return f"XML in an element <{printable(roots.most_common(1)[0][0].decode())}> that stays open"
    if choice.framing.kind == "block":
        last_line = printable(repr(choice.framing.end))
        return f"blocks of lines that end in {last_line}, and lines that end without it"
    last = Counter(segment.data[turn - 1 : turn] for segment in segments for turn in segment.turns)
    end, number = last.most_common(1)[0]
    if number < 0.8 * last.total():
        return "text without an end: a message seems to be what is sent at once"
    return f"text in which {number / last.total():.0%} of the pauses follow {printable(repr(end)[1:])}"


def _of_messages(missed: Sequence[Message]) -> str:
    """Return a clause about messages that fit no row, with an example."""
    if not missed:
        return "messages of which each fits a row, and bytes between them"
    example = max(missed, key=lambda message: len(message.data)).data[:60]
    shown = printable(example.decode("utf-8", "backslashreplace").strip())
    return f"messages unlike all others, such as {shown}"
