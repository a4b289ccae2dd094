"""Options and arguments that select a message (`#31` or 31), a moment, a game or a player of a session."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from kiebitz.cli.completion.session import complete_game, complete_moment, complete_player
from kiebitz.cli.param_type import Parsed
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import PUBLIC, Message
from kiebitz.services.sessions import nearest_number
from kiebitz.storage.read.message_queries import messages
from kiebitz.storage.read.seek import parse_position
from kiebitz.storage.read.timeline import Timeline

_NUMBERED = re.compile(r"\s*#?(\d{1,18})(?:\s+(.*))?", re.DOTALL | re.ASCII)


class NoSuchMessageError(KiebitzError):
    """A session has no message of this number; the text gives the nearest numbers."""


def _parse_number(value: str) -> int:
    number, rest = leading_number(value)
    if number is None or rest:
        raise ValueError(f"{value!r} is not a message number, as in '#31' or 31")
    return number


MESSAGE_NUMBER = Parsed("message", _parse_number)


def leading_number(text: str) -> tuple[int | None, str]:
    """Split a text into a leading message number, or None, and the rest."""
    form = _NUMBERED.fullmatch(text)
    return (None, text) if form is None else (int(form[1]), form[2] or "")


def message_numbered(timeline: Timeline, number: int) -> Message:
    """Return a message by its number in the session. Raises NoSuchMessageError."""
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
            f"#{number}: no such message in this session; {nearest_number(number, known)}"
        )
    return row


game_option = click.option(
    "--game", "number", type=int, metavar="N", shell_complete=complete_game, help="Only this game."
)

player_option = click.option(
    "--as",
    "player",
    metavar="PLAYER",
    shell_complete=complete_player,
    help=f"Show only what this player could observe; {PUBLIC}: what all at the table may know.",
)


def moment_option(flag: str, parameter: str, help_text: str) -> Callable[[Any], Any]:
    """Return an option for a moment; None if it is not given."""
    return click.option(
        flag,
        parameter,
        type=Parsed("moment", parse_position),
        metavar="MOMENT",
        shell_complete=complete_moment,
        help=help_text,
    )
