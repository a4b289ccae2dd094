"""Records of listings: those of a session, joined with diagnostics, bytes and players."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.dissectors.model import Action
from kiebitz.dissectors.suggestions import suggestion_in
from kiebitz.storage.read.message_queries import MessageDiagnostic, StoredDiagnostic
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.session.session import Diagnostic, Message, diagnostic_numbers, project


class ListedMessage(Message, frozen=True):
    """A listed message with its diagnostics, and with its first bytes if it has diagnostics but no fields."""

    diagnostics: Sequence[MessageDiagnostic]
    sent: bytes | None


class DiagnosticSummary(Diagnostic, frozen=True):
    """The first of `count` diagnostics with one culprit: a player, and a client's or a server's address."""

    count: int
    player: str | None
    client: str | None


class ListedDiagnostic(Diagnostic, frozen=True):
    """A listed diagnostic with its stream, its bytes, and the offset at which parsing resumed.

    `marked` are the bytes at fault, `lines` those around them, each with its `offset` and its `text`.
    """

    client: str
    player: str | None
    server: str
    message_offset: int | None
    marked: bytes | None
    lines: list[dict[str, Any]]
    resumed_offset: int | None
    resumed_message: str | None
    altered: Action | None

    @property
    def suggestion(self) -> str | None:
        """The text that was probably intended."""
        return suggestion_in(self.group, self.text)


def summarize_diagnostics(
    timeline: Timeline, diagnostics: Iterable[StoredDiagnostic]
) -> list[DiagnosticSummary]:
    """Group diagnostics by severity, code and culprit, in the order of their first occurrence.

    `diagnostics` must be in order of time. A player with several connections is one culprit, known by
    name. The network and Kiebitz itself are not culprits.
    """
    first: dict[tuple[str | None, ...], tuple[StoredDiagnostic, str | None, str | None]] = {}
    count: Counter[tuple[str | None, ...]] = Counter()
    for diagnostic in diagnostics:
        player = diagnostic.stream.player if diagnostic.blame == "client" else None
        address = {"client": diagnostic.stream.client, "server": diagnostic.stream.server}.get(
            diagnostic.blame
        )
        same = (diagnostic.severity, diagnostic.code, diagnostic.blame, player or address)
        first.setdefault(same, (diagnostic, player, address))
        count[same] += 1
    return [
        project(
            DiagnosticSummary,
            diagnostic,
            **diagnostic_numbers(timeline, diagnostic),
            count=count[same],
            player=player,
            client=address,
        )
        for same, (diagnostic, player, address) in first.items()
    ]
