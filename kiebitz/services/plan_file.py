"""Plans in TOML, as of `interop` and `class`: mistakes with their places, durations, protocols, commands."""

from __future__ import annotations

import os
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Generic, TypeVar

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.protocol_file.reading.positions import InvalidTomlError, Mistake, Place, parse_toml
from kiebitz.dissectors.protocol_file.reading.source import Path, Source, TooManyMistakes
from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.decode_as import unknown_protocol
from kiebitz.services.protocol_files import add_protocol_files
from kiebitz.storage.database.schema import StorageError

MAX_SIZE = 1 << 20
"""Maximum size of a plan in bytes."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min)")
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0}


class PlanError(KiebitzError):
    """A plan is invalid; `mistakes` lists why, with locations."""

    is_usage = True

    def __init__(self, name: str, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(mistakes[0].text(name))

    def excerpt(self) -> list[str]:
        """Return the line of the first mistake with carets."""
        return self.mistakes[0].excerpt()


_Plan = TypeVar("_Plan")
_Keys = TypeVar("_Keys", bound=msgspec.Struct)


class PlanReader(ABC, Generic[_Plan]):
    """A plan as it is read, with its mistakes in `source`. Raises PlanError and StorageError."""

    def __init__(self, path: str) -> None:
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_SIZE + 1)
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}: name a plan in TOML") from error
        if len(data) > MAX_SIZE:
            raise StorageError(f"{path}: more than {MAX_SIZE:,} bytes: this is no plan")
        try:
            text = data.decode().replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise StorageError(f"{path}: this is no text in UTF-8") from error
        try:
            self._document = parse_toml(text)
        except InvalidTomlError as error:
            place = error.place or Place(1, text.partition("\n")[0], 0, 1)
            raise PlanError(path, [Mistake(str(error), place)]) from None
        self.path = path
        self.folder = os.path.dirname(os.path.abspath(path))
        self.source = Source(text)

    @abstractmethod
    def plan(self) -> _Plan:
        """Read the plan, and report its mistakes."""

    def checked(self) -> _Plan:
        """Return the plan. Raises PlanError if it has a mistake."""
        with suppress(TooManyMistakes):
            plan = self.plan()
        if self.source.mistakes:
            raise PlanError(self.path, self.source.mistakes)
        return plan

    def head(self, kind: type[_Keys], *tables: str) -> _Keys:
        """Return the keys of the plan itself, which has these arrays of tables."""
        plain = {key: value for key, value in self._document.items() if key not in tables}
        head = self.source.table((), plain, kind)
        assert head is not None
        return head

    def tables(self, key: str, kind: type[_Keys], most: int, has: str) -> Iterator[tuple[Path, _Keys]]:
        """Yield the tables of an array with their places; each must have the keys that `has` names."""
        entries = self._document.get(key, [])
        if not isinstance(entries, list) or not entries:
            self.source.wrong_key((key,), f"no {key}: add a table [[{key}]] with {has}")
            return
        if len(entries) > most:
            self.source.wrong_key((key, most), f"more than {most} of them")
        for number, entry in enumerate(entries[:most]):
            read = self.source.table((key, number), entry, kind)
            if read is not None:
                yield (key, number), read

    def duration_s(self, path: Path, text: str, example: str) -> float:
        """Return a duration in seconds; a wrong one is reported."""
        form = _DURATION.fullmatch(text)
        if form is None:
            self.source.wrong(path, f"{path[-1]} must be a number with its unit, as in {example}")
            return 0.0
        return float(form[1]) * _UNITS[form[2]]

    def protocol_and_file(self, path: Path, name: str) -> tuple[str, str | None]:
        """Return a protocol's name, and its file if the plan names one, which is registered.

        An unknown protocol is reported. Raises ProtocolFileError.
        """
        if name.endswith(".toml"):
            file = str(FilePath(self.folder, name))
            return add_protocol_files([file], replaces=True).pop(), file
        if name and dissector_of(name) is None:
            self.source.wrong(path, unknown_protocol(name))
        return name, None

    def command_words(self, path: Path, command: str, user: str) -> tuple[str, ...]:
        """Return the words of a command that must use the given port; `user` names the program."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            self.source.wrong(path, f"{error}")
            return ()
        if not words:
            self.source.wrong(path, "the command is empty")
        if "{port}" not in command:
            self.source.wrong(path, f"{{port}} is missing: the {user} must use the given port")
        return tuple(words)


def filled_words(words: Sequence[str], values: Mapping[str, str], folder: str) -> list[str]:
    """Return a command's words with its placeholders replaced; files are those of `folder`."""
    return [_found(filled(word, values), folder) for word in words]


def filled(word: str, values: Mapping[str, str]) -> str:
    """Return a word with its placeholders replaced."""
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _found(word: str, folder: str) -> str:
    path = os.path.join(folder, word)
    return path if not os.path.isabs(word) and ("/" in word or "." in word) and os.path.exists(path) else word
