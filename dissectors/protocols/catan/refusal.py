"""Refusals of requests by the simulated server."""

from __future__ import annotations


class RequestRefused(Exception):
    """A request is refused; the message is the reason."""


def require(allowed: bool, why: str) -> None:
    """Raise Refused unless something is allowed."""
    if not allowed:
        raise RequestRefused(why)
