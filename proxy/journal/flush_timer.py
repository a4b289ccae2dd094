"""When a journal is flushed: soon after something was written, and for all that comes meanwhile at once."""

from __future__ import annotations

import asyncio

from kiebitz.proxy.journal.writer import JournalWriter

FLUSH_SECONDS = 0.02
"""No record stays in memory longer than this."""


class Flushing:
    """Flushes `journal` on the event loop until `stop`; then only when it is full, and when it is closed."""

    def __init__(self, journal: JournalWriter, loop: asyncio.AbstractEventLoop) -> None:
        self._journal = journal
        self._loop = loop
        self._is_planned = False
        journal.on_pending = self._plan

    def stop(self) -> None:
        """Plan no more."""
        self._journal.on_pending = lambda: None

    def _plan(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._is_planned = False
        self._journal.flush()
