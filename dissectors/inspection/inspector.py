"""The inspector: the only path from bytes to game events, from items to findings.

All sources' items pass through it: framer, then grammar, then game table. The inspector also decides which
protocol a server speaks: as configured (`decode_as`), or by the first message that only one protocol allows.
Until then a bounded number of the server's items wait, so that nothing sent before is lost.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from kiebitz.dissectors.dissector import Dissector, ServerAddress, address_of
from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.game.table import LimitError
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame, Framer
from kiebitz.dissectors.grammar.grammar import UNREADABLE, Decoded, Violation, blame_of, unreadable
from kiebitz.dissectors.inspection.blame_suppression import REWRITING_ACTIONS, AlterationImpact
from kiebitz.dissectors.inspection.isolation import IsolatedTable, end_of_game
from kiebitz.dissectors.inspection.memo import FrameCache, decode_cached
from kiebitz.dissectors.inspection.recognition import ProtocolGuess, Recognition, Undecided, as_notes
from kiebitz.dissectors.model import (
    DIRECTIONS,
    OPPOSITE,
    Altered,
    Chunk,
    Diagnostic,
    Direction,
    End,
    Event,
    Fault,
    Findings,
    Game,
    Gap,
    Ids,
    Item,
    Message,
    Severity,
    Snapshot,
    Stream,
    TableInfo,
    ending_of,
)

MAX_IDLE_SERVERS = 1024
"""Maximum number of remembered servers without open streams; the one idle for longest is evicted."""

MAX_DECODED_BYTES = 8 << 20
"""Approximate memory in bytes of findings after which `on_full` is called, also within one item."""

FINDINGS_PER_MESSAGE, FINDINGS_PER_BYTE = 4000, 50
"""Approximate size in bytes of the findings that a message may cause, and that each of its bytes may."""

MAX_EXCESS = 128 << 20
"""Maximum size in bytes by which the findings of a session may exceed that; it bounds the database."""

_MESSAGE_BYTES = 500
"""Memory in bytes that a message takes without its fields."""

CUT_OFF = "cut-off"
GAP = "gap"
MID_STREAM = "mid-stream"
DERIVED_CODES = (CUT_OFF, GAP, MID_STREAM)
"""The codes of the diagnostics in group `network` that follow from the bytes and the gaps; the others are
Faults."""

DIVERGENCE = "divergence"
"""The code of the Faults in another group: a live peer departs from the record that is replayed to it."""

DEAD_PORT = ("port-unreachable", "refused")
"""The codes of the Faults for a port without a listener."""

GUESS_WITHDRAWN = "taken-back"
"""The code of the note that a server does not speak the protocol assumed so far."""

DecodeAs = Mapping[tuple[str, int], Dissector | None]
"""The configured protocol by server (transport, port); None for no game."""


def configured(decode_as: DecodeAs, server: ServerAddress) -> list[Dissector | None]:
    """Return the configured protocol of a server, None for no game; an empty list if there is none."""
    ports = ((server.transport, port) for port in sorted(server.ports))
    return [decode_as[port] for port in ports if port in decode_as][:1]


class _Server(Undecided, eq=False):
    """A server endpoint and the knowledge of its protocol; `streams` is the number of open streams.

    It is undecided while items wait, then it has a dissector and a table, at first with a guess that later
    messages may disprove. Or it is given up: nothing of it is read.
    """

    streams: int = 0
    dissector: Dissector | None = None
    table: IsolatedTable | None = None
    given_up: bool = False
    guess: ProtocolGuess | None = None
    """The evidence for the protocol; None once it is certain."""
    memos: Mapping[Direction, FrameCache] = {}
    """The caches of its protocol's decoded frames; empty while the protocol is unknown."""


class _Conversation(msgspec.Struct, eq=False):
    """A stream, its server and, once the protocol is known, a framer for each direction.

    `habits` are the diagnostics that are reported once per direction and have been, for a peer's own bytes or
    altered ones.
    """

    stream: Stream
    server: _Server
    framers: dict[Direction, Framer] = {}
    habits: set[tuple[Direction, str, bool]] = set()


