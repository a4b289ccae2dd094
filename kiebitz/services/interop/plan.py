"""The plan of an interoperability run: servers, clients, and what is played, from a TOML file."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.protocol_file.dissector import FileDissector
from kiebitz.dissectors.protocol_file.reading.errors import Mistake
from kiebitz.dissectors.protocol_file.reading.positions import InvalidTomlError, Place, parse_toml
from kiebitz.dissectors.protocol_file.reading.source import Source, TooManyMistakes
from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.decode_as import unknown_protocol
from kiebitz.services.probing.targets import NEXT_PORT
from kiebitz.services.protocol_files import add_protocol_files
from kiebitz.storage.database.schema import StorageError

MAX_SIZE = 1 << 20
"""Maximum size of a plan in bytes."""

MAX_PROGRAMS = 200
"""Maximum number of servers, and of clients."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min)")
_MEMORY = re.compile(r"(\d+)\s*(MB|GB)")
_NAME = re.compile(r"[\w.+-]{1,40}")
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "MB": 10**6, "GB": 10**9}

NEXT_RELAY = "{relay+1}"
"""Placeholder for the port at which clients reach the second port, which the server must announce to them."""

Role = Literal["server", "client"]


class PlanError(KiebitzError):
    """A plan is invalid; `mistakes` lists why, with locations."""

    is_usage = True

    def __init__(self, name: str, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(mistakes[0].text(name))

    def excerpt(self) -> list[str]:
        """Return the line of the first mistake with carets."""
        return self.mistakes[0].excerpt()


class Program(msgspec.Struct, frozen=True):
    """A server or a client of the plan.

    `command` is a list of words with placeholders. With an `image` it is run in a container.
    """

    name: str
    role: Role
    command: tuple[str, ...]
    image: str = ""


class Plan(msgspec.Struct, frozen=True):
    """A plan.

    Attributes:
        protocol: Name of the protocol.
        protocol_file: Path of its file, if it has one.
        servers: Servers, in the order of the matrix.
        clients: Clients, in the order of the matrix.
        games: Number of games to finish in each cell.
        players: Number of clients at a table.
        timeout_s: Seconds until an unfinished cell is hung.
        stagger_s: Seconds between the starts of two clients of a cell.
        memory: Maximum number of bytes in memory of a program and its children.
        cpu_s: Maximum seconds of processor time of each process.
        seed: Value of `{seed}`.
        mixed: True if tables with clients of several groups are added.
        probe_s: Seconds for the probe of each program; 0 for none.
        folder: The folder of the plan, to which programs are relative.
    """

    protocol: str
    protocol_file: str | None
    servers: tuple[Program, ...]
    clients: tuple[Program, ...]
    games: int
    players: int
    timeout_s: float
    stagger_s: float
    memory: int
    cpu_s: int
    seed: int
    mixed: bool
    probe_s: float
    folder: str

    @property
    def server_ports(self) -> int:
        """Number of consecutive ports of a server: 2 if a command has the placeholder of the next port."""
        commands = (word for each in (*self.servers, *self.clients) for word in each.command)
        return 2 if any(NEXT_PORT in word or NEXT_RELAY in word for word in commands) else 1

    @property
    def dissector(self) -> Dissector:
        """The protocol."""
        dissector = dissector_of(self.protocol)
        assert dissector is not None
        return dissector


class _Head(msgspec.Struct, kw_only=True):
    """The keys of a plan."""

    protocol: str
    games: int = 1
    players: int = 0
    timeout: str = "120s"
    stagger: str = "100ms"
    memory: str = "2GB"
    cpu: str = "300s"
    seed: int = 1
    mix: bool = False
    probe: str = "0s"


class _Program(msgspec.Struct, kw_only=True):
    """The keys of a server or client."""

    name: str
    command: str
    image: str = ""


def read_plan(path: str) -> Plan:
    """Read a plan, and register its protocol file.

    Raises PlanError, ProtocolFileError and StorageError.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_SIZE + 1)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}: name a plan in TOML") from error
    if len(data) > MAX_SIZE:
        raise StorageError(f"{path}: more than {MAX_SIZE:,} bytes: this is no plan")
    try:
        text = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise StorageError(f"{path}: this is no text in UTF-8") from error
    try:
        document = parse_toml(text)
    except InvalidTomlError as error:
        place = error.place or Place(1, text.partition("\n")[0], 0, 1)
        raise PlanError(path, [Mistake(str(error), place)]) from None
    return _Reader(path, text, document).plan()


class _Reader:
    """The reader of one plan."""

    def __init__(self, path: str, text: str, document: dict[str, object]) -> None:
        self._path = path
        self._document = document
        self._source = Source(text)

    def plan(self) -> Plan:
        with suppress(TooManyMistakes):
            plan = self._plan()
        if self._source.mistakes:
            raise PlanError(self._path, self._source.mistakes)
        return plan

    def _plan(self) -> Plan:
        source = self._source
        plain = {key: value for key, value in self._document.items() if key not in ("server", "client")}
        head = source.table((), plain, _Head)
        assert head is not None
        folder = os.path.dirname(os.path.abspath(self._path))
        protocol, file = self._protocol(head.protocol, folder)
        servers, clients = (self._programs(role) for role in ("server", "client"))
        for key, least in (("games", 1), ("players", 0), ("seed", 0)):
            if getattr(head, key) < least:
                source.wrong((key,), f"{key} must be at least {least}")
        dissector = dissector_of(protocol)
        seats = 2 if dissector is None else dissector.conformance.seats
        return Plan(
            protocol,
            file,
            servers,
            clients,
            head.games,
            head.players or seats,
            self._measure("timeout", head.timeout, _DURATION, "120s or 2min"),
            self._measure("stagger", head.stagger, _DURATION, "500ms or 1s"),
            int(self._measure("memory", head.memory, _MEMORY, "500MB or 2GB")),
            int(self._measure("cpu", head.cpu, _DURATION, "300s or 5min")),
            head.seed,
            head.mix,
            self._measure("probe", head.probe, _DURATION, "60s or 1min"),
            folder,
        )

    def _protocol(self, name: str, folder: str) -> tuple[str, str | None]:
        """Return the protocol's name and its file, if the plan names one."""
        if name.endswith(".toml"):
            path = str(Path(folder, name))
            protocol = add_protocol_files([path], replaces=True).pop()
            dissector = dissector_of(protocol)
            assert isinstance(dissector, FileDissector)
            if not any(event.opens for event in dissector.specification.events):
                self._source.wrong(("protocol",), f"{name} has no event with opens = true: no games to count")
            return protocol, path
        if name and dissector_of(name) is None:
            self._source.wrong(("protocol",), unknown_protocol(name))
        return name, None

    def _measure(self, key: str, text: str, pattern: re.Pattern[str], example: str) -> float:
        form = pattern.fullmatch(text)
        if form is None:
            self._source.wrong((key,), f"{key} must be a number with its unit, as in {example}")
            return 0.0
        return float(form[1]) * _UNITS[form[2]]

    def _programs(self, role: Role) -> tuple[Program, ...]:
        entries = self._document.get(role, [])
        if not isinstance(entries, list) or not entries:
            self._source.wrong_key((role,), f"no {role}: add a table [[{role}]] with name and command")
            return ()
        found: dict[str, Program] = {}
        if len(entries) > MAX_PROGRAMS:
            self._source.wrong_key((role, MAX_PROGRAMS), f"more than {MAX_PROGRAMS} of them")
        for number, entry in enumerate(entries[:MAX_PROGRAMS]):
            path = (role, number)
            read = self._source.table(path, entry, _Program)
            if read is None:
                continue
            if not _NAME.fullmatch(read.name):
                self._source.wrong((*path, "name"), "a name has up to 40 letters, digits and .+-_")
            elif read.name in found:
                self._source.wrong((*path, "name"), f"there is another {role} {read.name}")
            found[read.name] = Program(read.name, role, self._words(path, role, read.command), read.image)
        return tuple(found.values())

    def _words(self, path: tuple[str | int, ...], role: Role, command: str) -> tuple[str, ...]:
        try:
            words = shlex.split(command)
        except ValueError as error:
            self._source.wrong((*path, "command"), f"{error}")
            return ()
        if not words:
            self._source.wrong((*path, "command"), "the command is empty")
        if "{port}" not in command:
            self._source.wrong((*path, "command"), f"{{port}} is missing: the {role} must use the given port")
        return tuple(words)
