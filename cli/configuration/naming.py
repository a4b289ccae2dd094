"""The names that a person has given to addresses: what people read says `table 3:4711` for 10.0.0.7:4711.

Programs get the address itself, and filters compare with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kiebitz.cli.configuration.errors import ConfigurationError
from kiebitz.cli.configuration.file import configuration


def name_of(address: str) -> str | None:
    """The name of an endpoint, `ip:port`: its own, or else its host's with the port; None without a name."""
    names = _names()
    if not names:
        return None
    if address in names:
        return names[address]
    host, colon, port = address.rpartition(":")
    name = names.get(host.removeprefix("[").removesuffix("]"))
    return None if name is None else f"{name}{colon}{port}"


def named(address: str) -> str:
    """An endpoint as people read it: by its name if it has one."""
    return name_of(address) or address


def _names() -> Mapping[str, str]:
    try:
        return configuration().names
    except ConfigurationError:
        # That was told when the command began; a recording must not end because somebody edits the file.
        return {}
