"""How messages are named on the command line: `#31`, or 31, is a message's number within its session."""

from __future__ import annotations

import re
from typing import Any

import click

from kiebitz.cli.param_type import ParamType
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Message
from kiebitz.services.sessions import nearest_number
from kiebitz.storage.read.message_queries import messages
from kiebitz.storage.read.timeline import Timeline

_NUMBERED = re.compile(r"\s*#?(\d{1,18})(?:\s+(.*))?", re.DOTALL | re.ASCII)


class NoSuchMessageError(KiebitzError):
    """A session has no message of this number; the sentence says which numbers it has."""


class MessageNumber(ParamType[int]):
    """Reads a message's number."""

    name = "message"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number, rest = leading_number(value)
        if number is None or rest:
            self.fail(f"{value!r} is no message's number, as in '#31' or 31", param, ctx)
        return number


def leading_number(text: str) -> tuple[int | None, str]:
    """The number of a message that a text begins with, None if it does not, and what stands behind it."""
    form = _NUMBERED.fullmatch(text)
    return (None, text) if form is None else (int(form[1]), form[2] or "")


def message_numbered(timeline: Timeline, number: int) -> Message:
    """The message of this number within the session. Raises NoSuchMessageError."""
    row = next(messages(timeline, "m.id = ?", [timeline.numbers.row_id("messages", number)]), None)
    if row is None:
        known = [
            timeline.numbers.number("messages", row_id)
            for (row_id,) in timeline.connection.execute(
                "SELECT m.id FROM messages AS m JOIN streams AS s ON s.id = m.stream_id"
                " WHERE s.session_id = ? ORDER BY m.id",
                (timeline.session.id,),
            )
        ]
        raise NoSuchMessageError(
            f"#{number}: there is no such message in this session; {nearest_number(number, known)}"
        )
    return row
