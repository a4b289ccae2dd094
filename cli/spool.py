"""The folder beside a database in which a journal is: in use as long as one of its processes holds it.

Whoever was killed holds it no more, and the next relay may remove what it left.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def hold(folder: Path) -> int:
    """Show others that a folder is in use, until the descriptor is closed or the process is over.

    Raises OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def is_abandoned(folder: Path) -> bool:
    """Whether nobody holds a folder. Raises OSError if it cannot be opened."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
