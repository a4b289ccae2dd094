"""Parsing and validation of the configuration file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Any, cast, get_args

from kiebitz.cli.configuration.settings import Colour, Configuration, ConfigurationError
from kiebitz.dissectors.protocol_file.reading.positions import InvalidTomlError, TomlPlaces, parse_toml
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.proxy.relay.modes import endpoint, parse_endpoint

LONGEST_NAME = 40
"""Maximum length of a name (characters)."""


def parse_configuration(path: str, data: bytes) -> Configuration:
    """Parse the contents of the file at `path`. Raises ConfigurationError."""
    try:
        text = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(path, f"line {line} is not UTF-8") from error
    try:
        document = parse_toml(text)
    except InvalidTomlError as error:
        raise ConfigurationError(path, str(error), error.place) from error
    return _Check(path, text).document(document)


class _Check:
    """Validator of keys and values."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text

    def document(self, document: Mapping[str, Any]) -> Configuration:
        """Validate the document. Raises ConfigurationError."""
        checks: Mapping[str, Callable[[Any], Any]] = {
            "database": self._database,
            "colour": self._colour,
            "names": self._names,
            "protocols": self._protocols,
        }
        for key in document:
            if key not in checks:
                near = get_close_matches(key, checks, n=1)
                hint = did_you_mean(*near) if near else f"valid keys are {', '.join(checks)}"
                raise self._wrong_key([key], f"unknown key {key}; {hint}")
        return Configuration(**{key: checks[key](value) for key, value in document.items()})

    def _database(self, value: Any) -> str:
        if not isinstance(value, str) or not value or "\0" in value:
            raise self._wrong(["database"], 'database must be the path of a file, as in "~/class.db"')
        return os.path.expanduser(value)

    def _colour(self, value: Any) -> Colour:
        if value not in get_args(Colour):
            raise self._wrong(["colour"], 'colour must be "always", "never" or "auto"')
        return cast(Colour, value)

    def _names(self, value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            raise self._wrong(
                ["names"], 'names must be a table: [names], and below it "10.0.0.7" = "table 3"'
            )
        return {self._address(key): self._name(key, name) for key, name in value.items()}

    def _protocols(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(
            isinstance(path, str) and path and "\0" not in path for path in value
        ):
            raise self._wrong(["protocols"], 'protocols must be a list of files, as in ["uno.toml"]')
        folder = os.path.dirname(self._path)
        return tuple(os.path.join(folder, os.path.expanduser(path)) for path in value)

    def _address(self, key: str) -> str:
        try:
            return str(ip_address(key))
        except ValueError:
            pass
        try:
            host, port = parse_endpoint(key)
            return endpoint(str(ip_address(host or "")), port)
        except ValueError:
            hint = 'write "10.0.0.7" or "10.0.0.7:4711", in quotation marks'
            raise self._wrong_key(["names", key], f"{key} is not an IP address; {hint}") from None

    def _name(self, key: str, name: Any) -> str:
        if not isinstance(name, str) or not name.strip():
            problem = 'must be a text, as in "table 3"'
        elif not name.isprintable():
            problem = "has a non-printable character"
        elif len(name) > LONGEST_NAME:
            problem = f"is longer than {LONGEST_NAME} characters"
        else:
            return name
        raise self._wrong(["names", key], f"the name of {key} {problem}")

    def _wrong_key(self, keys: Sequence[str], problem: str) -> ConfigurationError:
        return ConfigurationError(self._path, problem, TomlPlaces(self._text).key(keys))

    def _wrong(self, keys: Sequence[str], problem: str) -> ConfigurationError:
        return ConfigurationError(self._path, problem, TomlPlaces(self._text).value(keys))
