"""Isolation of game tables: one that raises, or outgrows its limits, ends its own game and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.model import Diagnostic, Direction, Message, Stream

GAME_ENDED = "game-not-kept"
"""The code of the diagnostic that a server's game, or all its messages, are not read any more."""


def end_of_game(
    error: Exception,
    stream: Stream,
    direction: Direction,
    ts_ns: int,
    message: Message | None = None,
    protocol: str | None = None,
) -> Diagnostic:
    """Return the diagnostic of an exception that ends the game of a stream's server.

    Args:
        error: The exception; the text of a KiebitzError is the reason.
        stream: The stream that was read.
        direction: The direction that was read.
        ts_ns: The time of the bytes that were read.
        message: The message that was read, if any.
        protocol: The protocol of which no message of the server is read any more; None if only its game ends.
    """
    reason = str(error) if isinstance(error, KiebitzError) else fault(error)
    rest = (
        "the game is not kept" if protocol is None else f"the bytes are recorded, but not read as {protocol}"
    )
    return Diagnostic(
        stream,
        direction,
        ts_ns,
        "warning",
        "state",
        GAME_ENDED,
        f"from here on {rest}: {reason}",
        message.offset if message is not None else 0,
        message.length if message is not None else 0,
        message_id=message.id if message is not None else None,
    )


Report = Callable[[Exception, Stream, Direction, Message | None], None]
"""Reports the exception of a table, with the message that was read, if any."""


class IsolatedTable:
    """A table, `game`, that is dropped at its first exception, which is reported.

    Its messages are read on, without a game. `stream` is one of the server's.
    """

    def __init__(self, table: GameTable, stream: Stream, report: Report) -> None:
        self.context = table.context
        self.game: GameTable | None = table
        self._stream = stream
        self._report = report

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        """Call `GameTable.doubt`."""
        self._call(lambda table: table.doubt(stream, direction, ts_ns, is_gap), stream, direction)

    def closed(self, stream: Stream, ts_ns: int) -> None:
        """Call `GameTable.closed`."""
        self._call(lambda table: table.closed(stream, ts_ns), stream)

    def unreachable(self, stream: Stream) -> None:
        """Call `GameTable.unreachable`."""
        self._call(lambda table: table.unreachable(stream), stream)

    def undecided(self) -> int | None:
        """Call `GameTable.undecided`."""
        return self._call(lambda table: table.undecided())

    def finish(self, ts_ns: int) -> None:
        """Call `GameTable.finish`."""
        self._call(lambda table: table.finish(ts_ns))

    def _call(
        self,
        method: Callable[[GameTable], int | None],
        stream: Stream | None = None,
        direction: Direction = "s2c",
    ) -> int | None:
        if self.game is not None:
            try:
                return method(self.game)
            except Exception as error:
                self.end(error, stream, direction)
        return None

    def end(
        self,
        error: Exception,
        stream: Stream | None = None,
        direction: Direction = "s2c",
        message: Message | None = None,
    ) -> None:
        """Drop the table, and report why, unless it was dropped before."""
        if self.game is not None:
            self.game = None
            self._report(error, stream or self._stream, direction, message)
