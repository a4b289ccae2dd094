"""`kiebitz follow`: show the bytes of one stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import click

from kiebitz.cli.completion.session import complete_stream
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.session import open_session, session_argument
from kiebitz.cli.terminal.console import Styled, is_terminal, show_line
from kiebitz.dissectors.model import Direction
from kiebitz.services.evidence.excerpt import missing, printable_bytes
from kiebitz.services.sessions import nearest_number
from kiebitz.services.standard_streams import output, warn
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.alterations import ACTION_WORDS, StoredAlteration, alterations
from kiebitz.storage.read.message_queries import streams
from kiebitz.storage.read.recorded_bytes import ChunkRow, chunks

_PER_LINE = 16
_ARROWS: dict[Direction, str] = {"c2s": "→", "s2c": "←"}
_COLOURS: dict[Direction, str] = {"c2s": "red", "s2c": "blue"}
"""As in Wireshark: the client red, the server blue."""


@click.command()
@session_argument
@protocol_option
@click.argument("stream", type=int, shell_complete=complete_stream)
@click.option("--hex", "view", flag_value="hex", help="Show offsets, hexadecimal and text.")
@click.option(
    "--raw", "view", flag_value="raw", help="Write the raw bytes of both directions, in order of arrival."
)
def follow(session: str, stream: int, view: str | None) -> None:
    """Show the bytes of a stream: → from the client, ← from the server.

    Each datagram, or piece of a TCP stream, is on a separate line, preceded by alterations in brackets with
    the original bytes. kiebitz streams lists the streams.

    \b
    Example:
      kiebitz follow game.db 3
      kiebitz follow game.db 3 --hex
    """
    timeline = open_session(session)
    numbers = timeline.numbers
    known = [numbers.number("streams", row.id) for row in streams(timeline)]
    if stream not in known:
        raise StorageError(f"{session}: no stream {stream}; {nearest_number(stream, known)}")
    stream_id = numbers.row_id("streams", stream)
    rows = chunks(timeline.connection, stream_id)
    if view == "raw":
        _raw(rows)
        return
    altered = deque(alterations(timeline, "a.stream_id = ?", [stream_id]))
    for row in rows:
        while altered and altered[0].chunk_id < row.id:
            _show(altered.popleft())
        for line in _hex(row) if view == "hex" else _text(row):
            show_line(Styled(f"{_ARROWS[row.direction]} {line}", _COLOURS[row.direction]))
    for left in altered:
        _show(left)


def _show(row: StoredAlteration) -> None:
    """Show an alteration."""
    sent = "" if row.original is None else f" {printable_bytes(row.original)}"
    line = f"[{ACTION_WORDS[row.action]}{sent}: {row.rule}]"
    show_line(Styled(f"{_ARROWS[row.direction]} {line}", _COLOURS[row.direction], dim=True))


def _raw(rows: Iterable[ChunkRow]) -> None:
    if is_terminal():
        raise click.UsageError("--raw is unsafe on a terminal: redirect it to a file or a pipe")
    for row in rows:
        if row.data is None:
            warn(f"{missing(row.length)} here")
        else:
            output().write(row.data)


def _text(row: ChunkRow) -> Iterator[str]:
    yield missing(row.length) if row.data is None else printable_bytes(row.data)


def _hex(row: ChunkRow) -> Iterator[str]:
    if row.data is None:
        yield f"{row.offset:08x}  {missing(row.length)}"
        return
    for start in range(0, len(row.data) or 1, _PER_LINE):
        piece = row.data[start : start + _PER_LINE]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        yield f"{row.offset + start:08x}  {piece.hex(' '):<{3 * _PER_LINE}} {text}".rstrip()
