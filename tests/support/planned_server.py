"""A server of `peers` whose fault depends on how often it was started: `planned_server.py PLAN PORT`.

PLAN is a JSON file: {"count": 0, "faults": ["fault of the first start", …]}; the last fault stays.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).parent / "peers"


def main() -> None:
    path, port = Path(sys.argv[1]), sys.argv[2]
    plan = json.loads(path.read_text())
    fault = plan["faults"][min(plan["count"], len(plan["faults"]) - 1)]
    plan["count"] += 1
    path.write_text(json.dumps(plan))
    options = ["--port", port, "--players", "2", "--points", "5", "--window", "0.3"]
    planted = ["--fault", fault] if fault else []
    sys.exit(subprocess.call([sys.executable, str(PEERS), "maexchen-server", *options, *planted]))


if __name__ == "__main__":
    main()
