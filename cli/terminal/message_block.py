"""A whole message for the terminal.

Above are facts about the message, then its bytes (`byte_rows.py`), the event that it reports with the changes
to the state, copies of the message, and its neighbours. No information is conveyed by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kiebitz.cli.configuration.file import named
from kiebitz.cli.terminal.byte_rows import ByteRows
from kiebitz.cli.terminal.screen import Console, Text
from kiebitz.dissectors.escaping import field_words, value_words
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.model import Message as StoredMessage
from kiebitz.services.evidence.excerpt import printable_bytes
from kiebitz.services.wording import counted
from kiebitz.storage.read.alterations import ACTION_WORDS
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.session.message_detail import BroadcastCopy, ChangeDetail, MessageDetail, OriginalMessage
from kiebitz.storage.session.session import Message

NARROWEST = 30
"""Minimum width of lines (columns)."""

_SHOWN = 200
"""Maximum length of a value of the state (characters)."""

_COPIES = 8
"""Maximum number of copies to show."""

_CHANGES = 40
"""Maximum number of changes of the state to show."""

_INDENT = "  "


def message_lines(shown: MessageDetail, columns: int) -> list[Text]:
    """Return the lines of a message for a terminal of `columns`, at least 30."""
    return [*_Block(shown, max(columns, NARROWEST)).lines()]


def neighbour_lines(
    timeline: Timeline,
    message: Message,
    before: Sequence[StoredMessage],
    after: Sequence[StoredMessage],
    columns: int,
) -> list[Text]:
    """Return one line for each neighbour of a message on its stream, at most `columns` wide."""
    lines: list[Text] = []
    for title, rows in (("before it", before), ("after it", after)):
        if rows:
            lines += [Text(), Text(f"{title} on stream {message.stream}", "bold")]
        for row in rows:
            line = Text(_INDENT + _in_short(timeline, row))
            line.truncate(columns, overflow="ellipsis")
            lines.append(line)
    return lines


class _Block:
    """The lines of one message."""

    def __init__(self, shown: MessageDetail, columns: int) -> None:
        self._shown, self._columns = shown, columns
        self._console = Console(width=columns)

    def lines(self) -> Iterator[Text]:
        yield from self._head()
        if self._shown.as_sent is not None:
            yield from self._altered(self._shown.as_sent)
        yield Text()
        shown = self._shown
        yield from ByteRows(shown.data, shown.pieces, shown.diagnostics, self._columns).lines()
        if shown.left_out:
            yield from self._wrapped(Text(f"… {counted(shown.left_out, 'byte')} more, not shown here"))
        if shown.event is not None:
            yield Text()
            yield from self._event()
        if shown.copies:
            yield Text()
            yield from self._copies()

    def _head(self) -> Iterator[Text]:
        message, about = self._shown.message, self._shown.about
        # Only foreign names have a gloss.
        meaning = message.gloss or (about.meaning if about is not None else None)
        name = Text.assemble((f"#{message.number} {message.name}", "bold"))
        yield from self._wrapped(name if meaning is None else name + f": {meaning}")
        game = "" if message.game is None else f", game {message.game}"
        place = f"{message.time:.6f} s, stream {message.stream}, from byte {message.offset}{game}"
        yield from self._wrapped(Text(place))
        yield from self._wrapped(Text(f"{_way(message)} ({message.direction})"))
        if about is not None:
            yield from self._wrapped(Text(f"clause: {about.clause}"))
            if about.deviation is not None:
                yield from self._wrapped(Text(f"dialect: {about.deviation}"))

    def _altered(self, sent: OriginalMessage) -> Iterator[Text]:
        action = self._shown.message.altered
        assert action is not None
        head = Text.assemble((f"altered[{action}]", "magenta"), f": {ACTION_WORDS[action]} by {sent.rule}")
        yield from self._wrapped(head)
        if sent.data is None:
            return
        when = "" if sent.time is None else f" at {sent.time:.6f} s"
        said = printable_bytes(sent.data) if sent.fields is None else field_words(sent.fields)
        named = f"{sent.name} {said}" if sent.name is not None else said
        yield from self._wrapped(Text(f"as it was sent{when}: {shortened(named, _SHOWN)}"), _INDENT)

    def _event(self) -> Iterator[Text]:
        event = self._shown.event
        assert event is not None
        head = Text.assemble((f"event #{event.number}", "bold"), f", {event.time:.6f} s: {event.sentence}")
        yield from self._wrapped(head)
        for change in self._shown.changes[:_CHANGES]:
            yield from self._wrapped(Text(_changed(change)), _INDENT)
        yield from self._more(len(self._shown.changes) - _CHANGES)

    def _copies(self) -> Iterator[Text]:
        count = self._shown.copies_in_all
        yield from self._wrapped(Text(counted(count, "other copy", "other copies"), "bold"))
        for copy in self._shown.copies[:_COPIES]:
            yield from self._wrapped(Text(_told(copy, self._shown.message)), _INDENT)
        yield from self._more(count - _COPIES)

    def _more(self, count: int) -> Iterator[Text]:
        if count > 0:
            yield from self._wrapped(Text(f"… and {count} more"), _INDENT)

    def _wrapped(self, text: Text, indent: str = "") -> Iterator[Text]:
        """Wrap a text with a hanging indent."""
        inner = indent + _INDENT
        for number, line in enumerate(text.lines(self._console, self._columns - len(inner))):
            yield Text(inner if number else indent) + line


def _way(message: Message) -> str:
    client, server = named(message.client), named(message.server)
    client = client if message.player is None else f"{message.player} ({client})"
    return f"{client} → {server}" if message.direction == "c2s" else f"{server} → {client}"


def _changed(change: ChangeDetail) -> str:
    path = ".".join(map(str, change.path))
    before = "" if change.before is msgspec.UNSET else f"{_words(change.before)} → "
    return f"{path}: {before}{'(removed)' if change.value is None else _words(change.value)}"


def _words(value: object) -> str:
    return shortened(value_words(value), _SHOWN)


def _told(copy: BroadcastCopy, message: Message) -> str:
    way = "to" if message.direction == "s2c" else "from"
    later = f"{abs(copy.seconds) * 1000:.3f} ms {'earlier' if copy.seconds < 0 else 'later'}"
    return f"#{copy.number} {way} {copy.player or named(copy.client)} (stream {copy.stream}), {later}"


def _in_short(timeline: Timeline, row: StoredMessage) -> str:
    number, seconds = timeline.numbers.number("messages", row.id), timeline.seconds(row.ts_ns)
    words = shortened(field_words(row.fields), _SHOWN)
    return f"#{number} {seconds:.6f} s, {row.direction}: {row.name} {words}".rstrip()
