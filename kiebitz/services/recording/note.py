"""The note next to a recording's journal, and the unfinished recordings that it leads to.

It is written before the relay forwards anything, and again whenever the recording continues in another
database. Databases are named relative to the folder's parent, so that both can be moved together.

Unfinished recordings next to a database: journals whose relay and recorder were killed or interrupted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

import msgspec

from kiebitz.dissectors.registry import ProtocolFile
from kiebitz.services.recording.rotation import Limits
from kiebitz.services.supervision.journal_folder import all_folders, is_held, read_note, write_note
from kiebitz.storage.database.schema import MEMORY, StorageError

_Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_Session = Annotated[int, msgspec.Meta(ge=1, le=1 << 62)]


class Part(msgspec.Struct, frozen=True, array_like=True):
    """A session of the recording: the file name of its database, and its number."""

    database: str
    session: _Session


class Note(msgspec.Struct, frozen=True):
    """A recording: its options, and the sessions that its journal is recorded into, in order.

    `database` is the file name given with -w, `source` the relay's modes, `started_ns` the start of the
    session by the relay's clock. Each session continues the one before; if `is_rest`, the last ones record
    what could not be appended to the others.
    """

    database: str
    source: str
    name: str
    started_ns: _Nanoseconds | None
    parts: tuple[Part, ...]
    limits: Limits | None
    decode_as: tuple[str, ...]
    is_anonymized: bool
    is_rest: bool = False
    protocol_files: tuple[ProtocolFile, ...] = ()

    @property
    def databases(self) -> set[str]:
        """The file names of all databases of the recording."""
        return {self.database, *(part.database for part in self.parts)}


def decode_note(text: bytes, folder: str | Path) -> Note:
    """Decode the note found in `folder`. Raises StorageError if it is invalid."""
    try:
        note = msgspec.json.decode(text, type=Note)
    except msgspec.DecodeError as error:
        raise StorageError(f"{folder}: its note is damaged, or none of a recording: {error}") from error
    if not note.parts or any(not _is_file_name(name) for name in note.databases):
        raise StorageError(f"{folder}: its note is damaged: it names no database next to the folder")
    return note


def _is_file_name(name: str) -> bool:
    return os.path.basename(name) == name and name not in ("", os.curdir, os.pardir) and "\0" not in name


class NoteFile:
    """The note of an ongoing recording, in its folder, which is open as a descriptor."""

    def __init__(self, folder: int, note: Note) -> None:
        self._folder = folder
        self._note = note

    def add(self, database: str, session: int, *, is_rest: bool = False) -> None:
        """Add the next session before anything is recorded into it. Raises StorageError."""
        part = Part(os.path.basename(database), session)
        note = msgspec.structs.replace(self._note, parts=(*self._note.parts, part), is_rest=is_rest)
        try:
            self._write(note)
        except OSError as error:
            raise StorageError(f"{database}: no files can be created next to it: {error.strerror}") from error

    def take_back(self) -> None:
        """Remove the last session, which could not be created."""
        # If this fails, a recovery detects it by itself.
        with suppress(OSError):
            self._write(msgspec.structs.replace(self._note, parts=self._note.parts[:-1]))

    def _write(self, note: Note) -> None:
        write_note(self._folder, msgspec.json.encode(note))
        self._note = note


INSPECTION_S = 0.05
"""Longest time (seconds) for which a command that only inspects a folder holds it."""


def refuse_if_unfinished(database: str) -> None:
    """Raise StorageError if there is an unfinished recording into `database`.

    Only the last session of a database can be resumed, so no other one may begin before.
    """
    for folder in unfinished(database, INSPECTION_S):
        raise StorageError(
            f"{database}: a recording into it is unfinished; {recovery_command(folder)} recovers it; or "
            "name another database"
        )


def unfinished(database: str, patience_s: float) -> Iterator[str]:
    """Yield the folders of unfinished recordings into `database`, as paths like its own."""
    if database in (MEMORY, "-"):
        return
    path = Path(database)
    with closing(all_folders(path.absolute().parent)) as found:
        for folder, descriptor in found:
            # Imported late, as there is hardly ever one.

            try:
                text = read_note(descriptor)
                if text is None or path.name not in decode_note(text, folder).databases:
                    continue
            except (OSError, StorageError):
                # A tap's, another user's business, or damaged.
                continue
            if is_held(descriptor):
                time.sleep(patience_s)
                if not patience_s or is_held(descriptor):
                    continue
            yield str(path.parent / folder.name)


def recovery_command(folder: str) -> str:
    """Return the command that records what is left in a folder."""
    # There is hardly ever one.
    import shlex

    return f"kiebitz import {shlex.quote(folder)}"
