"""The script that `mitmdump -s "$(kiebitz addon-path)"` loads.

mitmproxy runs it by its path with its own Python, in which Kiebitz may not be installed.
"""

import logging
import shutil
import sys
from pathlib import Path

try:
    from kiebitz.cli.mitm.recording import RecordFlows
    from kiebitz.cli.mitm.view import ShowGames
except ImportError as error:
    command = shutil.which("kiebitz")
    folder = Path(command).resolve().parent if command else None
    if folder is not None and (folder / "mitmdump").exists():
        advice = f"use {folder / 'mitmdump'}, which was installed with Kiebitz"
    else:
        advice = "install Kiebitz with its extra mitmproxy, and use the mitmdump in its environment"
    # mitmproxy exits on an error during start-up.
    logging.error(
        "Kiebitz cannot be imported by this mitmproxy, whose Python is %s (%s): %s",
        sys.executable,
        error,
        advice,
    )
    addons = []
else:
    addons = [ShowGames(), RecordFlows()]
