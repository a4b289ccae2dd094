"""The text of a drafted protocol file: TOML with the evidence as comments; its verification.

All words from the network are quoted, without control characters, and bounded in length.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kiebitz.dissectors.drafting.fields import Column, Row, quoted_name
from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.drafting.turns import Turn
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.model import Direction, Transport
from kiebitz.dissectors.protocol_file.dissector import FileDissector, dissector_from
from kiebitz.dissectors.protocol_file.reading.positions import ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.protocol_file.specification import Format, Framing, HeaderPart

MAX_TEXT = 250_000
"""Maximum size of a draft, in bytes."""

_MAX_COMMENT = 160
_PLAYER = re.compile(r"(player|id)(?![\w:])")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Contents(msgspec.Struct):
    """The contents of a draft.

    Attributes:
        protocol: Name of the protocol.
        source: Name of the capture.
        transport: Transport of its servers.
        ports: Ports of its servers.
        framing: The framing, and the sentence with its evidence.
        formats: The format of each direction.
        line_end: Line end of messages, empty for the default.
        types: Types by name.
        rows: Rows by message name.
        codes: Numbers that stand for message names.
        identity: Values of `[identity]`, with a comment each.
        turn: The message that says whose turn it is, if there is one.
        game: Field with the game to which a message belongs; empty if there is one game at a time.
        shortfall: Sentence about traffic that the draft does not describe; empty if it describes nearly all.
    """

    protocol: str
    source: str
    transport: Transport
    ports: Sequence[int]
    framing: Framing
    evidence: str
    formats: Mapping[Direction, Format]
    line_end: str
    types: Mapping[str, str]
    rows: dict[str, list[Row]]
    codes: dict[str, int]
    identity: dict[str, tuple[list[str], str]]
    turn: Turn | None
    game: str = ""
    shortfall: str = ""


def text_of(contents: Contents) -> str:
    """Return the text of a protocol file."""
    lines = [*_head(contents)]
    if contents.types:
        lines += ["", "[types]"]
        lines += [f"{name} = {quoted(kind)}" for name, kind in contents.types.items()]
    lines += [
        "",
        "[messages]  # s: from the server, c: from a client, *: to each client, ~: heartbeat, <: answers",
    ]
    size = sum(len(line.encode()) for line in lines)
    for name, rows in contents.rows.items():
        added = list(_message(name, rows))
        size += sum(len(line.encode()) + 1 for line in added)
        if size > MAX_TEXT:
            lines.append("# further messages are left out: the file would be too long")
            break
        lines += added
    if contents.codes:
        lines += ["", "[codes]"]
        lines += [f"{key_of(name)} = {code}" for name, code in contents.codes.items()]
    if contents.identity:
        lines += ["", "[identity]"]
        for key, (names, why) in contents.identity.items():
            value = quoted(names[0]) if len(names) == 1 else f"[{', '.join(map(quoted, names))}]"
            lines.append(f"{key} = {value}{comment(why)}")
    if contents.turn is not None and contents.turn.name in contents.rows:
        lines += ["", *_turn(contents.turn, contents.rows[contents.turn.name])]
    return "\n".join(lines) + "\n"


def _turn(turn: Turn, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a silent event for the turn, as a comment if it is not certain or the player is not clear."""
    key = turn.path[0] if turn.path is not None else None
    of_players = [{column.key for column in row.columns if _PLAYER.match(column.type)} for row in rows]
    is_clear = all(found == ({key} if key is not None else set()) for found in of_players)
    is_clear &= key is not None or not any(row.broadcast for row in rows)
    why = f"that player acted next in {turn.hits} of {turn.total} cases; all messages are still events"
    hidden = "" if is_clear and turn.is_certain else "# "
    yield f"{hidden}[events]"
    yield f"{hidden}turn = {{ on = {quoted(turn.name)}, silent = true, turn = true }}{comment(why)}"


