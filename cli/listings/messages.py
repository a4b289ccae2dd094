"""Columns and rows of the listing of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kiebitz.cli.terminal.severities import COLOURS
from kiebitz.cli.terminal.table import Column, Row, Who, address, moment, number, who
from kiebitz.dissectors.escaping import field_words
from kiebitz.dissectors.model import Action
from kiebitz.services.evidence.excerpt import shown_bytes
from kiebitz.storage.read.message_queries import FlawOfMessage
from kiebitz.storage.session.session import Message


class _Said(msgspec.Struct, frozen=True):
    """What a message says, for people: its flaws, its gloss and its fields, or its bytes if it has none."""

    altered: Action | None
    flaws: Sequence[FlawOfMessage]
    gloss: str | None
    fields: dict[str, Any]
    sent: str | None


def _said(said: _Said) -> str:
    flaws = [f"{flaw.severity}[{flaw.code}]" for flaw in said.flaws if flaw.severity != "note"]
    mark = None if said.altered is None else f"altered[{said.altered}]"
    return " · ".join(filter(None, (mark, *flaws, said.gloss, field_words(said.fields), said.sent)))


def _colour(said: _Said) -> str | None:
    gravest = [severity for severity in COLOURS for flaw in said.flaws if flaw.severity == severity]
    return COLOURS[gravest[0]] if gravest and gravest[0] != "note" else None


COLUMNS = (
    number(width=5),
    moment("time", "time", width=12),
    number("stream", "stream"),
    Column("dir", "dir", stays=True),
    Column("client"),
    who(width=15),
    address("server", "server", of_tables=True),
    Column("name", "name", width=15, least=8),
    Column("gloss"),
    Column("fields"),
    Column("", "fields", text=_said, least=8, colour=_colour),
    Column("offset"),
    Column("length"),
    Column("game"),
    Column("event"),
    Column("player"),
    Column("flaws"),
    Column("bytes"),
    Column("altered"),
    Column("id"),
)


def message_row(message: Message, flaws: Sequence[FlawOfMessage], sent: bytes | None) -> Row:
    """The row of a message below `COLUMNS`; `sent` are the first bytes of one that has none but flaws."""
    shown = None if sent is None else shown_bytes(sent)
    return (
        message.number,
        message.time,
        message.stream,
        message.direction,
        message.client,
        Who(message.client, message.player),
        message.server,
        message.name,
        message.gloss,
        message.fields,
        _Said(message.altered, flaws, message.gloss, message.fields, shown),
        message.offset,
        message.length,
        message.game,
        message.event,
        message.player,
        [msgspec.structs.asdict(flaw) for flaw in flaws],
        shown,
        message.altered,
        message.id,
    )
