"""Statistics of Mäxchen: dice, bluffs and their outcomes, calls to see, and reasons for losses.

A roll is counted from the message to the roller. Dice that are shown because a player wanted to see are not
counted, as doubted rolls are no fair sample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.maexchen.dice import ROLLS, rank
from kiebitz.dissectors.statistics import Counts, Histogram, Sample, Shares, faces_rolled, of_each

_CHANCES = {roll: Fraction(1 if roll[0] == roll[2] else 2, 36) for roll in ROLLS}

_AS_ROLLED, _HIGHER, _LOWER, _NOT_KNOWN = "as rolled", "bluff", "less", "roll not known"
_TOLD, _BELIEVED, _CAUGHT = "told", "believed", "caught"
_SHOWN_TO_BE_BLUFFS = ("CAUGHT_BLUFFING", "LIED_ABOUT_MIA")


def _dice(event: Event) -> Iterable[Sample]:
    if event.data["dice"] in _CHANCES:
        yield Sample(event.data["dice"])


def _faces(event: Event) -> Iterable[Sample]:
    if event.data["dice"] in _CHANCES:
        yield from map(Sample, event.data["dice"].split(","))


def _losses(event: Event) -> Iterable[Sample]:
    return (Sample(name, event.data["reason"]) for name in event.data["names"])


class _Claim(NamedTuple):
    """An announcement, and whether it exceeds the roll; None if the roll is unknown."""

    name: str
    is_bluff: bool | None


class _Round(ABC):
    """Reads the roll and the announcement of a round."""

    def __init__(self) -> None:
        self.rolled: tuple[str, str] | None = None
        """The roller and the dice."""
        self.claim: _Claim | None = None
        self.seer: str | None = None

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        yield from self.samples(event)
        match event.kind:
            case "round_started" | "lost":
                self.rolled = self.claim = self.seer = None
            case "rolls":
                self.rolled = self.claim = None
            case "rolled":
                self.rolled = (event.data["name"], event.data["dice"])
                self.claim = None
            case "announced":
                difference = self.difference(event)
                self.claim = _Claim(event.data["name"], None if difference is None else difference > 0)
            case "wants_to_see":
                self.seer = event.data["name"]

    @abstractmethod
    def samples(self, event: Event) -> Iterable[Sample]:
        """Return the samples of an event, before it is remembered."""

    def difference(self, event: Event) -> int | None:
        """Return the ranks by which an announcement exceeds the roll; None if unknown."""
        if self.rolled is None or self.rolled[0] != event.data["name"]:
            return None
        claimed, real = rank(event.data["dice"]), rank(self.rolled[1])
        return None if claimed is None or real is None else claimed - real


class _Announcements(_Round):
    def samples(self, event: Event) -> Iterable[Sample]:
        if event.kind == "announced":
            above = self.difference(event)
            told = (
                _NOT_KNOWN if above is None else _HIGHER if above > 0 else _LOWER if above < 0 else _AS_ROLLED
            )
            yield Sample(event.data["name"], told)


class _Bluffs(_Round):
    """A bluff is believed once the next player rolls; a bluff known only from the loss is counted, too."""

    def samples(self, event: Event) -> Iterable[Sample]:
        claim = self.claim
        if event.kind == "announced" and (self.difference(event) or 0) > 0:
            yield Sample(event.data["name"], _TOLD)
        if claim is None:
            return
        if event.kind in ("rolls", "rolled") and claim.is_bluff and event.data["name"] != claim.name:
            yield Sample(claim.name, _BELIEVED)
        if event.kind == "lost" and event.data["reason"] in _SHOWN_TO_BE_BLUFFS:
            if claim.is_bluff is None:
                yield Sample(claim.name, _TOLD)
            yield Sample(claim.name, _CAUGHT)


class _Sights(_Round):
    def samples(self, event: Event) -> Iterable[Sample]:
        if event.kind == "lost" and self.seer is not None:
            yield Sample(self.seer, "rightly" if event.data["reason"] in _SHOWN_TO_BE_BLUFFS else "wrongly")


STATISTICS = (
    Histogram(
        key="rolls",
        of="rolls",
        title="Dice rolled, against chance",
        reads=of_each("rolled", give=_dice),
        values=ROLLS,
        chance=_CHANCES,
    ),
    faces_rolled(_faces),
    Histogram(
        key="announced-dice",
        of="announcements",
        title="Dice announced",
        reads=of_each("announced", give=_dice),
        values=ROLLS,
    ),
    Counts(
        key="announcements",
        title="Announced, compared with the roll",
        reads=_Announcements,
        columns=(_AS_ROLLED, _HIGHER, _LOWER, _NOT_KNOWN),
    ),
    Counts(key="bluffs", title="Bluffs", reads=_Bluffs, columns=(_TOLD, _BELIEVED, _CAUGHT)),
    Shares(key="sights", title="Wanted to see, and was right", reads=_Sights, part="rightly", rest="wrongly"),
    Counts(key="losses", title="Rounds lost, and why", reads=of_each("lost", give=_losses)),
)
