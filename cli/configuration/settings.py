"""What can be configured, and what holds where nothing is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Colour = Literal["always", "never", "auto"]


class Configuration(NamedTuple):
    """What a person's file says.

    `database` is the path of the one that is taken where none is named. `names` has their names for
    addresses, by an IP address or an endpoint as `proxy.relay.modes.endpoint` writes it.
    """

    database: str = "kiebitz.db"
    colour: Colour = "auto"
    names: Mapping[str, str] = {}
