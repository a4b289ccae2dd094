"""Validated parameters of API requests, and windows of long lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from kiebitz.cli.render.svg.svg_canvas import SIZES
from kiebitz.cli.web.grants import Grant
from kiebitz.cli.web.reader import Reader
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import PUBLIC
from kiebitz.services.wording import GRAVITY
from kiebitz.storage.read.conditions import compile_optional_filter

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter
    from kiebitz.storage.read.view_rows import ViewRows

_Row = TypeVar("_Row")

_MAX_ROWS = 1000


class RowRange(msgspec.Struct, frozen=True):
    """The requested rows: up to `limit`, after, before or around a number.

    Without a number they are the last rows. `by` is another order in SQL, in which `after` counts rows.
    """

    limit: int
    after: int | None = None
    before: int | None = None
    around: int | None = None
    by: str = ""


_Rows = Callable[[int | None, int | None], Iterator[_Row]]
"""Reads rows lazily: ascending after a number, or descending before one; the other number is None."""


def read_window(
    rows: _Rows[_Row], number: Callable[[_Row], int], place: RowRange
) -> tuple[list[_Row], bool, bool]:
    """Return the requested rows, in their order, and whether they include the first and the last row."""
    if place.by:
        skipped = place.after or 0
        found, is_last = _head(islice(rows(0, None), skipped, None), place.limit)
        return found, skipped == 0, is_last
    if place.around is not None:
        half = place.limit // 2
        before, is_first = _before(rows, place.around + 1, place.limit - half)
        after, is_last = _after(rows, place.around, half)
        return before + after, is_first, is_last
    if place.after is not None:
        found, is_last = _after(rows, place.after, place.limit)
        begin = number(found[0]) if found else place.after + 1
        return found, next(rows(None, begin), None) is None, is_last
    if place.before is not None:
        found, is_first = _before(rows, place.before, place.limit)
        end = number(found[-1]) if found else place.before - 1
        return found, is_first, next(rows(end, None), None) is None
    found, is_first = _before(rows, None, place.limit)
    return found, is_first, True


def _after(rows: _Rows[_Row], after: int, limit: int) -> tuple[list[_Row], bool]:
    return _head(rows(after, None), limit)


def _before(rows: _Rows[_Row], before: int | None, limit: int) -> tuple[list[_Row], bool]:
    found, is_first = _head(rows(None, before), limit)
    return found[::-1], is_first


def _head(rows: Iterator[_Row], limit: int) -> tuple[list[_Row], bool]:
    """Return up to `limit` rows, and whether these are all."""
    found = list(islice(rows, limit + 1))
    return found[:limit], len(found) <= limit


Kind = Literal["number", "text", "names", "severity", "shape"]

MAX_DIGITS = 15
_MAX_LENGTHS = {"filter": 2000, "text": 2000, "names": 40_000, "as": 2000, "seat": 2000, "key": 4000}
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

    def rows(self, reader: Reader) -> ViewRows:
        """Return the rows of the requested view. Raises FilterError."""
        game = reader.timeline.numbers.row_id_if_any("games", self.number("game"))
        return reader.rows(self.player, self.wanted(), game)

    def place(self, limit: int, orders: Mapping[str, str] | None = None) -> RowRange:
        """Return the requested rows of a list, whose columns are in SQL in `orders`, the row's number first.

        Raises BadRequestError for zero rows, several positions, and an unknown order.
        """
        places = {name: self.number(name) for name in ("after", "before", "around")}
        if sum(number is not None for number in (*places.values(), self.number("at"))) > 1:
            raise BadRequestError("only one of after, before, around and at can be given")
        wanted = self.number("limit")
        if wanted == 0:
            raise BadRequestError("limit must be at least 1")
        return RowRange(min(wanted or limit, _MAX_ROWS), **places, by=self._order(orders or {}))

    def _order(self, orders: Mapping[str, str]) -> str:
        sort = self.text("sort") or ""
        if not sort or (self.player == PUBLIC and sort.endswith("client")):
            # The public view has no receivers.
            return ""
        column = sort.removeprefix("-")
        if column not in orders:
            raise BadRequestError(f"sort must be one of {', '.join(orders)}, or -{column} for descending")
        way = "DESC" if sort.startswith("-") else "ASC"
        return f"{orders[column]} {way}, {next(iter(orders.values()))} {way}"
