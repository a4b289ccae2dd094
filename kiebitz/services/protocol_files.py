"""Protocol files: reading them, and registering them in this process and in child processes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.registry import (
    FileSource,
    ProtocolClashError,
    ProtocolFile,
    add_file,
    dissector_of_text,
)

MAX_BYTES = 256 << 10
"""Maximum size of a protocol file in bytes."""

MAX_FILES = 20
"""Maximum number of protocol files at once: a recording's note contains them."""


class UnreadableProtocolFileError(KiebitzError):
    """A protocol file cannot be read; its content is not the reason."""

    is_usage = True


def read_protocol_file(path: str) -> str:
    """Return the text of the protocol file at `path`. Raises UnreadableProtocolFileError."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableProtocolFileError(f"{path}: this protocol file cannot be read: {reason}") from error
    if len(data) > MAX_BYTES:
        raise UnreadableProtocolFileError(f"{path}: a protocol file has at most {MAX_BYTES >> 10} KiB")
    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableProtocolFileError(f"{path}: line {line} is not UTF-8") from error


def add_protocol_files(
    files: Sequence[str | Path], source: FileSource = "given", *, replaces: bool = False
) -> set[str]:
    """Register protocol files, and return the names of their protocols.

    Args:
        files: Paths, or texts of several lines.
        source: Where they were named.
        replaces: Replace files of an earlier call that describe the same protocols.

    Raises:
        UnreadableProtocolFileError: A file cannot be read.
        ProtocolFileError: A text is invalid.
        ProtocolClashError: Two files, or a file and a plug-in, have the same protocol.
    """
    if len(files) > MAX_FILES:
        raise UnreadableProtocolFileError(f"at most {MAX_FILES} protocol files can be used at once")
    loaded: dict[str, ProtocolFile] = {}
    for given in files:
        is_text = isinstance(given, str) and "\n" in given
        name = "protocol file" if is_text else str(given)
        text = str(given) if is_text else read_protocol_file(name)
        dissector = dissector_of_text(text, name)
        file = ProtocolFile(dissector.protocol, text, name, source)
        before = loaded.setdefault(file.protocol, file)
        if before.text != file.text:
            raise ProtocolClashError(
                f"{before.origin} and {file.origin} describe the protocol {file.protocol} differently:"
                " give one of them"
            )
        add_file(file, dissector, replaces=replaces)
    return {*loaded}


def add_received(files: Iterable[ProtocolFile]) -> None:
    """Register the protocol files of the process that started this one. Raises ProtocolClashError."""
    for file in files:
        add_file(file, replaces=True)


def origins(files: Collection[ProtocolFile]) -> str:
    """Return the names of protocol files for a sentence."""
    return ", ".join(dict.fromkeys(file.origin for file in files))
