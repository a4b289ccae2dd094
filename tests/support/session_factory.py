"""Sessions made datagram by datagram, for cases that no capture has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from snapshots import as_bytes

from kiebitz.dissectors.model import Chunk, Direction, End, Fault, Item, Stream
from kiebitz.storage.recording.recorder import Recorder

SERVER = "127.0.0.1:9000"
START_NS = 1_700_000_000_000_000_000


class Conversation:
    """One client and the server; `says` and `hears` add datagrams a millisecond apart."""

    def __init__(
        self,
        client: str = "127.0.0.1:40000",
        server: str = SERVER,
        number: int = 1,
        begin_ns: int = START_NS,
    ) -> None:
        self.stream = Stream(number, "udp", client, server, begin_ns)
        self.items: list[Item] = []
        self._offsets: dict[Direction, int] = {"c2s": 0, "s2c": 0}
        self._now_ns = begin_ns

    def says(self, data: bytes, missing: int = 0) -> Conversation:
        return self._sent("c2s", data, missing)

    def hears(self, data: bytes, missing: int = 0) -> Conversation:
        return self._sent("s2c", data, missing)

    def talk(self, *lines: str) -> Conversation:
        """Add what lines describe: `> ROLL;x`, `< ROLLED +5 missing`, `fault`, `end`."""
        for line in lines:
            if step := re.fullmatch(r"([<>]) ?(.*?)(?: \+(\d+) missing)?", line):
                (self.says if step[1] == ">" else self.hears)(as_bytes(step[2]), int(step[3] or 0))
            else:
                {"fault": self.fault, "end": self.ends}[line]()
        return self

    def waits_until(self, now_ns: int) -> Conversation:
        self._now_ns = now_ns
        return self

    def fault(self) -> Conversation:
        self._now_ns += 1_000_000
        offset = self._offsets["c2s"]
        self.items.append(
            Fault(self.stream, "c2s", self._now_ns, offset, "unreachable", "nobody listens there")
        )
        return self

    def ends(self) -> Conversation:
        self._now_ns += 1_000_000
        self.items.append(End(self.stream, self._now_ns, "idle"))
        return self

    def _sent(self, direction: Direction, data: bytes, missing: int) -> Conversation:
        self._now_ns += 1_000_000
        offset = self._offsets[direction]
        self.items.append(Chunk(self.stream, direction, self._now_ns, offset, data, missing))
        self._offsets[direction] += len(data) + missing
        return self


@contextmanager
def recording(path: Path, *talks: Conversation, begin_ns: int = 0) -> Iterator[Recorder]:
    """Record a session that begins with conversations, and goes on during the block."""
    recorder = Recorder(str(path), "relay", "made up", started_ns=begin_ns)
    recorder.record([item for talk in talks for item in talk.items])
    recorder.commit()
    try:
        yield recorder
    finally:
        recorder.close()


def record(path: Path, items: Sequence[Item], ended: bool = True, begin_ns: int = START_NS) -> str:
    """Record a session of these items and give the database's name."""
    recorder = Recorder(str(path), "relay", "made up", started_ns=begin_ns)
    recorder.record(items)
    if ended:
        recorder.close()
    else:
        recorder.commit()
        recorder.release()
    return str(path)
