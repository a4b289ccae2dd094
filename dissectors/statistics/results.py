"""What counting comes to, as records; a program gets them as JSON, in which `kind` says which they are.

A name of a player is as it was sent: `printable` makes it fit for a terminal. `left_out` is how much had no
room any more, 0 in all but made-up traffic.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.statistics.chance import Chance


class Histogram(msgspec.Struct, frozen=True, tag="histogram", tag_field="kind"):
    """How often each value came; with `chance`, beside what was to be expected."""

    key: str
    title: str
    of: str
    counts: dict[str, int]
    chance: Chance | None
    left_out: int = 0


class Counts(msgspec.Struct, frozen=True, tag="counts", tag_field="kind"):
    """How often each did what; `of` says what the lines are. Each line has all columns."""

    key: str
    title: str
    of: str
    lines: dict[str, dict[str, int]]
    left_out: int = 0


class Share(msgspec.Struct, frozen=True):
    """So many of how many."""

    part: int
    all: int


class Shares(msgspec.Struct, frozen=True, tag="shares", tag_field="kind"):
    """How many of all in a line were the `part`, and not the `rest`."""

    key: str
    title: str
    of: str
    part: str
    rest: str
    lines: dict[str, Share]
    left_out: int = 0


class Course(msgspec.Struct, frozen=True, tag="course", tag_field="kind"):
    """How much each had from when on: seconds since the session began, and an amount in this `unit`."""

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
    """How long each took."""

    key: str
    title: str
    lines: dict[str, Times]
    left_out: int = 0


class Rate(msgspec.Struct, frozen=True, tag="rate", tag_field="kind"):
    """How many messages came in each stretch of time, from `begin` on (seconds since the session began)."""

    key: str
    title: str
    begin: float
    stretch: float
    counts: list[int]


Result = Histogram | Counts | Shares | Course | Durations | Rate


class TableStatistics(msgspec.Struct, frozen=True):
    """What was counted at a table; of what never came there is nothing in `statistics`."""

    table: int
    protocol: str
    server: str
    messages: int
    events: int
    statistics: list[Result]
