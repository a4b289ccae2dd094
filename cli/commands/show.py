"""`kiebitz show`: show messages in full."""

from __future__ import annotations

from collections.abc import Sequence

import click
import msgspec

from kiebitz.cli.completion.session import complete_message
from kiebitz.cli.options.messages import MESSAGE_NUMBER, message_numbered, player_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.records import json_option
from kiebitz.cli.options.session import open_session_as, session_argument
from kiebitz.cli.terminal.console import write_json_array
from kiebitz.dissectors.model import PUBLIC
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.seen_rows import NO_SUCH_MESSAGE
from kiebitz.storage.session.message_detail import MessageDetail, MessageDetails

_NEIGHBOURS = 2
"""Number of messages to show before and after, one line each."""


@click.command()
@session_argument
@protocol_option
@click.argument(
    "numbers",
    metavar="#N...",
    type=MESSAGE_NUMBER,
    nargs=-1,
    required=True,
    shell_complete=complete_message,
)
@player_option
@json_option("Print one JSON array of messages, as in kiebitz serve's /api/messages/N.")
def show(session: str, numbers: Sequence[int], player: str | None, as_json: bool) -> None:
    """Show messages in full: bytes, productions of the grammar, diagnostics and event.

    Each diagnostic is under its bytes. Below are the event that the message reports, with the changes to the
    state; the copies of the message for other clients; and its neighbours on the same stream.

    N is a message number as in kiebitz messages. Most shells treat a # at the start of a word as a comment:
    write '#7', or 7.

    \b
    Example:
      kiebitz show odd.pcap '#31'
      kiebitz show game.db 31 32 --as alice
      kiebitz show game.db:2 '#31' --json
    """
    timeline = open_session_as(session, player)
    in_full = MessageDetails(timeline)
    # Look up all messages before showing the first.
    rows = [message_numbered(timeline, number) for number in numbers]
    found = [
        _seen(in_full.message(row.id, player), number, player)
        for row, number in zip(rows, numbers, strict=True)
    ]
    if as_json:
        write_json_array(msgspec.to_builtins(message) for message in found)
    else:
        _show(in_full, found, player)


def _seen(message: MessageDetail | None, number: int, player: str | None) -> MessageDetail:
    if message is None and player == PUBLIC:
        raise StorageError(f"#{number}: {NO_SUCH_MESSAGE}")
    if message is None:
        raise StorageError(f"#{number}: this message is not on a connection of {player}")
    return message


def _show(in_full: MessageDetails, found: Sequence[MessageDetail], player: str | None) -> None:
    # Rich is slow to import; JSON does without.
    from kiebitz.cli.terminal.message_block import message_lines, neighbour_lines
    from kiebitz.cli.terminal.screen import Console

    console = Console()
    for place, message in enumerate(found):
        if place:
            console.print()
        lines = message_lines(message, console.width)
        if player != PUBLIC:
            neighbours = in_full.neighbours(message.message, _NEIGHBOURS)
            lines += neighbour_lines(in_full.timeline, message.message, *neighbours, console.width)
        for line in lines:
            line.rstrip()
            console.print(line, soft_wrap=True)
