"""Readers of the statistics of Mäxchen that compare announcements with rolls and outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.maexchen.dice import rank
from kiebitz.dissectors.statistics import Sample

_SHOWN_TO_BE_BLUFFS = ("CAUGHT_BLUFFING", "LIED_ABOUT_MIA")


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


class Announcements(_Round):
    """Announced dice, compared with the roll."""

    def samples(self, event: Event) -> Iterable[Sample]:
        if event.kind == "announced":
            above = self.difference(event)
            if above is None:
                yield Sample(event.data["name"], "roll not known")
            else:
                yield Sample(event.data["name"], "bluff" if above > 0 else "less" if above else "as rolled")


class Bluffs(_Round):
    """Bluffs: believed once the next player rolls; one known only from the loss counts as told, too."""

    def samples(self, event: Event) -> Iterable[Sample]:
        claim = self.claim
        if event.kind == "announced" and (self.difference(event) or 0) > 0:
            yield Sample(event.data["name"], "told")
        if claim is None:
            return
        if event.kind in ("rolls", "rolled") and claim.is_bluff and event.data["name"] != claim.name:
            yield Sample(claim.name, "believed")
        if event.kind == "lost" and event.data["reason"] in _SHOWN_TO_BE_BLUFFS:
            if claim.is_bluff is None:
                yield Sample(claim.name, "told")
            yield Sample(claim.name, "caught")


class Sights(_Round):
    """Players who wanted to see the dice, and whether the announcement was a bluff."""

    def samples(self, event: Event) -> Iterable[Sample]:
        if event.kind == "lost" and self.seer is not None:
            yield Sample(self.seer, "rightly" if event.data["reason"] in _SHOWN_TO_BE_BLUFFS else "wrongly")
