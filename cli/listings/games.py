"""Columns and rows of the listing of games."""

from __future__ import annotations

from typing import Any

from kiebitz.cli.terminal.table import Column, Row, address, milliseconds, moment, number, seconds
from kiebitz.dissectors.escaping import json_text
from kiebitz.storage.session.session import Game


def result_words(value: Any) -> str:
    """How a game ended, as in `winner bob; points bob 9, carl 7`: first what is short."""
    if value is None:
        return "no end seen"
    known = [(key, part) for key, part in value.items() if part not in (None, {}, [])]
    known.sort(key=lambda one: isinstance(one[1], dict))
    return "; ".join(f"{key} {_plain(part)}" for key, part in known)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(part)}" for key, part in value.items())
    return value if isinstance(value, str) else json_text(value)


COLUMNS = (
    number(width=4),
    Column("protocol", "protocol"),
    address("server", "server", of_tables=True),
    Column("label", "label", width=9, least=8),
    moment("started", "started", width=12),
    moment("ended", "ended", width=12),
    Column("seconds", "seconds", right=True, text=seconds, short=milliseconds),
    Column("result"),
    Column("", "result", text=result_words, least=16, stays=True),
    Column("id"),
)


def game_row(game: Game) -> Row:
    """The row of a game below `COLUMNS`."""
    return (
        game.number,
        game.protocol,
        game.server,
        game.label,
        game.started,
        game.ended,
        game.seconds,
        game.result,
        game.named_result,
        game.id,
    )
