"""The process's stdout and stderr: sentences for the user, and output that may fail.

Sentences may contain text from a peer or a file's name, so they are escaped: each remains one line and
contains no control characters.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, ClassVar, NoReturn, TextIO

from kiebitz.dissectors.escaping import printable

if TYPE_CHECKING:
    from typing_extensions import Buffer


def print_error_line(sentence: str) -> None:
    """Write a sentence to stderr, on one line."""
    sys.stderr.write(printable(sentence) + "\n")
    sys.stderr.flush()


def warn(sentence: str, *below: str) -> None:
    """Write a sentence to stderr after `kiebitz:`, and further lines below it."""
    print_error_line(f"kiebitz: {sentence}")
    for line in below:
        print_error_line(line)


def output() -> BinaryIO:
    """Return stdout as a binary stream."""
    return sys.stdout.buffer


def is_stderr_terminal() -> bool:
    """Return True if stderr is a terminal."""
    return sys.stderr.isatty()


def escape_unencodable() -> None:
    """Make stdout write characters that its encoding lacks as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Flush stdout. Raises BrokenPipeError if it cannot be written."""
    sys.stdout.flush()


class _Output(io.BufferedWriter):
    """Standard output that reports the first failed write and drops everything after it.

    The interpreter then does not fail at exit over the buffer. A full disk or a closed file raises
    BrokenPipeError too. A signal handler can only raise in Python code, above the buffer, so nothing is
    written twice.
    """

    has_failed: ClassVar[bool] = False
    _is_given_up = False

    def write(self, data: Buffer, /) -> int:
        if self._is_given_up:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            self._give_up(error)

    def flush(self) -> None:
        if self._is_given_up:
            return
        try:
            super().flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> NoReturn:
        self._is_given_up = True
        if isinstance(error, BrokenPipeError):
            raise error
        _Output.has_failed = True
        # Imported late, as it loads SQLite.
        from kiebitz.storage.database.schema import sentence

        warn(sentence("standard output", error))
        raise BrokenPipeError(errno.EPIPE, error.strerror) from error


class _Errors(io.BufferedWriter):
    """Standard error that drops what cannot be written, as it could not be reported anywhere."""

    def write(self, data: Buffer, /) -> int:
        with suppress(OSError):
            super().write(data)
        return memoryview(data).nbytes

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def has_output_failed() -> bool:
    """Return True if writing to stdout failed for another reason than a closed pipe."""
    return _Output.has_failed


def open_standard_streams() -> None:
    """Make this process report failed writes to stdout, however it was started.

    A closed stream remains unusable, but its number is not given to another file.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # Opened in the wrong direction, it fails like a closed one; stderr drops everything.
            os.set_inheritable(os.open(os.devnull, mode), True)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Output(io.FileIO(1, "wb", closefd=False)), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Errors(io.FileIO(2, "wb", closefd=False)), sys.stderr)


def _text(buffer: io.BufferedWriter, before: TextIO | None) -> io.TextIOWrapper:
    """Return a text stream like the previous one, which is None if it was closed."""
    is_by_line = isinstance(before, io.TextIOWrapper) and (before.line_buffering or before.write_through)
    return io.TextIOWrapper(
        buffer,
        "utf-8" if before is None else before.encoding,
        "backslashreplace",
        "\n",
        line_buffering=is_by_line,
    )
