"""The forwarder's side of a hook: a child process that decides about each message.

The forwarder never waits for it. A hook that raises, hangs, floods, grows or exits is stopped with one
message to the user, and later messages are forwarded unchanged.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

import msgspec

from kiebitz.dissectors.grammar.grammar import UNREADABLE, shortened
from kiebitz.dissectors.model import Direction, Transport
from kiebitz.dissectors.registry import dissector_of, protocol_files
from kiebitz.proxy.journal.follower import start_child
from kiebitz.proxy.system.deferred_signals import POLL_INTERVAL_S, check_signals
from kiebitz.services.alteration.hook_file import HookError, read_hook
from kiebitz.services.alteration.hook_protocol import (
    CHUNK_BYTES,
    Answer,
    Ask,
    Closed,
    Done,
    Failed,
    Forwarded,
    FromHook,
    InvalidRecord,
    Opened,
    Outcome,
    Ready,
    Refused,
    Slow,
    ToHook,
    Unpacker,
    pack,
)
from kiebitz.services.alteration.hook_worker import run_hook
from kiebitz.services.alteration.log_throttle import OutputReporter, Throttle

MAX_CALL_S = 2.0
"""Longest time for one message; a slower hook is stopped."""

MAX_QUEUED_BYTES = 4 << 20
"""Maximum number of bytes queued for a hook; further messages are forwarded unchanged."""

_LOAD_TIMEOUT_S = 20.0
"""Longest time to load a hook."""

_CHECK_INTERVAL_S = 0.25
"""Interval of checks for a stuck hook."""

_EXIT_TIMEOUT_S = 1.0
"""Longest time for a hook to exit after its input has ended."""

_JOIN_TIMEOUT_S = 0.2
"""Longest time for a process that has closed its pipes to exit."""

_STOPPED = "the hook is stopped; from now on messages are forwarded unchanged"

_MAX_NAME_CHARS = 60


class _Call(msgspec.Struct, frozen=True, gc=False):
    """A pending call of the hook; `asked` if it is about a message."""

    function: str
    number: int
    asked: Ask | None = None

    @property
    def which(self) -> str:
        """Subject of the call, for messages to the user."""
        if self.asked is None:
            return f"stream {self.number}"
        dissector = dissector_of(self.asked.protocol)
        decoded = (
            dissector.codec.decode(self.asked.frame, self.asked.direction) if dissector is not None else None
        )
        name = decoded.row.name if decoded is not None and decoded.row is not None else UNREADABLE
        return f"{shortened(name, _MAX_NAME_CHARS)} on stream {self.number}"


class HookProcess:
    """Runs the hook at `path`; `tell` receives problems as sentences, and the hook's output.

    With `is_forced` the hook may set values that the grammar does not allow. `decode_as` are the values of
    the option -d. Use it only in the event loop's thread.
    """

    def __init__(
        self,
        path: str,
        *,
        tell: Callable[[str], None],
        is_forced: bool = False,
        decode_as: Sequence[str] = (),
    ) -> None:
        self.rule = f"-s {shlex.quote(path)}"
        """The command-line option, for marks."""
        self.on_answer: Callable[[int, Sequence[Outcome] | None], None] = lambda ticket, outcomes: None
        """Called with a ticket and the messages to forward, None to forward the original. Of this object's
        methods only `leave` and `discard` call it.
        """
        self._path = path
        self._is_forced = is_forced
        self._decode_as = tuple(decode_as)
        self._notify = tell
        self._printed = OutputReporter(path, tell)
        self._slow, self._refused, self._passing = Throttle(tell), Throttle(tell), Throttle(tell)
        self._process: SpawnProcess
        self._channel: socket.socket
        self._output: Connection
        self._is_started = self._is_open = False
        """True once there is a process, and while there are its pipes."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unpacking = Unpacker[FromHook](FromHook)
        self._to_send = bytearray()
        self._is_flush_due = False
        self._is_writing = False
        self._calls: deque[_Call] = deque()
        """Pending calls in order; replies have the same order."""
        self._heard = 0.0
        """Time of the hook's last output, or of the first pending call."""
        self._is_ready = False
        self._is_stopped = False
        self._is_killed = False

    def start(self) -> None:
        """Load the hook and wait until it is ready.

        Raises HookError, and Interrupted if a deferred signal arrives meanwhile.
        """
        source = read_hook(self._path)
        self._channel, theirs = socket.socketpair()
        self._output, its_output = Pipe(duplex=False)
        self._is_open = True
        try:
            self._process = start_child(
                run_hook,
                self._path,
                source,
                self._is_forced,
                self._decode_as,
                protocol_files(),
                theirs,
                its_output,
            )
        except OSError as error:
            self.discard()
            raise HookError(f"{self._path}: cannot start a process for it: {error}") from error
        finally:
            theirs.close()
            its_output.close()
        self._is_started = True
        self._channel.setblocking(False)
        os.set_blocking(self._output.fileno(), False)
        try:
            self._wait_until_ready()
        except BaseException:
            self.discard()
            raise

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + _LOAD_TIMEOUT_S
        while not self._is_ready:
            if time.monotonic() > end:
                raise HookError(f"{self._path}: it has not loaded within {_LOAD_TIMEOUT_S:g} seconds")
            ready = wait([self._channel, self._output], POLL_INTERVAL_S)
            check_signals()
            if self._output in ready:
                self._hear_output()
            data = self._received()
            for record in self._unpacking.feed(data or b""):
                if isinstance(record, Failed):
                    raise HookError(record.sentence)
                self._is_ready = isinstance(record, Ready)
            if data == b"":
                raise HookError(f"{self._path}: while it was loaded, its process {self._end()}")

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        """Receive from the hook on this loop."""
        if self._is_stopped:
            return
        self._loop = loop
        loop.add_reader(self._channel.fileno(), self._hear)
        loop.add_reader(self._output.fileno(), self._hear_output)
        loop.add_reader(self._process.sentinel, self._died)
        self._flush()
        self._schedule_check()

    def leave(self) -> None:
        """Stop asking the hook: messages without a reply are forwarded unchanged.

        It gets a second to finish and exit.
        """
        self._unwatch()
        if not self._is_stopped:
            self._is_stopped = True
            self._let_go()
            self._await_exit()
        self.discard()

    def discard(self) -> None:
        """Kill the process and release all resources at once."""
        self._unwatch()
        self._is_stopped = True
        if self._is_started:
            self._kill()
            self._process.join()
        if self._is_open:
            self._is_open = False
            self._hear_output()
            self._output.close()
            self._channel.close()
        for words in (self._printed, self._slow, self._refused, self._passing):
            words.settle()
        self._let_go()

    def opened(self, number: int, transport: Transport, client: str, server: str) -> None:
        """Report a new stream."""
        self._note(_Call("connected", number), Opened(number, transport, client, server))

    def closed(self, number: int) -> None:
        """Report the end of a stream."""
        self._note(_Call("closed", number), Closed(number))

    def passed_on(self, number: int, direction: Direction, ts_ns: int, offset: int, data: bytes) -> None:
        """Report bytes forwarded at `offset` of their direction, so that the hook's table is current."""
        if not self._is_stopped and not self._is_full(len(data)):
            self._send(Forwarded(number, direction, ts_ns, offset, data))

    def ask(
        self, ticket: int, number: int, direction: Direction, ts_ns: int, protocol: str, frame: bytes
    ) -> bool:
        """Ask for a decision about a message, which is passed to `on_answer`.

        Returns:
            False if the message is to be forwarded unchanged: the hook is stopped, or its queue is full.
        """
        if self._is_stopped:
            return False
        if self._is_full(len(frame)):
            self._passing(
                f"{self._path} is too slow, {MAX_QUEUED_BYTES >> 20} MiB wait for it: "
                f"a message on stream {number} is forwarded unchanged"
            )
            return False
        asked = Ask(ticket, number, direction, ts_ns, protocol, frame)
        self._expect(_Call("message", number, asked))
        self._send(asked)
        self._flush()
        return True

    def _is_full(self, length: int) -> bool:
        return len(self._to_send) + length > MAX_QUEUED_BYTES

    def _note(self, call: _Call, record: Opened | Closed) -> None:
        """Report what the hook must know, even if its queue is full."""
        if self._is_stopped:
            return
        self._expect(call)
        self._send(record)

    def _expect(self, call: _Call) -> None:
        if not self._calls:
            self._heard = time.monotonic()
        self._calls.append(call)
        self._schedule_check()

    def _send(self, record: ToHook) -> None:
        self._to_send += pack(record)
        if self._loop is not None and not self._is_flush_due and not self._is_writing:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write as much as possible without blocking."""
        self._is_flush_due = False
        if self._loop is None:
            return
        try:
            while self._to_send:
                sent = self._channel.send(self._to_send[:CHUNK_BYTES])
                del self._to_send[:sent]
        except BlockingIOError:
            pass
        except OSError:
            # The process has exited: the reader notices it.
            self._to_send.clear()
        if bool(self._to_send) != self._is_writing:
            self._is_writing = not self._is_writing
            if self._is_writing:
                self._loop.add_writer(self._channel.fileno(), self._flush)
            else:
                self._loop.remove_writer(self._channel.fileno())

    def _received(self) -> bytes | None:
        """Return the available bytes from the hook: None if there are none yet, empty at the end."""
        try:
            return self._channel.recv(4 * CHUNK_BYTES)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def _hear(self) -> None:
        data = self._received()
        if data:
            self._heard = time.monotonic()
            self._take_all(data)
        elif data is not None:
            self._died()

    def _take_all(self, data: bytes) -> None:
        try:
            for record in self._unpacking.feed(data):
                self._take(record)
                if self._is_stopped:
                    return
        except InvalidRecord:
            self._stop(f"{self._path}: its process sent an invalid record")

    def _take(self, record: FromHook) -> None:
        """Process a record. Raises InvalidRecord if it is not expected now."""
        if isinstance(record, Slow):
            self._slow(record.sentence)
        elif isinstance(record, Refused):
            self._refused(record.sentence)
        elif isinstance(record, Failed):
            self._stop(record.sentence)
        elif isinstance(record, Answer | Done):
            call = self._calls[0] if self._calls else None
            ticket = record.ticket if isinstance(record, Answer) else None
            if call is None or (call.asked.ticket if call.asked is not None else None) != ticket:
                raise InvalidRecord
            self._calls.popleft()
            if isinstance(record, Answer):
                self.on_answer(record.ticket, record.outcomes)

    def _hear_output(self) -> None:
        """Report what the hook prints."""
        with suppress(BlockingIOError):
            data = os.read(self._output.fileno(), CHUNK_BYTES)
            self._printed.feed(data)
            if not data and self._loop is not None:
                self._loop.remove_reader(self._output.fileno())

    def _schedule_check(self) -> None:
        """Schedule the check for a stuck hook while calls are pending."""
        if self._timer is None and self._calls and self._loop is not None:
            self._timer = self._loop.call_later(_CHECK_INTERVAL_S, self._look)

    def _look(self) -> None:
        self._timer = None
        # Its latest output may not have been received yet.
        self._hear()
        if self._is_stopped or not self._calls:
            return
        if time.monotonic() - self._heard > MAX_CALL_S:
            call = self._calls[0]
            self._stop(f"{self._path}: {call.function} takes over {MAX_CALL_S:g} seconds for {call.which}")
        elif len(self._to_send) > 2 * MAX_QUEUED_BYTES:
            # Opened and closed streams are queued without a limit.
            self._stop(f"{self._path} is too slow for the number of streams")
        else:
            self._schedule_check()

    def _died(self) -> None:
        if self._is_stopped:
            return
        # Its last records may contain the reason.
        while data := self._received():
            self._take_all(data)
            if self._is_stopped:
                return
        at = f", at {self._calls[0].which}" if self._calls else ""
        self._stop(f"{self._path}: its process {self._end()}{at}")

    def _end(self) -> str:
        """Return how the process has ended, in words."""
        # The process id cannot be reused before the process is joined.
        self._kill()
        self._process.join(_JOIN_TIMEOUT_S)
        status = self._process.exitcode
        if status is None or status >= 0:
            return f"exited (exit status {status or 0})"
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-status).name}"
        return f"was ended by signal {-status}"

    def _stop(self, sentence: str) -> None:
        """Stop the hook and forward unchanged what waits for it."""
        self._unwatch()
        self._is_stopped = True
        self._kill()
        self._to_send.clear()
        # Its last output may contain the reason.
        self._hear_output()
        self._printed.settle()
        self._notify(f"{sentence}; {_STOPPED}")
        self._let_go()

    def _let_go(self) -> None:
        """Forward all pending messages unchanged."""
        while self._calls:
            call = self._calls.popleft()
            if call.asked is not None:
                self.on_answer(call.asked.ticket, None)

    def _kill(self) -> None:
        """Kill the process and its descendants."""
        if self._process.pid is None or self._is_killed:
            return
        self._is_killed = True
        # There is no such process group until the child has called setsid.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()

    def _await_exit(self) -> None:
        """Close the hook's input and wait for it to finish and exit."""
        end = time.monotonic() + _EXIT_TIMEOUT_S
        with suppress(OSError):
            self._channel.settimeout(_EXIT_TIMEOUT_S)
            self._channel.sendall(self._to_send)
            self._channel.shutdown(socket.SHUT_WR)
        self._channel.setblocking(False)
        with suppress(InvalidRecord):
            while (left := end - time.monotonic()) > 0:
                ready = wait([self._channel, self._output], left)
                if self._output in ready:
                    self._hear_output()
                if self._channel in ready:
                    data = self._received()
                    for record in self._unpacking.feed(data or b""):
                        if isinstance(record, Failed):
                            self._notify(record.sentence)
                    if data == b"":
                        break
            if not wait([self._process.sentinel], max(0.0, end - time.monotonic())):
                self._notify(f"{self._path}: it did not exit, and was killed")

    def _unwatch(self) -> None:
        if self._loop is None:
            return
        self._loop.remove_reader(self._channel.fileno())
        self._loop.remove_reader(self._output.fileno())
        self._loop.remove_reader(self._process.sentinel)
        if self._is_writing:
            self._loop.remove_writer(self._channel.fileno())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._loop = None
