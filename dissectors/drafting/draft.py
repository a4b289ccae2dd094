"""Drafts of protocol files: from conversations as bytes with times to a text in the notation."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from kiebitz.dissectors.drafting.binary import BinaryKind, layouts
from kiebitz.dissectors.drafting.fields import Row
from kiebitz.dissectors.drafting.framing import (
    TAG,
    Choice,
    choose_framing,
    code_of,
    content,
    entropy,
    in_websocket,
    is_text,
)
from kiebitz.dissectors.drafting.identifiers import Identifiers, find_identifiers, leaves
from kiebitz.dissectors.drafting.relations import (
    CODED,
    find_answers,
    find_broadcasts,
    find_heartbeat_answers,
    find_heartbeats,
)
from kiebitz.dissectors.drafting.rows import relate, rows_of
from kiebitz.dissectors.drafting.text_format import choose_formats, with_numbers
from kiebitz.dissectors.drafting.traffic import (
    MAX_NAME,
    MAX_NAMES,
    Conversation,
    FormatChoice,
    Kind,
    Message,
    Segment,
    segments_of,
)
from kiebitz.dissectors.drafting.turns import find_turn
from kiebitz.dissectors.drafting.writer import Contents, text_of, verify
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.grammar.fields import INTEGER
from kiebitz.dissectors.grammar.grammar import NAMELESS
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocol_file.header import TextHead
from kiebitz.dissectors.protocol_file.reading.positions import ProtocolFileError
from kiebitz.dissectors.protocol_file.specification import Format, Framing

_WANTED = 0.99
"""Least share of the messages, and of the bytes, that a draft must dissect."""

_LEAST_FIT = 0.5
"""Least share of the senders' pauses that must be at the end of a message."""

_MOST_ODD = 0.01
"""Largest share of messages whose names have values in them."""

