"""A row of a protocol's table of test cases."""

from __future__ import annotations

from typing import Any, NamedTuple

from kiebitz.dissectors.model import Direction


class Case(NamedTuple):
    """A frame, what it must decode to, and its errors as (code, offset, length)."""

    data: bytes
    direction: Direction
    name: str | None
    fields: dict[str, Any]
    diagnostics: tuple[tuple[str, int, int], ...] = ()
