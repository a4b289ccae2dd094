"""Results of statistics as records; in their JSON `kind` names the sort of statistic.

Names of players are unescaped; use `printable` for a terminal. `left_out` is the amount beyond the limits, 0
except in hostile traffic.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.statistics.chance import Chance


class Histogram(msgspec.Struct, frozen=True, tag="histogram", tag_field="kind"):
    """The number of samples of each value, with the expected numbers if `chance` is given."""

    key: str
    title: str
    of: str
    counts: dict[str, int]
    chance: Chance | None
    left_out: int = 0


class Counts(msgspec.Struct, frozen=True, tag="counts", tag_field="kind"):
    """The number of samples by line and column; `of` names the lines. Each line has all columns."""

    key: str
    title: str
    of: str
    lines: dict[str, dict[str, int]]
    left_out: int = 0


class Share(msgspec.Struct, frozen=True):
    """A part of a whole."""

    part: int
    all: int


class Shares(msgspec.Struct, frozen=True, tag="shares", tag_field="kind"):
    """The share of the `part` in each line; the others are the `rest`."""

    key: str
    title: str
    of: str
    part: str
    rest: str
    lines: dict[str, Share]
    left_out: int = 0


class TimeSeries(msgspec.Struct, frozen=True, tag="course", tag_field="kind"):
    """Amounts over time by line: seconds since the session began, and an amount in this `unit`."""

    key: str
    title: str
    unit: str
    lines: dict[str, list[tuple[float, int]]]
    left_out: int = 0


class Times(msgspec.Struct, frozen=True):
    """Durations in seconds; the median is right to within 3 %."""

    count: int
    mean: float
    median: float
    longest: float


class Durations(msgspec.Struct, frozen=True, tag="durations", tag_field="kind"):
    """Durations by line."""

    key: str
    title: str
    lines: dict[str, Times]
    left_out: int = 0


class Rate(msgspec.Struct, frozen=True, tag="rate", tag_field="kind"):
    """The number of messages in each stretch of time, from `begin` on (seconds since the session began)."""

    key: str
    title: str
    begin: float
    stretch: float
    counts: list[int]


Result = Histogram | Counts | Shares | TimeSeries | Durations | Rate


class TableStatistics(msgspec.Struct, frozen=True):
    """The statistics of a table; those without samples are left out."""

    table: int
    protocol: str
    server: str
    messages: int
    events: int
    statistics: list[Result]
