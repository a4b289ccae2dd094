"""A stand-in for podman: what it runs is not its child, and ignores SIGTERM, like a container.

It is called `podman` in a folder of the path, and writes the options of each run beside itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main(command: str, *words: str) -> int:
    if command == "kill":
        os.kill(int((FOLDER / words[0]).read_text()), signal.SIGKILL)
        return 0
    image = words.index("an-image")
    options = words[:image]
    name = options[options.index("--name") + 1]
    (FOLDER / f"{name}.options").write_text(" ".join(options))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    program = subprocess.Popen(words[image + 1 :], start_new_session=True)
    (FOLDER / name).write_text(str(program.pid))
    status = program.wait()
    (FOLDER / name).unlink()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
