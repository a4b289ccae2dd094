"""The known range of a player's cards, and the ledger of gains and payments (`Ertrag`, `Kosten`).

A hand has minimum and maximum of each kind, and the total. Hidden gains and payments widen the range; a
total, or an open payment, narrows it. Nothing is assumed: without a total, or after a gap, counts are
unknown.

The ledger matches gains and payments with the rules and events that explain them. Programs differ in the
order of messages: the building or its costs first, the trade or the traded resources. Therefore both sides
are kept until the other one arrives. A *claim* is a gain or payment that a rule requires or allows; an
*entry* is one that the server has sent. At the end of a turn, those without a partner violate a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.grammar.sentences import counted
from kiebitz.dissectors.model import Message

Counts = Mapping[str, int] | int
"""Number of cards of each kind; or, if they are hidden, their total."""

UNBOUNDED = 1000
"""Maximum of an unknown count; no game has so many cards."""


def total(counts: Counts) -> int:
    """Return the number of all cards."""
    return counts if isinstance(counts, int) else sum(counts.values())


def counts_text(counts: Counts | None) -> str:
    """Return counts as text: `2 Holz, 1 Erz`, or `3 cards` if they are hidden."""
    if counts is None:
        return "nothing that is known"
    if isinstance(counts, int):
        return counted(counts, "card")
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing"


def plain(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts without zeros."""
    return {kind: count for kind, count in counts.items() if count}


class Hand:
    """A player's resources or development cards."""

    __slots__ = ("least", "most", "total")

    def __init__(self, kinds: Iterable[str], is_empty: bool) -> None:
        self.least = dict.fromkeys(kinds, 0)
        self.most = dict.fromkeys(self.least, 0 if is_empty else UNBOUNDED)
        self.total: int | None = 0 if is_empty else None

    @property
    def is_known(self) -> bool:
        """True if each count is known."""
        return self.least == self.most

    def gain(self, counts: Counts) -> None:
        """Add cards."""
        if self.total is not None:
            self.total += total(counts)
        if isinstance(counts, int):
            for kind, most in self.most.items():
                self.most[kind] = most + counts
        else:
            for kind, count in counts.items():
                self.least[kind] += count
                self.most[kind] += count
        self._narrow()

    def pay(self, counts: Counts) -> bool:
        """Remove cards; return False if the player cannot have had them."""
        enough = self.total is None or self.total >= total(counts)
        if self.total is not None:
            self.total -= total(counts)
        if isinstance(counts, int):
            for kind, least in self.least.items():
                self.least[kind] = min(least, max(0, least - counts))
        else:
            for kind, count in counts.items():
                enough = enough and self.most[kind] >= count
                # The player had these cards, even if that was not known.
                known = self.least[kind] == self.most[kind]
                if known:
                    self.least[kind] = self.most[kind] = self.most[kind] - count
                else:
                    self.least[kind] = max(0, self.least[kind] - count)
                    self.most[kind] = max(0, self.most[kind] - count)
        self._narrow()
        return enough

    def apply_counts(self, counts: Counts) -> bool:
        """Apply counts sent by the server; return False if they contradict the known range."""
        agrees = self.total is None or self.total == total(counts)
        if isinstance(counts, int):
            if not agrees:
                # The cause of the difference is unknown.
                self.least = dict.fromkeys(self.least, 0)
                self.most = dict.fromkeys(self.most, UNBOUNDED)
            self.total = counts
            self._narrow()
        else:
            for kind in self.least:
                count = counts.get(kind, 0)
                agrees = agrees and self.least[kind] <= count <= self.most[kind]
                self.least[kind] = self.most[kind] = count
            self.total = total(counts)
        return agrees

    def as_json(self) -> dict[str, Any]:
        """Return each kind with its count, or with minimum and maximum; unknown kinds are omitted."""
        return {
            kind: least if least == most else [least, most]
            for kind, least, most in zip(self.least, self.least.values(), self.most.values(), strict=True)
            if most < UNBOUNDED // 2
        }

    def _narrow(self) -> None:
        whole = self.total
        if whole is None or self.least == self.most:
            return
        least, most = self.least, self.most
        all_least, all_most = sum(least.values()), sum(most.values())
        if all_least > whole:
            # The total contradicts the single counts, so none of them is certain.
            self.least = dict.fromkeys(least, 0)
            self.most = dict.fromkeys(most, max(0, whole))
            return
        for kind in least:
            upper = min(most[kind], whole - (all_least - least[kind]))
            lower = max(least[kind], whole - (all_most - most[kind]))
            if lower > upper:
                continue
            least[kind], most[kind] = lower, upper


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
    unhidden: Mapping[str, int] | None = None
    """The counts before a part of unknown kinds; None if there was none."""

    @property
    def due(self) -> Counts:
        """The part of it that is still required."""
        if self.counts is None or not self.firm:
            return 0
        if isinstance(self.counts, int):
            short = sum((self.unhidden or {}).get(kind, 0) for kind in self.short)
            return max(0, self.counts - short)
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
                _reduce(claim, entry.counts)
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
        if claim.partly and _reduce(claim, entry.counts) > 0:
            return
        self.claims.remove(claim)


def _fits(entry: Entry, claim: Claim) -> bool:
    if entry.player != claim.player or entry.sign != claim.sign:
        return False
    if claim.kind is not None:
        return isinstance(entry.counts, int) or set(plain(entry.counts)) <= {claim.kind}
    if claim.why == ROLL and not entry.of_roll and total(claim.due) == 0:
        # Only kinds that the bank may have lacked are left.
        return False
    assert claim.counts is not None
    if isinstance(entry.counts, int) or isinstance(claim.counts, int):
        kinds = set() if isinstance(entry.counts, int) else {*entry.counts}
        if claim.unhidden is not None and not kinds <= claim.unhidden.keys():
            return False
        sent, due = total(entry.counts), total(claim.counts)
        return sent <= due if claim.partly else sent == due
    if not claim.partly:
        # Neither of them contains zeros.
        return entry.counts == claim.counts
    return all(claim.counts.get(kind, 0) >= count for kind, count in entry.counts.items())


def _reduce(claim: Claim, part: Counts) -> int:
    """Reduce a claim by a part of it, and return the number of remaining cards."""
    before = claim.counts
    assert before is not None
    claim.counts = _less(before, part)
    if isinstance(claim.counts, int) and not isinstance(before, int):
        claim.unhidden = before
    return total(claim.counts)


def _less(counts: Counts, part: Counts) -> Counts:
    if isinstance(counts, int) or isinstance(part, int):
        return total(counts) - total(part)
    return plain({kind: count - part.get(kind, 0) for kind, count in counts.items()})
