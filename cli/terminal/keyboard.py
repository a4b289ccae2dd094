"""Whether there is a keyboard to read."""

from __future__ import annotations

import os
import sys


def has_keyboard() -> bool:
    """Whether stdin is a terminal that is ours to use: not that of a job in the background."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        # It controls no session, so there are no jobs.
        return True
