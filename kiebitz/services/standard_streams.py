"""The process's stdout and stderr: sentences for the user, and output that may fail.

A sentence may contain text from a peer or a file's name, so it is escaped: it stays one line, and drives no
terminal.
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


def tell(sentence: str) -> None:
    """Write a sentence to stderr, on one line."""
    sys.stderr.write(printable(sentence) + "\n")
    sys.stderr.flush()


def warn(sentence: str, *below: str) -> None:
    """Write a sentence to stderr behind `kiebitz:`, and further lines below it."""
    tell(f"kiebitz: {sentence}")
    for line in below:
        tell(line)


def output() -> BinaryIO:
    """Return stdout for bytes: files, and raw data."""
    return sys.stdout.buffer


def errors_are_seen() -> bool:
    """Return True if stderr is a terminal."""
    return sys.stderr.isatty()


def accept_any_letter() -> None:
    """Have stdout write letters that its encoding lacks as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Flush stdout. Raises BrokenPipeError if it cannot be written."""
    sys.stdout.flush()


class _Output(io.BufferedWriter):
    """Standard output: a write that fails is reported once, and whatever is written later is dropped.

    So the interpreter does not fail at its exit over what is left in the buffer. To its writers a full disk
    or a closed file is the same as a reader that has gone: BrokenPipeError. A signal handler may raise in
    Python code only, which is above the buffer here: so nothing is written twice.
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
        # Loaded only here, as it loads SQLite.
        from kiebitz.storage.database.schema import sentence

        warn(sentence("standard output", error))
        raise BrokenPipeError(errno.EPIPE, error.strerror) from error


class _Errors(io.BufferedWriter):
    """Standard error: what cannot be written there is dropped, as it could be reported nowhere."""

    def write(self, data: Buffer, /) -> int:
        with suppress(OSError):
            super().write(data)
        return memoryview(data).nbytes

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def has_output_failed() -> bool:
    """Return True if something could not be written to stdout, unless its reader has just gone."""
    return _Output.has_failed


def open_standard_streams() -> None:
    """Have this process report failed writes to stdout, whatever it was started with.

    A stream that is closed stays so for whoever uses it, but no file that is opened gets its number.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # Opened the other way round, it fails as a closed one does; of stderr, whatever comes is dropped.
            os.set_inheritable(os.open(os.devnull, mode), True)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Output(io.FileIO(1, "wb", closefd=False)), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Errors(io.FileIO(2, "wb", closefd=False)), sys.stderr)


def _text(buffer: io.BufferedWriter, before: TextIO | None) -> io.TextIOWrapper:
    """Return a stream of text like the one before, None if that was closed."""
    is_by_line = isinstance(before, io.TextIOWrapper) and (before.line_buffering or before.write_through)
    return io.TextIOWrapper(
        buffer,
        "utf-8" if before is None else before.encoding,
        "backslashreplace",
        "\n",
        line_buffering=is_by_line,
    )
