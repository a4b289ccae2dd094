"""The life of the process that has started this one."""

from __future__ import annotations

import os
import signal
from threading import Thread

PARENT = "KIEBITZ_PARENT_LIVES"
"""Environment variable with a pipe's descriptor, at end of file when the parent process has exited."""


def end_with_parent() -> None:
    """Terminate this process, as by SIGTERM, when the process that started it has exited."""
    descriptor = os.environ.pop(PARENT, None)
    if descriptor is None:
        return

    def wait() -> None:
        # Nothing is ever written there; reading ends with the process.
        os.read(int(descriptor), 1)
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=wait, name="parent", daemon=True).start()
