"""Conversations by a protocol file, and their findings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import conversation

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import Diagnostic, Findings, Item, Stream
from kiebitz.dissectors.protocol_file.dissector import FileDissector, dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.testing import check_consistent, inspect

DATA = Path(__file__).parents[1] / "data" / "protocol_files"


def dissector_of(text: str) -> FileDissector:
    """Return the dissector for the text of a protocol file."""
    return dissector_from(read_specification(text, "test.toml"))


def dissector_named(name: str) -> FileDissector:
    """Return the dissector for a protocol file of the test data."""
    return dissector_of((DATA / f"{name}.toml").read_text())


class Conversation(conversation.Conversation):
    """Connections whose messages can be inspected repeatedly; `ports` has the ports of some clients."""

    def __init__(
        self,
        dissector: Dissector,
        end: str = "\n",
        port: int = 4711,
        ports: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        super().__init__(dissector, port, *ports.values(), end=end)
        self._port_of = ports
        self.items: list[Item] = []

    def stream(self, client: str, port: int = 0) -> Stream:
        return super().stream(client, port or self._port_of.get(client, 0))

    def feed(self, item: Item) -> None:
        self.items.append(item)

    def check(self) -> None:
        """Check the findings: they are consistent, and the state is the sum of the changes."""
        check_consistent(self.dissector, inspect(self.items, self.dissector, forced=True))

    def found(self) -> Findings:
        """Return the findings."""
        again = conversation.Conversation(self.dissector, *self.ports)
        for item in self.items:
            again.feed(item)
        return again.found()


def texts(found: Findings) -> list[str]:
    """Return the texts of all diagnostics about rules."""
    return [diagnostic.text for diagnostic in rules(found)]


def rules(found: Findings) -> list[Diagnostic]:
    """Return all diagnostics about rules."""
    return [diagnostic for diagnostic in found.diagnostics if diagnostic.group == "rule"]
