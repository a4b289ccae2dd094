"""Recorded games that lead to the state of a test case: those of the protocols, or the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.registry import dissector_of
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


def _packed(protocol: str) -> Traversable | None:
    """Return the recorded game in the package of a protocol, None if it has none."""
    dissector = dissector_of(protocol)
    package = type(dissector).__module__.rpartition(".")[0]
    packed = files(package) / "sample.pcapng.gz" if package else None
    return packed if packed is not None and packed.is_file() else None


def built_in_script(dissector: Dissector) -> Script | None:
    """Return the recorded game of a protocol; None if bots play instead. Raises StorageError."""
    if dissector.conformance.bot is not None and not has_sample(dissector.protocol):
        return None
    with sample_of(dissector.protocol) as sample:
        return script_in(sample)


def has_sample(protocol: str) -> bool:
    """Return True if a protocol comes with a recorded game."""
    return _packed(protocol) is not None


@contextmanager
def sample_of(protocol: str) -> Iterator[str]:
    """Provide the path of the recorded game that comes with a protocol. Raises StorageError."""
    packed = _packed(protocol)
    if packed is None:
        raise StorageError(
            f"no recorded game comes with {protocol}: name a capture of one with --via-session CAPTURE"
        )
    with as_file(packed) as path:
        yield str(path)
