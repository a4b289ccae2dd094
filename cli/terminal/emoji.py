"""Detection of terminals that draw emoji in two cells.

No terminal reports this, and one without a font draws the same box for every emoji. So emoji are only used if
the environment names a terminal whose system has such a font and follows Unicode's widths since 2016.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_PROGRAMS = frozenset(("Apple_Terminal", "iTerm.app", "WezTerm", "ghostty", "vscode"))
"""Values of `TERM_PROGRAM`."""

_NAMED_BY = ("WT_SESSION", "KONSOLE_VERSION", "KITTY_WINDOW_ID")
"""Variables set by Windows Terminal, Konsole and kitty."""

_OLDEST_VTE = 5000
"""First version of VTE (GNOME's terminals) that draws emoji."""

_HIDING = ("TMUX", "STY", "XTERM_VERSION")
"""Variables set by tmux, screen and xterm, under which the others may describe another terminal."""

SURROUNDINGS = ("TERM_PROGRAM", "VTE_VERSION", *_NAMED_BY, *_HIDING)
"""Environment variables that are read, in addition to `TERM`."""


def are_drawn(surroundings: Mapping[str, str] = os.environ) -> bool:
    """Return whether the terminal described by the environment draws emoji in two cells."""
    # The Linux console, dumb and nested terminals have other values of TERM.
    if not surroundings.get("TERM", "").startswith("xterm") or any(map(surroundings.get, _HIDING)):
        return False
    version = surroundings.get("VTE_VERSION", "")
    return (
        surroundings.get("TERM_PROGRAM") in _PROGRAMS
        or any(map(surroundings.get, _NAMED_BY))
        or (version.isascii() and version.isdigit() and int(version[:9]) >= _OLDEST_VTE)
    )
