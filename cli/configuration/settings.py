"""Settings of the configuration file with their defaults, and its errors with their location."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from kiebitz.dissectors.caret_line import with_carets
from kiebitz.dissectors.errors import KiebitzError

if TYPE_CHECKING:
    from kiebitz.dissectors.protocol_file.reading.positions import Place

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


class ConfigurationError(KiebitzError):
    """The configuration file is unreadable or invalid."""

    is_usage = True

    def __init__(self, path: str, problem: str, place: Place | None = None) -> None:
        where = path if place is None else f"{path}, line {place.number}"
        super().__init__(f"{where}: {problem}")
        self._place = place

    def excerpt(self) -> list[str]:
        """Return the line with carets under the error."""
        if self._place is None:
            return []
        _, line, position, length = self._place
        return with_carets(line, position, length)
