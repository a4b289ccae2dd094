"""Drafts of protocol files: from conversations as bytes with times to a text in the notation."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.drafting.binary import layouts
from kiebitz.dissectors.drafting.fields import (
    MAX_FIELDS,
    Column,
    Row,
    TypeInference,
    field_names,
    quoted_name,
    variants,
)
from kiebitz.dissectors.drafting.formats import FormatChoice, choose_format, known_names
from kiebitz.dissectors.drafting.framing import Choice, choose_framing, content, entropy
from kiebitz.dissectors.drafting.identifiers import Identifiers, find_identifiers
from kiebitz.dissectors.drafting.relations import (
    Broadcast,
    Kind,
    find_answers,
    find_broadcasts,
    find_heartbeat_answers,
    find_heartbeats,
)
from kiebitz.dissectors.drafting.traffic import Conversation, Message, Segment, segments_of
from kiebitz.dissectors.drafting.turns import Turn, find_turn
from kiebitz.dissectors.drafting.verification import verify
from kiebitz.dissectors.drafting.writer import Contents, quoted
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.dissectors.protocol_file.reading.errors import ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.notation import BUILT_IN
from kiebitz.dissectors.protocol_file.specification import Framing

_FEW = 20
"""Number of messages below which a draft is unreliable."""

_MAX_VALUES = 5000
"""Number of values of a field by which its type is inferred."""

_STEPS = 8
"""Number of steps of a draft."""

_MAGIC = {
    b"\x16\x03": "TLS: record it behind the encryption, as with kiebitz relay -m reverse:tls",
    b"SSH-": "SSH",
    b"\x1f\x8b": "compressed with gzip",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
    b"\x78\x9c": "compressed with zlib",
    b"\x78\x01": "compressed with zlib",
    b"\x78\xda": "compressed with zlib",
}
"""First bytes of traffic that cannot be read."""

_HTTP = re.compile(rb"(GET|POST|PUT|HEAD|OPTIONS) \S{1,2000} HTTP/1\.[01]\r\n")


class DraftingError(KiebitzError):
    """The traffic has no messages that could be described."""


class Draft(msgspec.Struct):
    """A drafted protocol file.

    Attributes:
        text: The file.
        contents: What it contains.
        messages: Number of messages.
        described: Number of messages that fit a row.
        bytes: Number of bytes, and of those in no message.
        left_over: Number of bytes in no message.
        warnings: Sentences about what is doubtful.
    """

    text: str
    contents: Contents
    messages: int
    described: int
    bytes: int
    left_over: int
    warnings: list[str]

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [row for rows in self.contents.rows.values() for row in rows]


def draft(
    conversations: Sequence[Conversation],
    ports: Sequence[int],
    source: str,
    protocol: str = "draft",
    on_progress: Callable[[int, int | None], None] = lambda done, total: None,
) -> Draft:
    """Return the draft of the protocol that these conversations speak.

    Args:
        conversations: The conversations of servers that speak one protocol, over one transport.
        ports: Ports of the servers.
        source: Name of the capture, for the first line.
        protocol: Name of the protocol.
        on_progress: Called with the number of steps done, and of all.

    Raises:
        DraftingError: There are no messages, or they are encrypted or compressed.
    """
    on_progress(0, _STEPS)
    segments = segments_of(conversations)
    _refuse_unreadable(segments, source)
    on_progress(1, _STEPS)
    choice = choose_framing(segments, conversations[0].transport)
    if not choice.messages:
        raise DraftingError(f"{source}: no messages found in {sum(len(s.data) for s in segments):,} bytes")
    on_progress(2, _STEPS)
    form = choose_format(choice.framing, choice.messages)
    messages = _named(choice.messages, choice.framing, form)
    if not messages:
        raise DraftingError(f"{source}: messages of {choice.framing.kind}, but no message names found")
    binary = layouts(messages, form.format.order) if form.format.kind == "struct" else None
    has_keys = not form.is_positional
    on_progress(3, _STEPS)
    tables = [one.table for one in conversations]
    identifiers = find_identifiers(messages, tables, has_keys)
    heartbeats = find_heartbeats(messages)
    on_progress(4, _STEPS)
    broadcasts = find_broadcasts(messages, tables)
    on_progress(5, _STEPS)
    rows, types = _rows(messages, form, identifiers, binary)
    on_progress(6, _STEPS)
    answers = find_answers(messages, heartbeats, broadcasts)
    pulses = find_heartbeat_answers(messages, heartbeats)
    for row in rows:
        _relate(row, heartbeats, broadcasts, answers, pulses)
    turn = find_turn(messages, heartbeats, identifiers)
    by_name: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_name[row.name].append(row)
    contents = Contents(
        protocol=protocol,
        source=source,
        transport=conversations[0].transport,
        ports=ports,
        framing=choice.framing,
        evidence=choice.evidence,
        format=form.format,
        line_end=_line_end(segments, choice),
        types=types,
        rows=by_name,
        codes={name: int(name.rpartition("_")[2]) for name in by_name} if form.has_codes else {},
        identity=_identity(rows, identifiers),
        hints=_hints(turn),
    )
    on_progress(7, _STEPS)
    try:
        text, checked, accepted = verify(contents)
    except ProtocolFileError as error:
        raise DraftingError(f"{source}: no protocol file can describe these messages: {error.message}") from error
    described = round(sum(len(row.messages) for row in rows) * accepted / max(1, checked))
    result = Draft(
        text=text,
        contents=contents,
        messages=len(choice.messages),
        described=described,
        bytes=sum(len(segment.data) for segment in segments),
        left_over=choice.left_over,
        warnings=[],
    )
    result.warnings += _warnings(result, choice, messages, conversations)
    return result


def _refuse_unreadable(segments: Sequence[Segment], source: str) -> None:
    """Raise DraftingError for encrypted, compressed or foreign traffic."""
    heads = Counter(
        reason for segment in segments for magic, reason in _MAGIC.items() if segment.data.startswith(magic)
    )
    if heads and heads.most_common(1)[0][1] >= 0.5 * len(segments):
        raise DraftingError(f"{source}: this traffic cannot be read: {heads.most_common(1)[0][0]}")
    if any(_HTTP.match(segment.data) for segment in segments if segment.direction == "c2s"):
        what = "WebSocket" if any(b"pgrade: websocket" in s.data[:4000] for s in segments) else "HTTP"
        raise DraftingError(
            f"{source}: this is {what} traffic, for which no protocol file can be drafted yet"
        )
    sample = b"".join(segment.data[:65536] for segment in segments[:200])[: 1 << 20]
    if len(sample) >= 4096 and entropy(sample) > 7.8:
        raise DraftingError(
            f"{source}: this traffic is probably encrypted or compressed: its bytes are distributed at random"
        )


def _named(messages: Sequence[Message], framing: Framing, form: FormatChoice) -> list[Message]:
    """Parse messages in place, and return those with a known name."""
    for message in messages:
        parsed = form.parse(content(framing, message.data))
        if parsed is not None:
            message.name, message.values = parsed
    known = known_names(message for message in messages if message.name)
    found = [message for message in messages if (message.direction, message.name) in known]
    if form.has_codes:
        for message in found:
            message.name = f"message_{message.name}"
    return found


def _line_end(segments: Iterable[Segment], choice: Choice) -> str:
    """Return the line end for the file, empty for the default."""
    if choice.framing.kind not in ("lines", "block"):
        return ""
    lines = crs = 0
    for segment in segments:
        lines += segment.data.count(b"\n")
        crs += segment.data.count(b"\r\n")
    return "\r\n" if crs > 0.5 * lines else ""


# Rows.


def _rows(
    messages: Sequence[Message],
    form: FormatChoice,
    identifiers: Identifiers,
    binary: Mapping[tuple[str, str], Sequence[str]] | None,
) -> tuple[list[Row], dict[str, str]]:
    """Return all rows in the order of their first messages, and the types that they use."""
    groups: dict[Kind, list[Message]] = defaultdict(list)
    for message in messages:
        groups[message.direction, message.name].append(message)
    is_text = form.format.kind != "json"
    delimiter = form.format.delimiter if form.format.kind in ("delimited", "pairs", "words") else "\0"
    types = TypeInference(
        is_text, identifiers.players, delimiter, BUILT_IN.keys(), has_elements=form.format.kind == "xml"
    )
    if not form.is_positional:
        for own in groups.values():
            for message in own[:_MAX_VALUES]:
                _learn(types, message.values)
    rows: list[Row] = []
    for kind, own in groups.items():
        if binary is not None:
            rows.append(_binary_row(kind, own, binary[kind], identifiers))
        elif form.is_positional:
            rows += _positional_rows(kind, own, form, types, identifiers)
        else:
            rows.append(_keyed_row(kind, own, types, identifiers))
    return rows, types.named


def _learn(types: TypeInference, value: Any, depth: int = 0) -> None:
    if depth > 5:
        return
    if isinstance(value, dict):
        for key, part in value.items():
            if isinstance(part, str):
                types.learn(key, [part])
            elif isinstance(part, list):
                types.learn(key, [item for item in part[:50] if isinstance(item, str)])
                for item in part[:50]:
                    _learn(types, item, depth + 1)
            else:
                _learn(types, part, depth + 1)


def _keyed_row(kind: Kind, messages: list[Message], types: TypeInference, identifiers: Identifiers) -> Row:
    direction, name = kind
    columns: list[Column] = []
    keys = Counter(key for message in messages for key in message.values)
    # In the order of the fullest message.
    order = dict.fromkeys(max(messages, key=lambda message: len(message.values)).values)
    for key in list(dict.fromkeys((*order, *keys)))[:MAX_FIELDS]:
        if quoted_name(key) is None:
            continue
        found = [message.values[key] for message in messages if message.values.get(key) is not None]
        kind_of = (
            types.type_of(
                key,
                found[:_MAX_VALUES],
                lambda path: identifiers.type_at(direction, name, path),
            )
            if found
            else "any"
        )
        columns.append(
            Column(
                key,
                kind_of,
                optional=len(found) < len(messages),
                generated=(direction, name, (key,)) in identifiers.generated,
                key=key,
            )
        )
    return Row(name, direction, messages, columns)


def _positional_rows(
    kind: Kind, messages: list[Message], form: FormatChoice, types: TypeInference, identifiers: Identifiers
) -> Iterator[Row]:
    direction, name = kind
    is_words = form.format.kind == "words"
    delimiter = " " if is_words else form.format.delimiter
    for own, required, has_tail in variants(messages, is_words):
        most = required if has_tail else max(len(message.values) for message in own)
        columns: list[Column] = []
        for index in range(1, min(most, MAX_FIELDS) + 1):
            key = str(index)
            found = [message.values[key] for message in own[:_MAX_VALUES] if key in message.values]
            place = direction, name, (key,)
            columns.append(
                Column(
                    "",
                    types.type_of(name, found, lambda path, place=place: identifiers.types.get(place)),  # type: ignore[misc]
                    optional=index > required,
                    generated=place in identifiers.generated,
                    key=key,
                )
            )
        if has_tail:
            tails = [
                [value for key, value in message.values.items() if int(key) > required]
                for message in own[:_MAX_VALUES]
            ]
            columns.append(_tail(name, tails, types, delimiter, is_words))
        for column, field in zip(columns, field_names([column.type for column in columns]), strict=True):
            column.name = field
        yield Row(name, direction, own, columns)


def _tail(
    name: str, tails: Sequence[Sequence[str]], types: TypeInference, delimiter: str, is_words: bool
) -> Column:
    """Return the field that takes all remaining words: a list of one type, or free text."""
    items = [item for tail in tails for item in tail]
    if not items:
        return Column("", "rest", optional=True)
    item = types.type_of(name, items, lambda path: None)
    is_list = item not in ("text", "rest") or not is_words
    kind = f"[{item}{'' if delimiter == ',' else delimiter}]" if is_list else "rest"
    return Column("", kind, optional=any(not tail for tail in tails))


def _binary_row(kind: Kind, messages: list[Message], types: Sequence[str], identifiers: Identifiers) -> Row:
    direction, name = kind
    columns: list[Column] = []
    for index, base in enumerate(types, 1):
        key = str(index)
        place = direction, name, (key,)
        values = {message.values.get(key) for message in messages[:_MAX_VALUES]}
        type_name = base
        identifier = identifiers.types.get(place, "").partition(" ")[0]
        if base.startswith("text") and len(values & identifiers.players) >= 0.8 * len(values) and values:
            type_name = f"player {base}" if base != "text" else "player"
        elif identifier and base[0] in "uit" and base != "text":
            type_name = f"{identifier} {base}"
        columns.append(Column("", type_name, generated=place in identifiers.generated, key=key))
    for column, field in zip(columns, field_names([column.type for column in columns]), strict=True):
        column.name = field
    return Row(name, direction, messages, columns)


def _relate(
    row: Row,
    heartbeats: Collection[Kind],
    broadcasts: Mapping[str, Broadcast],
    answers: Mapping[Kind, Sequence[tuple[str, int]]],
    pulses: Mapping[Kind, str],
) -> None:
    """Set the relations of a row, and note their evidence."""
    kind = row.direction, row.name
    conversations = len({message.conversation for message in row.messages})
    plural = "s" if conversations != 1 else ""
    row.notes.append(f"seen {_times(len(row.messages))} on {conversations} connection{plural}")
    row.heartbeat = kind in heartbeats
    copies = broadcasts.get(row.name) if row.direction == "s2c" else None
    if copies is not None and not row.heartbeat:
        row.broadcast = True
        row.notes.append(
            f"{copies.copies / copies.messages:.0%} as copies to {copies.coverage:.0%} of connections"
        )
    for name, number in answers.get(kind, ()):
        row.answers.append(name)
        row.notes.append(f"follows {name} {_times(number)}")
    if kind in pulses:
        row.answers.append(pulses[kind])
    for column in row.columns:
        if column.type.startswith("id:token") and row.direction == "c2s":
            row.notes.append(f"{column.name} is repeated from the server")


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


# Identity and hints.


def _identity(rows: Sequence[Row], identifiers: Identifiers) -> dict[str, tuple[list[str], str]]:
    found: dict[str, tuple[list[str], str]] = {}
    login = _names(rows, "c2s", {place[1] for place in identifiers.login})
    if login:
        found["login"] = login, f"{len(identifiers.players)} names, each on its own connection"
    given = _names(rows, "s2c", {place[1] for place in identifiers.given})
    if given:
        found["given"] = given, f"differs on each of {len(identifiers.numbers)} connections"
    named = _names(rows, "s2c", {place[1] for place in identifiers.named})
    if named and identifiers.numbers:
        found["named"] = named, "has both an id and a name"
    return found


def _names(rows: Sequence[Row], direction: str, names: Collection[str]) -> list[str]:
    """Return those message names that have rows, in their order."""
    return list(dict.fromkeys(row.name for row in rows if row.direction == direction and row.name in names))


def _hints(turn: Turn | None) -> list[str]:
    """Return the comments at the end: an event for the turn, which hides all others."""
    if turn is None:
        return []
    event = f'on = {quoted(turn.name)}, say = "it is {{who}}\'s turn", turn = true, put = {{ turn = "who" }}'
    return [
        f"{turn.name} says whose turn it is: that player acted next in {turn.hits} of {turn.total} cases.",
        "Without events, each message is one; with them, only these are shown:",
        "[events]",
        f"turn = {{ {event} }}",
    ]


def _warnings(
    found: Draft, choice: Choice, messages: Sequence[Message], conversations: Sequence[Conversation]
) -> Iterator[str]:
    sides = {piece.direction for conversation in conversations for piece in conversation.pieces}
    for direction, sender in zip(DIRECTIONS, ("clients", "the server"), strict=True):
        if direction not in sides:
            yield f"the capture has no bytes from {sender}: answers cannot be inferred"
    if len(messages) < _FEW:
        yield f"only {len(messages)} messages: types and relations are guesses; record a whole game"
    if choice.fit < 0.7:
        yield f"no framing fits well: only {choice.fit:.0%} of the pauses are at the end of a message"
    if len(conversations) == 1:
        yield "only one connection: broadcasts and players cannot be told from other messages"
    missed = found.messages - found.described
    if missed > 0.01 * found.messages:
        yield f"{missed:,} of {found.messages:,} messages fit no row"
