"""Recorded games for Python programs, as typed records.

    import kiebitz

    with kiebitz.open("game.pcap.gz") as session:
        for event in session.events('kind == "rolled"'):
            print(event.time, event.sentence)

`open` opens a capture file, a database, or one of its sessions ("game.db:2"); `import_capture` records a
capture in a database; `diff` compares two sessions by meaning. They raise `KiebitzError`. `kiebitz.hooks` has
the types of a hook, `kiebitz.protocol` the names for your own protocol; everything else is internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kiebitz.api import diff as diff
    from kiebitz.api import import_capture as import_capture
    from kiebitz.api import open as open
    from kiebitz.dissectors.errors import KiebitzError as KiebitzError
    from kiebitz.dissectors.statistics.results import TableStatistics as TableStatistics
    from kiebitz.storage.session.session import Alteration as Alteration
    from kiebitz.storage.session.session import Diagnostic as Diagnostic
    from kiebitz.storage.session.session import Event as Event
    from kiebitz.storage.session.session import Game as Game
    from kiebitz.storage.session.session import Message as Message
    from kiebitz.storage.session.session import Session as Session
    from kiebitz.storage.session.session import Stream as Stream
    from kiebitz.storage.session.session import Table as Table

_WHERE = {
    "KiebitzError": "kiebitz.dissectors.errors",
    "TableStatistics": "kiebitz.dissectors.statistics.results",
    **dict.fromkeys(("open", "import_capture", "diff"), "kiebitz.api"),
    **dict.fromkeys(
        ("Session", "Stream", "Game", "Message", "Alteration", "Event", "Diagnostic", "Table"),
        "kiebitz.storage.session.session",
    ),
}

__all__ = [
    "Alteration",
    "Diagnostic",
    "Event",
    "Game",
    "KiebitzError",
    "Message",
    "Session",
    "Stream",
    "Table",
    "TableStatistics",
    "diff",
    "import_capture",
    "open",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that a command loads only what it needs."""
    if name not in _WHERE:
        raise AttributeError(f"module 'kiebitz' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
