"""A server of `peers` whose fault depends on how often it was started: `planned_server.py PLAN PORT`.

PLAN is a JSON file: {"count": 0, "faults": ["fault of the first start", …]}; the last fault stays. The fault
"ends" lets the program end after a moment.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

PEERS = Path(__file__).parent / "peers"


def is_free(port: int) -> bool:
    with socket.socket(type=socket.SOCK_DGRAM) as trying:
        try:
            trying.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def main() -> None:
    path, port = Path(sys.argv[1]), sys.argv[2]
    plan = json.loads(path.read_text())
    fault = plan["faults"][min(plan["count"], len(plan["faults"]) - 1)]
    plan["count"] += 1
    path.write_text(json.dumps(plan))
    options = ["--port", port, "--players", "2", "--points", "5", "--window", "0.3"]
    planted = ["--fault", fault] if fault and fault != "ends" else []
    server = subprocess.Popen([sys.executable, str(PEERS), "maexchen-server", *options, *planted])
    if fault == "ends":
        while is_free(int(port)):
            time.sleep(0.02)
        time.sleep(0.06)
        server.kill()
    sys.exit(server.wait())


if __name__ == "__main__":
    main()
