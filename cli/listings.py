"""The columns of every listing, shared by the commands on sessions and on a corpus."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from kiebitz.cli.terminal.console import COLOURS
from kiebitz.cli.terminal.table import Column, address, milliseconds, moment, number, seconds, who
from kiebitz.dissectors.escaping import field_words, json_text
from kiebitz.dissectors.model import Blame
from kiebitz.services.evidence.excerpt import printable_bytes
from kiebitz.services.wording import gravest_of, in_series
from kiebitz.storage.read.event_text import seconds_between, utc
from kiebitz.storage.session.listing_records import ListedMessage
from kiebitz.storage.session.session import Diagnostic, Event, Message


def _local(value: str | None, form: str) -> str:
    """Format a time in the local time zone."""
    return "" if value is None else f"{datetime.fromisoformat(value).astimezone():{form}}"


SESSIONS = (
    number("id"),
    Column("name", "name", least=12, stays=True),
    Column("kind", "kind"),
    Column(
        "started",
        "started (local)",
        text=lambda value: _local(value, "%Y-%m-%d %H:%M:%S"),
        short=lambda value: _local(value, "%m-%d %H:%M"),
        of=lambda row: None if (ns := row.started_ns) is None else utc(ns).isoformat(timespec="microseconds"),
    ),
    Column(
        "seconds",
        "seconds",
        right=True,
        text=seconds,
        short=milliseconds,
        of=lambda row: seconds_between(row.started_ns, row.ended_ns),
    ),
    *(Column(counted, counted, right=True) for counted in ("streams", "messages", "games", "errors")),
    Column("note", "note", least=8),
    Column("lacks", "not captured", least=8),
)


STREAMS = (
    number(),
    Column("protocol", "protocol"),
    Column("transport", "over"),
    address("client", "client"),
    address("server", "server"),
    moment("opened", "opened"),
    moment("closed", "closed"),
    Column("close_reason", "why", least=8),
    Column("messages", "messages", right=True),
    Column("bytes", "bytes", right=True),
    Column("missing_c2s", "missing c2s", right=True),
    Column("missing_s2c", "missing s2c", right=True),
    Column("id"),
)


def result_words(value: Any) -> str:
    """Format a game's result, as in `winner bob; points bob 9, carl 7`: short parts first."""
    if value is None:
        return "no end recorded"
    known = [(key, part) for key, part in value.items() if part not in (None, {}, [])]
    known.sort(key=lambda one: isinstance(one[1], dict))
    return "; ".join(f"{key} {_plain(part)}" for key, part in known)


def result_sentence(value: dict[str, Any]) -> str:
    """Return a game's result as a sentence: `bob wins; points bob 9, carl 7`."""
    for key, one, several in (("winner", "wins", "win"), ("losers", "loses", "lose")):
        names = value.get(key)
        names = [names] if isinstance(names, str) else names
        if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
            points = value.get("points")
            more = f"; {result_words({'points': points})}" if isinstance(points, dict) and points else ""
            return f"{in_series(names)} {one if len(names) == 1 else several}{more}"
    return result_words(value)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(part)}" for key, part in value.items())
    return value if isinstance(value, str) else json_text(value)


GAMES = (
    number(width=4),
    Column("protocol", "protocol"),
    address("server", "server", of_tables=True),
    Column("label", "label", width=9, least=8),
    moment("started", "started", width=12),
    moment("ended", "ended", width=12),
    Column("seconds", "seconds", right=True, text=seconds, short=milliseconds),
    Column("result"),
    Column("", "result", text=result_words, least=16, stays=True, of="named_result"),
    Column("id"),
)


def _happened(event: Event) -> str:
    """Return an event's sentence, marked if its message was altered."""
    return event.sentence if event.altered is None else f"{event.sentence} · altered[{event.altered}]"


EVENTS = (
    number(width=5),
    moment("time", "time", width=12),
    address("server", "server", of_tables=True),
    number("game", "game", width=4),
    Column("kind", "kind", width=14, least=8),
    Column("actor", "actor", width=8, least=8),
    Column("sentence"),
    Column("", "what happened", text=_happened, least=16, stays=True),
    Column("data"),
    Column("table"),
    Column("seq"),
    Column("altered"),
    Column("id"),
)


def content_of(message: Message, *diagnostics: str) -> str:
    """Return a message's content as one line: alteration, diagnostics, gloss and fields."""
    mark = None if message.altered is None else f"altered[{message.altered}]"
    return " · ".join(filter(None, (mark, *diagnostics, message.gloss, field_words(message.fields))))


def _content(message: ListedMessage) -> str:
    diagnostics = [
        f"{diagnostic.severity}[{diagnostic.code}]"
        for diagnostic in message.diagnostics
        if diagnostic.severity != "note"
    ]
    return " · ".join(filter(None, (content_of(message, *diagnostics), _sent(message))))


def _sent(message: ListedMessage) -> str | None:
    return None if message.sent is None else printable_bytes(message.sent)


def _colour(message: ListedMessage) -> str | None:
    gravest = gravest_of([diagnostic.severity for diagnostic in message.diagnostics])
    return None if gravest in (None, "note") else COLOURS[gravest]


MESSAGES = (
    number(width=5),
    moment("time", "time", width=12),
    number("stream", "stream"),
    Column("dir", "dir", stays=True, of="direction"),
    Column("client"),
    who(width=15),
    address("server", "server", of_tables=True),
    Column("name", "name", width=15, least=8),
    Column("gloss"),
    Column("fields"),
    Column("", "fields", text=_content, least=8, colour=_colour),
    Column("offset"),
    Column("length"),
    Column("game"),
    Column("event"),
    Column("player"),
    Column(
        "flaws", of=lambda message: [msgspec.structs.asdict(diagnostic) for diagnostic in message.diagnostics]
    ),
    Column("bytes", of=_sent),
    Column("altered"),
    Column("id"),
)


def _blame(diagnostic: Diagnostic) -> Blame | None:
    """Return the side to blame; None for a note, unless Kiebitz itself caused it."""
    return None if diagnostic.severity == "note" and diagnostic.blame != "kiebitz" else diagnostic.blame


DIAGNOSTICS = (
    *map(Column, ("id", "time", "severity", "group", "code")),
    Column("blame", of=_blame),
    *map(Column, ("stream", "client", "server")),
    Column("dir", of="direction"),
    *map(Column, ("offset", "length")),
    Column("msg", of="name"),
    *map(Column, ("text", "expected", "clause", "suggestion")),
    Column(
        "offset_in_msg",
        of=lambda one: None if one.message_offset is None else one.offset - one.message_offset,
    ),
    Column(
        "bytes",
        of=lambda diagnostic: None if diagnostic.marked is None else printable_bytes(diagnostic.marked),
    ),
    Column("hex", of=lambda diagnostic: None if diagnostic.marked is None else diagnostic.marked.hex()),
    *map(Column, ("lines", "resumed_offset", "resumed_message", "message", "event", "player", "altered")),
)

SUMMED_DIAGNOSTICS = (
    number("count", "count"),
    Column("severity", "severity", stays=True, colour=COLOURS.get),
    Column("group"),
    Column("code", "code", least=12, stays=True),
    Column("blame", "blame", stays=True, of=_blame),
    Column("who", of=lambda diagnostic: diagnostic.player or diagnostic.client),
    who(),
    moment("time", "first at"),
    number("message", "message"),
    Column("text", "text", least=8),
)
