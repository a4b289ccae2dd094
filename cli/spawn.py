"""A second command of ours that runs beside this one, with the same Kiebitz."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kiebitz


def start_command(*arguments: str, variable: str, descriptor: int, **options: Any) -> subprocess.Popen[bytes]:
    """Start it: it inherits a descriptor, whose number is in a variable of its environment.

    Nothing of the folder one stands in is imported. The options are those of Popen; raises OSError.
    """
    root = str(Path(kiebitz.__file__).parent.parent)
    paths = filter(None, (root, os.environ.get("PYTHONPATH")))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "kiebitz", *arguments],
        pass_fds=(descriptor,),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), variable: str(descriptor)},
        **options,
    )