_FEW = 20
"""Number of messages below which a draft is unreliable."""

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
        described: Share of the messages that the draft dissects.
        left_over: Number of bytes in no message.
        seen: Clause about the traffic that the draft does not describe; empty if it describes nearly all.
        warnings: Sentences about what is doubtful.
    """

    text: str
    contents: Contents
    messages: int
    described: float
    left_over: int
    seen: str
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
    contents_of = (content(choice.framing, message.data) for message in choice.messages)
    _refuse_random(contents_of if choice.left_over == 0 else (each.data for each in segments), source)
    if not choice.messages:
        total = sum(len(segment.data) for segment in segments)
        seen = _observed(segments, choice, ())
        raise DraftingError(f"{source}: no messages found in {total:,} bytes. Seen: {seen}")
    on_progress(2, _STEPS)
    choice.framing = with_numbers(choice.framing, choice.messages)
    forms = choose_formats(choice.framing, choice.messages, choice.root)
    messages = _named(choice.messages, choice.framing, forms)
    if not messages:
        seen = _observed(segments, choice, choice.messages)
        raise DraftingError(f"{source}: no message names found in {choice.framing.kind}. Seen: {seen}")
    binary: dict[Kind, tuple[BinaryKind, ...]] = {}
    if forms["c2s"].format.kind == "struct":
        binary = layouts(messages, forms["c2s"].format.order, choice.framing.kind == "size")
    on_progress(3, _STEPS)
    tables = [one.table for one in conversations]
    identifiers = find_identifiers(messages, tables)
    heartbeats = find_heartbeats(messages)
    on_progress(4, _STEPS)
    broadcasts = find_broadcasts(messages, tables, heartbeats)
    on_progress(5, _STEPS)
    rows, types = rows_of(messages, forms, identifiers, binary)
    on_progress(6, _STEPS)
    answers = find_answers(messages, heartbeats, broadcasts)
    pulses = find_heartbeat_answers(messages, heartbeats)
    for row in rows:
        relate(row, heartbeats, broadcasts, answers, pulses)
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
        formats={direction: form.format for direction, form in forms.items()},
        line_end=_line_end(segments, choice),
        types=types,
        rows=by_name,
        codes={row.name: int(row.name.removeprefix(CODED)) for row in rows if forms[row.direction].has_codes},
        identity=_identity(rows, identifiers),
        turn=turn,
        game=identifiers.room if identifiers.room.isidentifier() else "",
    )
    on_progress(7, _STEPS)
    try:
        accepted, size = verify(contents)
    except ProtocolFileError as error:
        raise DraftingError(
            f"{source}: no protocol file can describe these messages: {error.message}"
        ) from error
    described = accepted / len(choice.messages)
    total = sum(len(message.data) for message in choice.messages) + choice.left_over
    shares = described, size / max(1, total)
    has_lines = choice.framing.kind == "lines" and any(form.is_positional for form in forms.values())
    doubts = doubts_about(messages, rows, has_lines)
    contents.shortfall, seen = _shortfall(segments, choice, messages, shares, doubts)
    return Draft(
        text=text_of(contents),
        contents=contents,
        messages=len(choice.messages),
        described=described,
        left_over=choice.left_over,
        seen=seen,
        warnings=[*_warnings(choice, messages, conversations)],
    )


def _shortfall(
    segments: Sequence[Segment],
    choice: Choice,
    messages: Sequence[Message],
    shares: tuple[float, float],
    doubts: Iterable[tuple[Collection[str], str]],
) -> tuple[str, str]:
    """Return why a draft is wrong and what its traffic looks like; two empty texts if it is right.

    Args:
        segments: The traffic.
        choice: Its framing, with all frames.
        messages: The frames with a name.
        shares: Shares of the messages and of the bytes that the draft dissects.
        doubts: Names that are rather values, with clauses about them.
    """
    if min(shares) < _WANTED or choice.fit < _LEAST_FIT:
        missed = {message.order for message in choice.messages} - {message.order for message in messages}
        return (
            f"it dissects {shares[0]:.1%} of the messages and {shares[1]:.1%} of the bytes of its traffic,"
            f" and {choice.fit:.0%} of the senders' pauses are at the end of a message"
        ), _observed(segments, choice, [message for message in choice.messages if message.order in missed])
    for odd, clause in doubts:
        number = sum(message.name in odd for message in messages)
        if number > _MOST_ODD * len(messages):
            words = " and ".join(repr(printable(name.removeprefix(CODED))) for name in islice(odd, 2))
            reason = f"{number:,} of {len(messages):,} messages begin with a value instead of a name"
            return reason, f"{clause}, such as {words}"
    return "", ""


def _observed(segments: Sequence[Segment], choice: Choice, missed: Sequence[Message]) -> str:
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


def _refuse_unreadable(segments: Sequence[Segment], source: str) -> None:
    """Raise DraftingError for encrypted, compressed or foreign traffic."""
    heads = Counter(
        reason for segment in segments for magic, reason in _MAGIC.items() if segment.data.startswith(magic)
    )
    if heads and heads.most_common(1)[0][1] >= 0.5 * len(segments):
        raise DraftingError(f"{source}: this traffic cannot be read: {heads.most_common(1)[0][0]}")
    is_http = any(_HTTP.match(segment.data) for segment in segments if segment.direction == "c2s")
    if is_http and not in_websocket(segments):
        raise DraftingError(f"{source}: this is HTTP traffic, which no protocol file describes")


def _refuse_random(pieces: Iterable[bytes], source: str) -> None:
    """Raise DraftingError for bytes that are distributed at random."""
    sample = b"".join(piece[:65536] for piece in islice(pieces, 5000))[: 1 << 20]
    if len(sample) >= 4096 and entropy(sample) > 7.8:
        raise DraftingError(
            f"{source}: this traffic is probably encrypted or compressed: its bytes are distributed at random"
        )


def _named(
    messages: Sequence[Message], framing: Framing, forms: Mapping[Direction, FormatChoice]
) -> list[Message]:
    """Parse messages in place, and return those with a known name, or without any."""
    before = TextHead(framing.before, Format())
    for message in messages:
        if framing.before:
            numbers = before.read(message.data).fields
            message.number, message.reference = numbers.get("id"), numbers.get("ref")
        form = forms[message.direction]
        parsed = form.parse(content(framing, message.data, form.format.kind != "struct"))
        if parsed is not None:
            message.name, message.values = parsed
            message.name = code_of(framing, message.data) if framing.has_name else message.name
            if form.has_codes and message.name:
                message.name = f"{CODED}{message.name}"
            if form.format.fields:
                message.same = repr(message.values).encode("utf-8", "replace")
    for direction, form in forms.items():
        if form.format.kind in ("words", "delimited") and not form.has_codes:
            forget_names([message for message in messages if message.direction == direction], messages)
    known = known_names(message for message in messages if message.name)
    return [message for message in messages if message.kind in known]


def _line_end(segments: Iterable[Segment], choice: Choice) -> str:
    """Return the line end for the file, empty for the default."""
    sizes = (segment.data.count(b"\n") - 2 * segment.data.count(b"\r\n") for segment in segments)
    return "\r\n" if choice.framing.kind in ("lines", "block") and sum(sizes) < 0 else ""


def _identity(rows: Sequence[Row], identifiers: Identifiers) -> dict[str, tuple[list[str], str]]:
    """Return the messages of `[identity]` with the evidence."""
    by_key = {
        "login": (identifiers.login, f"{len(identifiers.players)} names, each on its own connection"),
        "given": (identifiers.given, f"differs on each of {len(identifiers.numbers)} connections"),
        "named": (identifiers.named if identifiers.numbers else (), "has both an id and a name"),
    }
    found: dict[str, tuple[list[str], str]] = {}
    for key, (places, why) in by_key.items():
        kinds = {place[:2] for place in places}
        names = dict.fromkeys(row.name for row in rows if (row.direction, row.name) in kinds)
        if names:
            found[key] = [*names], why
    return found


def _warnings(
    choice: Choice, messages: Sequence[Message], conversations: Sequence[Conversation]
) -> Iterator[str]:
    sides = {piece.direction for conversation in conversations for piece in conversation.pieces}
    for direction, sender in zip(DIRECTIONS, ("clients", "the server"), strict=True):
        if direction not in sides:
            yield f"the capture has no bytes from {sender}: answers cannot be inferred"
    if len(messages) < _FEW:
        yield f"only {len(messages)} messages: types and relations are guesses; record a whole game"
    if choice.framing.kind == "send":
        yield "a message is what one segment has, which is a guess: look for an end of messages"
    if choice.fit < 0.7:
        yield f"no framing fits well: only {choice.fit:.0%} of the pauses are at the end of a message"
    if len(conversations) == 1:
        yield "only one connection: broadcasts and players cannot be told from other messages"


_LEAST_VALUES = 3
_SINGLE = 0.9
_KNOWN = 0.6
"""Least number of words and share of single words, and of known ones, in messages that are values."""

_MANY_CODES = 6
"""Number of names with the same fields from which they may be values."""

_KEYWORD = re.compile(r"[A-Z][A-Z0-9_.-]*")


def known_names(messages: Iterable[Message]) -> set[Kind]:
    """Return the names, with directions, that are no garbled forms of others."""
    counts: Counter[Kind] = Counter(message.kind for message in messages)
    folded: dict[Kind, int] = {}
    for (direction, name), number in counts.items():
        key = direction, _fold(name)
        folded[key] = max(folded.get(key, 0), number)
    found: list[Kind] = []
    for (direction, name), number in counts.most_common():
        if not name or len(name) > MAX_NAME or not name.isprintable():
            continue
        if number < folded[direction, _fold(name)] / 5 and number < 5:
            continue
        found.append((direction, name))
    return {*found[:MAX_NAMES]}


def doubts_about(
    messages: Sequence[Message], rows: Iterable[Row], has_lines: bool
) -> Iterator[tuple[list[str], str]]:
    """Yield names that are rather values, with clauses about what they have in common."""
    if any(message.name.startswith(CODED) for message in messages):
        yield _codes_in(rows), "the first numbers of messages hardly recur"
        return
    yield _values_in(messages), "the first words of messages differ in their digits only"
    if has_lines:
        yield _continuations_in(messages), "lines that belong to the message before them"


def _values_in(messages: Iterable[Message]) -> list[str]:
    """Return names with values in them: they differ from others in their digits only, and hardly recur."""
    counts: Counter[Kind] = Counter(message.kind for message in messages)
    alike: dict[Kind, list[str]] = defaultdict(list)
    for (direction, name), number in counts.items():
        if number < 3 or re.search(r"\s\W?\d", name):
            alike[direction, re.sub(r"\d+", "0", name)].append(name)
    return [name for names in alike.values() if len(names) > 1 for name in names]


def forget_names(side: Sequence[Message], messages: Sequence[Message]) -> None:
    """Make messages of one side that are only values messages without a name.

    Each is a single word, which is a number, or which the other side sends, too.
    """
    words = {message.name for message in side if message.name}
    single = sum(not message.values for message in side)
    if len(words) < _LEAST_VALUES or single < _SINGLE * len(side):
        return
    direction = side[0].direction
    others = {
        value for message in messages if message.direction != direction for _, value in leaves(message.values)
    }
    known = sum(INTEGER.fullmatch(word) is not None or word in others for word in words)
    if known >= _KNOWN * len(words):
        for message in side:
            message.values = {"1": " ".join((message.name, *message.values.values()))}
            message.name = NAMELESS


def _continuations_in(messages: Sequence[Message]) -> list[str]:
    """Return names that are rather lines of the message before: they are values, and never sent alone."""
    begun = {message.kind for message in messages if message.begins}
    counts = Counter(message.kind for message in messages)
    values = {value for message in messages for _, value in leaves(message.values)}
    found = [kind for kind in counts if kind not in begun]
    # Else, messages that are always sent with others hardly are that many.
    are_many = len(found) >= max(_LEAST_VALUES, 0.4 * len(counts))
    return [
        name
        for _, name in found
        if are_many or name in values or (re.search(r"\d", name) and not _KEYWORD.fullmatch(name))
    ]


def _codes_in(rows: Iterable[Row]) -> list[str]:
    """Return numbers that are rather values than names: many have the same fields, and hardly recur."""
    alike: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.columns:
            alike[row.direction, *(column.type for column in row.columns)].append(row)
    return [
        row.name
        for found in alike.values()
        if len(found) >= _MANY_CODES and sum(len(row.messages) for row in found) <= 3 * len(found)
        for row in found
    ]


def _fold(name: str) -> str:
    return re.sub(r"\W", "", name).casefold() or name