def _head(contents: Contents) -> Iterator[str]:
    framing = contents.framing
    yield f"# Drafted by kiebitz draft from {printable(contents.source)[:_MAX_COMMENT]}."
    if contents.shortfall:
        yield f"# It is wrong, or has gaps: {contents.shortfall}."
    yield "# Check names and types, and add what only people know: see docs/protocol-files.md."
    yield f"protocol = {quoted(contents.protocol)}"
    if contents.transport == "udp":
        yield 'transport = "udp"'
    ports = list(contents.ports)[:16]
    if ports:
        yield f"port = {ports[0] if len(ports) == 1 else ports}"
    yield f"framing = {quoted(framing.kind)}{comment(contents.evidence)}"
    if framing.kind in ("delimiter", "block"):
        yield f"end = {quoted(framing.end)}"
    if framing.kind == "size":
        yield f"size = {framing.size}"
    if framing.kind == "length":
        if framing.header:
            yield f"header = {quoted(' '.join(map(_part, framing.header)))}"
        else:
            yield f"prefix = {quoted(framing.prefix)}"
        yield f"order = {quoted(framing.order)}"
        if framing.inclusive:
            yield f"inclusive = {quoted(framing.inclusive)}  # the length counts this, too"
    if framing.before:
        parts = (f"[{part.opening}{part.field.name}=integer{part.closing}]" for part in framing.before)
        yield f"before = {quoted(''.join(parts))}"
        if len(framing.before) > 1:
            yield 'answers = { by = "ref", of = "id" }'
    kinds = {each[0]: form.kind for each, form in contents.formats.items()}
    if len({*kinds.values()}) > 1:
        yield f"formats = {{ {', '.join(f'{side} = {quoted(kind)}' for side, kind in kinds.items())} }}"
    else:
        yield f"format = {quoted(kinds['c'])}"
    yield from dict.fromkeys(line for form in contents.formats.values() for line in _keys(framing, form))
    if contents.game:
        yield f"game = {quoted(contents.game)}  # several games at once"
    if contents.line_end:
        yield f"line_end = {quoted(contents.line_end)}"


def _keys(framing: Framing, form: Format) -> Iterator[str]:
    """Yield the keys of a format."""
    if form.quote:
        yield f"quote = {quoted(form.quote)}"
    if form.pads:
        yield f"pad = [{', '.join(map(quoted, form.pads))}]"
    if form.kind in ("delimited", "pairs"):
        yield f"delimiter = {quoted(form.delimiter)}"
    if form.kind == "pairs":
        yield f"assign = {quoted(form.assign)}"
    if form.name and form.kind in ("pairs", "json", "xml", "struct"):
        yield f"name = {quoted(form.name)}"
    if form.stays_open:
        yield f"root = {quoted(form.envelope)}"
    if form.fields:
        yield f"fields = {quoted(form.fields)}"
    if form.kind == "struct" and framing.kind != "length":
        yield f"order = {quoted(form.order)}"
    if form.encoding != "utf-8":
        yield f"encoding = {quoted(form.encoding)}"


def _part(part: HeaderPart) -> str:
    if part.field is None:
        return f"'0x{part.constant.hex()}'"
    return f"{part.field.name}={part.field.title}"


def _message(name: str, rows: Sequence[Row]) -> Iterator[str]:
    if len(rows) == 1:
        yield f"{key_of(name)} = {quoted(row_text(rows[0]))}{comment('; '.join(rows[0].notes))}"
        return
    yield f"{key_of(name)} = ["
    for row in rows:
        yield f"    {quoted(row_text(row))},{comment('; '.join(row.notes))}"
    yield "]"


def row_text(row: Row) -> str:
    """Return a row in the notation: direction, fields and answered messages."""
    side = "s" if row.direction == "s2c" else "c"
    text = f"{side}{'*' * row.broadcast}{'~' * row.heartbeat}:"
    parts = [text, *map(_field, row.columns)]
    if row.answers:
        parts += ["<", *(word for name in row.answers if (word := _answered(name)) is not None)]
    return " ".join(parts)


def _field(column: Column) -> str:
    return f"{quoted_name(column.name)}{'?' * column.optional}={column.type}{'!' * column.generated}"


def _answered(name: str) -> str | None:
    """Return a message's name after `<`; None if it cannot be written."""
    return name if " ".join(name.split()) == name and "<" not in name else None


def quoted(text: str) -> str:
    """Return a text as a basic string of TOML."""
    encoded = json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
    return "".join(
        character if character.isprintable() else "".join(_escape(ord(character))) for character in encoded
    )


