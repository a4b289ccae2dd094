"""Conversations of noughts and crosses, and their findings."""

from __future__ import annotations

from kiebitz_noughts.dissector import NOUGHTS

from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, End, Findings, Gap, Ids, Item, Stream
from kiebitz.dissectors.registry import BUILT_IN

MS = 1_000_000


class Talk:
    """Conversations with one server, a message a millisecond."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._streams: dict[str, Stream] = {}
        self._ends: dict[tuple[str, Direction], int] = {}

    def stream(self, who: str) -> Stream:
        number = len(self._streams) + 1
        made = Stream(number, "tcp", f"127.0.0.1:{40_000 + number}", "127.0.0.1:3333", 0)
        return self._streams.setdefault(who, made)

    def says(self, who: str, *lines: str, direction: Direction = "c2s") -> Talk:
        for line in lines:
            data = f"{line}\r\n".encode()
            offset = self._ends.get((who, direction), 0)
            self._ends[who, direction] = offset + len(data)
            now = len(self.items) * MS
            self.items.append(Chunk(self.stream(who), direction, now, offset, data))
        return self

    def hears(self, who: str, *lines: str) -> Talk:
        return self.says(who, *lines, direction="s2c")

    def loses(self, who: str, length: int) -> Talk:
        offset = self._ends.get((who, "s2c"), 0)
        self._ends[who, "s2c"] = offset + length
        self.items.append(Gap(self.stream(who), "s2c", len(self.items) * MS, offset, length))
        return self

    def ends(self, who: str) -> Talk:
        self.items.append(End(self.stream(who), len(self.items) * MS, "closed"))
        return self

    def found(self) -> Findings:
        inspector = Inspector([*BUILT_IN, NOUGHTS], Ids())
        for item in self.items:
            inspector.feed(item)
        inspector.finish()
        return inspector.drain()


def registered() -> Talk:
    """Return a conversation in which Alice and Bob register, and a game begins."""
    talk = Talk()
    for who in ("alice", "bob"):
        talk.says(who, f"HELLO {who}").hears(who, "WELCOME")
    return talk.hears("alice", "START alice bob").hears("bob", "START alice bob")
