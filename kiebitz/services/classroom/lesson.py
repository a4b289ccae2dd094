"""A lesson: its plan, and the relays and servers of its groups as child processes with a thread each."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Transport
from kiebitz.dissectors.protocol_file.reading.source import Path
from kiebitz.dissectors.registry import dissector_of
from kiebitz.proxy.relay.modes import Reverse, endpoint, parse_endpoint
from kiebitz.services.plan_file import PlanReader, filled_words
from kiebitz.services.probing.program import TargetProgram
from kiebitz.services.recording.relay_process import RelayProcess, decoding_options, free_port

_LOOK_EVERY_S = 0.2
_RETRY_S = 5.0
"""Minimum time in seconds between two starts of a program."""

_LISTENING = "listening on"

Tell = Callable[[str, str], None]
"""Receives the name of a group and a sentence about it, in any thread."""


class Lesson:
    """The groups of a plan. One group's trouble is that group's: its programs are started again.

    As a context, it ends all of them, and everything is recorded then.
    """

    def __init__(self, plan: ClassPlan, tell: Tell) -> None:
        self._groups = [_GroupRun(group, plan.base, tell) for group in plan.groups]

    def __enter__(self) -> Lesson:
        for group in self._groups:
            group.start()
        return self

    def __exit__(self, *_: object) -> None:
        for group in self._groups:
            group.is_over.set()
        for group in self._groups:
            group.join()

    def wait_until_started(self) -> None:
        """Wait until each group has been started, or could not be."""
        for group in self._groups:
            group.was_started.wait()


class _GroupRun(threading.Thread):
    """Keeps a group's relay and server running until `is_over`."""

    def __init__(self, group: Group, base: str, tell: Tell) -> None:
        super().__init__(name=group.name)
        self.is_over = threading.Event()
        self.was_started = threading.Event()
        self._tell = tell
        self._group = group
        port = group.server[1] or free_port(group.transports[0])
        words = filled_words(group.command, {"port": str(port), "name": group.name}, base)
        self._server = (
            _Kept(TargetProgram(words, group.transports[0], port, "the server", base)) if words else None
        )
        options = ["--name", group.name]
        if group.protocol:
            options += decoding_options(group.transports[0], port, group.protocol, group.protocol_file)
        modes = [str(mode) for mode in group.modes(port)]
        self._relay = _Kept(RelayProcess(modes, group.database, options, self._print))

    def run(self) -> None:
        try:
            while not self.is_over.is_set():
                if self._server is not None:
                    self._keep("the server", self._server)
                self._keep("the relay", self._relay)
                self.was_started.set()
                self.is_over.wait(_LOOK_EVERY_S)
        finally:
            self.was_started.set()
            # The relay first, as the end of its server is none of the game.
            self._relay.stop()
            if self._server is not None:
                self._server.stop()

    def _keep(self, title: str, kept: _Kept) -> None:
        """Start a program again if it has ended."""
        if kept.is_running:
            return
        if kept.was_running:
            self._tell(self._group.name, f"{title} has ended{kept.last_words()}; it is started again")
        kept.was_running = False
        if time.monotonic() < kept.started_s + _RETRY_S:
            return
        try:
            kept.start()
        except (KiebitzError, OSError) as error:
            self._tell(self._group.name, str(error))

    def _print(self, line: str) -> None:
        if _LISTENING not in line:
            self._tell(self._group.name, line.removeprefix("kiebitz: "))


class _Kept:
    """A program that is kept running."""

    def __init__(self, program: TargetProgram | RelayProcess) -> None:
        self._program = program
        self.started_s = float("-inf")
        self.was_running = False

    @property
    def is_running(self) -> bool:
        return self.was_running and self._program.is_running

    def start(self) -> None:
        """Start it. Raises KiebitzError, OSError."""
        self.started_s = time.monotonic()
        self.stop()
        self._program.start()
        self.was_running = True

    def stop(self) -> None:
        """Stop it, if it was started."""
        self.was_running = False
        self._program.stop()

    def last_words(self) -> str:
        """Return how a server has ended, and its last output."""
        if not isinstance(self._program, TargetProgram):
            return ""
        return f" ({self._program.died()}){self._program.last_words()}"


MAX_GROUPS = 40
"""Maximum number of groups: each has a relay with two processes."""

_ALL_ADDRESSES = "0.0.0.0"
_LOOPBACK = "127.0.0.1"
_PAGE_PORT = 8765
_MAX_NAME = 80
_NOT_IN_FILE_NAMES = re.compile(r"[^\w]+")
_TRANSPORTS: tuple[Transport, ...] = ("tcp", "udp")

_Place = Annotated[int | str, msgspec.Meta(extra={"is": "a port, or ADDR:PORT in quotation marks"})]


class Group(msgspec.Struct, frozen=True):
    """A group of the class.

    Attributes:
        name: Name, which the page shows.
        listen: Address at which clients connect: host and port.
        server: Address of its server; without a port if `command` starts it here.
        command: Words of the command of its server, with placeholders; empty for a server elsewhere.
        transports: The transports to relay: both if neither the protocol nor the plan says which.
        protocol: Name of the protocol; empty if it is to be recognised.
        protocol_file: Path of the protocol's file, if it has one.
        database: Path of the recording.
    """

    name: str
    listen: tuple[str, int]
    server: tuple[str, int | None]
    command: tuple[str, ...]
    transports: tuple[Transport, ...]
    protocol: str
    protocol_file: str | None
    database: str

    @property
    def server_words(self) -> str:
        """Its server in words."""
        host, port = self.server
        return " ".join(self.command) if port is None else endpoint(host, port)

    def modes(self, server_port: int) -> list[Reverse]:
        """Return the modes of its relay to a server at a port."""
        return [
            Reverse(transport, self.server[0], server_port, *self.listen) for transport in self.transports
        ]


