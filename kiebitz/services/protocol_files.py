"""Protocol files: reading them, and registering them in this process and in child processes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.protocol_file import MAX_SIZE
from kiebitz.dissectors.registry import (
    FileSource,
    ProtocolClashError,
    ProtocolFile,
    add_file,
    dissector_of_text,
)

MAX_FILES = 20
"""Maximum number of protocol files at once: a recording's note contains them."""


class UnreadableProtocolFileError(KiebitzError):
    """A protocol file cannot be read; its content is not the reason."""

    is_usage = True


def read_protocol_file(path: str, *, may_be_standard_input: bool = False) -> str:
    """Return the text of the protocol file at `path`. Raises UnreadableProtocolFileError."""
    try:
        if may_be_standard_input and path == "-":
            data = sys.stdin.buffer.read(MAX_SIZE + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_SIZE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableProtocolFileError(f"{path}: this protocol file cannot be read: {reason}") from error
    if len(data) > MAX_SIZE:
        raise UnreadableProtocolFileError(f"{path}: a protocol file has at most {MAX_SIZE >> 10} KiB")
    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableProtocolFileError(f"{path}: line {line} is not UTF-8") from error


class LoadedFile(NamedTuple):
    """A valid protocol file and its dissector."""

    file: ProtocolFile
    dissector: Dissector


def load_protocol_files(files: Sequence[str | Path], source: FileSource = "given") -> list[LoadedFile]:
    """Read and check protocol files, given as paths or as texts of several lines.

    Raises:
        UnreadableProtocolFileError: A file cannot be read.
        ProtocolFileError: A text is invalid.
        ProtocolClashError: Two files describe the same protocol differently.
    """
    if isinstance(files, str):
        # A list with one path is easily forgotten.
        files = [files]
    if len(files) > MAX_FILES:
        raise UnreadableProtocolFileError(f"at most {MAX_FILES} protocol files can be used at once")
    loaded: dict[str, LoadedFile] = {}
    for given in files:
        is_text = isinstance(given, str) and "\n" in given
        name = "protocol file" if is_text else str(given)
        text = str(given) if is_text else read_protocol_file(name)
        dissector = dissector_of_text(text, name)
        file = ProtocolFile(dissector.protocol, text, name, source)
        before = loaded.setdefault(file.protocol, LoadedFile(file, dissector)).file
        if before.text != text:
            raise ProtocolClashError(
                f"{before.origin} and {name} describe the protocol {file.protocol} differently:"
                " give one of them"
            )
    return [*loaded.values()]


def add_protocol_files(
    files: Sequence[str | Path], source: FileSource = "given", *, replaces: bool = False
) -> set[str]:
    """Register protocol files, and return the names of their protocols.

    If they `replace` others, those are files of an earlier call for the same protocols. Raises what
    `load_protocol_files` raises, and ProtocolClashError for a file and a plug-in with the same protocol.
    """
    loaded = load_protocol_files(files, source)
    for file, dissector in loaded:
        add_file(file, dissector, replaces=replaces)
    return {one.file.protocol for one in loaded}


def add_received(files: Iterable[ProtocolFile]) -> None:
    """Register the protocol files of the process that started this one. Raises ProtocolClashError."""
    for file in files:
        add_file(file, replaces=True)
