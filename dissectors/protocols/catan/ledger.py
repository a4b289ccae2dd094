"""The ledger: matches gains and payments (`Ertrag`, `Kosten`) with the rules and events that explain them.

Programs differ in the order of messages: the building or its costs first, the trade or the traded resources.
Therefore both sides are kept until the other one arrives. A *claim* is a gain or payment that a rule requires
or allows; an *entry* is one that the server has sent. At the end of a turn, those without a partner violate a
rule.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.catan.hand import Counts, plain, total

START, ROLL, ROBBER, DISCARD, MONOPOLY = "start", "roll", "robber", "discard", "monopoly"
"""Reasons for gains and payments that other modules compare."""

_MAX_ENTRIES = 100
"""Maximum number of claims, and of entries, without a partner; the oldest are dropped."""


class Entry(msgspec.Struct, eq=False):
    """A player's gain (`sign` 1) or payment (-1) that the server has sent.

    `of_roll`: it directly follows a roll of the dice. `early`: it precedes the turn that it may belong to.
    """

    observation: Observation
    player: int
    sign: int
    counts: Counts
    why: str | None = None
    of_roll: bool = False
    early: bool = False


class Claim(msgspec.Struct, eq=False):
    """A gain (`sign` 1) or payment (-1) that a rule requires or allows, and its reason.

    `counts` is exact, or the total if the kinds are unknown; with `kind`, any number of that resource.
    `partly`: it may come in several messages. `firm`: it is required, except for the kinds that are `short`;
    otherwise it is only allowed.
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
        """The part of it that is still required."""
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
        """Entries that were matched with a claim that is only allowed."""

    def enter(self, entry: Entry) -> Claim | None:
        """Add an entry, and return the claim that explains it."""
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
        """Add a claim, and return the earlier entries that it explains."""
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
        """Return the counts of a hidden entry, if it fits exactly one claim."""
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
        """Drop at most `count` payments due from a player, and return their number."""
        owed = [claim for claim in self.claims if (claim.player, claim.why) == (player, why)][:count]
        self.claims = [claim for claim in self.claims if claim not in owed]
        return len(owed)

    def forget(self, why: str, player: int | None = None) -> None:
        """Drop the claims with a reason, of one player or of all, as they can no longer be met."""
        self.claims = [
            claim for claim in self.claims if claim.why != why or player not in (None, claim.player)
        ]

    def take_theft(self, player: int, sign: int) -> bool:
        """Remove the claim on one stolen card of a player; return True if there was one."""
        for claim in self.claims:
            if (claim.player, claim.sign, claim.why, claim.counts) == (player, sign, ROBBER, 1):
                self.claims.remove(claim)
                return True
        return False

    def refuse(self, request: Message) -> None:
        """Drop the claims of a request that was refused."""
        self.claims = [claim for claim in self.claims if claim.observation.message is not request]

    def close(self) -> tuple[list[Claim], list[Entry]]:
        """End the turn; return the required claims that were not met, and the entries without a claim."""
        unmet = [
            claim
            for claim in self.claims
            if total(claim.due) > 0 and not any(_fits(entry, claim) for entry in self._taken)
        ]
        loose = self.entries
        self.claims, self.entries, self._taken = [], [], []
        return unmet, loose

    def keep(self, entry: Entry) -> None:
        """Keep an entry for the next turn."""
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
    """Return True if two counts can be equal; kinds with a count of 0 may be omitted."""
    if isinstance(one, int) or isinstance(other, int):
        return total(one) == total(other)
    return plain(one) == plain(other)


def _fits(entry: Entry, claim: Claim) -> bool:
    if entry.player != claim.player or entry.sign != claim.sign:
        return False
    if claim.kind is not None:
        return isinstance(entry.counts, int) or set(plain(entry.counts)) <= {claim.kind}
    if claim.why == ROLL and not entry.of_roll and total(claim.due) == 0:
        # Only kinds that the bank may have lacked are left.
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