class ClassPlan(msgspec.Struct, frozen=True):
    """A lesson.

    Attributes:
        page: Address of the page: host and port.
        folder: Folder of the recordings and of the page's keys.
        delay_s: Delay in seconds of what spectators see; None for none.
        groups: The groups in their order.
        base: The folder of the plan, to which commands are relative.
    """

    page: tuple[str, int]
    folder: str
    delay_s: float | None
    groups: tuple[Group, ...]
    base: str


class _Head(msgspec.Struct, kw_only=True):
    """The keys of a plan."""

    page: _Place = f"{_ALL_ADDRESSES}:{_PAGE_PORT}"
    folder: str = ""
    delay: str = ""


class _Group(msgspec.Struct, kw_only=True):
    """The keys of a group."""

    name: str
    listen: _Place
    server: str = ""
    command: str = ""
    protocol: str = ""


def read_class(path: str) -> ClassPlan:
    """Read a plan, register its protocol files, and check that its ports are free.

    Raises PlanError, ProtocolFileError and StorageError.
    """
    return _Reader(path).checked()


class _Reader(PlanReader[ClassPlan]):
    """The reader of one plan."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._taken: dict[tuple[Transport, int], str] = {}

    def plan(self) -> ClassPlan:
        source = self.source
        head = self.head(_Head, "group")
        stem = os.path.splitext(os.path.basename(self.path))[0]
        folder = os.path.join(self.folder, head.folder or stem)
        page = self._place(("page",), head.page)
        self._take(("page",), "the page", page, "tcp")
        delay_s = self.duration_s(("delay",), head.delay, "30s or 2min") if head.delay else None
        groups: list[Group] = []
        for path, read in self.tables("group", _Group, MAX_GROUPS, "name, listen and server"):
            if any(read.name == other.name for other in groups):
                source.wrong((*path, "name"), f"there is another group {read.name}")
            groups.append(self._group(path, read, len(groups) + 1, folder))
        return ClassPlan(page, folder, delay_s, tuple(groups), self.folder)

    def _group(self, path: Path, read: _Group, number: int, folder: str) -> Group:
        source = self.source
        if not read.name.strip() or not read.name.isprintable() or len(read.name) > _MAX_NAME:
            source.wrong((*path, "name"), f"a name has 1 to {_MAX_NAME} printable characters")
        listen = self._place((*path, "listen"), read.listen)
        protocol, file = self.protocol_and_file((*path, "protocol"), read.protocol)
        dissector = dissector_of(protocol)
        transports = _TRANSPORTS if dissector is None else (dissector.transport,)
        server: tuple[str, int | None] = (_LOOPBACK, None)
        command: tuple[str, ...] = ()
        if bool(read.server) == bool(read.command):
            source.wrong_key(path, "give either server, as in '192.168.1.21:8080', or command")
        elif read.server:
            scheme, is_given, rest = read.server.rpartition("://")
            if is_given:
                transports = tuple(each for each in _TRANSPORTS if each == scheme)
            server = self._server((*path, "server"), rest if transports else "")
        else:
            command = self.command_words((*path, "command"), read.command, "server")
            if (
                command
                and shutil.which(os.path.join(self.folder if "/" in command[0] else "", command[0])) is None
            ):
                source.wrong((*path, "command"), f"no program {command[0]}: is it installed?")
            if dissector is None:
                source.wrong_key(
                    path, "protocol is missing: with command, it tells whether the port is TCP or UDP"
                )
        for transport in transports:
            self._take((*path, "listen"), f"group {read.name}", listen, transport)
        stem = _NOT_IN_FILE_NAMES.sub("-", read.name)[:40].strip("-")
        database = os.path.join(folder, f"{number:02}-{stem}.db")
        return Group(read.name, listen, server, command, transports, protocol, file, database)

    def _server(self, path: Path, text: str) -> tuple[str, int | None]:
        with suppress(ValueError):
            host, port = parse_endpoint(text)
            if host and port:
                return host, port
        self.source.wrong(path, "must be HOST:PORT, as in 192.168.1.21:8080 or udp://192.168.1.21:9000")
        return "", None

    def _place(self, path: Path, value: int | str) -> tuple[str, int]:
        try:
            host, port = parse_endpoint(str(value))
        except ValueError as error:
            self.source.wrong(path, str(error))
            return _ALL_ADDRESSES, 0
        if not port:
            self.source.wrong(path, "the port must be 1 to 65535")
        return host or _ALL_ADDRESSES, port

    def _take(self, path: Path, user: str, place: tuple[str, int], transport: Transport) -> None:
        """Report a port that is given twice, or that is in use."""
        other = self._taken.setdefault((transport, place[1]), user)
        if other != user:
            self.source.wrong(path, f"port {place[1]} is that of {other}, too")
        elif place[1]:
            why = _refusal(place, transport)
            if why is not None:
                self.source.wrong(path, f"{transport} port {place[1]}: {why}")


def _refusal(place: tuple[str, int], transport: Transport) -> str | None:
    """Return why a port cannot be listened on."""
    kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
    try:
        with socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET, kind) as sock:
            if transport == "tcp":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(place)
            if transport == "tcp":
                sock.listen(1)
    except OSError as error:
        return {
            errno.EADDRINUSE: "another program uses it",
            errno.EADDRNOTAVAIL: f"this machine has no address {place[0]}",
            errno.EACCES: "ports below 1024 need rights: choose another",
        }.get(error.errno or 0, str(error.strerror or error))
    return None
