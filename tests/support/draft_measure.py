"""Comparison of a drafted protocol file with the grammar of a built-in protocol."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from drafted_protocols import in_websocket

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.drafting.draft import Draft, draft
from kiebitz.dissectors.drafting.fields import Row
from kiebitz.dissectors.drafting.traffic import Conversation, Piece, segments_of
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import OPPOSITE, Direction, port_of
from kiebitz.dissectors.protocol_file.dissector import FileDissector, dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.services.drafting import draft_from, read_traffic
from kiebitz.services.protocol_template import example_files

COURSES = Path(__file__).parents[1] / "data" / "courses"
"""Samples of protocols of courses, as text."""

EXAMPLES = example_files() | {path.stem: path for path in COURSES.glob("*.toml")}
"""Their protocol files."""

Kind = tuple[str, str]
"""Direction and name of a message."""


class Share(NamedTuple):
    """A number of correct items; of those expected, and of those found."""

    right: int
    expected: int
    found: int

    @property
    def recall(self) -> float:
        """Share of the expected items that were found."""
        return self.right / self.expected if self.expected else 1.0

    @property
    def precision(self) -> float:
        """Share of the found items that are right."""
        return self.right / self.found if self.found else 1.0

    def __add__(self, other: Share) -> Share:  # type: ignore[override]
        return Share(*(mine + its for mine, its in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return f"{self.right}/{self.expected} {self.recall:4.0%} {self.precision:4.0%}"


Measures = dict[str, Share]
"""Shares by what is measured."""


def draft_of(capture: str, ports: Sequence[int] = ()) -> tuple[Draft, list[Conversation]]:
    """Return the draft of a capture and its conversations."""
    traffic = read_traffic([capture], ports, lambda name: lambda done, total: None)
    ports = ports or [server.port for server in traffic.servers]
    conversations = [
        one for server, found in traffic.servers.items() if server.port in ports for one in found
    ]
    return draft_from(traffic, ports, [capture]), conversations


def compare(draft: Draft, conversations: Sequence[Conversation], dissector: Dissector) -> Measures:
    """Return how well a draft agrees with a grammar, for the messages that occur."""
    truth = _valid_messages(conversations, dissector)
    names = _names(draft, dissector)
    rows: dict[Kind, list[Row]] = defaultdict(list)
    for row in draft.rows:
        if (row.direction, row.name) in names:
            rows[row.direction, names[row.direction, row.name]].append(row)
    types: dict[Kind, list[MessageType]] = defaultdict(list)
    for each in dissector.grammar.rows:
        types[each.direction, each.name].append(each)
    found = {kind for kind in rows if kind in truth}
    result: Measures = {
        "names": Share(len(found), len(truth), len({(r.direction, r.name) for r in draft.rows}))
    }
    result["fields"] = _sum(_fields(truth[kind], rows[kind]) for kind in found)
    result["players"] = _sum(_players(types[kind], truth[kind], rows[kind], draft) for kind in found)
    pairs, drafted = _pairs(draft, dissector, names)
    result["answers"] = Share(len(pairs & drafted), len(pairs), len(drafted))
    for flag in ("broadcast", "heartbeat"):
        expected = {kind for kind in found if any(getattr(each, flag) for each in types[kind])}
        marked = {kind for kind in found if any(getattr(row, flag) for row in rows[kind])}
        if flag == "broadcast" and len(conversations) < 2:
            expected = set()
        result[f"{flag}s"] = Share(len(expected & marked), len(expected), len(marked))
    logins = {name for name in dissector.identity.login_messages if ("c2s", name) in found}
    login = {
        names[("c2s", name)]
        for name in draft.contents.identity.get("login", ((), ""))[0]
        if ("c2s", name) in names
    }
    result["logins"] = Share(len(logins & login), len(logins), len(login))
    return result


def _pairs(
    draft: Draft, dissector: Dissector, names: Mapping[Kind, str]
) -> tuple[set[tuple[Kind, str]], set[tuple[Kind, str]]]:
    """Return the pairs of an answer and its question that occur by the grammar, and those of the draft.

    Of a message to all for which the grammar names no question, no pair is right or wrong: some grammars
    list the copies that follow a request as its answers, and others do not.
    """
    answers: dict[Kind, set[str]] = defaultdict(set)
    broadcasts: set[Kind] = set()
    for each in dissector.grammar.rows:
        answers[each.direction, each.name].update(each.answers)
        if each.broadcast:
            broadcasts.add((each.direction, each.name))
    expected: set[tuple[Kind, str]] = set()
    open_requests: dict[tuple[int, Direction], list[str]] = defaultdict(list)
    for message in sorted((m for row in draft.rows for m in row.messages), key=lambda m: m.order):
        decoded = dissector.codec.decode(message.data, message.direction)
        if decoded.row is None or not decoded.valid:
            continue
        kind = message.direction, decoded.row.name
        asked = open_requests[message.conversation, OPPOSITE[message.direction]]
        found = next((name for name in asked if name in answers[kind]), None)
        if found is not None:
            asked.remove(found)
            expected.add((kind, found))
        open_requests[message.conversation, message.direction].append(decoded.row.name)
    drafted = {
        ((row.direction, names.get((row.direction, row.name), row.name)), names.get(other, asked))
        for row in draft.rows
        for asked in row.answers
        for other in [(OPPOSITE[row.direction], asked)]
    }
    possible = {pair for pair in drafted if pair[1] in answers[pair[0]]}
    silent = {kind for kind in broadcasts if not answers[kind]}
    return expected, {
        pair for pair in drafted if pair in expected or (pair not in possible and pair[0] not in silent)
    }


def _sum(shares: Iterable[Share]) -> Share:
    total = Share(0, 0, 0)
    for share in shares:
        total += share
    return total


def _valid_messages(conversations: Sequence[Conversation], dissector: Dissector) -> dict[Kind, Counter[str]]:
    """Return the fields of all valid messages, with their number, by direction and name."""
    found: dict[Kind, Counter[str]] = defaultdict(Counter)
    # Those before the name, or in a header, are no fields of the rows.
    around = (
        {field.name for field in dissector.specification.framing.fields}
        if isinstance(dissector, FileDissector)
        else set()
    )
    for segment in segments_of(conversations):
        framer = dissector.framer(segment.direction)
        ends = [*segment.ends] if framer.depends_on_segments else [len(segment.data)]
        pieces = zip((0, *ends), ends, strict=False)
        for frame in chain.from_iterable(
            framer.feed(start, segment.data[start:end]) for start, end in pieces
        ):
            decoded = dissector.codec.decode(frame.data, segment.direction) if frame.cut is None else None
            if (
                decoded is not None
                and decoded.valid
                and decoded.row is not None
                and decoded.row not in dissector.grammar.transport_rows
            ):
                found[segment.direction, decoded.row.name].update(decoded.fields.keys() - around)
    return found


def _names(draft: Draft, dissector: Dissector) -> dict[Kind, str]:
    """Return the grammar's name for each name of the draft, as most of its messages are decoded."""
    votes: dict[Kind, Counter[str]] = defaultdict(Counter)
    for row in draft.rows:
        for message in row.messages[:200]:
            decoded = dissector.codec.decode(message.data, message.direction)
            if decoded.row is not None:
                votes[row.direction, row.name][decoded.row.name] += 1
    return {kind: counts.most_common(1)[0][0] for kind, counts in votes.items()}


