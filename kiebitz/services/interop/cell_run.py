"""The run of one cell: a server, the relay and clients as processes, until the games are over."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from kiebitz.dissectors.model import Transport
from kiebitz.proxy.system.descendants import process_table
from kiebitz.proxy.system.ports_in_use import local_ports
from kiebitz.services.interop.participation import Client, Participation
from kiebitz.services.interop.plan import HOST, Plan, Program, limited_words, resident_bytes
from kiebitz.services.interop.results import ProgramOutput, open_recording
from kiebitz.services.probing.program import ProgramError, TargetProgram
from kiebitz.services.recording.relay_process import decoding_options, free_port, running_relay

_CHECK_INTERVAL_S = 0.2

_GRACE_S = 1.0
"""Seconds for the other programs to send what they still have to send once one has ended."""

_MIN_IDLE_FACTOR = 4.0
"""Least time between two counts of the games, as a multiple of the time that a count takes."""

_MAX_OUTPUT = 8000
"""Maximum number of characters kept of a program's output."""


_RECORDED = """
    SELECT (SELECT count(*) FROM games WHERE ended_ns IS NOT NULL), (SELECT coalesce(max(id), 0) FROM chunks)
"""
"""Query for the number of ended games and the number of the last chunk."""


class StoppedError(Exception):
    """The run was interrupted."""


class Ended(msgspec.Struct, frozen=True):
    """The end of a program: `how` is a signal or an exit status, `label` its name in the cell."""

    program: Program
    label: str
    how: str
    is_crash: bool


class CellRecord(msgspec.Struct, frozen=True):
    """Observations of one run of a cell.

    Attributes:
        until_ns: Time at which Kiebitz began to end the programs, in nanoseconds since 1970. What happened
            after it counts for nothing.
        seconds: Duration.
        is_timed_out: True if the time was over before all games were.
        quiet_s: Seconds without any message at the end.
        ended: Programs that ended by themselves before they were stopped, in order.
        not_started: Why the server could not be started.
        outputs: The outputs of all programs.
        clients: The clients that were started.
    """

    until_ns: int
    seconds: float
    is_timed_out: bool
    quiet_s: float
    ended: Sequence[Ended]
    not_started: str | None
    outputs: Sequence[ProgramOutput]
    clients: Sequence[Client]


class _Running(msgspec.Struct, eq=False):
    """A started program with its process."""

    program: Program
    label: str
    process: TargetProgram
    ports: set[int] = msgspec.field(default_factory=set)
    """Local ports of its sockets."""


