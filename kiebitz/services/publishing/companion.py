"""The process that publishes beside a recording, loaded only where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kiebitz.services.publishing.tapping import Tapping

if TYPE_CHECKING:
    from kiebitz.services.publishing.supervisor import TapProcess


@contextmanager
def tapped(tapping: Tapping | None, database: str) -> Iterator[TapProcess | None]:
    """The process, if there is to be one; nothing of it is left behind but what it keeps for later.

    Raises StorageError.
    """
    if tapping is None:
        yield None
        return
    from kiebitz.services.publishing.supervisor import TapProcess

    tap = TapProcess(tapping, database)
    try:
        yield tap
    finally:
        tap.discard()
