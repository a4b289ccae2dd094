"""Recognition of a server's protocol: its first items wait, a message leads to a guess, later ones judge it.

The items wait until one of them can only be a message of one protocol. If too many wait, the protocol that
they resemble is guessed. Other programs share words with a game, so one word is no proof. Until there are
several, errors about unreadable frames are held; they are reported once the guess is confirmed, or as notes
if it was wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from kiebitz.dissectors.dissector import Dissector, OnError, identify, recognise
from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Chunk, Diagnostic, Direction, Gap, Item, Stream

MAX_UNDECIDED_ITEMS = {"udp": 64, "tcp": 4096}
"""Maximum number of waiting items of a server with unknown protocol: datagrams are messages, segments are
not."""

MAX_UNDECIDED_HEAD = 64 << 10
"""Number of bytes at the start of a TCP stream's direction that are examined to recognise the protocol."""

MAX_UNDECIDED_BYTES = 8 << 20
"""Maximum number of waiting bytes of all servers together: a capture may contain much that is no game."""

PROOF_MESSAGES = 5
"""Number of different readable messages that prove a guess, whatever else comes."""

ENOUGH_MESSAGES = 16
"""Number of unreadable messages after which a guess may be withdrawn."""

MAX_HELD = 64
"""Maximum number of held errors since the guess; a guess not withdrawn by then is right."""

_BYTES_PER_MESSAGE = 1024
"""Number of bytes in one frame that count as one more message: a byte stream may be one long frame."""

_MAX_EXAMINED = 64 << 10
_MAX_STREAMS = 256


class _Head(msgspec.Struct, eq=False):
    """The first bytes of a TCP stream's direction; they are examined again when there are `enough`."""

    data: bytearray = bytearray()
    enough: int = 1


class Undecided(msgspec.Struct, eq=False):
    """The evidence for the protocol of a server while it is unknown."""

    waiting: list[Item] = []
    heads: dict[tuple[int, Direction], _Head] = {}
    disproved: set[tuple[Direction, str]] = set()
    """The messages that led to a guess that was withdrawn."""
    failed: set[Dissector] = set()
    """The dissectors that raised an exception when they looked at its bytes."""


class Recognition(msgspec.Struct, eq=False):
    """The search for the protocols of servers among those of `dissectors`.

    `on_error` is called with a dissector that raised an exception, and the bytes that it looked at; it is not
    asked about that server again.
    """

    dissectors: Collection[Dissector]
    _report: Callable[[Dissector, Chunk, Exception], object] = lambda dissector, chunk, error: None
    _waiting_bytes: int = 0

    def wait(self, server: Undecided, item: Item) -> Dissector | None:
        """Have an item wait; return the dissector of the protocol that it identifies, if it does."""
        stream = item.stream
        server.waiting.append(item)
        if isinstance(item, Chunk):
            self._waiting_bytes += len(item.data)
            beginning = item.data if stream.transport == "udp" else _beginning(server, item)
            for dissector in identify(
                self._candidates(server), stream, item.direction, beginning, self._on_error(server, item)
            ):
                if not _is_disproved(server, dissector, item.direction, beginning):
                    return dissector
        elif isinstance(item, Gap):
            server.heads.pop((stream.id, item.direction), None)
        return None

    def is_full(self, server: Undecided) -> bool:
        """Return True if no more items of a server may wait after the last one."""
        return (
            len(server.waiting) >= MAX_UNDECIDED_ITEMS[server.waiting[-1].stream.transport]
            or self._waiting_bytes > MAX_UNDECIDED_BYTES
        )

    def most_similar(self, server: Undecided) -> tuple[Dissector, Stream] | None:
        """Return the dissector of the protocol that a server's items resemble, and the stream of the item."""
        looked_at: set[tuple[int, Direction]] = set()
        for item in server.waiting if not server.disproved else ():
            if not isinstance(item, Chunk):
                continue
            data = item.data
            if item.stream.transport == "tcp":
                key = (item.stream.id, item.direction)
                if key in looked_at or key not in server.heads:
                    continue
                looked_at.add(key)
                data = bytes(server.heads[key].data)
            for dissector, direction, _ in recognise(
                self._candidates(server), item.stream.transport, data, self._on_error(server, item)
            ):
                if direction == item.direction:
                    return dissector, item.stream
        return None

    def take(self, server: Undecided) -> list[Item]:
        """Return a server's waiting items, which wait no longer."""
        waiting, server.waiting = server.waiting, []
        server.heads.clear()
        self._waiting_bytes -= sum(len(item.data) for item in waiting if isinstance(item, Chunk))
        return waiting

    def _candidates(self, server: Undecided) -> Collection[Dissector]:
        if not server.failed:
            return self.dissectors
        return [dissector for dissector in self.dissectors if dissector not in server.failed]

    def _on_error(self, server: Undecided, chunk: Chunk) -> OnError:
        """Return the function that excludes a dissector that cannot look at a server's bytes."""

        def exclude(dissector: Dissector, error: Exception) -> None:
            server.failed.add(dissector)
            self._report(dissector, chunk, error)

        return exclude


