"""Timing of journal flushes: shortly after a write, for all records that arrive meanwhile."""

from __future__ import annotations

import asyncio

from kiebitz.proxy.journal.writer import JournalWriter

FLUSH_SECONDS = 0.02
"""Longest time a record stays in memory."""


class FlushTimer:
    """A timer that flushes `journal` until `stop`; afterwards only a full buffer or `close` does."""

    def __init__(self, journal: JournalWriter, loop: asyncio.AbstractEventLoop) -> None:
        self._journal = journal
        self._loop = loop
        self._is_scheduled = False
        journal.on_pending = self._schedule

    def stop(self) -> None:
        """Schedule no more flushes."""
        self._journal.on_pending = lambda: None

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._is_scheduled = False
        self._journal.flush()
