"""Why resources come and go: what is told as `Ertrag` and `Kosten`, matched with what there is to be paid.

Programs differ in what they tell first: the building or its costs, the trade or what is traded. So both sides
are kept until the other one comes. A *claim* is what a rule says must come or go; an *entry* is what the
server says came or went. At the end of a turn what has found no partner is a flaw, on one side or the other.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.catan.hand import Counts, plain, total

START, ROLL, ROBBER, DISCARD, MONOPOLY = "start", "roll", "robber", "discard", "monopoly"
"""What resources come and go for, where that is asked for."""

_MAX_ENTRIES = 100
"""So many claims, and so many entries, wait for a partner; the oldest are forgotten."""


class Entry(msgspec.Struct, eq=False):
    """A player's gain (`sign` 1) or payment (-1) as it was told; `of_roll`: right after the dice.

    `early`: it was told before the turn that it may belong to.
    """

    observation: Observation
    player: int
    sign: int
    counts: Counts
    why: str | None = None
    of_roll: bool = False
    early: bool = False


class Claim(msgspec.Struct, eq=False):
    """What must come (`sign` 1) or go (-1), and what for.

    `counts` is exact, or the total if it is not known which; `kind` if any number of one resource. `partly`:
    it may come in several pieces. `firm`: it must come, but for the kinds that are `short`; otherwise it only
    may.
    """

    observation: Observation
    player: int
    sign: int
    counts: Counts | None
    why: str
    firm: bool = True
    partly: bool = False
    kind: str | None = None
    short: frozenset[str] = frozenset()

    @property
    def due(self) -> Counts:
        """What of it must still come."""
        if self.counts is None or not self.firm:
            return 0
        if isinstance(self.counts, int):
            return self.counts
        return plain({kind: count for kind, count in self.counts.items() if kind not in self.short})


class Ledger:
    """The claims and entries of one turn that have no partner yet."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []
        self.entries: list[Entry] = []
        self._taken: list[Entry] = []
        """Entries that were thought to be for what only may come."""

    def enter(self, entry: Entry) -> Claim | None:
        """Take what was told, and give the claim that explains it."""
        claim = next((claim for claim in self._by_firmness() if _fits(entry, claim)), None)
        if claim is None:
            self.entries.append(entry)
            del self.entries[:-_MAX_ENTRIES]
            return None
        entry.why = claim.why
        self._settle(entry, claim)
        if not claim.firm:
            self._taken.append(entry)
            del self._taken[:-_MAX_ENTRIES]
        return claim

    def claim(self, claim: Claim) -> list[Entry]:
        """Take what must come or go, and give the entries that were told already."""
        found = []
        for entry in list(self.entries):
            if _fits(entry, claim):
                self.entries.remove(entry)
                entry.why = claim.why
                found.append(entry)
                if not claim.partly:
                    return found
                assert claim.counts is not None
                claim.counts = _less(claim.counts, entry.counts)
        if claim.counts is None or total(claim.counts) > 0:
            self.claims.append(claim)
            del self.claims[:-_MAX_ENTRIES]
        return found

    def expected(self, player: int, sign: int, counts: int) -> Counts | None:
        """What a hidden entry must be, by the one claim that it fits."""
        fitting = [
            claim
            for claim in self.claims
            if claim.player == player
            and claim.sign == sign
            and not claim.short
            and claim.firm
            and claim.counts is not None
            and total(claim.counts) == counts
        ]
        return fitting[0].counts if len(fitting) == 1 else None

    def waive(self, player: int, why: str, count: int) -> int:
        """Forget so many payments of a player, at the most, and say how many there were."""
        owed = [claim for claim in self.claims if (claim.player, claim.why) == (player, why)][:count]
        self.claims = [claim for claim in self.claims if claim not in owed]
        return len(owed)

    def forget(self, why: str, player: int | None = None) -> None:
        """What could be had was had, or was not there: by one player, or by all."""
        self.claims = [
            claim for claim in self.claims if claim.why != why or player not in (None, claim.player)
        ]

    def take_theft(self, player: int, sign: int) -> bool:
        """Whether one card is due to be stolen from a player, or by him; then it no longer is."""
        for claim in self.claims:
            if (claim.player, claim.sign, claim.why, claim.counts) == (player, sign, ROBBER, 1):
                self.claims.remove(claim)
                return True
        return False

    def refuse(self, request: Message) -> None:
        """Forget the claims of a request that was refused."""
        self.claims = [claim for claim in self.claims if claim.observation.message is not request]

    def close(self) -> tuple[list[Claim], list[Entry]]:
        """The turn is over: the claims that must have been met and were not, and the entries without one."""
        unmet = [
            claim
            for claim in self.claims
            if total(claim.due) > 0 and not any(_fits(entry, claim) for entry in self._taken)
        ]
        loose = self.entries
        self.claims, self.entries, self._taken = [], [], []
        return unmet, loose

    def keep(self, entry: Entry) -> None:
        """Leave an entry for the next turn."""
        entry.early = True
        self.entries.append(entry)

    def _by_firmness(self) -> list[Claim]:
        return sorted(self.claims, key=lambda claim: not claim.firm)

    def _settle(self, entry: Entry, claim: Claim) -> None:
        if claim.kind is not None:
            return
        if claim.partly:
            assert claim.counts is not None
            claim.counts = _less(claim.counts, entry.counts)
            if total(claim.counts) > 0:
                return
        self.claims.remove(claim)


def same(one: Counts, other: Counts) -> bool:
    """Whether two counts can be the same; those of one kind that are 0 may be left out."""
    if isinstance(one, int) or isinstance(other, int):
        return total(one) == total(other)
    return plain(one) == plain(other)


def _fits(entry: Entry, claim: Claim) -> bool:
    if entry.player != claim.player or entry.sign != claim.sign:
        return False
    if claim.kind is not None:
        return isinstance(entry.counts, int) or set(plain(entry.counts)) <= {claim.kind}
    if claim.why == ROLL and not entry.of_roll and total(claim.due) == 0:
        # Only what the bank may not have had is left.
        return False
    assert claim.counts is not None
    if not claim.partly:
        return same(entry.counts, claim.counts)
    if isinstance(entry.counts, int) or isinstance(claim.counts, int):
        return total(entry.counts) <= total(claim.counts)
    return all(claim.counts.get(kind, 0) >= count for kind, count in entry.counts.items())


def _less(counts: Counts, part: Counts) -> Counts:
    if isinstance(counts, int) or isinstance(part, int):
        return total(counts) - total(part)
    return plain({kind: count - part.get(kind, 0) for kind, count in counts.items()})
