"""What `mitmdump -s "$(kiebitz addon-path)"` loads: Kiebitz within mitmproxy.

mitmproxy runs this file by its path, with its own Python, which may be one where Kiebitz is not installed.
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
    place = f"{Path(command).with_name('mitmdump')}" if command else "in the folder of the command kiebitz"
    # mitmproxy ends at an error while it starts.
    logging.error(
        "Kiebitz cannot be imported by this mitmproxy, whose Python is %s (%s): "
        "use the mitmdump that was installed with Kiebitz, %s",
        sys.executable,
        error,
        place,
    )
    addons = []
else:
    addons = [ShowGames(), RecordFlows()]
