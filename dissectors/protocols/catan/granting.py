"""Whether a simple server grants what a player asks for."""

from __future__ import annotations


class Refused(Exception):
    """A request is not granted; it says why."""


def require(allowed: bool, why: str) -> None:
    """Raises Refused unless something is allowed."""
    if not allowed:
        raise Refused(why)
