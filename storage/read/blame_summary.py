"""Who is to blame for flaws, by name, and how often each did the same wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from kiebitz.dissectors.model import Blame, Severity
from kiebitz.storage.read.message_queries import DiagnosticRow
from kiebitz.storage.read.players import name_of_stream
from kiebitz.storage.read.streams import stream_by_id
from kiebitz.storage.read.timeline import Timeline


class Culprit(NamedTuple):
    """Who is to blame: what a client calls itself, if it has said so, and the client's or server's address.

    Both are None for the network, for Kiebitz itself, and where it is not known.
    """

    player: str | None
    address: str | None


class Repeated(msgspec.Struct):
    """A flaw that came `count` times from the same culprit, and where it came first."""

    first: DiagnosticRow
    culprit: Culprit
    count: int


class Culprits:
    """Tells who is to blame for the flaws of a session; of a note, whom it is about."""

    def __init__(self, timeline: Timeline) -> None:
        self._player = name_of_stream(timeline)
        self._stream = stream_by_id(timeline)

    def of(self, flaw: DiagnosticRow) -> Culprit:
        """Who is to blame for a flaw."""
        stream = self._stream(flaw.stream_id)
        if flaw.blame == "client":
            return Culprit(self._player(flaw.stream_id), stream.client)
        return Culprit(None, stream.server if flaw.blame == "server" else None)

    def repeated(self, flaws: Iterable[DiagnosticRow]) -> list[Repeated]:
        """Flaws, in order of time, by severity, code and culprit, in the order in which each came first.

        A player with several connections is one culprit, known by name.
        """
        found: dict[tuple[Severity, str, Blame, str | None], Repeated] = {}
        for flaw in flaws:
            culprit = self.of(flaw)
            who = culprit.player or culprit.address
            same = found.setdefault((flaw.severity, flaw.code, flaw.blame, who), Repeated(flaw, culprit, 0))
            same.count += 1
        return [*found.values()]


def blamed(flaw: DiagnosticRow) -> Blame | None:
    """Which side is to blame; a note blames nobody, unless it is about what Kiebitz did itself."""
    return None if flaw.severity == "note" and flaw.blame != "kiebitz" else flaw.blame
