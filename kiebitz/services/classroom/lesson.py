"""The relays and servers of a lesson as child processes; each group has a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.services.classroom.plan import ClassPlan, Group
from kiebitz.services.plan_file import filled_words
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
        if not kept.is_due():
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
        self._started_s = float("-inf")
        self.was_running = False

    @property
    def is_running(self) -> bool:
        return self.was_running and self._program.is_running

    def is_due(self) -> bool:
        """Return True if the last start was long enough ago."""
        return time.monotonic() >= self._started_s + _RETRY_S

    def start(self) -> None:
        """Start it. Raises KiebitzError, OSError."""
        self._started_s = time.monotonic()
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
        lines = self._program.output.strip().splitlines()
        output = f"; its last output: {lines[-1][:200]}" if lines else ""
        return f" ({self._program.died()}){output}"
