"""A session that is being recorded, for tests of what follows it."""

from __future__ import annotations

import time
from pathlib import Path

from session_factory import Conversation

from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.recording.rotation import RotatingRecorder

SECOND_NS = 1_000_000_000


class Live:
    """A session of Mäxchen that is being recorded, whose messages are sent at times given in seconds ago."""

    def __init__(self, path: Path) -> None:
        now_ns = time.time_ns()
        self._talk = Conversation(begin_ns=now_ns - 300 * SECOND_NS)
        ports = {("udp", 9000): dissector_of("maexchen")}
        begin_ns = now_ns - 300 * SECOND_NS
        self._recorder = RotatingRecorder(str(path), "relay", "made up", started_ns=begin_ns, decode_as=ports)
        self._is_closed = False
        self.path = str(path)
        self.last = 1
        """The number of events."""
        self.says(b"REGISTER;alice", 290).hears(b"REGISTERED", 290)

    def says(self, data: bytes, ago_s: float) -> Live:
        return self._sent(self._talk.waits_until(self._at(ago_s)).says(data))

    def hears(self, data: bytes, ago_s: float) -> Live:
        return self._sent(self._talk.waits_until(self._at(ago_s)).hears(data))

    def scores(self, count: int) -> None:
        """Send as many scores, each of which is an event."""
        for _ in range(count):
            self.last += 1
            self._talk.waits_until(self._at(0)).hears(f"SCORE;alice:{self.last}".encode())
        self._sent(self._talk)

    def continue_in(self, path: Path) -> None:
        """Continue in another database."""
        self._recorder.continue_in(str(path))

    def close(self) -> None:
        """End the recording, if it has not ended."""
        if not self._is_closed:
            self._is_closed = True
            self._recorder.close()

    def _at(self, ago_s: float) -> int:
        return time.time_ns() - int(ago_s * SECOND_NS)

    def _sent(self, talk: Conversation) -> Live:
        self._recorder.record(talk.items)
        self._recorder.commit()
        talk.items.clear()
        return self
