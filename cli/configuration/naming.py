"""Configured names for addresses: `table 3:4711` instead of 10.0.0.7:4711.

JSON, CSV and filters use the addresses.
"""

from __future__ import annotations

from collections.abc import Mapping

from kiebitz.cli.configuration.file import configuration
from kiebitz.cli.configuration.settings import ConfigurationError


def name_of(address: str) -> str | None:
    """Return the name of an endpoint `ip:port`, or its host's name with the port; None without a name."""
    names = _names()
    if not names:
        return None
    if address in names:
        return names[address]
    host, colon, port = address.rpartition(":")
    name = names.get(host.removeprefix("[").removesuffix("]"))
    return None if name is None else f"{name}{colon}{port}"


def named(address: str) -> str:
    """Return the name of an endpoint, or the endpoint itself without one."""
    return name_of(address) or address


def _names() -> Mapping[str, str]:
    try:
        return configuration().names
    except ConfigurationError:
        # Reported when the command started; a recording must not fail because the file is edited.
        return {}
