"""The lag of a recorder behind its relay."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.connection import Connection

from kiebitz.proxy.journal.reader import JournalReader
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.recording.task import Backlog, report

BEHIND_S = 3.0
"""Lag (seconds) from which it is reported."""

_LOOK_EVERY_S = 0.5
_REPORT_INTERVAL_S = 10.0


class Lag:
    """Reports the lag of a recorder."""

    def __init__(
        self, reader: JournalReader, relay: Connection, tell: Callable[[str], None], *, is_behind: bool
    ) -> None:
        self._reader = reader
        self._relay = relay
        self._notify = tell
        self._is_behind = is_behind
        self._looked = self._told = 0.0

    def look(self, latest_ns: int | None) -> None:
        """Check the lag after recording items up to `latest_ns`, None if there were none."""
        if self._reader.is_at_end:
            if self._is_behind:
                self._notify("kiebitz: the recorder has caught up: the backlog is recorded")
                self._is_behind = False
            return
        now = time.monotonic()
        if latest_ns is None or now - self._looked < _LOOK_EVERY_S:
            return
        self._looked = now
        messages, seconds = self._reader.backlog(), (now_ns() - latest_ns) / 1e9
        if self._relay.poll():
            report(self._relay, Backlog(messages))
        elif seconds >= BEHIND_S and now - self._told >= _REPORT_INTERVAL_S:
            self._told = now
            self._is_behind = True
            waiting = f"about {messages:,} messages are waiting to be recorded"
            self._notify(f"kiebitz: the recorder is {seconds:.0f} s behind: {waiting}")
