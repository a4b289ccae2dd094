"""The process in which a hook runs: it follows the forwarded data and decides about each message.

The hook is the user's own code and may do what the user may. It cannot block or stop the forwarder by
mistake: it has a session without a terminal and a memory limit, and ends with the forwarder.
"""

from __future__ import annotations

import fcntl
import inspect
import io
import multiprocessing
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import CodeType, ModuleType, TracebackType
from typing import Any, TypeVar

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import AssignmentError
from kiebitz.dissectors.errors import fault
from kiebitz.dissectors.grammar.grammar import UNREADABLE, shortened, to_json
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, End, Gap, Ids, Stream
from kiebitz.dissectors.registry import ProtocolFile, dissector_of, installed
from kiebitz.hooks import Message, Table
from kiebitz.hooks import Stream as HookStream
from kiebitz.services.alteration.hook_file import SIGNATURES
from kiebitz.services.alteration.hook_protocol import (
    CHUNK_BYTES,
    MEMORY_LIMIT,
    SLOW_NS,
    Alive,
    Answer,
    Ask,
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
from kiebitz.services.alteration.hook_results import InvalidReturn, outcomes, returned_messages
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.protocol_files import add_received

_MODULE = "kiebitz_hook"

_ALIVE_EVERY = 64
"""Number of forwarded chunks after which it signals progress."""

_MAX_QUOTED = 200
"""Maximum number of characters quoted of an exception."""

Result = TypeVar("Result")


class _Stopped(Exception):
    """The reason why the hook cannot continue."""


def run_hook(
    path: str,
    source: str,
    is_forced: bool,
    decode_as: tuple[str, ...],
    files: tuple[ProtocolFile, ...],
    channel: socket.socket,
    output: Connection,
) -> None:
    """Load a hook and process the channel's records up to its end; print to `output`."""
    os.setsid()
    _end_with_parent()
    _redirect(output)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        add_received(files)
        hook = _LoadedHook(path, source, is_forced, decode_as, channel)
        hook.run()
    except _Stopped as reason:
        sentence = str(reason)
    except MemoryError:
        sentence = f"{path}: {_no_memory()}"
    except Exception as error:
        sentence = fault(error)
    else:
        return
    # Reporting the failure needs some memory.
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    with suppress(OSError):
        channel.sendall(pack(Failed(sentence)))


def _no_memory() -> str:
    return f"a hook has {MEMORY_LIMIT >> 30} GiB of memory, and it needs more"


def _end_with_parent() -> None:
    """Make the kernel kill this process once its parent has exited, whatever it is doing."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    # The sentinel becomes readable then and sends SIGIO; its default action on Linux is to terminate.
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
    fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)
    if wait([parent.sentinel], 0):
        os._exit(1)


def _redirect(output: Connection) -> None:
    """Redirect all output to the parent, and read from nothing."""
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for number in (1, 2):
        os.dup2(output.fileno(), number)
    output.close()
    sys.stdout = _open_line_buffered(1)  # noqa: TID251  # the hook's own, which leads to the parent
    sys.stderr = _open_line_buffered(2)  # noqa: TID251  # likewise


def _open_line_buffered(number: int) -> io.TextIOWrapper:
    return open(number, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


class _LoadedHook:
    """A loaded hook with its streams and table states."""

    def __init__(
        self, path: str, source: str, is_forced: bool, decode_as: tuple[str, ...], channel: socket.socket
    ) -> None:
        self._path = path
        self._is_forced = is_forced
        self._channel = channel
        self._inspector = Inspector(installed().dissectors.values(), Ids(), parse_decode_as(decode_as))
        self._inspector.on_full = self._inspector.drain
        self._streams: dict[int, Stream] = {}
        self._seen: dict[int, HookStream] = {}
        """The streams in the hook's types."""
        self._ends: dict[tuple[int, Direction], int] = {}
        """Number of bytes forwarded in each direction."""
        self._latest_ns = 0
        self._since_alive = 0
        self._functions = self._load(source)

    def _load(self, source: str) -> dict[str, Callable[..., object]]:
        """Return the functions of the hook. Raises _Stopped."""
        module = ModuleType(_MODULE)
        module.__file__ = self._path
        # Dataclasses look up the names in their annotations there.
        sys.modules[_MODULE] = module
        code = compile(source, self._path, "exec", dont_inherit=True)
        self._called("while it is loaded, ", "", lambda: exec(code, module.__dict__))
        found: dict[str, Callable[..., object]] = {}
        for name, form in SIGNATURES.items():
            function = getattr(module, name, None)
            # A class imported for annotations may have such a name.
            if function is None or not callable(function) or isinstance(function, type):
                continue
            with suppress(ValueError):
                try:
                    inspect.signature(function).bind(*[None] * (form.count(",") + 1))
                except TypeError as error:
                    raise _Stopped(
                        f"{self._place(function)}: {name} cannot be called as {form}: {error}"
                    ) from error
            found[name] = function
        if not found:
            raise _Stopped(f"{self._path} has no function of a hook: {', '.join(SIGNATURES.values())}")
        return found

    def run(self) -> None:
        """Process records up to the end. Raises _Stopped."""
        self._say(Ready())
        unpacking = Unpacker[ToHook](ToHook)
        # The parent has exited or closed the channel.
        with suppress(ConnectionError):
            while data := self._channel.recv(CHUNK_BYTES):
                try:
                    for record in unpacking.feed(data):
                        self._take(record)
                except InvalidRecord as error:
                    raise RuntimeError("the parent says what is no record") from error

    def _say(self, record: FromHook) -> None:
        self._channel.sendall(pack(record))

    def _take(self, record: ToHook) -> None:
        if isinstance(record, Ask):
            self._say(self._answer(record))
            return
        if isinstance(record, Forwarded):
            self._passed(record)
            self._since_alive += 1
            if self._since_alive == _ALIVE_EVERY:
                self._since_alive = 0
                self._say(Alive())
            return
        if isinstance(record, Opened):
            stream = Stream(record.number, record.transport, record.client, record.server, 0)
            self._streams[record.number] = stream
            self._seen[record.number] = HookStream(
                record.number, record.transport, record.client, record.server
            )
            name, seen = "connected", self._seen[record.number]
        else:
            stream = self._streams.pop(record.number)
            name, seen = "closed", self._seen.pop(record.number)
            for direction in ("c2s", "s2c"):
                self._ends.pop((record.number, direction), None)
            self._inspector.feed(End(stream, self._latest_ns, "closed"))
            self._inspector.drain()
        if name in self._functions:
            self._call(name, self._functions[name], f"stream {record.number}", seen)
        self._say(Done())

    def _passed(self, record: Forwarded) -> None:
        stream = self._streams[record.number]
        self._latest_ns = record.ts_ns
        key = record.number, record.direction
        end = self._ends.get(key, 0)
        if record.offset > end:
            # The parent skips data when this process's queue is full.
            lacking = Gap(stream, record.direction, record.ts_ns, end, record.offset - end)
            self._inspector.feed(lacking)
        self._ends[key] = record.offset + len(record.data)
        self._inspector.feed(Chunk(stream, record.direction, record.ts_ns, record.offset, record.data))
        self._inspector.drain()

    def _answer(self, asked: Ask) -> Answer:
        dissector = dissector_of(asked.protocol)
        if dissector is None:
            return Answer(asked.ticket, None)
        decoded = dissector.codec.decode(asked.frame, asked.direction)
        name = decoded.row.name if decoded.row is not None else UNREADABLE
        stream = self._stream(asked, dissector, name, decoded.fields)
        function = self._functions.get("message")
        if function is None:
            return Answer(asked.ticket, None)
        message = Message(
            name=name,
            fields=msgspec.json.decode(decoded.fields_json),
            direction=asked.direction,
            stream=stream,
            time=asked.ts_ns / 1e9,
            protocol=asked.protocol,
            data=asked.frame,
        )
        table = Table(asked.protocol, stream.server, lambda: self._state(asked))
        which = f"{shortened(name, _MAX_QUOTED)} on stream {asked.number}"
        given = self._call(
            "message", lambda *given: returned_messages(function(*given)), which, message, table
        )
        found: list[Outcome] | None = None
        try:
            found = outcomes(dissector, asked, decoded, given, self._is_forced)
        except AssignmentError as error:
            why = shortened(str(error), _MAX_QUOTED)
            self._say(Refused(f"{self._path}: {which} is sent unchanged: {why}"))
        except InvalidReturn as error:
            raise _Stopped(f"{self._place(function)}: message {error}, at {which}") from error
        return Answer(asked.ticket, found)

    def _stream(self, asked: Ask, dissector: Dissector, name: str, fields: dict[str, Any]) -> HookStream:
        """Return the stream of a message, with the client's current name."""
        stream = self._seen[asked.number]
        player = dissector.identity.introduced(name, asked.direction, fields)
        if player is not None and player != stream.player:
            stream = self._seen[asked.number] = msgspec.structs.replace(stream, player=player)
        return stream

    def _state(self, asked: Ask) -> dict[str, Any]:
        """Return a copy of the state of a message's table; empty while nothing is known of it."""
        stream = self._streams.get(asked.number)
        context = self._inspector.context_of(stream) if stream is not None else None
        if context is None or context.info.protocol != asked.protocol:
            return {}
        state: dict[str, Any] = msgspec.json.decode(to_json(context.state))
        return state

    def _call(self, name: str, function: Callable[..., Result], which: str, *given: object) -> Result:
        """Call the hook, and report a slow call. Raises _Stopped."""
        begun = time.monotonic_ns()
        found = self._called(f"{name} ", f", at {which}", lambda: function(*given))
        took = time.monotonic_ns() - begun
        if took > SLOW_NS:
            self._say(Slow(f"{self._path}: {name} took {took / 1e6:,.0f} ms for {which}"))
        return found

    def _called(self, before: str, behind: str, function: Callable[[], Result]) -> Result:
        """Return the result of a call. Raises _Stopped, with the line that raised."""
        try:
            return function()
        except InvalidReturn as error:
            raise _Stopped(f"{self._place(self._functions['message'])}: {before}{error}{behind}") from error
        except MemoryError as error:
            raise _Stopped(
                f"{self._where(error)}: {before}raised MemoryError{behind}: {_no_memory()}"
            ) from error
        # A hook that calls sys.exit must not end silently.
        except BaseException as error:
            raise _Stopped(f"{self._where(error)}: {before}raised {_describe(error)}{behind}") from error

    def _where(self, error: BaseException) -> str:
        """Return the innermost line of the hook's file that raised an exception."""
        line: int | None = None
        step: TracebackType | None = error.__traceback__
        while step is not None:
            if step.tb_frame.f_code.co_filename == self._path:
                line = step.tb_lineno
            step = step.tb_next
        return self._path if line is None else f"{self._path}, line {line}"

    def _place(self, function: Any) -> str:
        """Return the file and line of a function."""
        code = getattr(inspect.unwrap(function), "__code__", None)
        if not isinstance(code, CodeType) or code.co_filename != self._path:
            return self._path
        return f"{self._path}, line {code.co_firstlineno}"


def _describe(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    return shortened(f"{name}: {text}" if text else name, _MAX_QUOTED)