def _escape(code: int) -> Iterable[str]:
    yield f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def key_of(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if _BARE.fullmatch(name) else quoted(name)


def comment(text: str) -> str:
    """Return a comment at the end of a line, or an empty text."""
    if not text:
        return ""
    shown = printable(text)
    return f"  # {shown if len(shown) <= _MAX_COMMENT else f'{shown[:_MAX_COMMENT]}…'}"


_ROUNDS = 4
_TOLERATED = 0.005
"""Share of a row's messages that may be malformed."""

_MAX_CHECKED = 20_000
"""Number of messages of a row that are checked."""


def verify(contents: Contents) -> tuple[float, float]:
    """Relax rows until the dissector of the draft accepts the messages by which it was made.

    Returns:
        The number of messages that it accepts, and of bytes in them.

    Raises:
        ProtocolFileError: The draft cannot be read.
    """
    for attempt in range(_ROUNDS):
        dissector = _readable(contents)
        messages = size = 0.0
        problems: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for name, rows in contents.rows.items():
            for row in rows:
                sample = _sample(row.messages)
                for message in sample:
                    decoded = dissector.codec.decode(message.data, message.direction)
                    if decoded.valid and decoded.row is not None:
                        messages += len(row.messages) / len(sample)
                        size += len(message.data) * len(row.messages) / len(sample)
                        continue
                    said = decoded.violations[0].text if decoded.violations else ""
                    problems[row.direction, name][_field_in(said, name)] += 1
        if attempt == _ROUNDS - 1 or not _relax(contents, problems):
            break
    return messages, size


def _readable(contents: Contents) -> FileDissector:
    """Return the dissector of the draft, without messages that the notation cannot express.

    Raises ProtocolFileError.
    """
    while True:
        text = text_of(contents)
        try:
            return dissector_from(read_specification(text, f"{contents.protocol}.toml"))
        except ProtocolFileError as error:
            name = _message_at(text, error.line, contents)
            if name is None:
                raise
            del contents.rows[name]
            contents.codes.pop(name, None)
            _forget(name, contents)


def _forget(name: str, contents: Contents) -> None:
    """Remove what refers to a message that is left out."""
    for rows in contents.rows.values():
        for row in rows:
            row.answers = [asked for asked in row.answers if asked != name]
    for key, (names, why) in list(contents.identity.items()):
        left = [each for each in names if each != name]
        if left:
            contents.identity[key] = left, why
        else:
            del contents.identity[key]


def _message_at(text: str, line: int, contents: Contents) -> str | None:
    """Return the message whose row is in this line of the text, None if it is none."""
    lines = text.split("\n")
    for above in range(line - 1, -1, -1):
        for name in contents.rows:
            if lines[above].startswith(f"{key_of(name)} = "):
                return name
    return None


def _sample(messages: Sequence[Message]) -> Sequence[Message]:
    return messages[:: -(-len(messages) // _MAX_CHECKED)]


def _field_in(text: str, name: str) -> str:
    """Return the field that a violation is about, or an empty text."""
    found = re.match(rf"{re.escape(name)}: '?([^:']{{1,60}})'?: ", text)
    return found[1] if found is not None else ""


def _relax(contents: Contents, problems: dict[tuple[str, str], Counter[str]]) -> bool:
    """Widen the types of fields that have problems; return True if any was."""
    changed = False
    for (direction, name), counts in problems.items():
        rows = [row for row in contents.rows[name] if row.direction == direction]
        total = sum(len(row.messages) for row in rows)
        for field, number in counts.most_common():
            if number <= max(1, _TOLERATED * total) and number < 0.1 * total:
                continue
            columns = [column for row in rows for column in row.columns if column.name == field]
            if columns and any(
                column.type != _widest(contents.formats[rows[0].direction], column) for column in columns
            ):
                for column in columns:
                    column.type = _widest(contents.formats[rows[0].direction], column)
                changed = True
            elif not columns or field == "":
                changed |= _widen_rows(contents, rows)
    return changed


def _widest(form: Format, column: Column) -> str:
    """Return the widest type for a field of this format."""
    if form.kind in ("json", "xml"):
        return "any"
    if form.kind == "struct":
        return column.type
    return "rest" if column.type.startswith("[") or column.type == "rest" else "text"


def _widen_rows(contents: Contents, rows: Sequence[Row]) -> bool:
    """Let rows accept any fields that their messages have; return False if they do already."""
    changed = False
    kind = contents.formats[rows[0].direction].kind
    for row in rows:
        if kind in ("json", "xml", "pairs"):
            for column in row.columns:
                widest = _widest(contents.formats[rows[0].direction], column)
                changed |= column.type != widest or not column.optional
                column.type, column.optional = widest, True
        else:
            widest = "bytes" if kind == "struct" else "rest"
            alone = [Column("data" if widest == "bytes" else "text", widest, optional=widest == "rest")]
            changed |= row.columns != alone
            row.columns = alone
    # Variants that are the same now are one.
    name, direction = rows[0].name, rows[0].direction
    if len(rows) > 1 and all(row.columns == rows[0].columns for row in rows):
        first = rows[0]
        first.messages = [message for row in rows for message in row.messages]
        others = [row for row in contents.rows[name] if row.direction != direction]
        contents.rows[name] = [first, *others]
    return changed