class _OnFullError(BaseException):
    """An exception of `on_full`, which no table is to be isolated from."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


@contextmanager
def _unwrapping() -> Iterator[None]:
    """Raise the exceptions of `on_full` in the context as they were."""
    try:
        yield
    except _OnFullError as wrapped:
        raise wrapped.error from None


class Inspector:
    """A dissection of the items of one session; `ids` continues the database's numbering.

    An exception of a dissector ends its server's game with a diagnostic; other servers are not affected.

    Attributes:
        on_full: Called between two messages when the findings take more than `MAX_DECODED_BYTES`; it calls
            `drain`. If it raises, only `stop` and ends may follow.
    """

    def __init__(
        self, dissectors: Collection[Dissector], ids: Ids, decode_as: DecodeAs | None = None
    ) -> None:
        self._dissectors = dissectors
        self.on_full: Callable[[], object] = self._count_from_zero
        self._decoded_bytes = self._excess = 0
        self._decode_as: DecodeAs = decode_as or {}
        self._ids = ids
        self._findings = Findings()
        self._servers: dict[ServerAddress, _Server] = {}
        self._idle: OrderedDict[ServerAddress, None] = OrderedDict()
        """The servers without open streams, the one idle for longest first."""
        self._conversations: dict[int, _Conversation] = {}
        self._contexts: dict[str, list[GameContext]] = {}
        """The contexts of all tables, by protocol; a message of one server may concern another."""
        self._memos: dict[str, Mapping[Direction, FrameCache]] = {}
        """The caches of decoded frames of all servers, by protocol."""
        self._latest_ns = 0
        self._is_catching_up = False
        """True while items are read that waited for the protocol to be recognised."""
        self._recognition = Recognition(dissectors, self._report_failure)
        self._alteration_impact = AlterationImpact(self._findings, self._address_of)
        self._has_altered = False
        """True if any message was altered: hardly any session has one, and others skip the checks for it."""

    def feed(self, item: Item) -> None:
        """Process the next item of any stream."""
        self._latest_ns = item.ts_ns
        conversation = self._conversations.get(item.stream.id) or self._add_conversation(item.stream)
        server = conversation.server
        try:
            if isinstance(item, Chunk) and server.table is not None:
                self._read(conversation, item)
                return
            self._take(conversation, item)
        except Exception as error:
            self._give_up(server, item.stream, "s2c" if isinstance(item, End) else item.direction, error)
        except _OnFullError as wrapped:
            raise wrapped.error from None
        if isinstance(item, End):
            self._findings.streams.append(item.stream)
            del self._conversations[item.stream.id]
            server.streams -= 1
            if not server.streams:
                with _unwrapping():
                    self._mark_idle(item.stream)

    def _take(self, conversation: _Conversation, item: Item) -> None:
        """Process an item other than bytes of a server with known protocol."""
        server = conversation.server
        if isinstance(item, End):
            item.stream.closed_ns = item.ts_ns
            item.stream.close_reason = item.reason
        elif isinstance(item, Altered):
            self._findings.altered.append(item)
            self._has_altered = True
        if isinstance(item, Fault):
            # An unreachable server is reported whatever its protocol.
            self._fault(item)
            if server.table is not None and item.code in DEAD_PORT and item.direction == "c2s":
                server.table.unreachable(item.stream)
        elif server.table is not None:
            self._dissect(conversation, item)
        elif not server.given_up:
            self._wait(server, item)
        else:
            self._unread(item)

    def _address_of(self, stream: Stream) -> ServerAddress:
        return address_of(stream.transport, stream.server, self._dissectors)

    def call_on_full(self) -> None:
        """Have `on_full` called after the next message; signal handlers may use it."""
        self._decoded_bytes = MAX_DECODED_BYTES

    def stop(self) -> None:
        """Forget unfinished frames: no more bytes are fed."""
        for conversation in self._conversations.values():
            conversation.framers.clear()

    def _count_from_zero(self) -> None:
        self._decoded_bytes = 0

    def _count(
        self,
        table: IsolatedTable,
        stream: Stream,
        direction: Direction = "s2c",
        message: Message | None = None,
    ) -> None:
        """Count the memory of a table's new findings, and have them written if there are many."""
        context = table.context
        found = context.decoded_bytes
        context.decoded_bytes = 0
        self._decoded_bytes += found
        context.allowance -= found
        if context.allowance < 0:
            self._excess -= context.allowance
            context.allowance = 0
            if self._excess > MAX_EXCESS:
                table.end(LimitError("its events are too large for its messages"), stream, direction, message)
        if self._decoded_bytes >= MAX_DECODED_BYTES:
            try:
                self.on_full()
            except Exception as error:
                # It is no dissector's.
                raise _OnFullError(error) from None

    @_unwrapping()
    def finish(self) -> None:
        """Process the end of all input: settle what is undecided, and have the tables give last verdicts."""
        for server in self._servers.values():
            if server.table is None:
                self._decide_by_likeness(server)
        for conversation in list(self._conversations.values()):
            with self._isolating(conversation.server, conversation.stream):
                self._eof(conversation, self._latest_ns, None)
        for server in self._servers.values():
            self._last_verdicts(server)

    @property
    def is_settled(self) -> bool:
        """True if the findings cover all input: no frame is unfinished, no message undecided."""
        return not any(
            server.waiting
            or (server.table is not None and server.table.undecided() is not None)
            or (server.guess is not None and server.guess.held)
            for server in self._servers.values()
        ) and not any(
            self._is_unfinished(conversation.stream, direction)
            for conversation in [*self._conversations.values()]
            for direction in DIRECTIONS
        )

    def context_of(self, stream: Stream) -> GameContext | None:
        """Return the context, with the state, of the table of a stream's server; None without a protocol.

        The stream may be one without any item so far. Callers must not change the context.
        """
        server = self._servers.get(self._address_of(stream))
        return server.table.context if server is not None and server.table is not None else None

    def drain(self) -> Findings:
        """Return all findings since the last call; messages only up to the first with an undecided event."""
        self._alteration_impact.before_drain(self._tables)
        # The tables keep references to these lists, so they are emptied, not replaced.
        self._decoded_bytes = 0
        lists = msgspec.structs.astuple(self._findings)
        found = Findings(*(part.copy() for part in lists))
        for part in lists:
            part.clear()
        undecided = [
            first
            for server in self._servers.values()
            if server.table is not None and (first := server.table.undecided()) is not None
        ]
        if undecided:
            kept = bisect_left(found.messages, min(undecided), key=lambda message: message.id)
            self._findings.messages[:] = found.messages[kept:]
            del found.messages[kept:]
        return found

    def _add_conversation(self, stream: Stream) -> _Conversation:
        key = self._address_of(stream)
        server = self._servers.get(key)
        if server is None:
            server = self._servers[key] = _Server()
            for forced in configured(self._decode_as, key):
                server.given_up = forced is None
                if forced is not None:
                    with self._isolating(server, stream):
                        self._decide(server, forced, stream)
                        server.guess = None
        conversation = self._conversations[stream.id] = _Conversation(stream, server)
        server.streams += 1
        self._idle.pop(key, None)
        if server.dissector is not None:
            stream.protocol = server.dissector.protocol
        self._findings.streams.append(stream)
        return conversation

    def end_game(
        self, finding: Stream | Message | Diagnostic | Game | Event | Snapshot, error: Exception
    ) -> None:
        """End the game of the server of a finding that cannot be stored because of `error`."""
        if isinstance(finding, Game | Event | Snapshot):
            for server in self._servers.values():
                if server.table is not None and server.table.context.info.id == finding.table_id:
                    server.table.end(error)
            return
        stream = finding if isinstance(finding, Stream) else finding.stream
        reading = self._servers.get(self._address_of(stream))
        if reading is not None:
            self._give_up(reading, stream, "c2s", error)

    @contextmanager
    def _isolating(self, server: _Server, stream: Stream) -> Iterator[None]:
        """Let an exception in the context end the reading of a server."""
        try:
            yield
        except Exception as error:
            self._give_up(server, stream, "s2c", error)

    def _give_up(self, server: _Server, stream: Stream, direction: Direction, error: Exception) -> None:
        """Read nothing more of a server, whose dissector has raised, and report why."""
        if server.given_up:
            # It was reported, with a message that was read before.
            return
        self._findings.diagnostics.append(
            end_of_game(error, stream, direction, self._latest_ns, protocol=stream.protocol)
        )
        self._is_catching_up = False
        if server.guess is not None:
            self._findings.diagnostics += as_notes(server.guess.held)
        self._abandon(server)
        server.given_up = True
        for item in self._recognition.take(server):
            self._unread(item)

    def _abandon(self, server: _Server) -> None:
        """Forget the protocol of a server and everything that was read by it."""
        if server.table is not None:
            neighbours = self._contexts[server.table.context.info.protocol]
            neighbours[:] = [context for context in neighbours if context is not server.table.context]
        server.dissector = server.table = server.guess = None
        for conversation in self._conversations.values():
            if conversation.server is server:
                conversation.framers.clear()

    def _report_end_of_game(
        self, error: Exception, stream: Stream, direction: Direction, message: Message | None
    ) -> None:
        self._findings.diagnostics.append(end_of_game(error, stream, direction, self._latest_ns, message))

    def _mark_idle(self, stream: Stream) -> None:
        """Keep a server without open streams for a while, in case another one comes."""
        self._idle[self._address_of(stream)] = None
        if len(self._idle) <= MAX_IDLE_SERVERS:
            return
        key, _ = self._idle.popitem(last=False)
        server = self._servers.pop(key)
        if server.table is None:
            self._decide_by_likeness(server)
        self._last_verdicts(server)
        self._alteration_impact.forget(key, self._tables)
        if server.table is not None:
            self._contexts[server.table.context.info.protocol].remove(server.table.context)

    def _last_verdicts(self, server: _Server) -> None:
        """Report everything about a server that waited for more input."""
        guess = server.guess
        if guess is not None and guess.is_unlikely:
            self._withdraw(server, guess)
        elif guess is not None:
            self._confirm(server, guess)
        if server.table is not None:
            server.table.finish(self._latest_ns)

    def _wait(self, server: _Server, item: Item) -> None:
        """Queue an item of a server with unknown protocol, unless the item identifies the protocol."""
        if isinstance(item, End) and not server.waiting:
            # Connections without data, again and again, reveal nothing about the protocol.
            return
        dissector = self._recognition.wait(server, item)
        if dissector is not None:
            self._decide(server, dissector, item.stream)
        elif self._recognition.is_full(server):
            self._decide_by_likeness(server)

    def _decide_by_likeness(self, server: _Server) -> None:
        """Without certain evidence, choose the protocol that the messages resemble, or give the server up."""
        found = self._recognition.most_similar(server)
        if found is None:
            server.given_up = True
            for item in self._recognition.take(server):
                self._unread(item)
            return
        dissector, stream = found
        with self._isolating(server, stream):
            self._decide(server, dissector, stream, is_identified=False)

    def _report_failure(self, dissector: Dissector, chunk: Chunk, error: Exception) -> None:
        """Report a dissector that cannot look at a server's bytes."""
        self._findings.diagnostics.append(
            end_of_game(error, chunk.stream, chunk.direction, chunk.ts_ns, protocol=dissector.protocol)
        )

    def _decide(
        self, server: _Server, dissector: Dissector, stream: Stream, is_identified: bool = True
    ) -> None:
        """Read a server by a protocol from now on; `is_identified` if its last item can be of no other."""
        self._ids.table += 1
        info = TableInfo(self._ids.table, dissector.protocol, stream.server)
        self._findings.tables.append(info)
        server.dissector = dissector
        server.memos = self._memos.setdefault(
            dissector.protocol, {direction: FrameCache() for direction in DIRECTIONS}
        )
        server.guess = ProtocolGuess(dissector)
        server.table = IsolatedTable(
            dissector.table(info, self._ids, self._findings), stream, self._report_end_of_game
        )
        context = server.table.context
        context.is_unfinished = self._is_unfinished
        context.peers = neighbours = self._contexts.setdefault(dissector.protocol, [])
        neighbours.append(context)
        self._alteration_impact.server_recognised(
            self._address_of(stream), context.info.protocol, self._tables
        )
        for conversation in self._conversations.values():
            if conversation.server is server:
                conversation.stream.protocol = dissector.protocol
                self._findings.streams.append(conversation.stream)
        waited = self._recognition.take(server)
        # The last item identifies it; everything before may be anything.
        self._is_catching_up = is_identified
        for item in waited:
            # A stream may have ended while its items waited.
            conversation = self._conversations.get(item.stream.id) or _Conversation(item.stream, server)
            self._dissect(conversation, item)
        self._is_catching_up = False

    def _judge(self, server: _Server, guess: ProtocolGuess, since: int) -> None:
        """Hold the diagnostics from index `since` on while a guess is in doubt; confirm or withdraw it."""
        found = self._findings.diagnostics
        if guess.is_doubtful:
            accused = [violation for violation in found[since:] if violation.severity != "note"]
            found[since:] = [violation for violation in found[since:] if violation.severity == "note"]
            if self._is_catching_up and server.disproved:
                # It may be the traffic of the program that was mistaken for a game before.
                found += as_notes(accused)
            else:
                guess.hold(accused, not self._is_catching_up)
        if guess.is_disproved:
            self._withdraw(server, guess)
        elif guess.is_proven:
            self._confirm(server, guess)

    def _confirm(self, server: _Server, guess: ProtocolGuess) -> None:
        self._findings.diagnostics += guess.held
        server.guess = None

    def _withdraw(self, server: _Server, guess: ProtocolGuess) -> None:
        """Withdraw the guess at a server's protocol: no peer is blamed, and later traffic may be anything."""
        self._findings.diagnostics += as_notes(guess.held)
        stream = next(reversed(guess.streams.values()))
        self._findings.diagnostics.append(
            Diagnostic(stream, "c2s", self._latest_ns, "note", "state", GUESS_WITHDRAWN, guess.sentence, 0, 0)
        )
        server.disproved |= guess.names
        # In a byte stream the start of the next message is unknown now.
        server.given_up = not guess.names or stream.transport == "tcp"
        self._abandon(server)
        for conversation in self._conversations.values():
            if conversation.server is server:
                guess.streams[conversation.stream.id] = conversation.stream
        for stream in guess.streams.values():
            stream.protocol = None
            self._findings.streams.append(stream)

    def _dissect(self, conversation: _Conversation, item: Item) -> None:
        if conversation.server.table is None:
            # The guess was just withdrawn.
            self._unread(item)
            return
        if isinstance(item, Chunk):
            self._read(conversation, item)
        elif isinstance(item, Gap):
            self._gap(conversation, item)
        elif isinstance(item, Altered):
            self._altered(conversation, item)
        elif isinstance(item, End):
            self._eof(conversation, item.ts_ns, ending_of(item.reason))
            if conversation.server.table is not None:
                conversation.server.table.closed(item.stream, item.ts_ns)
                conversation.server.table.context.allowance += FINDINGS_PER_MESSAGE
                self._count(conversation.server.table, item.stream)

    def _read(self, conversation: _Conversation, chunk: Chunk) -> None:
        if chunk.missing:
            self._cut_off(chunk)
            if conversation.server.table is not None:
                conversation.server.table.doubt(chunk.stream, chunk.direction, chunk.ts_ns, True)
            return
        direction = chunk.direction
        framers, ts_ns = conversation.framers, chunk.ts_ns
        other = framers.get(OPPOSITE[direction])
        if other is not None:
            for frame in other.settle():
                self._frame(conversation, OPPOSITE[direction], ts_ns, frame)
        framer = framers.get(direction) or self._framer(conversation, direction)
        for frame in framer.feed(chunk.offset, chunk.data):
            self._frame(conversation, direction, ts_ns, frame)

    def _eof(self, conversation: _Conversation, ts_ns: int, reason: str | None) -> None:
        """Process the remaining bytes of both directions; `reason` says how the stream ended, if it did."""
        for direction, framer in [*conversation.framers.items()]:
            for frame in framer.eof():
                self._frame(conversation, direction, ts_ns, frame, reason)

    def _framer(self, conversation: _Conversation, direction: Direction) -> Framer:
        assert conversation.server.dissector is not None
        framer = conversation.server.dissector.framer(direction)
        other = conversation.framers.get(OPPOSITE[direction])
        if other is not None:
            framer.meet(other)
        conversation.framers[direction] = framer
        return framer

    def _is_unfinished(self, stream: Stream, direction: Direction) -> bool:
        conversation = self._conversations.get(stream.id)
        framer = conversation.framers.get(direction) if conversation is not None else None
        if conversation is not None and framer is not None:
            with self._isolating(conversation.server, stream):
                return framer.is_unfinished
        return False

    def _unread(self, item: Item) -> None:
        """Report missing bytes of a server with unknown protocol."""
        if isinstance(item, Chunk) and item.missing:
            self._cut_off(item)
        elif isinstance(item, Gap) and (item.offset or item.length is not None):
            # A capture that begins in mid-stream only matters for a game.
            self._missing(item)

    def _cut_off(self, chunk: Chunk) -> None:
        """Report a datagram that the capture truncates; neither peer is to blame."""
        sent = len(chunk.data) + chunk.missing
        text = f"only {len(chunk.data)} of {sent} bytes were captured (snap length)"
        self._network(chunk, "warning", CUT_OFF, text, sent)

    def _gap(self, conversation: _Conversation, gap: Gap) -> None:
        """Report a gap: the frames on both sides of it are incomplete and cannot be read."""
        framer = conversation.framers.get(gap.direction) or self._framer(conversation, gap.direction)
        for frame in framer.gap(gap.offset, gap.length):
            self._frame(conversation, gap.direction, gap.ts_ns, frame)
        missing: tuple[Direction, ...] = (gap.direction,)
        if gap.offset == 0 and gap.length is None:
            text = "the beginning of this direction is not in the capture"
            self._network(gap, "note", MID_STREAM, text, 0)
            if OPPOSITE[gap.direction] not in conversation.framers:
                # Nor is the other's, of which nothing has come yet.
                missing = (gap.direction, OPPOSITE[gap.direction])
        else:
            self._missing(gap)
        if conversation.server.table is not None:
            for direction in missing:
                conversation.server.table.doubt(gap.stream, direction, gap.ts_ns, True)

    def _missing(self, gap: Gap) -> None:
        """Report missing bytes, for which only the network or the recording is to blame."""
        count = "an unknown number of" if gap.length is None else f"{gap.length:,}"
        self._network(gap, "warning", GAP, f"{count} bytes are not in the capture", gap.length or 0)

    def _altered(self, conversation: _Conversation, item: Altered) -> None:
        """Note an alteration: from here on Kiebitz itself may be the cause of violations."""
        self._alteration_impact.altered(item, self._address_of(item.stream), self._tables)
        if item.action == "drop" and conversation.server.table is not None:
            conversation.server.table.doubt(item.stream, item.direction, item.ts_ns, True)

    def _tables(self) -> dict[ServerAddress, GameContext]:
        """Return the tables' contexts, by server."""
        return {
            key: server.table.context for key, server in self._servers.items() if server.table is not None
        }

    def _fault(self, fault: Fault) -> None:
        """Report a fault that the source has detected."""
        self._findings.diagnostics.append(
            Diagnostic(
                fault.stream,
                fault.direction,
                fault.ts_ns,
                fault.severity,
                fault.group,
                fault.code,
                fault.text,
                fault.offset,
                fault.length,
                fault.expected,
                blame=fault.blame,
            )
        )

    def _network(self, item: Chunk | Gap, severity: Severity, code: str, text: str, length: int) -> None:
        """Report what the capture lacks of a stream."""
        self._findings.diagnostics.append(
            Diagnostic(
                item.stream,
                item.direction,
                item.ts_ns,
                severity,
                "network",
                code,
                text,
                item.offset,
                length,
                blame="network",
            )
        )

    def _frame(
        self,
        conversation: _Conversation,
        direction: Direction,
        ts_ns: int,
        frame: Frame,
        ended: str | None = None,
    ) -> None:
        """Create a message from a frame; `ended` says how the stream was ended, if it was."""
        server = conversation.server
        table, guess, findings, data = server.table, server.guess, self._findings, frame.data
        if table is None:
            # The guess was withdrawn at an earlier frame.
            return
        since = len(findings.diagnostics) if guess is not None else 0
        if frame.cut is None:
            memo = server.memos[direction]
            # Most frames are copies of what was just read.
            if (cached := memo.recent.get(data)) is not None:
                decoded = cached
            else:
                assert server.dissector is not None
                decoded = decode_cached(memo, server.dissector, data, direction)
        else:
            decoded = self._decode_cut(server, direction, frame, ended)
        row = decoded.row
        self._ids.message = message_id = self._ids.message + 1
        message = Message(
            message_id,
            conversation.stream,
            direction,
            ts_ns,
            row.name if row is not None else UNREADABLE,
            decoded.fields,
            decoded.fields_json,
            frame.offset,
            frame.size,
        )
        if self._has_altered:
            message.altered = self._alteration_impact.action(conversation.stream, direction, frame.offset)
        findings.messages.append(message)
        for violation in frame.violations:
            self._report(message, violation, (violation.offset, violation.length))
        for violation in decoded.violations:
            if violation.habit:
                habit = (direction, violation.code, message.altered in REWRITING_ACTIONS)
                if habit in conversation.habits:
                    continue
                conversation.habits.add(habit)
            self._report(message, violation, frame.in_stream(*violation.place(data)))
        if row is not None and table.game is not None:
            try:
                table.game.message(message, row, decoded.valid, data)
            except Exception as error:
                table.end(error, conversation.stream, direction, message)
        # What real peers skip has notes only.
        is_skipped = decoded.violations and all(
            violation.severity == "note" for violation in decoded.violations
        )
        if not decoded.valid and not is_skipped:
            table.doubt(conversation.stream, direction, ts_ns, frame.cut == "gap")
        if guess is not None and message.altered not in REWRITING_ACTIONS:
            guess.take(conversation.stream, direction, decoded, frame, not self._is_catching_up)
            self._judge(server, guess, since)
        context = table.context
        context.allowance += FINDINGS_PER_MESSAGE + FINDINGS_PER_BYTE * frame.size
        self._decoded_bytes += _MESSAGE_BYTES + len(decoded.fields_json) + len(data)
        if context.decoded_bytes or self._decoded_bytes >= MAX_DECODED_BYTES:
            self._count(table, conversation.stream, direction, message)

    def _decode_cut(self, server: _Server, direction: Direction, frame: Frame, ended: str | None) -> Decoded:
        """Decode a frame that is no complete message."""
        if frame.cut == "limit":
            violation = Violation(
                "error",
                "malformed",
                "too-long",
                f"{frame.size:,} bytes without an end: no message is longer than {FRAME_LIMIT:,}",
                frame.place,
                frame.size - frame.place,
                "the end of the message",
            )
            return unreadable(violation)
        if frame.cut == "end" and ended in ("closed", "reset"):
            assert server.dissector is not None
            return server.dissector.codec.truncated(frame.data, direction)
        # The capture, not the sender, omitted the rest; a gap has its own diagnostic.
        return unreadable()

    def _report(self, message: Message, violation: Violation, place: tuple[int, int]) -> None:
        """Report a violation; its place counts from the start of the message."""
        offset, length = place
        self._findings.diagnostics.append(
            Diagnostic(
                message.stream,
                message.direction,
                message.ts_ns,
                violation.severity,
                violation.group,
                violation.code,
                violation.text,
                message.offset + offset,
                length,
                violation.expected,
                violation.clause,
                blame_of(message.direction),
                message.id,
            )
        )
