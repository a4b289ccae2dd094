"""`kiebitz follow`: the bytes of one stream, as the two sides sent them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import click

from kiebitz.cli.completion.session import complete_stream
from kiebitz.cli.options.session import open_session, session_argument
from kiebitz.cli.terminal.console import Styled, is_terminal, show_line
from kiebitz.dissectors.model import Direction
from kiebitz.services.evidence.excerpt import missing, printable_bytes
from kiebitz.services.sessions import nearest_number
from kiebitz.services.standard_streams import output, warn
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.alterations import IN_WORDS, StoredAlteration, alterations
from kiebitz.storage.read.message_queries import streams
from kiebitz.storage.read.recorded_bytes import ChunkRow, chunks

_PER_LINE = 16
_ARROWS: dict[Direction, str] = {"c2s": "→", "s2c": "←"}
_COLOURS: dict[Direction, str] = {"c2s": "red", "s2c": "blue"}
"""As in Wireshark: the client red, the server blue."""


@click.command()
@session_argument
@click.argument("stream", type=int, shell_complete=complete_stream)
@click.option("--hex", "view", flag_value="hex", help="Offsets, hexadecimal, and text beside it.")
@click.option("--raw", "view", flag_value="raw", help="The bytes as they were, both directions as they came.")
def follow(session: str, stream: int, view: str | None) -> None:
    """Show the bytes of a stream: → is what the client sent, ← what the server sent.

    Each datagram, or piece of a TCP stream, is on a line of its own; what Kiebitz did to it stands before it
    in brackets, with what had been sent. Streams are listed by kiebitz streams.

    \b
    Example:
      kiebitz follow game.db 3
      kiebitz follow game.db 3 --hex
    """
    timeline = open_session(session)
    numbers = timeline.numbers
    known = [numbers.number("streams", row.id) for row in streams(timeline)]
    if stream not in known:
        raise StorageError(f"{session}: there is no stream {stream}; {nearest_number(stream, known)}")
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
    """Say what was done to what comes next, or to what does not come."""
    sent = "" if row.original is None else f" {printable_bytes(row.original)}"
    line = f"[{IN_WORDS[row.action]}{sent}: {row.rule}]"
    show_line(Styled(f"{_ARROWS[row.direction]} {line}", _COLOURS[row.direction], dim=True))


def _raw(rows: Iterable[ChunkRow]) -> None:
    if is_terminal():
        raise click.UsageError("--raw would let these bytes drive your terminal: send it to a file or a pipe")
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
