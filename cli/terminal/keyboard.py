"""Detection of a keyboard on stdin."""

from __future__ import annotations

import os
import sys


def has_keyboard() -> bool:
    """Return whether stdin is a terminal and this process is in its foreground."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        # Not a controlling terminal, so there is no job control.
        return True
