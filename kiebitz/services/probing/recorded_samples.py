"""Recorded games used as routes to an injection point: those bundled with Kiebitz, or the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable

from kiebitz.dissectors.replay.script import Script
from kiebitz.services.sessions import load, session_of, split_number
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.script import script_of


def script_in(session: str, protocol: str | None = None) -> Script:
    """Return the script of a session, limited to one protocol's streams if one is named.

    Raises StorageError and CaptureError.
    """
    path, number = split_number(session)
    connection, _ = load(path)
    try:
        timeline, _ = session_of(connection, path, number)
        script = script_of(timeline)
    finally:
        connection.close()
    if protocol is not None:
        script = script.only({role.number for role in script.roles if role.protocol == protocol})
    if not script.steps:
        of = "game" if protocol is None else f"game of {protocol}"
        raise StorageError(f"{session}: no {of} was recognised in it, so it reaches no injection point")
    return script


def _packed(protocol: str) -> Traversable:
    return files("kiebitz.services.probing") / "samples" / f"{protocol}.pcapng.gz"


def has_sample(protocol: str) -> bool:
    """Return True if a game of a protocol is bundled with Kiebitz."""
    return _packed(protocol).is_file()


@contextmanager
def sample_of(protocol: str) -> Iterator[str]:
    """Provide the path of the bundled game of a protocol. Raises StorageError."""
    packed = _packed(protocol)
    if not packed.is_file():
        raise StorageError(
            f"no game of {protocol} is bundled with Kiebitz: name a capture of one with --like CAPTURE"
        )
    with as_file(packed) as path:
        yield str(path)
