"""The results of an interoperability run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

OutcomeWord = Literal["completed", "violations", "crashed", "hung", "left", "idle", "refused"]

OUTCOMES: tuple[OutcomeWord, ...] = (
    "crashed",
    "hung",
    "left",
    "idle",
    "refused",
    "violations",
    "completed",
)
"""The outcomes, worst first."""

SYMBOLS: dict[OutcomeWord, str] = {
    "completed": "✓",
    "violations": "!",
    "crashed": "✗",
    "hung": "…",
    "left": "←",
    "idle": "○",
    "refused": "–",
}


class Finding(msgspec.Struct, frozen=True):
    """A rule violation: who is to blame, the message, the first wrong byte, and the clause.

    `blame` is `server`, `client`, or at a mixed table the name of the client's group.
    """

    blame: str
    code: str
    text: str
    message: int | None
    offset: int | None
    clause: str | None
    count: int


class ProgramOutput(msgspec.Struct, frozen=True):
    """The end of a program's output, and how the program ended; None if it was stopped."""

    name: str
    role: str
    ended: str | None
    output: str


class ClientRecord(msgspec.Struct, frozen=True):
    """The part of one client in a run.

    Attributes:
        name: The value of `{name}`.
        program: The name of its program.
        joined: True if it took part in a game.
        moves: Number of its messages in games, without joining and heartbeats.
        games: Number of games that were played to their end with it.
    """

    name: str
    program: str
    joined: bool
    moves: int
    games: int


class Attempt(msgspec.Struct, frozen=True):
    """One run of a cell.

    `culprit` is `server`, `client`, at a mixed table the name of the client's group, or None if it is unknown
    or nobody. `why` is the reason in a clause, `games` the number of games that all clients played to the
    end.
    """

    outcome: OutcomeWord
    culprit: str | None
    why: str
    games: int
    seconds: float
    findings: Sequence[Finding]
    outputs: Sequence[ProgramOutput]
    database: str | None
    page: str | None
    clients: Sequence[ClientRecord] = ()


class Cell(msgspec.Struct, frozen=True):
    """A cell of the matrix with its runs; `fingerprint` stands for the plan and the files of its commands."""

    server: str
    client: str
    fingerprint: str
    attempts: Sequence[Attempt]

    @property
    def name(self) -> str:
        """The name of the cell, as in `group-a×group-b`."""
        return f"{self.server}×{self.client}"

    @property
    def outcome(self) -> OutcomeWord:
        """The worst outcome of its runs."""
        return min((attempt.outcome for attempt in self.attempts), key=OUTCOMES.index)

    @property
    def decisive(self) -> Attempt:
        """The first run with the worst outcome."""
        return next(attempt for attempt in self.attempts if attempt.outcome == self.outcome)

    @property
    def is_stable(self) -> bool:
        """True if all runs have the same outcome and culprit."""
        return len({(attempt.outcome, attempt.culprit) for attempt in self.attempts}) == 1

    @property
    def is_completed(self) -> bool:
        """True if all runs were completed."""
        return self.outcome == "completed"


class ProbeSummary(msgspec.Struct, frozen=True):
    """The probe of one program: the number of cases by verdict, or why there are none."""

    name: str
    role: str
    verdicts: dict[str, int]
    failed: Sequence[str]
    why_not: str | None = None


class Results(msgspec.Struct, frozen=True):
    """All results of a run."""

    protocol: str
    servers: Sequence[str]
    clients: Sequence[str]
    cells: Sequence[Cell]
    probes: Sequence[ProbeSummary] = ()