def _fields(truth: Counter[str], rows: Sequence[Row]) -> Share:
    """Compare names of fields, or their number where they have no names."""
    names = {column.name for row in rows for column in row.columns}
    have_keys = not any(column.key.isdigit() for row in rows for column in row.columns)
    if have_keys and names != {"value"}:
        return Share(len(names & truth.keys()), len(truth), len(names))
    number = max((len(row.columns) for row in rows), default=0)
    return Share(min(number, len(truth)), len(truth), number)


_PLAYER = re.compile(r"(?:^|[=\[])(?:player|id)(?![:\w])")


def _players(types: Sequence[MessageType], truth: Counter[str], rows: Sequence[Row], draft: Draft) -> Share:
    """Compare which fields contain names or numbers of players, by name, or by position from 1."""
    expected: set[Any] = set()
    for each in types:
        for position, field in enumerate(each.fields, 1):
            if field.name in truth and any(kind.of_player for kind in field.type.identifiers()):
                expected |= {field.name, str(position)}
    found = {
        column.key
        for row in rows
        for column in row.columns
        if _PLAYER.search(draft.contents.types.get(column.type.strip("[]"), column.type))
    }
    return Share(len(expected & found), len(expected) // 2, len(found))


def course(name: str) -> list[Conversation]:
    """Return the conversations of a sample of a course's protocol in `tests/data/courses`.

    The first line is the transport, or `websocket`, and the port; then `1>` is a client's message on its
    first connection, and `1<` the server's. Lines that begin with `=` or `|` are
    about events and the board.
    """
    first, *lines = (COURSES / f"{name}.txt").read_text().splitlines()
    transport, port = first.split()
    pieces: dict[str, list[Piece]] = defaultdict(list)
    offsets: Counter[tuple[str, str]] = Counter()
    for number, line in enumerate(line for line in lines if line[0] not in "=|"):
        connection, sign, text = line[0], line[1], line[3:]
        data = (
            text.encode("latin-1").decode("unicode_escape").encode("latin-1")
            if "\\" in text
            else text.encode()
        )
        direction: Direction = "c2s" if sign == ">" else "s2c"
        at = offsets[connection, direction]
        offsets[connection, direction] += len(data)
        pieces[connection].append(Piece(direction, 10_000_000 * number, at, data))
    return [
        Conversation(
            f"10.0.0.{int(number) + 1}:4000{number}",
            f"10.0.0.1:{port}",
            "udp" if transport == "udp" else "tcp",
            in_websocket(own, "plain") if transport == "websocket" else own,
        )
        for number, own in pieces.items()
    ]


def draft_of_course(name: str) -> tuple[Draft, list[Conversation]]:
    """Return the draft of a course's sample and its conversations."""
    conversations = course(name)
    return draft(conversations, [port_of(conversations[0].server)], name, name), conversations


def dissector_in(path: Path) -> Dissector:
    """Return the dissector of a protocol file."""
    return dissector_from(read_specification(path.read_text()))
