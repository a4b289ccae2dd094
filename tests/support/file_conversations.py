"""Conversations by a protocol file, and their findings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Diagnostic, Direction, End, Findings, Gap, Ids, Item, Stream
from kiebitz.dissectors.protocol_file.dissector import FileDissector, dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.testing import check_consistent, inspect

MS = 1_000_000
DATA = Path(__file__).parents[1] / "data" / "protocol_files"


def dissector_of(text: str) -> FileDissector:
    """Return the dissector for the text of a protocol file."""
    return dissector_from(read_specification(text, "test.toml"))


def dissector_named(name: str) -> FileDissector:
    """Return the dissector for a protocol file of the test data."""
    return dissector_of((DATA / f"{name}.toml").read_text())


class Conversation:
    """Connections to one server, with a message each millisecond; `ports` has those of some clients."""

    def __init__(
        self,
        dissector: Dissector,
        end: str = "\n",
        port: int = 4711,
        ports: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.dissector = dissector
        self.end = end
        self.port = port
        self._ports = ports
        self.items: list[Item] = []
        self._streams: dict[str, Stream] = {}
        self._ends: dict[tuple[str, Direction], int] = {}

    def stream(self, name: str) -> Stream:
        number = len(self._streams) + 1
        server = f"127.0.0.1:{self._ports.get(name, self.port)}"
        made = Stream(number, self.dissector.transport, f"127.0.0.1:{40_000 + number}", server, 0)
        return self._streams.setdefault(name, made)

    def send(self, *lines: str) -> Conversation:
        """Add messages: `a> TEXT` from the client a, `a< TEXT` to it, `*< TEXT` to each.

        `a! N` loses N bytes of the server to a, and `a.` closes the connection.
        """
        for line in lines:
            head, _, text = line.partition(" ")
            name, sign = head[:-1], head[-1]
            if sign == ".":
                self.items.append(End(self.stream(name), self._now, "closed"))
            elif sign == "!":
                self._lose(name, int(text))
            else:
                for each in [*self._streams] if name == "*" else [name]:
                    self._send(each, "c2s" if sign == ">" else "s2c", text)
        return self

    @property
    def _now(self) -> int:
        return len(self.items) * MS

    def _send(self, name: str, direction: Direction, text: str) -> None:
        data = f"{text}{self.end}".encode()
        offset = self._ends.get((name, direction), 0)
        self._ends[name, direction] = offset + len(data)
        self.items.append(Chunk(self.stream(name), direction, self._now, offset, data))

    def _lose(self, name: str, length: int) -> None:
        offset = self._ends.get((name, "s2c"), 0)
        self._ends[name, "s2c"] = offset + length
        self.items.append(Gap(self.stream(name), "s2c", self._now, offset, length))

    def check(self) -> None:
        """Check the findings: they are consistent, and the state is the sum of the changes."""
        check_consistent(self.dissector, inspect(self.items, self.dissector, forced=True))

    def found(self) -> Findings:
        """Return the findings."""
        inspector = Inspector(
            [self.dissector], Ids(), {(self.dissector.transport, self.port): self.dissector}
        )
        for item in self.items:
            inspector.feed(item)
        inspector.finish()
        return inspector.drain()


def state_of(found: Findings) -> State:
    """Return the sum of all changes."""
    state: State = {}
    for event in found.events:
        apply(state, event.changes)
    return state


def sentences(dissector: Dissector, found: Findings) -> list[str]:
    """Return the sentences of all events."""
    return [dissector.presentation.describe(event) for event in found.events]


def texts(found: Findings) -> list[str]:
    """Return the texts of all diagnostics about rules."""
    return [diagnostic.text for diagnostic in rules(found)]


def rules(found: Findings) -> list[Diagnostic]:
    """Return all diagnostics about rules."""
    return [diagnostic for diagnostic in found.diagnostics if diagnostic.group == "rule"]