def _is_disproved(server: Undecided, dissector: Dissector, direction: Direction, data: bytes) -> bool:
    """Return True if a datagram contains a message that has led to a wrong guess before."""
    row = dissector.codec.decode(data, direction).row if server.disproved else None
    return row is not None and (direction, row.name) in server.disproved


def _beginning(server: Undecided, chunk: Chunk) -> bytes:
    """Return the first bytes of a direction if they are due to be examined again, else no bytes.

    A segment may be a single byte: examined each time, a stream of those would take quadratic time.
    """
    head = server.heads.setdefault((chunk.stream.id, chunk.direction), _Head())
    room = MAX_UNDECIDED_HEAD - len(head.data)
    head.data += chunk.data[:room]
    if room <= 0 or len(head.data) < head.enough:
        return b""
    head.enough = len(head.data) + max(1, len(head.data) // 8)
    return bytes(head.data)


class ProtocolGuess(msgspec.Struct, eq=False):
    """The evidence for and against the protocol of one server."""

    dissector: Dissector
    names: set[tuple[Direction, str]] = set()
    """The readable messages."""
    _sound: int = 0
    _foreign: int = 0
    _slips: int = 0
    is_doubtful: bool = False
    """True if there was input that may be another program's."""
    held: list[Diagnostic] = []
    """The errors to report if the guess is right."""
    _held_since: int = 0
    streams: dict[int, Stream] = {}
    """The latest streams that were read by this guess."""

    def take(
        self, stream: Stream, direction: Direction, decoded: Decoded, frame: Frame, counts: bool
    ) -> None:
        """Weigh a frame; one from before the guess does not count against it."""
        if stream.id not in self.streams:
            self.streams[stream.id] = stream
            if len(self.streams) > _MAX_STREAMS:
                del self.streams[next(iter(self.streams))]
        if decoded.row is not None:
            if decoded.valid:
                self._sound += 1
                self.names.add((direction, decoded.row.name))
            else:
                self._slips += counts
                self.is_doubtful = True
            return
        weight = (
            frame.size // _BYTES_PER_MESSAGE
            if frame.cut == "end"
            else self._weight(direction, decoded, frame)
        )
        if weight:
            self._foreign += weight * counts
            self.is_doubtful = True

    def hold(self, diagnostics: list[Diagnostic], counts: bool) -> None:
        """Hold errors that may be about another program's messages."""
        self.held += diagnostics
        self._held_since += len(diagnostics) * counts

    def _weight(self, direction: Direction, decoded: Decoded, frame: Frame) -> int:
        """Return the number of another program's messages that an unreadable frame counts as."""
        if frame.cut == "gap" or (
            decoded.violations and all(violation.severity == "note" for violation in decoded.violations)
        ):
            return 0
        if frame.size <= _MAX_EXAMINED and self.dissector.recognise(frame.data, direction) is not None:
            return 0
        return 1 + frame.size // _BYTES_PER_MESSAGE

    @property
    def is_proven(self) -> bool:
        """True if the guess is right whatever comes, or no more evidence can be expected."""
        return len(self.names) >= PROOF_MESSAGES or self._held_since >= MAX_HELD

    @property
    def is_unlikely(self) -> bool:
        """True if there is more evidence against it than for it."""
        return self._against > min(self._sound, ENOUGH_MESSAGES) * len(self.names)

    @property
    def is_disproved(self) -> bool:
        """True if it can be withdrawn without waiting any longer."""
        return self._against >= ENOUGH_MESSAGES and self.is_unlikely

    @property
    def _against(self) -> int:
        """The evidence against it; a few malformed messages may be a beginner's mistakes."""
        return self._foreign + max(0, self._slips - ENOUGH_MESSAGES)

    @property
    def sentence(self) -> str:
        """The text of the note about its withdrawal."""
        words = ", ".join(sorted({name for _, name in self.names})) or "nothing"
        title = self.dissector.grammar.title
        return f"this is not {title} after all: {words} could be read, the rest is another program's"


def as_notes(held: list[Diagnostic]) -> list[Diagnostic]:
    """Return held errors as notes that blame no peer, for a wrong guess."""
    return [msgspec.structs.replace(diagnostic, severity="note", blame="unknown") for diagnostic in held]
