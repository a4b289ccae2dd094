"""Validated parameters of API requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from kiebitz.cli.render.svg.svg_canvas import SIZES
from kiebitz.cli.web.access import Reach
from kiebitz.cli.web.pagination import MOST_ROWS, Place
from kiebitz.cli.web.reader import View
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.services.wording import GRAVITY
from kiebitz.storage.read.conditions import compile_wanted

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

Kind = Literal["number", "text", "names", "severity", "shape"]

MOST_DIGITS = 15
_LONGEST = {"filter": 2000, "text": 2000, "names": 40_000, "as": 2000, "key": 4000}
_LONGEST_OTHER = 100
CHOICES: dict[Kind, tuple[str, ...]] = {"severity": GRAVITY, "shape": tuple(SIZES)}


def is_number(text: str) -> bool:
    """Return True if a text is a number within limits."""
    return text.isdecimal() and text.isascii() and len(text) <= MOST_DIGITS


class Parameter(msgspec.Struct, frozen=True):
    """A query parameter and its description."""

    name: str
    kind: Kind
    about: str
    is_needed: bool = False

    def check(self, value: str) -> None:
        """Raise BadQuestionError for an invalid value."""
        longest = _LONGEST.get(self.name, _LONGEST_OTHER)
        if len(value) > longest:
            raise BadQuestionError(f"{self.name} has {len(value)} characters; at most {longest} are allowed")
        if self.kind == "number" and not is_number(value):
            raise BadQuestionError(f"{self.name} must be a number, as in {self.name}=31")
        choices = CHOICES.get(self.kind)
        if choices is not None and value not in choices:
            raise BadQuestionError(f"{self.name} must be one of {', '.join(choices)}")


class BadQuestionError(KiebitzError):
    """A request with invalid parameters."""


class ForbiddenError(KiebitzError):
    """A request beyond the permission of its key."""


class Asked:
    """A validated API request: its parameters and its permission.

    Raises BadQuestionError for unknown parameters and invalid values, and ForbiddenError if a player's key is
    used for another player's view.
    """

    def __init__(
        self, given: Mapping[str, str], known: Mapping[str, Parameter], reach: Reach, more: Mapping[str, int]
    ) -> None:
        for name, value in given.items():
            if name not in known:
                raise BadQuestionError(f"there is no parameter {name} here; there are {', '.join(known)}")
            known[name].check(value)
        for parameter in known.values():
            if parameter.is_needed and parameter.name not in given:
                raise BadQuestionError(f"{parameter.name} is missing: {parameter.about}")
        self._given = given
        self._more = more
        self.reach = reach
        player = given.get("as") or None
        if reach.player is not None and player not in (None, reach.player):
            raise ForbiddenError(f"this link shows only the view of {reach.player}")
        self.player = reach.player if reach.player is not None else player

    @property
    def limit(self) -> str | None:
        """The player to whose tables this key is limited; None for the full key."""
        return self.player if self.reach.player is not None else None

    def number(self, name: str) -> int | None:
        """Return a number; None if it is missing."""
        if name in self._more:
            return self._more[name]
        return int(self._given[name]) if name in self._given else None

    def needed(self, name: str) -> int:
        """Return a number of the path or of a required parameter."""
        number = self.number(name)
        assert number is not None
        return number

    def text(self, name: str) -> str | None:
        """Return a text; None if it is missing or empty."""
        return self._given.get(name) or None

    def names(self) -> list[str] | None:
        """Return the list of names; None if it is missing."""
        return self._given["names"].split(",") if "names" in self._given else None

    def wanted(self) -> Filter | None:
        """Return the filter. Raises FilterError."""
        return compile_wanted((self.text("filter") or "").strip() or None)

    def view(self) -> View:
        """Return the requested view. Raises FilterError."""
        return View(self.player, self.wanted(), self.number("game"))

    def place(self, limit: int) -> Place:
        """Return the requested rows of a list. Raises BadQuestionError for zero rows or several positions."""
        places = {name: self.number(name) for name in ("after", "before", "around")}
        if sum(number is not None for number in (*places.values(), self.number("at"))) > 1:
            raise BadQuestionError("only one of after, before, around and at can be given")
        wanted = self.number("limit")
        if wanted == 0:
            raise BadQuestionError("limit must be at least 1")
        return Place(min(wanted or limit, MOST_ROWS), **places)
