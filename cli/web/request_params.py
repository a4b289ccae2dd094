"""Validated parameters of API requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from kiebitz.cli.render.svg.svg_canvas import SIZES
from kiebitz.cli.web.grants import Grant
from kiebitz.cli.web.pagination import MAX_ROWS, RowRange
from kiebitz.cli.web.reader import View
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import PUBLIC
from kiebitz.services.wording import GRAVITY
from kiebitz.storage.read.conditions import compile_optional_filter

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

Kind = Literal["number", "text", "names", "severity", "shape"]

MAX_DIGITS = 15
_MAX_LENGTHS = {"filter": 2000, "text": 2000, "names": 40_000, "as": 2000, "key": 4000}
_DEFAULT_MAX_LENGTH = 100
CHOICES: dict[Kind, tuple[str, ...]] = {"severity": GRAVITY, "shape": tuple(SIZES)}


def is_number(text: str) -> bool:
    """Return True if a text is a number within limits."""
    return text.isdecimal() and text.isascii() and len(text) <= MAX_DIGITS


class Parameter(msgspec.Struct, frozen=True):
    """A query parameter and its description."""

    name: str
    kind: Kind
    about: str
    is_needed: bool = False

    def check(self, value: str) -> None:
        """Raise BadRequestError for an invalid value."""
        longest = _MAX_LENGTHS.get(self.name, _DEFAULT_MAX_LENGTH)
        if len(value) > longest:
            raise BadRequestError(f"{self.name} has {len(value)} characters; at most {longest} are allowed")
        if self.kind == "number" and not is_number(value):
            raise BadRequestError(f"{self.name} must be a number, as in {self.name}=31")
        choices = CHOICES.get(self.kind)
        if choices is not None and value not in choices:
            raise BadRequestError(f"{self.name} must be one of {', '.join(choices)}")


class BadRequestError(KiebitzError):
    """A request with invalid parameters."""


class ForbiddenError(KiebitzError):
    """A request beyond the permission of its key."""


class ApiRequest:
    """A validated API request: its parameters and its permission.

    Raises BadRequestError for unknown parameters and invalid values, and ForbiddenError if a player's key is
    used for another player's view.
    """

    def __init__(
        self, given: Mapping[str, str], known: Mapping[str, Parameter], grant: Grant, more: Mapping[str, int]
    ) -> None:
        for name, value in given.items():
            if name not in known:
                raise BadRequestError(f"there is no parameter {name} here; there are {', '.join(known)}")
            known[name].check(value)
        for parameter in known.values():
            if parameter.is_needed and parameter.name not in given:
                raise BadRequestError(f"{parameter.name} is missing: {parameter.about}")
        self._given = given
        self._more = more
        self.grant = grant
        player = given.get("as") or None
        if grant.player is not None and player not in (None, grant.player):
            whose = "the public view" if grant.player == PUBLIC else f"the view of {grant.player}"
            raise ForbiddenError(f"this link shows only {whose}")
        self.player = grant.player if grant.player is not None else player

    @property
    def limit(self) -> str | None:
        """The player to whose tables this key is limited; None for the full key."""
        return self.player if self.grant.player is not None else None

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
        return compile_optional_filter((self.text("filter") or "").strip() or None)

    def view(self) -> View:
        """Return the requested view. Raises FilterError."""
        return View(self.player, self.wanted(), self.number("game"))

    def place(self, limit: int) -> RowRange:
        """Return the requested rows of a list. Raises BadRequestError for zero rows or several positions."""
        places = {name: self.number(name) for name in ("after", "before", "around")}
        if sum(number is not None for number in (*places.values(), self.number("at"))) > 1:
            raise BadRequestError("only one of after, before, around and at can be given")
        wanted = self.number("limit")
        if wanted == 0:
            raise BadRequestError("limit must be at least 1")
        return RowRange(min(wanted or limit, MAX_ROWS), **places)
