"""The baseline file of a test run: failures that are known, and do not fail the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kiebitz.services.output_files import opened
from kiebitz.services.probing.results import KNOWN, Result
from kiebitz.storage.database.schema import StorageError

_MAX_SIZE = 1 << 20
"""Maximum size of a file in bytes."""

_SETTLED = ("OK", "NON-STRICT", "INFORMATIONAL")
"""The verdicts that show that a case does not fail."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The contents of a file: why each known case fails."""

    known_failures: dict[str, str]


class KnownFailures:
    """The known failures in a file."""

    def __init__(self, path: str, is_new: bool = False) -> None:
        """Read the file. Raises StorageError if it cannot be read, or is missing and not `is_new`."""
        self._path = path
        self._failures: dict[str, str] = {}
        """Why each known case fails."""
        try:
            with open(path, "rb") as file:
                data = file.read(_MAX_SIZE + 1)
        except FileNotFoundError:
            if is_new:
                return
            raise StorageError(f"{path}: there is no such file; --update-baseline creates it") from None
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from error
        if len(data) > _MAX_SIZE:
            raise StorageError(f"{path}: more than {_MAX_SIZE:,} bytes: this is no baseline file")
        try:
            self._failures = msgspec.json.decode(data, type=_File).known_failures
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StorageError(
                f"{path}: this is no baseline file: {error}; --update-baseline writes one"
            ) from error

    def mark(self, result: Result) -> Result:
        """Return a result; a failure that is known gets the verdict KNOWN."""
        if result.is_failed and result.case in self._failures:
            return msgspec.structs.replace(result, verdict=KNOWN)
        return result

    def fixed(self, results: Iterable[Result]) -> list[str]:
        """Return the known cases that do not fail any more."""
        return [each.case for each in results if each.case in self._failures and each.verdict in _SETTLED]

    def update(self, results: Sequence[Result]) -> None:
        """Write the file: add the failures of a run, and remove what is fixed. Raises StorageError."""
        fixed = {*self.fixed(results)}
        kept = {case: why for case, why in self._failures.items() if case not in fixed}
        failures = kept | {each.case: each.why for each in results if each.verdict in ("FAILED", KNOWN)}
        self._failures = failures
        with opened(self._path, "") as file:
            text = msgspec.json.format(msgspec.json.encode(_File(dict(sorted(failures.items())))))
            file.write(text + b"\n")
