"""The values in a Catan request, read as the specification's section 7 has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.protocols.catan.words import ROHSTOFFE

Place = tuple[int, int]

MOST_CARDS = 95
"""Number of all resource cards."""


class Refused(Exception):
    """A request is not granted, for this reason."""


def number(body: Mapping[str, Any], key: str) -> int:
    """Return the number. Raises Refused if it is none."""
    value = body.get(key)
    if type(value) is not int or abs(value) > 2**31:
        raise Refused(f"{key} fehlt oder ist keine Zahl")
    return value


def counted(body: Mapping[str, Any], key: str) -> dict[str, int]:
    """Return the nonzero resources. Raises Refused."""
    value = body.get(key)
    if not isinstance(value, dict) or not {*value} <= {*ROHSTOFFE}:
        raise Refused(f"{key} fehlt oder ist kein Rohstoffe-Objekt")
    if any(type(count) is not int or not 0 <= count <= MOST_CARDS for count in value.values()):
        raise Refused(f"{key} hat falsche Anzahlen")
    return {kind: count for kind, count in value.items() if count}


def place(body: Mapping[str, Any], key: str) -> Place:
    """Return a field's place. Raises Refused."""
    value = body.get(key)
    if not isinstance(value, dict):
        raise Refused(f"{key} fehlt oder ist kein Ort")
    return number(value, "x"), number(value, "y")


def places(body: Mapping[str, Any], key: str) -> tuple[Place, ...]:
    """Return the fields around a building, sorted. Raises Refused."""
    value = body.get(key)
    if not isinstance(value, list) or not 2 <= len(value) <= 3:
        raise Refused(f"{key} fehlt oder ist kein Ort")
    return tuple(sorted(place({key: one}, key) for one in value))
