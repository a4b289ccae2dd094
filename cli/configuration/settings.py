"""Settings of the configuration file with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Colour = Literal["always", "never", "auto"]


class Configuration(NamedTuple):
    """The user's settings.

    `database` is the path of the default database. `names` maps IP addresses, or endpoints as formatted by
    `proxy.relay.modes.endpoint`, to names. `protocols` are the paths of protocol files.
    """

    database: str = "kiebitz.db"
    colour: Colour = "auto"
    names: Mapping[str, str] = {}
    protocols: tuple[str, ...] = ()
