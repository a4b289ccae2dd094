"""The configuration file: location, cached reading, and its names for addresses.

It is never read from the current folder, which may be another user's.

Configured names for addresses: `table 3:4711` instead of 10.0.0.7:4711.

JSON, CSV and filters use the addresses.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from functools import cache

from kiebitz.cli.configuration.settings import Configuration, ConfigurationError

VARIABLE = "KIEBITZ_CONFIG"
"""Environment variable with the file's path."""

_LARGEST_KIB = 64


def configuration() -> Configuration:
    """Return the configuration. Raises ConfigurationError."""
    path = configuration_path()
    return Configuration() if path is None else _read(path)


def configuration_path() -> str | None:
    """Return the path of the file, which need not exist; None for a user without a home folder."""
    if named := os.environ.get(VARIABLE):
        return named
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):
        # The XDG standard says to ignore a relative path.
        folder = os.path.expanduser("~/.config")
    return os.path.join(folder, "kiebitz", "config.toml") if os.path.isabs(folder) else None


@cache
def _read(path: str) -> Configuration:
    if not os.path.isabs(path):
        raise ConfigurationError(path, f"{VARIABLE} must be an absolute path")
    try:
        data = _bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get(VARIABLE):
            raise ConfigurationError(path, f"no such file, set by {VARIABLE}") from None
        return Configuration()
    except OSError as error:
        raise ConfigurationError(path, f"cannot be read: {error.strerror}") from error
    if not data:
        return Configuration()
    # Most users have no configuration file and do not need the parser.
    from kiebitz.cli.configuration.reading import parse_configuration

    return parse_configuration(path, data)


def _bytes(path: str) -> bytes:
    # /dev/null is an empty configuration. Reading a pipe would block.
    if not stat.S_ISREG(os.stat(path).st_mode) and path != os.devnull:
        raise ConfigurationError(path, "not a regular file")
    with open(path, "rb") as file:
        data = file.read(_LARGEST_KIB * 1024 + 1)
    if len(data) > _LARGEST_KIB * 1024:
        raise ConfigurationError(path, f"larger than {_LARGEST_KIB} KiB")
    return data


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
