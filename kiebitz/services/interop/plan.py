"""The plan of an interoperability run, from a TOML file, and the programs of a cell with their limits."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.protocol_file.dissector import FileDissector
from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.plan_file import (
    PlanReader,
    filled,
    filled_words,
)
from kiebitz.services.probing.connection_setup import NEXT_PORT

MAX_PROGRAMS = 200
"""Maximum number of servers, and of clients."""

_MEMORY = re.compile(r"(\d+)\s*(MB|GB)")
_NAME = re.compile(r"[\w.+-]{1,40}")
_UNITS = {"MB": 10**6, "GB": 10**9}

NEXT_RELAY = "{relay+1}"
"""Placeholder for the port at which clients reach the second port, which the server must announce to them."""

Role = Literal["server", "client"]


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
    return _Reader(path).checked()


class _Reader(PlanReader[Plan]):
    """The reader of one plan."""

    def plan(self) -> Plan:
        head = self.head(_Head, "server", "client")
        protocol, file = self._protocol(head.protocol)
        servers, clients = (self._programs(role) for role in ("server", "client"))
        for key, least in (("games", 1), ("players", 0), ("seed", 0)):
            if getattr(head, key) < least:
                self.source.wrong((key,), f"{key} must be at least {least}")
        dissector = dissector_of(protocol)
        seats = 2 if dissector is None else dissector.conformance.seats
        return Plan(
            protocol,
            file,
            servers,
            clients,
            head.games,
            head.players or seats,
            self.duration_s(("timeout",), head.timeout, "120s or 2min"),
            self.duration_s(("stagger",), head.stagger, "500ms or 1s"),
            self._memory(head.memory),
            int(self.duration_s(("cpu",), head.cpu, "300s or 5min")),
            head.seed,
            head.mix,
            self.duration_s(("probe",), head.probe, "60s or 1min"),
            self.folder,
        )

    def _protocol(self, name: str) -> tuple[str, str | None]:
        """Return the protocol's name and its file, if the plan names one."""
        protocol, file = self.protocol_and_file(("protocol",), name)
        dissector = dissector_of(protocol)
        opens = not isinstance(dissector, FileDissector) or any(
            event.opens for event in dissector.specification.events
        )
        if file is not None and not opens:
            self.source.wrong(("protocol",), f"{name} has no event with opens = true: no games to count")
        return protocol, file

    def _memory(self, text: str) -> int:
        form = _MEMORY.fullmatch(text)
        if form is None:
            self.source.wrong(("memory",), "memory must be a number with its unit, as in 500MB or 2GB")
            return 0
        return int(form[1]) * _UNITS[form[2]]

    def _programs(self, role: Role) -> tuple[Program, ...]:
        found: dict[str, Program] = {}
        for path, read in self.tables(role, _Program, MAX_PROGRAMS, "name and command"):
            if not _NAME.fullmatch(read.name):
                self.source.wrong((*path, "name"), "a name has up to 40 letters, digits and .+-_")
            elif read.name in found:
                self.source.wrong((*path, "name"), f"there is another {role} {read.name}")
            words = self.command_words((*path, "command"), read.command, role)
            found[read.name] = Program(read.name, role, words, read.image)
        return tuple(found.values())


_MAX_OPEN_FILES = 1024
_MAX_FILE_BLOCKS = 2_000_000
"""Maximum size of a file that a program writes, in blocks of 512 bytes."""

_LIMITED = f'ulimit -t "$1"; ulimit -n {_MAX_OPEN_FILES}; ulimit -f {_MAX_FILE_BLOCKS}; shift; exec "$@"'
"""A shell script that limits processor seconds, open files and the size of files, and becomes the program."""

_ENGINES = ("podman", "docker")

_CONTAINED = """\
engine=$1; shift
end() { while kill -0 "${run-$$}" && ! "$engine" kill "kiebitz-$$"; do sleep 0.1; done > /dev/null 2>&1; }
trap end TERM
"$engine" run --rm --name "kiebitz-$$" --network=host "$@" &
run=$!
wait $run
status=$?
trap - TERM
wait
[ $status -le 128 ] || kill -$((status - 128)) $$
exit $status
"""
"""A shell script that runs a container, ends it at SIGTERM, and ends like it, also by its signal.

A container is no child of the engine's command, and its first process ignores SIGTERM unless it handles it.
"""

HOST = "127.0.0.1"


class NoEngineError(KiebitzError):
    """A plan has an image, and no container engine is installed."""


def limited_words(plan: Plan, program: Program, values: Mapping[str, str]) -> list[str]:
    """Return the words of a command with its placeholders filled, which limits itself.

    Raises NoEngineError.
    """
    if program.image:
        words = [filled(word, values) for word in program.command]
        limits = [f"--memory={plan.memory}"]
        bounds = {"cpu": plan.cpu_s, "nofile": _MAX_OPEN_FILES, "fsize": _MAX_FILE_BLOCKS * 512}
        for name, most in bounds.items():
            limits += ["--ulimit", f"{name}={most}:{most}"]
        return ["/bin/sh", "-c", _CONTAINED, "sh", _engine(program), *limits, program.image, *words]
    words = filled_words(program.command, values, plan.folder)
    return ["/bin/sh", "-c", _LIMITED, "sh", str(plan.cpu_s), *words]


def _engine(program: Program) -> str:
    engine = next(filter(shutil.which, _ENGINES), None)
    if engine is not None:
        return engine
    raise NoEngineError(
        f"{program.role} {program.name} has an image, and neither {' nor '.join(_ENGINES)} is installed:"
        " install one, or leave out image"
    )


def resident_bytes(processes: Iterable[int]) -> int:
    """Return the memory in use by processes, by their numbers; 0 where the system does not tell."""
    pages = 0
    for process in processes:
        with suppress(OSError, ValueError, IndexError):
            pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
