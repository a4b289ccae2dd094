"""The configuration file: where it is, and that it is read once.

It is looked for where its owner says, and never in the current folder, which may be a stranger's.
"""

from __future__ import annotations

import os
import stat
from functools import cache

from kiebitz.cli.configuration.errors import ConfigurationError
from kiebitz.cli.configuration.settings import Configuration

VARIABLE = "KIEBITZ_CONFIG"
"""In the environment: the file's path."""

_LARGEST_KIB = 64


def configuration() -> Configuration:
    """What is configured. Raises ConfigurationError."""
    path = configuration_path()
    return Configuration() if path is None else _read(path)


def configuration_path() -> str | None:
    """Where the file is, or would be; None for somebody without a home."""
    if named := os.environ.get(VARIABLE):
        return named
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):
        # As its standard has it: a relative one is ignored.
        folder = os.path.expanduser("~/.config")
    return os.path.join(folder, "kiebitz", "config.toml") if os.path.isabs(folder) else None


@cache
def _read(path: str) -> Configuration:
    if not os.path.isabs(path):
        raise ConfigurationError(path, f"{VARIABLE} takes a whole path, which begins with /")
    try:
        data = _bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get(VARIABLE):
            raise ConfigurationError(path, f"there is no such file, and {VARIABLE} names it") from None
        return Configuration()
    except OSError as error:
        raise ConfigurationError(path, f"it cannot be read: {error.strerror}") from error
    if not data:
        return Configuration()
    # Most people have no such file, and need nothing of what reads it.
    from kiebitz.cli.configuration.reading import understood

    return understood(path, data)


def _bytes(path: str) -> bytes:
    """What is in the file. Raises OSError and ConfigurationError."""
    # The empty file that is everywhere says that nothing is configured. A pipe would be waited for.
    if not stat.S_ISREG(os.stat(path).st_mode) and path != os.devnull:
        raise ConfigurationError(path, "this is no file")
    with open(path, "rb") as file:
        data = file.read(_LARGEST_KIB * 1024 + 1)
    if len(data) > _LARGEST_KIB * 1024:
        raise ConfigurationError(path, f"a configuration has at most {_LARGEST_KIB} KiB")
    return data
