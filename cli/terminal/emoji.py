"""Whether a terminal can be trusted with emoji: that it draws them, and that they take two cells there.

No terminal says so, and one without a font draws the same empty box for each. So they are written only where
the surroundings name a terminal whose system comes with such a font, and which gives them two cells as
Unicode has it since 2016.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_PROGRAMS = frozenset(("Apple_Terminal", "iTerm.app", "WezTerm", "ghostty", "vscode"))
"""As `TERM_PROGRAM` has them."""

_NAMED_BY = ("WT_SESSION", "KONSOLE_VERSION", "KITTY_WINDOW_ID")
"""Set by Windows Terminal, Konsole and kitty, for what is started in them."""

_OLDEST_VTE = 5000
"""GNOME's terminals and their kin draw emoji from this version on."""

_HIDING = ("TMUX", "STY", "XTERM_VERSION")
"""Where one of these is set, by tmux, screen or xterm, the rest may be about another terminal."""

SURROUNDINGS = ("TERM_PROGRAM", "VTE_VERSION", *_NAMED_BY, *_HIDING)
"""All that is looked at, beside `TERM`."""


def are_drawn(surroundings: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal that these variables describe draws emoji, each in two cells."""
    # The Linux console, dumb terminals and those inside of others have names of their own.
    if not surroundings.get("TERM", "").startswith("xterm") or any(map(surroundings.get, _HIDING)):
        return False
    version = surroundings.get("VTE_VERSION", "")
    return (
        surroundings.get("TERM_PROGRAM") in _PROGRAMS
        or any(map(surroundings.get, _NAMED_BY))
        or (version.isascii() and version.isdigit() and int(version[:9]) >= _OLDEST_VTE)
    )