class CellRun:
    """One run of a cell; the clients' list has a client for each seat.

    `folder` is for the programs, which may do anything with it; `database` is the path of the recording.
    """

    def __init__(
        self,
        plan: Plan,
        server: Program,
        clients: Sequence[Program],
        folder: Path,
        database: Path,
        seed: int,
    ) -> None:
        self._plan = plan
        self._server = server
        self._clients = clients
        self._folder = folder
        self.database = database
        self._seed = seed
        self._transport: Transport = plan.dissector.transport
        self._running: list[_Running] = []
        self._ended: list[Ended] = []
        self._noted: set[_Running] = set()
        """The programs whose end is noted."""

    def run(self, is_stopped: threading.Event) -> CellRecord:
        """Run the cell. Raises StoppedError once `is_stopped` is set, KiebitzError if the relay fails."""
        self._folder.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        plan, count = self._plan, self._plan.server_ports
        port = free_port(self._transport, count)
        options = decoding_options(self._transport, port, plan.protocol, plan.protocol_file, count)
        not_started: str | None = None
        is_timed_out, quiet_s = False, 0.0
        with ExitStack() as ends:
            relay_port = ends.enter_context(
                running_relay(self._transport, HOST, port, str(self.database), options, count)
            )
            ends.callback(self._stop)
            try:
                self._start(self._server, self._server.name, port, relay_port)
                for number, client in enumerate(self._clients, 1):
                    self._start(client, f"{client.name}-{number}", relay_port, relay_port)
                    if is_stopped.wait(plan.stagger_s):
                        raise StoppedError
            except ProgramError as error:
                not_started = str(error)
            if not_started is None:
                is_timed_out, quiet_s = self._watch(begun, is_stopped)
            until_ns = time.time_ns()
            outputs = [
                ProgramOutput(
                    each.label, each.program.role, each.process.died(), each.process.output[-_MAX_OUTPUT:]
                )
                for each in self._running
            ]
        return CellRecord(
            until_ns,
            time.monotonic() - begun,
            is_timed_out,
            quiet_s,
            tuple(self._ended),
            not_started,
            outputs,
            self._clients_so_far(),
        )

    def _start(self, program: Program, label: str, port: int, relay_port: int) -> None:
        values = {
            "host": HOST,
            "port": str(port),
            "port+1": str(port + 1),
            "relay+1": str(relay_port + 1),
            "name": label,
            "seed": str(self._seed),
        }
        listens_at = port if program.role == "server" else None
        # A server and a client may have the same name. Relative paths are of the plan's folder.
        folder = self._folder / f"{program.role}-{label}"
        folder.mkdir(parents=True, exist_ok=True)
        words = limited_words(self._plan, program, values)
        title = f"{program.role} {program.name}"
        process = TargetProgram(words, self._transport, listens_at, title, str(folder))
        # It is known before it runs, so that it is stopped in any case.
        self._running.append(_Running(program, label, process))
        process.start()

    def _watch(self, begun: float, is_stopped: threading.Event) -> tuple[bool, float]:
        """Wait for the end of the games; return True if time is over, and the quiet seconds."""
        size, changed, finished_at = -1, time.monotonic(), None
        counted, next_count = 0, 0.0
        while True:
            if is_stopped.wait(_CHECK_INTERVAL_S):
                raise StoppedError
            now = time.monotonic()
            # Their connections are known in the recording by these ports.
            table = process_table()
            for each in self._running:
                if each.program.role == "client":
                    each.ports |= local_ports(self._transport, each.process.processes(table))
            self._note_ends()
            games, latest = self._recorded()
            if latest > size:
                size, changed = latest, now
            if games >= self._plan.games and games > counted and now >= next_count:
                counted = games
                if self._is_complete():
                    return False, now - changed
                next_count = time.monotonic() + _MIN_IDLE_FACTOR * (time.monotonic() - now)
            if finished_at is None and self._ended:
                # Without it, no further game can have all clients.
                finished_at = now
            if finished_at is not None and now >= finished_at + _GRACE_S:
                return False, now - changed
            if now >= begun + self._plan.timeout_s:
                return True, now - changed

    def _is_complete(self) -> bool:
        """Return True if all games of the plan have been played to the end with all clients."""
        # There may be no recording yet, or a stranger's database in its place.
        with suppress(Exception), open_recording(str(self.database)) as session:
            found = Participation(session, self._plan.dissector, self._clients_so_far(), time.time_ns())
            return found.has_completed(self._plan.games)
        return False

    def _clients_so_far(self) -> list[Client]:
        return [
            Client(each.label, each.program.name, frozenset(each.ports))
            for each in self._running
            if each.program.role == "client"
        ]

    def _note_ends(self) -> None:
        """Note programs that have ended, and end those that use too much memory."""
        table = process_table()
        for each in self._running:
            if each in self._noted:
                continue
            how, is_crash = each.process.died(), each.process.has_crashed
            used = resident_bytes(each.process.processes(table))
            if how is None and used > self._plan.memory:
                how, is_crash = f"more than {self._plan.memory:,} bytes of memory", True
                each.process.stop()
            if how is not None:
                self._noted.add(each)
                self._ended.append(Ended(each.program, each.label, how, is_crash))

    def _recorded(self) -> tuple[int, int]:
        """Return the number of ended games and that of the last chunk; 0 while there is no recording."""
        # As above.
        with suppress(Exception), open_recording(str(self.database)) as session:
            games, latest = session.timeline.connection.execute(_RECORDED).fetchone()
            return int(games), int(latest)
        return 0, 0

    def _stop(self) -> None:
        for each in reversed(self._running):
            each.process.stop()
